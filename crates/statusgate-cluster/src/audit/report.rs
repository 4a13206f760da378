//! Findings as `wgpolicyk8s.io/v1alpha2` or `openreports.io/v1alpha1` documents: one PolicyReport or Report per
//! namespace, one ClusterPolicyReport or ClusterReport for cluster-scoped objects.
//!
//! The same state gives the same bytes, so that an unchanged report needs no write: the time of a
//! result is the newest transition of its object, not the time of the audit.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use serde_json::{Value, json};

use super::super::Target;
use super::Audited;
use statusgate_core::engine::{Action, Found};
use statusgate_core::model::shortened;

/// The name of every report.
pub const REPORT_NAME: &str = "statusgate";

/// The label of the reports of statusgate.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "statusgate");

/// The API of reports. Their documents differ only in names and in a member for the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportApi {
    /// `wgpolicyk8s.io/v1alpha2`.
    #[default]
    PolicyReport,
    /// `openreports.io/v1alpha1`.
    OpenReports,
}

impl ReportApi {
    /// All, the preferred one first.
    pub(super) const ALL: [Self; 2] = [Self::PolicyReport, Self::OpenReports];

    pub(super) const fn api_version(self) -> &'static str {
        match self {
            Self::PolicyReport => "wgpolicyk8s.io/v1alpha2",
            Self::OpenReports => "openreports.io/v1alpha1",
        }
    }

    /// The kind of a report.
    pub(super) const fn kind(self, namespaced: bool) -> &'static str {
        match (self, namespaced) {
            (Self::PolicyReport, true) => "PolicyReport",
            (Self::PolicyReport, false) => "ClusterPolicyReport",
            (Self::OpenReports, true) => "Report",
            (Self::OpenReports, false) => "ClusterReport",
        }
    }
}

/// The results for reports, up to a limit.
#[derive(Debug, Default)]
pub struct Reports {
    by_namespace: BTreeMap<String, NamespaceReport>,
    /// The number of results of all namespaces.
    held: BTreeMap<Action, usize>,
}

/// The results of one namespace.
#[derive(Debug, Default)]
struct NamespaceReport {
    pass: u64,
    fail: u64,
    warn: u64,
    /// By action, the worst first; each in the order of the lists.
    kept: BTreeMap<Reverse<Action>, Vec<Kept>>,
}

/// One result.
#[derive(Debug)]
struct Kept {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    since: Option<i64>,
    found: Found,
}

impl Reports {
    /// Adds the findings of an object. Findings above the limit are only counted.
    pub(super) fn add(&mut self, target: &Target, judged: &Audited<'_>) {
        let namespace: &str = &judged.metadata.namespace;
        let report = self.by_namespace.entry(namespace.to_owned()).or_default();
        for state in &judged.states {
            report.pass += u64::from(state.findings.is_empty());
            for found in &state.findings {
                match found.action {
                    Action::Deny => report.fail += 1,
                    Action::Repair | Action::Warn | Action::Audit => report.warn += 1,
                }
            }
        }
        for found in judged.states.iter().flat_map(|state| &state.findings) {
            if !self.make_room(namespace, found.action) {
                continue;
            }
            let kept = Kept {
                api_version: target.api_version(),
                kind: target.kind.clone(),
                name: judged.metadata.name.to_string(),
                uid: judged.metadata.uid.to_string(),
                since: judged.since,
                found: found.clone(),
            };
            *self.held.entry(found.action).or_default() += 1;
            if let Some(report) = self.by_namespace.get_mut(namespace) {
                report.kept.entry(Reverse(found.action)).or_default().push(kept);
            }
        }
    }

    /// Makes room for a result. At the limit of its namespace or of all namespaces, drops the last of
    /// the mildest results there if they are milder. Returns whether there is room.
    fn make_room(&mut self, namespace: &str, action: Action) -> bool {
        let own = self.by_namespace.get(namespace);
        let range = if own.is_some_and(|report| report.held() >= MAX_RESULTS) {
            (Bound::Included(namespace), Bound::Included(namespace))
        } else if self.held.values().sum::<usize>() >= MAX_HELD {
            (Bound::Unbounded, Bound::Unbounded)
        } else {
            return true;
        };
        // Without milder results, there is no search through all namespaces.
        let milder = self.held.iter_mut().filter(|(kept, count)| **kept < action && **count > 0);
        for (kept, count) in milder {
            let mut reports = self.by_namespace.range_mut::<str, _>(range).rev();
            if reports.any(|(_, of)| of.kept.get_mut(&Reverse(*kept)).and_then(Vec::pop).is_some())
            {
                *count -= 1;
                return true;
            }
        }
        false
    }

    /// The number of documents.
    pub fn count(&self) -> usize {
        self.by_namespace.len()
    }

