//! What a schema does to stored objects, and to writes that were recorded under another one: the rehearsal of an
//! upgrade of a CustomResourceDefinition.

use serde_json::Value;

use super::{Action, Cause, Found};
use crate::policy::Defined;
use crate::schema::{self, Endpoint, Origin, Outcome, REQUIRED, Sender, Verdict, Write};

/// The rule of an object that no write may leave as it is.
const EVERY_WRITE: &str = "crd/every-write";
/// The rule of a value that stays, but that no write may touch.
const NEXT_CHANGE: &str = "crd/next-change";
/// The rule of a recorded write.
const WRITE: &str = "crd/write";
/// The rule of a field that is lost.
const PRUNED: &str = "crd/pruned";

/// The ids of these rules.
pub const REHEARSED: [&str; 4] = [EVERY_WRITE, NEXT_CHANGE, WRITE, PRUNED];

/// The fields of an object of which it is said that they are lost.
const MAX_PRUNED: usize = 16;

/// A stored object under a new schema.
#[derive(Clone, Copy, Debug)]
pub struct Rehearsal<'r> {
    /// The new schema.
    pub defined: &'r Defined,
    /// A policy that selects the object, for the findings.
    pub policy: &'r str,
    /// Whether the status is written through `/status`.
    pub has_subresource: bool,
}

impl Rehearsal<'_> {
    /// What happens to writes of a stored object. `backfilled`: the object as backfill leaves it, if that writes it.
    pub fn stored(&self, stored: &Value, backfilled: Option<&Value>) -> Vec<Found> {
        let old = match self.defined.schema.read(stored, Origin::This) {
            Ok(old) => old,
            Err(verdict) => {
                let causes = rejected(verdict).into_iter();
                return causes
                    .map(|cause| self.found(EVERY_WRITE, "it cannot even be read", &cause))
                    .collect();
            }
        };
        let mut findings = self.lost(stored, &old);
        let main = self.judge(&old, &old, Sender::Client, Endpoint::Main);
        let mut every = rejected(main.verdict);
        for cause in &every {
            findings.push(self.found(
                EVERY_WRITE,
                "every write is rejected, also of metadata",
                cause,
            ));
        }
        let (endpoint, mut forgiven) = (self.endpoint(), main.forgiven);
        if endpoint == Endpoint::Status {
            let status = self.judge(&old, &old, Sender::Client, endpoint);
            let mut of_status = rejected(status.verdict);
            of_status.retain(|cause| !every.contains(cause));
            (every, forgiven) = (of_status, status.forgiven);
        } else {
            every.clear();
        }
        let left = backfilled.map(|object| self.judge(object, &old, Sender::Webhook, endpoint));
        let left = left.map(|outcome| [rejected(outcome.verdict), outcome.forgiven].concat());
        for (rule, causes) in [(EVERY_WRITE, every), (NEXT_CHANGE, forgiven)] {
            for cause in causes.iter().filter(|cause| cause.field.starts_with("status")) {
                let what = match cause.field.rsplit_once('.') {
                    _ if rule == EVERY_WRITE => "every write of the status is rejected".to_owned(),
                    // The API server keeps an object without it only while nothing in the object changes.
                    Some((object, _)) if cause.reason == REQUIRED => format!(
                        "a write that changes anything in {object} and does not set this is rejected"
                    ),
                    _ => "a write that changes it or its list is rejected".to_owned(),
                };
                let is_repaired = left.as_ref().is_some_and(|left| !left.contains(cause));
                let until = if is_repaired { " until backfill repairs it" } else { "" };
                findings.push(self.found(rule, &format!("{what}{until}"), cause));
            }
        }
        findings
    }

    /// What happens to a recorded write.
    pub fn write(&self, object: &Value, stored: &Value) -> Vec<Found> {
        let Ok(old) = self.defined.schema.read(stored, Origin::This) else { return Vec::new() };
        let outcome = self.judge(object, &old, Sender::Client, self.endpoint());
        let mut findings = self.lost(object, &outcome.stored);
        let causes = rejected(outcome.verdict).into_iter();
        findings.extend(causes.map(|cause| self.found(WRITE, "this write is rejected", &cause)));
        findings
    }

    /// The fields of a status that are not in what is read or stored of it.
    fn lost(&self, whole: &Value, left: &Value) -> Vec<Found> {
        let mut fields = Vec::new();
        match left.get("status") {
            None if !whole["status"].is_null() => fields.push("status".to_owned()),
            left => pruned("status", &whole["status"], left.unwrap_or_default(), &mut fields),
        }
        let more = if fields.len() > MAX_PRUNED { "; more fields are lost" } else { "" };
        let lost = fields.into_iter().take(MAX_PRUNED).map(|field| Found {
            policy: self.policy.to_owned(),
            rule: PRUNED.to_owned(),
            action: Action::Warn,
            message: format!(
                "the schema of {} does not have this field, so its value is lost{more}",
                self.defined.name
            ),
            field,
            cause: Cause::Invalid,
            others: Vec::new(),
        });
        lost.collect()
    }

    const fn endpoint(&self) -> Endpoint {
        if self.has_subresource { Endpoint::Status } else { Endpoint::Main }
    }

    fn judge(&self, object: &Value, old: &Value, sender: Sender, endpoint: Endpoint) -> Outcome {
        self.defined.schema.judge(&Write { object, old: Some(old), sender, endpoint })
    }

    fn found(&self, rule: &str, what: &str, cause: &schema::Cause) -> Found {
        Found {
            policy: self.policy.to_owned(),
            rule: rule.to_owned(),
            action: if rule == NEXT_CHANGE { Action::Warn } else { Action::Deny },
            field: cause.field.clone(),
            cause: Cause::of_reason(cause.reason),
            message: format!("with the schema of {}, {what}: {}", self.defined.name, cause.message),
            others: Vec::new(),
        }
    }
}

