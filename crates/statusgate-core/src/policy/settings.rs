//! The values that the mutating webhook and backfill set by a policy, compared with a schema.

use json_patch::jsonptr::Token;
use serde_json::Value;

use super::Policy;
use super::convention::{Filling, ValueSource};
use crate::documents::{CopySource, Origin};
use crate::model::Pointer;
use crate::schema::{FieldSchema, Schema, Verdict};

/// A field that a policy sets and a schema does not store.
#[derive(Clone, Debug)]
pub struct Misfit {
    /// Whether the API server removes the value. Otherwise it rejects each write that has it.
    pub is_pruned: bool,
    /// One sentence.
    pub message: String,
    /// The fix.
    pub help: String,
}

impl Policy {
    /// The fields that this policy sets and an API server with this schema prunes or rejects.
    pub fn misfits(&self, schema: &Schema) -> Vec<Misfit> {
        let settings = settings(self, schema).into_iter();
        settings.filter_map(|(pointer, values)| mismatch(schema, &pointer, &values)).collect()
    }
}

/// The fields that a policy sets, each with the values to check: none if they depend on the object.
/// List elements have the index 0: one schema applies to all.
fn settings(policy: &Policy, schema: &Schema) -> Vec<(Pointer, Vec<Value>)> {
    let mut settings = Vec::new();
    if let Some(phase) = &policy.convention.phase {
        let imposed = phase.phases.iter().filter(|phase| phase.imposed.is_some());
        let imposed = imposed.map(|phase| phase.name.as_str());
        let names = phase.default.as_deref().into_iter().chain(imposed);
        let names: Vec<Value> = names.map(Value::from).collect();
        if !names.is_empty() {
            settings.push((phase.path.clone(), names));
            if let Some(time) = phase.transition_time.as_ref().filter(|time| time.in_step()) {
                settings.push(((*time.path).clone(), vec![TIME.into()]));
            }
        }
    }
    for default in &policy.backfill {
        match &default.filling {
            Filling::Absent(_)
            | Filling::Steady { .. }
            | Filling::SteadyStatus { .. }
            | Filling::AbsentMember { .. } => {}
            Filling::Field(path, sources) => settings.extend(each(path, sources)),
            // A kind without the list has no elements, so nothing is set.
            Filling::Member { list, .. }
                if matches!(schema.at(list.tokens()), FieldSchema::Pruned) => {}
            Filling::Member { list, member, sources } => {
                settings.extend(in_list(list, member, sources));
            }
            Filling::Element { list, members, .. } => {
                for (member, sources) in members {
                    settings.extend(in_list(list, member, sources));
                }
            }
        }
    }
    settings
}

fn each(path: &Pointer, sources: &[ValueSource]) -> Vec<(Pointer, Vec<Value>)> {
    let values = sources.iter().map(|source| match source {
        ValueSource::Value(value) => vec![value.clone()],
        ValueSource::Copy(CopySource::Origin(
            Origin::CreationTimestamp | Origin::DeletionTimestamp,
        )) => vec![TIME.into()],
        ValueSource::Copy(_) => Vec::new(),
    });
    values.map(|values| (path.clone(), values)).collect()
}

fn in_list(list: &Pointer, member: &str, sources: &[ValueSource]) -> Vec<(Pointer, Vec<Value>)> {
    let path = format!("{list}/0/{}", Token::new(member).encoded()).parse::<Pointer>();
    path.map(|path| each(&path, sources)).unwrap_or_default()
}

/// Why a field with these values does not fit.
fn mismatch(schema: &Schema, pointer: &Pointer, values: &[Value]) -> Option<Misfit> {
    let field = pointer.field();
    if let FieldSchema::Pruned = schema.at(pointer.tokens()) {
        return Some(Misfit {
            is_pruned: true,
            message: format!("{field} is not in the schema: the API server prunes its value"),
            help: format!("add {field} to the CustomResourceDefinition first"),
        });
    }
    values.iter().find_map(|value| match schema.accepts(pointer, value) {
        Verdict::Rejected(_) if value.is_null() => Some(Misfit {
            is_pruned: false,
            message: format!(
                "{field} is not nullable: the API server drops a null from backfill and rejects one \
                 from the webhook"
            ),
            help: format!(
                "set nullable: true on {field} in the schema, or nullable: false in the policy"
            ),
        }),
        Verdict::Rejected(causes) => causes.first().map(|cause| Misfit {
            is_pruned: false,
            message: format!("the API server rejects {}: {}", cause.field, cause.message),
            help: "change the schema first, or use another value in the policy".to_owned(),
        }),
        Verdict::Accepted | Verdict::NotProven(_) => None,
    })
}

/// A time in the format of every time that a policy sets.
const TIME: &str = "2000-01-01T00:00:00Z";