    /// The documents, by namespace; "" for that of the cluster.
    pub fn documents(&self, api: ReportApi) -> impl Iterator<Item = (&str, Value)> {
        self.by_namespace
            .iter()
            .map(move |(namespace, report)| (&**namespace, report.document(namespace, api)))
    }
}

impl NamespaceReport {
    fn held(&self) -> usize {
        self.kept.values().map(Vec::len).sum()
    }

    fn document(&self, namespace: &str, api: ReportApi) -> Value {
        let mut results = Vec::new();
        let mut bytes = 0;
        for kept in self.kept.values().flatten() {
            let result = kept.result(namespace);
            bytes += result.to_string().len();
            if bytes > MAX_BYTES {
                break;
            }
            results.push(result);
        }
        let (listed, all) = (results.len() as u64, self.fail + self.warn);
        let mut document = json!({
            "apiVersion": api.api_version(),
            "kind": api.kind(!namespace.is_empty()),
            "metadata": {"name": REPORT_NAME, "labels": {MANAGED_BY.0: MANAGED_BY.1}},
            "summary": {
                "pass": self.pass, "fail": self.fail, "warn": self.warn, "error": 0, "skip": 0,
            },
            "results": results,
        });
        if api == ReportApi::OpenReports {
            document["source"] = MANAGED_BY.1.into();
        }
        if !namespace.is_empty() {
            document["metadata"]["namespace"] = namespace.into();
        }
        if listed < all {
            // The schema of a summary allows only numbers.
            let text = format!("{listed} of {all}, the worst first; the summary counts all");
            document["metadata"]["annotations"] = json!({"statusgate.dev/results": text});
        }
        document
    }
}

impl Kept {
    fn result(&self, namespace: &str) -> Value {
        let Self { api_version, kind, name, uid, since, found } = self;
        let mut resource = json!({"apiVersion": api_version, "kind": kind, "name": name});
        if !namespace.is_empty() {
            resource["namespace"] = namespace.into();
        }
        if !uid.is_empty() {
            resource["uid"] = uid.as_str().into();
        }
        let (result, severity) = match found.action {
            Action::Deny => ("fail", "high"),
            Action::Repair | Action::Warn => ("warn", "medium"),
            Action::Audit => ("warn", "info"),
        };
        json!({
            "source": MANAGED_BY.1,
            "policy": found.policy,
            "rule": found.rule,
            "result": result,
            "severity": severity,
            // In the API, a result that is not scored warns instead of failing.
            "scored": found.action == Action::Deny,
            "resources": [resource],
            "message": shortened(&found.message, MAX_MESSAGE),
            "timestamp": {"seconds": since.unwrap_or_default(), "nanos": 0},
            "properties": {"field": found.field, "action": found.action.label()},
        })
    }
}

/// The maximum number of results per namespace.
const MAX_RESULTS: usize = 1000;

/// The maximum number of results of all namespaces; each has half a kilobyte.
const MAX_HELD: usize = 50_000;

/// etcd accepts 1.5 MB, including metadata and `managedFields`.
const MAX_BYTES: usize = 1 << 20;

