//! Changes of the mutating webhook that the API server would reject.
//!
//! The writer would get its error, about a value that it never sent. Two kinds are found: a value that the schema of
//! its place rejects, and an object or list around it that is invalid, for example because it lacks a member that a newer
//! schema requires. The API server forgives such a fault only as long as nothing in that object changes.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, ReplaceOperation};
use serde_json::Value;

use super::check::{At, Check};
use super::node::is_index;
use super::path::Path;
use super::{Cause, FieldSchema, Node, Schema, Verdict};
use crate::model::{Json, Pointer};

/// Up to this many values, an object is copied to evaluate `anyOf` and its like. A copy of a large status would need far
/// more memory than its review.
const MAX_COPIED: usize = 10_000;

/// A change that the API server rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which of the changes.
    pub change: usize,
    /// The pointer of what is invalid: the field itself, or an object or a list around it.
    pub place: String,
    /// Why.
    pub cause: Cause,
}

impl Schema {
    /// The same schema without the fields beside these: it takes little memory.
    #[must_use]
    pub fn around(&self, fields: &[Pointer]) -> Self {
        let paths: Vec<&[String]> = fields.iter().map(Pointer::tokens).collect();
        Self { root: self.root.around(&paths).into(), minor: self.minor, scale: None }
    }

    /// These changes for which the API server rejects a status, if that is certain. `status` has all of them.
    pub fn refuses(&self, changes: &[PatchOperation], status: &Json<'_>) -> Vec<Refusal> {
        let refused = changes.iter().enumerate().filter_map(|(change, operation)| {
            let tokens: Vec<String> =
                operation.path().tokens().map(|token| token.decoded().into_owned()).collect();
            let (depth, cause) = self.refuses_around(&tokens, status).or_else(|| {
                Some((tokens.len(), self.refuses_value(operation, &tokens, status)?))
            })?;
            let place = PointerBuf::from_tokens(&tokens[..depth]).to_string();
            Some(Refusal { change, place, cause })
        });
        refused.collect()
    }

    /// What is wrong with an object or a list around a field of a status, and its depth.
    fn refuses_around(&self, tokens: &[String], status: &Json<'_>) -> Option<(usize, Cause)> {
        (1..tokens.len()).find_map(|depth| {
            let FieldSchema::Declared(node) = self.at(&tokens[..depth]) else { return None };
            let field = tokens[..depth].join(".");
            let path = Path::Root { field: &field, name: &field };
            Some((depth, node.own_fault(status.at(&tokens[1..depth])?, &path)?))
        })
    }

    /// What is wrong with a value that was set.
    fn refuses_value(
        &self,
        operation: &PatchOperation,
        tokens: &[String],
        status: &Json<'_>,
    ) -> Option<Cause> {
        let (PatchOperation::Add(AddOperation { value, .. })
        | PatchOperation::Replace(ReplaceOperation { value, .. })) = operation
        else {
            return None;
        };
        // A stored status that is restored replaces the written one.
        if tokens.len() == 1 && !matches!(operation, PatchOperation::Add(_)) {
            return None;
        }
        // Later changes may have added to a parent that was created.
        let value = match value {
            Value::Object(_) => status.at(tokens.get(1..)?)?.to_value(),
            value => value.clone(),
        };
        match self.accepts(&Pointer::from_tokens(tokens.to_vec()), &value) {
            Verdict::Rejected(causes) => causes.into_iter().next(),
            Verdict::Accepted | Verdict::NotProven(_) => None,
        }
    }
}

impl Node {
    /// The same schema without the fields beside these.
    fn around(&self, paths: &[&[String]]) -> Self {
        if paths.iter().any(|path| path.is_empty()) {
            return self.clone();
        }
        let firsts = paths.iter().filter_map(|path| path.split_first());
        let below = |node: &Self, is_here: &dyn Fn(&str) -> bool| {
            let here = firsts.clone().filter(|(first, _)| is_here(first));
            let rests: Vec<&[String]> = here.map(|(_, rest)| rest).collect();
            (!rests.is_empty()).then(|| node.around(&rests))
        };
        let properties = self.properties.iter().filter_map(|(name, node)| {
            Some((name.clone(), below(node, &|first| first == &**name)?))
        });
        let items = self.items.as_ref().and_then(|node| below(node, &is_index));
        let additional = self.additional.as_ref();
        let additional =
            additional.and_then(|node| below(node, &|first| self.property(first).is_none()));
        Self {
            properties: properties.collect(),
            items: items.map(Box::new),
            additional: additional.map(Box::new),
            default: None,
            ..self.clone()
        }
    }

    /// What is wrong with an object or a list, apart from its members and elements.
    fn own_fault(&self, value: &Json<'_>, path: &Path<'_>) -> Option<Cause> {
        let mut check = Check::default();
        match value {
            Json::Object(members) => {
                check.members(self, members.len(), |name| members.get(name).is_some(), path);
            }
            Json::Array(items) => check.elements(self, items.len(), path),
            _ => return None,
        }
        if !self.junctors.is_empty() && value.is_whole() && is_small(value, &mut MAX_COPIED.clone())
        {
            let value: Value = value.to_value();
            check.junctors(At { node: self, value: &value, old: None, path });
        }
        check.faults.into_iter().find(|fault| fault.is_proven).map(|fault| fault.cause)
    }
}

