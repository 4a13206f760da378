//! The values that the mutating webhook and backfill set by a policy, compared with a schema.

use serde_json::{Value, json};

use super::Policy;
use super::convention::{Backfill, Filling, ValueSource};
use crate::documents::{CopySource, Origin};
use crate::language::{AnyWord, Predicate};
use crate::model::{Pointer, Resource};
use crate::schema::{FieldSchema, REQUIRED, Schema, Verdict};

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
    /// The fields of a resource that this policy sets and an API server with this schema prunes or rejects.
    pub fn misfits(&self, resource: &Resource<'_>, schema: &Schema) -> Vec<Misfit> {
        let settings = settings(self, Some(resource));
        let incomplete = incomplete(&settings, schema);
        let settings = settings.into_iter();
        // A kind without a list has no elements, so nothing is set.
        let settings = settings.filter(|setting| {
            let list = setting.in_list.as_ref();
            list.is_none_or(|list| !matches!(schema.at(list.tokens()), FieldSchema::Pruned))
        });
        settings
            .filter_map(|Setting { field, values, .. }| mismatch(schema, &field, &values))
            .chain(incomplete)
            .collect()
    }

    /// The fields that the webhook sets or removes. List elements have the index 0: one schema applies to all.
    pub(crate) fn fields_to_change(&self) -> Vec<Pointer> {
        let removed = self.backfill.iter().filter_map(|default| match &default.filling {
            Filling::Absent(path) => Some(path.clone()),
            Filling::AbsentMember { list, member, .. } => Some(member_of(list, member)),
            Filling::Unique(list) => Some(list.clone()),
            _ => None,
        });
        let set = settings(self, None).into_iter().map(|setting| setting.field);
        set.chain(removed).collect()
    }
}

/// A field that a policy sets.
struct Setting {
    field: Pointer,
    /// The values that do not depend on the object.
    values: Vec<Value>,
    /// The list, if only its elements get the value.
    in_list: Option<Pointer>,
}

/// The fields that a policy sets, in the objects of one resource or of any.
fn settings(policy: &Policy, resource: Option<&Resource<'_>>) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut set = |field: Pointer, values: Vec<Value>, in_list: Option<&Pointer>| {
        settings.push(Setting { field, values, in_list: in_list.cloned() });
    };
    if let Some(rules) = &policy.convention.phase {
        let phases = rules.phases.iter();
        let phases = phases.filter(|phase| {
            phase.imposed.is_some() || (policy.repairs() && rules.can_repair_to(phase))
        });
        let names = rules.default.as_deref().into_iter().chain(phases.map(|phase| &*phase.name));
        let names: Vec<Value> = names.map(Value::from).collect();
        if !names.is_empty() {
            set(rules.path.clone(), names, None);
            rules.other_paths.iter().for_each(|path| set(path.clone(), Vec::new(), None));
            if let Some(time) = rules.transition_time.as_ref().filter(|time| time.in_step()) {
                set((*time.path).clone(), vec![TIME.into()], None);
            }
        }
    }
    let defaults = policy.backfill.iter();
    for default in defaults.filter(|default| resource.is_none_or(|of| default.may_apply_to(of))) {
        match &default.filling {
            Filling::Absent(_)
            | Filling::Steady { .. }
            | Filling::SteadyStatus { .. }
            | Filling::AbsentMember { .. }
            | Filling::Unique(_) => {}
            Filling::Field(path, sources) => set(path.clone(), values_of(sources), None),
            Filling::Member { list, member, sources } => {
                set(member_of(list, member), values_of(sources), Some(list));
            }
            Filling::Element { list, members, .. } => {
                for (member, sources) in members {
                    set(member_of(list, member), values_of(sources), None);
                }
            }
        }
    }
    settings
}

impl Backfill {
    /// Whether it may apply to objects of a resource, as far as `when` names resources.
    fn may_apply_to(&self, resource: &Resource<'_>) -> bool {
        let parts = self.when.iter().flat_map(Predicate::conjuncts);
        parts.into_iter().all(|part| match part.words() {
            [AnyWord::ResourceName(of)] => {
                of.resource.iter().any(|glob| glob.matches(&resource.resource))
            }
            _ => true,
        })
    }
}

/// The objects below the status that the webhook creates, without a member that the schema requires.
fn incomplete(settings: &[Setting], schema: &Schema) -> Vec<Misfit> {
    let mut created = json!({});
    for Setting { field, values, in_list } in settings {
        let below = field.below_status();
        if let (Some(value), None, [_, _, ..]) = (values.first(), in_list, below)
            && !field.may_have_index()
        {
            let mut place = &mut created;
            for name in below {
                // A name of a text would panic: one default is the parent of the other.
                if !matches!(place, Value::Null | Value::Object(_)) {
                    break;
                }
                place = &mut place[name];
            }
            *place = value.clone();
        }
    }
    let objects = created.as_object().into_iter().flatten();
    let found = objects.filter_map(|(name, value)| {
        let field = Pointer::from_tokens(vec!["status".to_owned(), name.clone()]);
        let Verdict::Rejected(causes) = schema.accepts(&field, value) else { return None };
        let missing = causes.iter().find(|cause| cause.reason == REQUIRED)?;
        Some(Misfit {
            is_pruned: false,
            message: format!("the API server rejects {} without {}", field.field(), missing.field),
            help: format!("add a default for {}, before the others of this object", missing.field),
        })
    });
    found.collect()
}

fn values_of(sources: &[ValueSource]) -> Vec<Value> {
    let values = sources.iter().filter_map(|source| match source {
        ValueSource::Value(value) => Some(value.clone()),
        ValueSource::Copy(CopySource::Origin(
            Origin::Transition | Origin::CreationTimestamp | Origin::DeletionTimestamp,
        )) => Some(TIME.into()),
        ValueSource::Copy(_) => None,
    });
    values.collect()
}

fn member_of(list: &Pointer, member: &str) -> Pointer {
    let names = list.tokens().iter().map(String::as_str).chain(["0", member]);
    Pointer::from_tokens(names.map(str::to_owned).collect())
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
