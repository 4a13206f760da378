//! The change that the mutating webhook would make to a stored object, as a patch.

use hyper::body::Bytes;
use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, TestOperation};

use super::change::changes;
use super::{ObjectReport, Outcome, Target};
use statusgate_core::engine::{Action, PatchFailed, decide};
use statusgate_core::model::{Json, Metadata, Object, Webhook, Writer};
use statusgate_core::policy::PolicySet;

/// The writer for policies with `writers`: the service account of `deploy/backfill`, regardless of the
/// actual user.
pub const WRITER: &str = "system:serviceaccount:statusgate-system:statusgate-backfill";

/// One object, judged.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    /// The result; with a patch, the one after it is written.
    pub(super) report: ObjectReport,
    /// A JSON patch that starts with guards.
    pub(super) patch: Option<Bytes>,
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

/// Judges a stored object.
pub(super) fn judge(
    policies: &PolicySet,
    target: &Target,
    object: Object<'_>,
    now: Timestamp,
) -> Proposal {
    let Metadata { namespace, name, uid, resource_version, .. } = &object.metadata;
    let mut report = ObjectReport {
        object: Named {
            namespace: namespace.to_string(),
            name: name.to_string(),
            uid: uid.to_string(),
            resource_version: resource_version.to_string(),
        },
        policies: Vec::new(),
        outcome: Outcome::Unchanged,
        repair: None,
        conflicts: 0,
        changes: Vec::new(),
    };
    let writer = Writer { user: WRITER.into(), groups: Vec::new() };
    let subject = match object.judgeable() {
        Ok(object) => target.subject(object, writer),
        // One object that is too large must not end the run.
        Err(error) => {
            report.outcome = Outcome::Failed(format!("cannot be judged: {error}"));
            report.policies.clone_from(&target.policies);
            return Proposal { report, patch: None };
        }
    };
    let verdict = decide(policies, &subject, Webhook::Mutate, now);
    let repair = verdict.findings.into_iter().find(|found| found.action == Action::Repair);
    report.repair = repair.map(|found| found.message);
    report.policies = verdict.policies;
    let patch = match verdict.patch {
        _ if verdict.patch_failed => {
            report.outcome = Outcome::Failed(PatchFailed.to_string());
            None
        }
        None => None,
        Some(patch) => {
            // A null and a missing member differ.
            let old = subject.object.status.as_ref().map(Json::to_value);
            let new = verdict.status.as_ref().map(Json::to_value);
            report.changes = changes("/status", old.as_ref(), new.as_ref());
            report.outcome = Outcome::Patched;
            Some(guarded(&report.object, &patch.0))
        }
    };
    Proposal { report, patch }
}

/// The operations after two tests: of the uid, because another object may have the name now, and of the
/// version, because the judged object must be the changed one.
fn guarded(object: &Named, operations: &[PatchOperation]) -> Bytes {
    let guard = |member: &str, value: &str| {
        let path = PointerBuf::from_tokens(["metadata", member]);
        PatchOperation::Test(TestOperation { path, value: value.into() })
    };
    let guards = [guard("uid", &object.uid), guard("resourceVersion", &object.resource_version)];
    let all: Vec<&PatchOperation> = guards.iter().chain(operations).collect();
    // JSON values always have a text.
    serde_json::to_vec(&all).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::super::ChangedValue;
    use super::*;

    fn judged(text: &str) -> Proposal {
        judged_by(&PolicySet::compile(&PolicySet::examples()).unwrap(), text)
    }

    fn judged_by(policies: &PolicySet, text: &str) -> Proposal {
        let group = "vshn.appcat.vshn.io".into();
        let target = Target { group, ..Target::example("vshnredis") };
        judge(policies, &target, Object::parse(text).unwrap(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_object_without_a_phase_gets_a_guarded_patch() {
        let judged = judged(
            r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{}}"#,
        );
        let Proposal { report, patch } = judged;
        assert_eq!(
            std::str::from_utf8(&patch.unwrap()).unwrap(),
            concat!(
                r#"[{"op":"test","path":"/metadata/uid","value":"u"},"#,
                r#"{"op":"test","path":"/metadata/resourceVersion","value":"7"},"#,
                r#"{"op":"add","path":"/status","value":{}},"#,
                r#"{"op":"add","path":"/status/phase","value":"Unknown"}]"#
            )
        );
        assert_eq!(report.changes.len(), 1);
        assert_eq!(report.changes[0].path, "/status/phase");
        assert_eq!(report.policies.len(), 1);
    }

    const DISAGREES: &str = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"status":{"phase":"Ready",
        "lastTransitionTime":"2024-01-01T00:00:00Z","conditions":[{"type":"Ready","status":"False",
        "reason":"No","lastTransitionTime":"2024-01-01T00:00:00Z"}]}}"#;

    #[test]
    fn a_stored_disagreement_is_not_changed() {
        let judged = judged(DISAGREES);
        assert!(judged.patch.is_none(), "{judged:?}");
    }

    #[test]
    fn a_stored_disagreement_is_changed_if_the_policies_repair_it() {
        let examples = || PolicySet::compile(&PolicySet::examples()).unwrap();
        let judged = judged_by(&examples().repairing(), DISAGREES);
        assert_eq!(
            judged.report.repair.as_deref(),
            Some("set to \"Provisioning\": phase Ready disagrees: condition Ready is False")
        );
        let change = |path: &str, old: &str, new: &str| ChangedValue {
            path: path.to_owned(),
            old: Some(old.into()),
            new: Some(new.into()),
        };
        let time = ("2024-01-01T00:00:00Z", "1970-01-01T00:00:00Z");
        assert_eq!(
            judged.report.changes,
            [
                change("/status/lastTransitionTime", time.0, time.1),
                change("/status/phase", "Ready", "Provisioning"),
            ]
        );
        let repaired = DISAGREES.replace("\"Ready\",\n", "\"Provisioning\",\n");
        let judged = judged_by(&examples().repairing(), &repaired);
        assert!(judged.patch.is_none(), "{judged:?}");
    }

    #[test]
    fn an_object_that_cannot_be_judged_does_not_end_the_run() {
        let list = vec!["0"; 200_001].join(",");
        let text = format!(r#"{{"metadata":{{"name":"a"}},"status":{{"list":[{list}]}}}}"#);
        assert!(matches!(judged(&text).report.outcome, Outcome::Failed(_)));
    }
}