/// The fields of a stored value that are not in what is read of it. A null counts as absent.
fn pruned(path: &str, stored: &Value, read: &Value, found: &mut Vec<String>) {
    match (stored, read) {
        (Value::Object(stored), Value::Object(read)) => {
            for (name, value) in stored.iter().filter(|(_, value)| !value.is_null()) {
                let path = format!("{path}.{name}");
                match read.get(name) {
                    Some(read) => pruned(&path, value, read, found),
                    None if found.len() <= MAX_PRUNED => found.push(path),
                    None => {}
                }
            }
        }
        (Value::Array(stored), Value::Array(read)) => {
            for (index, (value, read)) in stored.iter().zip(read).enumerate() {
                pruned(&format!("{path}[{index}]"), value, read, found);
            }
        }
        _ => {}
    }
}

/// The causes of a rejection. What is not proven is none.
fn rejected(verdict: Verdict) -> Vec<schema::Cause> {
    if let Verdict::Rejected(causes) = verdict { causes } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The rules and fields of the findings about a stored status, with a schema of its properties.
    fn found(
        minor: u32,
        status: &Value,
        stored: &Value,
        backfilled: Option<&Value>,
    ) -> Vec<String> {
        let definition = json!({"spec": {"group": "a.io", "names": {"plural": "things"}, "versions": [{"name": "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}}}]}});
        let defined = Defined::served(&definition, minor).remove(0);
        let rehearsal = Rehearsal { defined: &defined, policy: "p", has_subresource: true };
        let object = |status: &Value| json!({"apiVersion": "a.io/v1", "kind": "Thing", "metadata": {"name": "x"}, "status": status});
        let backfilled = backfilled.map(object);
        let found = rehearsal.stored(&object(stored), backfilled.as_ref());
        let found = found.into_iter().map(|found| {
            let heals = if found.message.contains("until backfill") { " healed" } else { "" };
            format!("{} {}{heals}", found.rule, found.field)
        });
        found.collect()
    }

    #[test]
    fn a_kept_value_passes_from_1_33_on_and_backfill_heals_what_it_replaces() {
        let phase = json!({"type": "object", "properties": {"phase": {"type": "string", "enum": ["Ready"]}}});
        let stored = json!({"phase": "Old"});
        let kept = ["crd/next-change status.phase"];
        assert_eq!(found(36, &phase, &stored, None), kept);
        assert_eq!(found(32, &phase, &stored, None), ["crd/every-write status.phase"]);
        assert_eq!(
            found(29, &phase, &stored, None),
            ["crd/every-write status.phase"],
            "before 1.30, writes of metadata fail, too"
        );
        let healed = json!({"phase": "Ready"});
        assert_eq!(
            found(36, &phase, &stored, Some(&healed)),
            ["crd/next-change status.phase healed"]
        );
        assert_eq!(found(36, &phase, &healed, None), [""; 0]);
    }

    #[test]
    fn a_new_required_member_needs_backfill_unless_it_has_a_default() {
        let with = |id: &Value| json!({"type": "object", "required": ["id"], "properties": {"id": id, "phase": {"type": "string"}}});
        let (stored, text) = (json!({"phase": "Up"}), json!({"type": "string"}));
        let healed = json!({"phase": "Up", "id": "1"});
        assert_eq!(
            found(36, &with(&text), &stored, Some(&healed)),
            ["crd/next-change status.id healed"]
        );
        assert_eq!(
            found(36, &with(&json!({"type": "string", "default": "0"})), &stored, None),
            [""; 0]
        );
    }

    #[test]
    fn a_field_that_the_schema_does_not_have_is_lost() {
        let node = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let status = json!({"type": "object", "properties": {"nodes": {"type": "array", "items": node},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        let stored = json!({"old": {"a": 1}, "none": null, "raw": {"any": 1}, "nodes": [{"name": "a"}, {"name": "b", "zone": "z"}]});
        assert_eq!(
            found(36, &status, &stored, None),
            ["crd/pruned status.nodes[1].zone", "crd/pruned status.old"]
        );
        let gone = json!({"spec": {"group": "a.io", "names": {"plural": "things"}, "versions": [{"name": "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}]}});
        let defined = Defined::served(&gone, 36).remove(0);
        let rehearsal = Rehearsal { defined: &defined, policy: "p", has_subresource: true };
        let lost = rehearsal.stored(&json!({"metadata": {"name": "x"}, "status": {"a": 1}}), None);
        assert_eq!((&*lost[0].rule, &*lost[0].field), ("crd/pruned", "status"));
        let free = json!({"x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(found(36, &free, &stored, None), [""; 0]);
        let many: Value = (0..40).map(|number| (format!("f{number}"), json!(1))).collect();
        assert_eq!(found(36, &status, &many, None).len(), MAX_PRUNED);
    }

    #[test]
    fn what_is_never_forgiven_fails_every_write() {
        let list = json!({"type": "object", "properties": {"conditions": {"type": "array",
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type", "scope"],
            "items": {"type": "object", "required": ["type", "scope"], "properties": {"type": {"type": "string"}, "scope": {"type": "string"}}}}}});
        let found = found(36, &list, &json!({"conditions": [{"type": "Ready"}]}), None);
        assert!(found.iter().any(|found| found.starts_with("crd/every-write")), "{found:?}");
    }

    #[test]
    fn a_recorded_write_is_judged_with_the_object_that_was_stored() {
        let definition = json!({"spec": {"group": "a.io", "names": {"plural": "things"}, "versions": [{"name": "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": {"type": "object",
            "properties": {"phase": {"type": "string", "enum": ["Ready"]}, "code": {"type": "integer"}}}}}}}]}});
        let defined = Defined::served(&definition, 36).remove(0);
        let rehearsal = Rehearsal { defined: &defined, policy: "p", has_subresource: true };
        let object = |status: Value| json!({"metadata": {"name": "x"}, "status": status});
        let stored = object(json!({"phase": "Old", "code": 1}));
        assert!(rehearsal.write(&object(json!({"phase": "Old", "code": 2})), &stored).is_empty());
        let lost = rehearsal.write(&object(json!({"phase": "Old", "other": 2})), &stored);
        assert_eq!((&*lost[0].rule, &*lost[0].field), ("crd/pruned", "status.other"));
        let found = rehearsal.write(&object(json!({"phase": "New"})), &stored);
        assert_eq!(
            (&*found[0].rule, found[0].action, found[0].cause),
            ("crd/write", Action::Deny, Cause::NotSupported)
        );
    }
}
