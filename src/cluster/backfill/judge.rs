//! The change that the mutating webhook would make to a stored object, as a patch.

use hyper::body::Bytes;
use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, TestOperation};

use super::change::{StatusChange, changes};
use super::{Outcome, Report, Target};
use statusgate_core::engine::{Action, PatchFailed, Verdict, decide};
use statusgate_core::model::{Json, Metadata, Object, Webhook, Writer};
use statusgate_core::policy::PolicySet;

/// The writer for policies with `writers`: the service account of `deploy/backfill`, regardless of the
/// actual user.
pub const WRITER: &str = "system:serviceaccount:statusgate-system:statusgate-backfill";

/// One object, judged.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) object: Named,
    /// The policies that judged it, by their index in the set.
    pub(super) policies: Vec<u16>,
    /// The message about a repaired phase.
    pub(super) repair: Option<String>,
    pub(super) todo: Todo,
}

/// The object and its version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
}

/// The required change.
#[derive(Clone, Debug)]
pub(super) enum Todo {
    Nothing,
    /// A JSON patch that starts with guards.
    Patch {
        body: Bytes,
        changes: Vec<StatusChange>,
    },
    /// It cannot be judged, with the reason.
    Broken(String),
}

/// Judges a stored object.
pub(super) fn judge(
    policies: &PolicySet,
    target: &Target,
    object: Object<'_>,
    now: Timestamp,
) -> Judged {
    let Metadata { namespace, name, uid, resource_version, .. } = &object.metadata;
    let named = Named {
        namespace: namespace.to_string(),
        name: name.to_string(),
        uid: uid.to_string(),
        resource_version: resource_version.to_string(),
    };
    let writer = Writer { user: WRITER.into(), groups: Vec::new() };
    let subject = match object.judgeable() {
        Ok(object) => target.subject(object, writer),
        // One object that is too large must not end the run.
        Err(error) => {
            let todo = Todo::Broken(format!("cannot be judged: {error}"));
            let policies = target.policies.clone();
            return Judged { object: named, policies, repair: None, todo };
        }
    };
    let verdict = decide(policies, &subject, Webhook::Mutate, now);
    let todo = todo(&subject.object, &named, &verdict);
    let repair = verdict.findings.into_iter().find(|found| found.action == Action::Repair);
    let repair = repair.map(|found| found.message);
    Judged { object: named, policies: verdict.policies, repair, todo }
}

fn todo(object: &Object<'_>, named: &Named, verdict: &Verdict<'_>) -> Todo {
    if verdict.patch_failed {
        return Todo::Broken(PatchFailed.to_string());
    }
    let Some(patch) = &verdict.patch else { return Todo::Nothing };
    // A null and a missing member differ.
    let old = object.status.as_ref().map(Json::to_value);
    let new = verdict.status.as_ref().map(Json::to_value);
    let changes = changes("/status", old.as_ref(), new.as_ref());
    match body(named, &patch.0) {
        Ok(body) => Todo::Patch { body, changes },
        Err(error) => Todo::Broken(format!("cannot be written as JSON: {error}")),
    }
}

/// The operations after two tests: of the uid, because another object may have the name now, and of the
/// version, because the judged object must be the changed one.
fn body(named: &Named, operations: &[PatchOperation]) -> serde_json::Result<Bytes> {
    let guard = |member: &str, value: &str| {
        let path = PointerBuf::from_tokens(["metadata", member]);
        PatchOperation::Test(TestOperation { path, value: value.into() })
    };
    let guards = [guard("uid", &named.uid), guard("resourceVersion", &named.resource_version)];
    let all: Vec<&PatchOperation> = guards.iter().chain(operations).collect();
    serde_json::to_vec(&all).map(Bytes::from)
}

impl Judged {
    /// The result.
    pub(super) fn report(self, outcome: Outcome, conflicts: u32) -> Report {
        let Self { object, policies, repair, todo } = self;
        let changes = match todo {
            Todo::Patch { changes, .. } => changes,
            Todo::Nothing | Todo::Broken(_) => Vec::new(),
        };
        Report { object, policies, outcome, repair, conflicts, changes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Judged {
        judged_by(&PolicySet::compile(&PolicySet::examples()).unwrap(), text)
    }

    fn judged_by(policies: &PolicySet, text: &str) -> Judged {
        let group = "vshn.appcat.vshn.io".into();
        let target = Target { group, ..Target::example("vshnredis") };
        judge(policies, &target, Object::parse(text).unwrap(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_object_without_a_phase_gets_a_guarded_patch() {
        let judged = judged(
            r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{}}"#,
        );
        let Todo::Patch { body, changes } = judged.todo else { panic!("{judged:?}") };
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            concat!(
                r#"[{"op":"test","path":"/metadata/uid","value":"u"},"#,
                r#"{"op":"test","path":"/metadata/resourceVersion","value":"7"},"#,
                r#"{"op":"add","path":"/status","value":{}},"#,
                r#"{"op":"add","path":"/status/phase","value":"Unknown"}]"#
            )
        );
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].path, "/status/phase");
        assert_eq!(judged.policies.len(), 1);
    }

    const DISAGREES: &str = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"status":{"phase":"Ready",
        "lastTransitionTime":"2024-01-01T00:00:00Z","conditions":[{"type":"Ready","status":"False",
        "reason":"No","lastTransitionTime":"2024-01-01T00:00:00Z"}]}}"#;

    #[test]
    fn a_stored_disagreement_is_not_changed() {
        let judged = judged(DISAGREES);
        assert!(matches!(judged.todo, Todo::Nothing), "{judged:?}");
    }

    #[test]
    fn a_stored_disagreement_is_changed_if_the_policies_repair_it() {
        let examples = || PolicySet::compile(&PolicySet::examples()).unwrap();
        let judged = judged_by(&examples().repairing(), DISAGREES);
        assert_eq!(
            judged.repair.as_deref(),
            Some("set to \"Provisioning\": phase Ready disagrees: condition Ready is False")
        );
        let change = |path: &str, old: &str, new: &str| StatusChange {
            path: path.to_owned(),
            old: Some(old.into()),
            new: Some(new.into()),
        };
        let time = ("2024-01-01T00:00:00Z", "1970-01-01T00:00:00Z");
        assert_eq!(
            judged.report(Outcome::Patched, 0).changes,
            [
                change("/status/lastTransitionTime", time.0, time.1),
                change("/status/phase", "Ready", "Provisioning"),
            ]
        );
        let repaired = DISAGREES.replace("\"Ready\",\n", "\"Provisioning\",\n");
        let judged = judged_by(&examples().repairing(), &repaired);
        assert!(matches!(judged.todo, Todo::Nothing), "{judged:?}");
    }

    #[test]
    fn an_object_that_cannot_be_judged_does_not_end_the_run() {
        let list = vec!["0"; 200_001].join(",");
        let text = format!(r#"{{"metadata":{{"name":"a"}},"status":{{"list":[{list}]}}}}"#);
        assert!(matches!(judged(&text).todo, Todo::Broken(_)));
    }
}