fn is_small(value: &Json<'_>, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match value {
        Json::Array(items) => items.iter().all(|item| is_small(item, left)),
        Json::Object(members) => members.iter().all(|(_, value)| is_small(value, left)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use json_patch::PatchOperation;
    use serde_json::{Value, json};

    use super::*;
    use crate::schema::NEWEST;

    /// The field and the message of the cause for which an addition to a status is refused.
    fn refused(status: &Value, at: &str, value: &Value, stored: &Value) -> Option<String> {
        let whole = Schema::of_status(status, NEWEST);
        let narrow = whole.around(&[at.parse().unwrap()]);
        let change: PatchOperation =
            serde_json::from_value(json!({"op": "add", "path": at, "value": value})).unwrap();
        let mut patched = json!({"status": stored});
        json_patch::patch(&mut patched, std::slice::from_ref(&change)).unwrap();
        let text = patched["status"].to_string();
        let patched = Json::parse(&text).unwrap();
        let of = |schema: &Schema| {
            let Refusal { cause, .. } =
                schema.refuses(std::slice::from_ref(&change), &patched).into_iter().next()?;
            Some(format!("{}: {}", cause.field, cause.message))
        };
        assert_eq!(of(&whole), of(&narrow), "the schema around the field decides the same");
        of(&narrow)
    }

    #[test]
    fn a_value_is_refused_that_the_schema_of_its_place_rejects() {
        for (phase, says) in [
            (json!({"type": "string", "enum": ["Ready"]}), "Unsupported value"),
            (json!({"type": "integer"}), "must be of type integer"),
            (json!({"type": "string", "maxLength": 3}), "may not be more than 3"),
            (json!({"type": "string", "pattern": "^R"}), "should match '^R'"),
            (json!({"type": "string", "format": "date"}), "must be of type date"),
            (
                json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != 'Unknown'", "message": "no"}]}),
                "no",
            ),
        ] {
            let status = json!({"type": "object", "properties": {"phase": phase}});
            let found = refused(&status, "/status/phase", &json!("Unknown"), &json!({}));
            assert!(found.as_ref().is_some_and(|found| found.contains(says)), "{found:?} {says}");
        }
        let open = json!({"type": "object", "properties": {"phase": {"type": "string"}}});
        assert_eq!(refused(&open, "/status/phase", &json!("Unknown"), &json!({})), None);
        let null = json!({"type": "object", "properties": {"billing": {"type": "object"}}});
        assert!(refused(&null, "/status/billing", &json!(null), &json!({})).is_some());
    }

    #[test]
    fn a_sound_value_is_refused_where_something_around_it_is_invalid() {
        let phase = json!({"phase": {"type": "string"}, "id": {"type": "string"}});
        let status = |more: &Value| {
            let mut status = json!({"type": "object", "properties": phase});
            status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            status
        };
        let invalid = json!({"other": 1});
        for (more, stored) in [
            (json!({"required": ["id"]}), &invalid),
            (json!({"maxProperties": 1}), &invalid),
            (json!({"anyOf": [{"required": ["id"]}]}), &invalid),
            (
                json!({"oneOf": [{"required": ["id"]}, {"required": ["phase"]}]}),
                &json!({"id": "1"}),
            ),
        ] {
            let found = refused(&status(&more), "/status/phase", &json!("A"), stored);
            assert!(found.is_some(), "{more}");
        }
        let sound = status(&json!({"required": ["id"], "anyOf": [{"required": ["id"]}]}));
        assert_eq!(refused(&sound, "/status/phase", &json!("A"), &json!({"id": "1"})), None);
        // An element of a list, and a parent that the change creates.
        let list = json!({"type": "object", "properties": {"conditions": {"type": "array", "items":
            {"type": "object", "required": ["reason"], "properties": {"time": {"type": "string"}}}}}});
        let stored = json!({"conditions": [{"type": "Ready"}]});
        let found = refused(&list, "/status/conditions/0/time", &json!("now"), &stored);
        assert_eq!(found.as_deref(), Some("status.conditions.0.reason: Required value"));
        let parent = json!({"type": "object", "properties": {"billing": {"type": "object", "required": ["id"],
            "properties": {"plan": {"type": "string"}}}}});
        let found = refused(&parent, "/status/billing", &json!({"plan": "x"}), &json!({}));
        assert_eq!(found.as_deref(), Some("status.billing.id: Required value"));
    }

    #[test]
    fn a_large_object_is_not_copied() {
        let any = json!({"type": "object", "properties": {"phase": {"type": "string"}}, "anyOf": [{"required": ["id"]}]});
        let items = |count: usize| json!({"items": vec![0; count]});
        let found = |count| refused(&any, "/status/phase", &json!("A"), &items(count));
        assert!(found(MAX_COPIED - 4).is_some() && found(MAX_COPIED).is_none());
    }

    #[test]
    fn the_schema_around_a_field_has_nothing_else() {
        let fields: serde_json::Map<String, Value> =
            (0..100).map(|index| (format!("field{index}"), json!({"type": "string"}))).collect();
        let schema = Schema::of_status(&json!({"type": "object", "properties": fields}), NEWEST);
        let narrow = schema.around(&["/status/field7".parse().unwrap()]);
        let status = narrow.root.property("status").unwrap();
        assert_eq!((narrow.root.properties.len(), status.properties.len()), (1, 1));
        let pruned = schema.around(&["/status/none".parse().unwrap()]);
        assert!(matches!(
            pruned.at(&["status".to_owned(), "none".to_owned()]),
            FieldSchema::Pruned
        ));
    }
}