/// The characters of a message, which may contain a value of the object.
const MAX_MESSAGE: usize = 500;

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::super::judge::health;
    use super::*;
    use statusgate_core::engine::Cause;
    use statusgate_core::model::Metadata;

    fn add(reports: &mut Reports, namespace: &str, name: &str, actions: &[Action]) {
        let found = |action: &Action| Found {
            policy: "p".into(),
            rule: format!("c/{}", action.label()),
            field: "status.phase".into(),
            cause: Cause::Invalid,
            message: "it is wrong".into(),
            action: *action,
            others: Vec::new(),
        };
        let judged = Audited {
            metadata: Metadata {
                name: name.to_owned().into(),
                namespace: namespace.to_owned().into(),
                uid: "u".into(),
                ..Metadata::default()
            },
            states: vec![State {
                policy: 0,
                health: health(),
                phase: None,
                conditions: Vec::new(),
                findings: actions.iter().map(found).collect(),
                passing: Vec::new(),
                lasting: 0,
            }],
            backfill: false,
            since: Some(7),
            broken: None,
        };
        reports.add(&Target::example("foos"), &judged);
    }

    fn documents(reports: &Reports) -> Vec<Value> {
        let documents = reports.documents(ReportApi::PolicyReport);
        documents.map(|(_, document)| document).collect()
    }

    #[test]
    fn each_namespace_and_the_cluster_have_one_report() {
        let mut reports = Reports::default();
        add(&mut reports, "shop", "a", &[Action::Audit, Action::Deny]);
        add(&mut reports, "shop", "b", &[]);
        add(&mut reports, "", "c", &[]);
        let [cluster, shop] = documents(&reports).try_into().unwrap();
        assert_eq!(
            cluster,
            json!({"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "ClusterPolicyReport",
                "metadata": {"name": "statusgate",
                    "labels": {"app.kubernetes.io/managed-by": "statusgate"}},
                "summary": {"pass": 1, "fail": 0, "warn": 0, "error": 0, "skip": 0},
                "results": []})
        );
        assert_eq!(shop["metadata"]["namespace"], "shop");
        assert_eq!(
            shop["summary"],
            json!({"pass": 1, "fail": 1, "warn": 1, "error": 0, "skip": 0})
        );
        assert_eq!(
            shop["results"][0],
            json!({"source": "statusgate", "policy": "p", "rule": "c/deny", "result": "fail",
                "severity": "high", "scored": true, "message": "it is wrong",
                "resources": [{"apiVersion": "a.io/v1", "kind": "Foo", "name": "a",
                    "namespace": "shop", "uid": "u"}],
                "timestamp": {"seconds": 7, "nanos": 0},
                "properties": {"field": "status.phase", "action": "deny"}})
        );
        assert_eq!(shop["results"][1]["result"], "warn");
        assert_eq!(shop["metadata"].get("annotations"), None);
    }

    #[test]
    fn the_reports_of_openreports_have_other_names_and_a_source() {
        let mut reports = Reports::default();
        add(&mut reports, "shop", "a", &[Action::Deny]);
        add(&mut reports, "", "c", &[]);
        let open = reports.documents(ReportApi::OpenReports).map(|(_, document)| document);
        let names = [("ClusterPolicyReport", "ClusterReport"), ("PolicyReport", "Report")];
        for ((mut old, new), (old_kind, new_kind)) in
            documents(&reports).into_iter().zip(open).zip(names)
        {
            assert_eq!((&old["kind"], &new["kind"]), (&json!(old_kind), &json!(new_kind)));
            old["apiVersion"] = "openreports.io/v1alpha1".into();
            old["kind"] = new_kind.into();
            old["source"] = "statusgate".into();
            assert_eq!(old, new);
        }
    }

    #[test]
    fn a_report_is_bounded_and_keeps_the_worst() {
        let mut reports = Reports::default();
        for number in 0..MAX_RESULTS {
            add(&mut reports, "shop", &format!("warned-{number}"), &[Action::Warn]);
        }
        add(&mut reports, "shop", "denied", &[Action::Deny]);
        add(&mut reports, "shop", "one too many", &[Action::Warn]);
        let [shop] = documents(&reports).try_into().unwrap();
        assert_eq!(shop["results"].as_array().unwrap().len(), MAX_RESULTS);
        assert_eq!(shop["results"][0]["resources"][0]["name"], "denied");
        assert_eq!(shop["results"][1]["resources"][0]["name"], "warned-0");
        assert_eq!((&shop["summary"]["fail"], &shop["summary"]["warn"]), (&json!(1), &json!(1001)));
        assert_eq!(
            shop["metadata"]["annotations"]["statusgate.dev/results"],
            "1000 of 1002, the worst first; the summary counts all"
        );
    }

    #[test]
    fn all_reports_together_are_bounded_and_keep_the_worst() {
        let mut reports = Reports::default();
        for number in 0..MAX_HELD {
            let namespace = format!("n{:02}", number * 60 / MAX_HELD);
            add(&mut reports, &namespace, "warned", &[Action::Warn]);
        }
        add(&mut reports, "z", "denied", &[Action::Deny]);
        add(&mut reports, "z", "one too many", &[Action::Warn]);
        let documents = documents(&reports);
        let results = |document: &Value| document["results"].as_array().unwrap().len();
        assert_eq!(documents.iter().map(results).sum::<usize>(), MAX_HELD);
        let last = documents.last().unwrap();
        assert_eq!(last["results"][0]["resources"][0]["name"], "denied");
        assert_eq!(results(last), 1);
    }

    #[test]
    fn a_report_with_long_messages_fits_into_etcd() {
        let mut reports = Reports::default();
        for _ in 0..MAX_RESULTS {
            add(&mut reports, "shop", "n", &[Action::Deny]);
        }
        let report = reports.by_namespace.get_mut("shop").unwrap();
        for kept in report.kept.values_mut().flatten() {
            kept.found.message = "ä".repeat(5000);
            kept.found.field = "f".repeat(2000);
        }
        let [shop] = documents(&reports).try_into().unwrap();
        let bytes = shop.to_string().len();
        assert!(bytes < MAX_BYTES + 2000 && bytes > MAX_BYTES / 2, "{bytes}");
        assert!(shop["metadata"]["annotations"]["statusgate.dev/results"].is_string());
    }
}
