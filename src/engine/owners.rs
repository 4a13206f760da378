//! Fields that belong to somebody: who else may change them, and what was nobody's doing.

use serde_json::json;

use crate::model::{Json, Object, Pointer, Subject, in_status};
use crate::policy::{Action, Policy, PolicySet};

use super::because::quoted;
use super::conditions::same;
use super::draft::Draft;
use super::judge::fixed;
use super::ratchet::Violation;
use super::{Cause, Verdict, rounds};

/// Judges the change from the second object to the first.
pub(super) fn judge<'p>(
    policies: &PolicySet,
    policy: &'p Policy,
    subject: &Subject<'_>,
    (object, old): (&Object<'_>, &Object<'_>),
    now: i64,
    violations: &mut Vec<Violation<'p>>,
) {
    for owner in &policy.owners {
        let value = in_status(object.status.as_ref(), &owner.path);
        let before = in_status(old.status.as_ref(), &owner.path);
        if same(value, before)
            || owner.writers.include(&subject.writer)
            || is_our_doing(policies, subject, (object, old), &owner.path, now)
        {
            continue;
        }
        let dropped = value.is_none_or(Json::is_null);
        let preserved = |path: &Pointer| path.contains(&owner.path);
        // What the mutating webhook would have restored is no reason to refuse.
        let action = if dropped && policy.preserve.iter().any(preserved) {
            Action::Warn
        } else {
            Action::Deny
        };
        let message = format!("{} does not own this field", quoted(&subject.writer.user));
        let field = owner.path.field().to_owned();
        let found = fixed(&policy.owner_rule, field, Cause::Forbidden, message, action.into());
        violations.push(Violation { ratcheted: false, ..found });
    }
}

/// Whether a field is what the mutating webhook makes of it where the writer leaves it as it is stored:
/// a default, a member taken out, a repaired phase. Asked only of what would be refused.
fn is_our_doing(
    policies: &PolicySet,
    subject: &Subject<'_>,
    (object, old): (&Object<'_>, &Object<'_>),
    path: &Pointer,
    now: i64,
) -> bool {
    let mut left = Draft::new(object);
    match in_status(old.status.as_ref(), path) {
        Some(before) if before.is_whole() => left.set(path, before.to_value()),
        Some(_) => return false,
        None => left.remove(path),
    }
    let Ok(Some(left)) = left.finish() else { return false };
    let text = left.status.to_string();
    let Ok(status) = Json::parse(&text) else { return false };
    let subject = Subject {
        resource: subject.resource.clone(),
        subresource: subject.subresource.clone(),
        operation: subject.operation,
        writer: subject.writer.clone(),
        object: with_status(object, Some(status)),
        old: Some(with_status(old, old.status.clone())),
    };
    let mut verdict = Verdict::default();
    rounds::run(policies, &subject, now, &mut verdict);
    let Some(patch) = verdict.patch else { return false };
    let mut made = json!({"status": left.status});
    if json_patch::patch(&mut made, &patch).is_err() {
        return false;
    }
    let found = made.pointer(&path.to_string()).filter(|found| !found.is_null());
    let value = in_status(object.status.as_ref(), path).filter(|value| !value.is_null());
    match value {
        Some(value) => value.is_whole() && found == Some(&value.to_value()),
        None => found.is_none(),
    }
}

fn with_status<'a>(object: &Object<'a>, status: Option<Json<'a>>) -> Object<'a> {
    Object {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
        metadata: object.metadata.clone(),
        spec: object.spec.clone(),
        status,
    }
}
