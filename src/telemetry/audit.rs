//! The metrics of `audit --watch`: the results of the last pass.
//!
//! They are gauges of one pass. The text is built when a pass ends and swapped as a whole, so that
//! a scrape never sees half of a pass and results that are no longer found disappear.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::Scrape;

/// The results of the last pass, as text, and totals over all passes.
#[derive(Debug, Default)]
pub struct AuditMetrics {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last_pass: String,
    passes: Family<[(&'static str, &'static str); 1], Counter>,
    last_success: Gauge,
    failed_reports: Gauge,
    broken_policies: Gauge,
}

/// The numbers of one pass. Every list has at most one entry for the same labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditNumbers {
    /// Objects by policy, resource and phase.
    pub objects: Vec<(PolicyLabels, String, u64)>,
    /// Conditions by policy, resource, type and status.
    pub conditions: Vec<(PolicyLabels, (String, &'static str), u64)>,
    /// Objects by policy, resource, rule and action of a finding.
    pub findings: Vec<(PolicyLabels, (String, &'static str), u64)>,
    /// Objects with a disagreement by policy and resource: all, and those where it persists.
    pub disagreements: Vec<(PolicyLabels, u64, u64)>,
    /// Objects that backfill would change, by policy and resource.
    pub to_fill_in: Vec<(PolicyLabels, u64)>,
    /// Objects that the audit could not judge.
    pub unjudged: u64,
    /// Resources that the audit could not list.
    pub unlisted: Vec<String>,
    /// Resources that policies name but the audit skipped, by check.
    pub gaps: Vec<(&'static str, u64)>,
    /// The duration of the pass.
    pub seconds: f64,
    /// The end of the pass, in seconds since 1970.
    pub now: i64,
}

/// A policy and a resource (`vshnredis.vshn.appcat.vshn.io`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PolicyLabels {
    /// The policy.
    pub policy: String,
    /// The resource.
    pub resource: String,
}

impl AuditMetrics {
    /// Publishes the numbers of a pass. The pass is a success if every resource could be listed.
    pub fn show(&self, numbers: &AuditNumbers) {
        let mut inner = self.lock();
        inner.count(numbers.unlisted.is_empty().then_some(numbers.now));
        if let Ok(text) = numbers.encode() {
            inner.last_pass = text;
        }
    }

    /// Counts a pass without results. The numbers of the last pass and its time stay.
    pub fn failed(&self) {
        self.lock().count(None);
    }

    /// Records whether the current policies are broken and those of an earlier pass are in use.
    pub fn policies(&self, broken: bool) {
        self.lock().broken_policies.set(broken.into());
    }

    /// Records how many reports this pass could not store.
    pub fn reports(&self, failed: usize) {
        self.lock().failed_reports.set(i64::try_from(failed).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The text is replaced in one assignment: a panic cannot leave half of it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scrape for AuditMetrics {
    fn encode(&self) -> Result<String, fmt::Error> {
        let inner = self.lock();
        let mut registry = Registry::with_prefix(PREFIX);
        inner.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry)?;
        // Two registries form one exposition, which ends only once.
        if !inner.last_pass.is_empty() {
            text.truncate(text.trim_end_matches("# EOF\n").len());
            text.push_str(&inner.last_pass);
        }
        Ok(text)
    }
}

impl Inner {
    fn count(&self, success: Option<i64>) {
        let outcome = if success.is_some() { "success" } else { "failure" };
        self.passes.get_or_create(&[("outcome", outcome)]).inc();
        if let Some(now) = success {
            self.last_success.set(now);
        }
    }

    fn register(&self, registry: &mut Registry) {
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The running build", version);
        registry.register("passes", "Passes over all objects", self.passes.clone());
        registry.register(
            "last_success_timestamp_seconds",
            "End of the last pass that listed every resource, in seconds since 1970; 0 before the first",
            self.last_success.clone(),
        );
        registry.register(
            "broken_policies",
            "1 while the current policies are broken and those of an earlier pass are in use",
            self.broken_policies.clone(),
        );
        registry.register(
            "failed_reports",
            "Reports that the last pass could not store",
            self.failed_reports.clone(),
        );
    }
}

impl AuditNumbers {
    fn encode(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix(PREFIX);
        let mut gauges = |name, help, rows: Vec<(Labels, u64)>| {
            let family = Family::<Labels, Gauge>::default();
            for (labels, count) in rows {
                family.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
            }
            registry.register(name, help, family);
        };
        let objects = self.objects.iter().map(|(of, phase, n)| (of.with(&[("phase", phase)]), *n));
        gauges("objects", "Objects by their stored phase", objects.collect());
        let conditions = self.conditions.iter().map(|(of, (kind, status), count)| {
            (of.with(&[("type", kind), ("status", status)]), *count)
        });
        gauges("conditions", "Conditions by type and status", conditions.collect());
        let findings = self.findings.iter().map(|(of, (rule, action), count)| {
            (of.with(&[("rule", rule), ("action", action)]), *count)
        });
        gauges("findings", "Objects with a finding, by rule and action", findings.collect());
        let disagreements = self.disagreements.iter();
        gauges(
            "disagreements",
            "Objects with a disagreement, new or not",
            disagreements.clone().map(|(of, all, _)| (of.with(&[]), *all)).collect(),
        );
        gauges(
            "lasting_disagreements",
            "Objects with a disagreement that persists for longer than --older-than",
            disagreements.map(|(of, _, lasting)| (of.with(&[]), *lasting)).collect(),
        );
        let to_fill_in = self.to_fill_in.iter().map(|(of, count)| (of.with(&[]), *count));
        gauges("to_fill_in", "Objects that backfill would change", to_fill_in.collect());
        let unlisted = self.unlisted.iter().map(|name| (vec![("resource", name.clone())], 1));
        gauges("unlisted", "1 for a resource that could not be listed", unlisted.collect());
        let gaps = self.gaps.iter().map(|(check, n)| (vec![("check", (*check).to_owned())], *n));
        gauges(
            "gaps",
            "Resources that policies name but the audit skipped, by check",
            gaps.collect(),
        );

        let unjudged = Gauge::<i64>::default();
        unjudged.set(i64::try_from(self.unjudged).unwrap_or(i64::MAX));
        registry.register("unjudged", "Objects that could not be judged", unjudged);
        let duration = Gauge::<f64, AtomicU64>::default();
        duration.set(self.seconds);
        let help = "Duration of the last pass";
        registry.register_with_unit("duration", help, Unit::Seconds, duration);
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl PolicyLabels {
    fn with(&self, more: &[(&'static str, &str)]) -> Labels {
        [("policy", &*self.policy), ("resource", &*self.resource)]
            .iter()
            .chain(more)
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect()
    }
}

type Labels = Vec<(&'static str, String)>;

const PREFIX: &str = "statusgate_audit";

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rule: &str) -> AuditNumbers {
        let of = PolicyLabels { policy: "p".into(), resource: "foos.a.io".into() };
        AuditNumbers {
            objects: vec![(of.clone(), "Ready".into(), 3)],
            conditions: vec![(of.clone(), ("Ready".into(), "True"), 2)],
            findings: vec![(of.clone(), (rule.to_owned(), "deny"), 1)],
            disagreements: vec![(of.clone(), 2, 1)],
            to_fill_in: vec![(of, 0)],
            gaps: vec![("subresource", 2)],
            seconds: 0.5,
            now: 1000,
            ..AuditNumbers::default()
        }
    }

    #[test]
    fn a_pass_replaces_the_previous_one() {
        let metrics = AuditMetrics::default();
        metrics.show(&numbers("c/old"));
        metrics.show(&numbers("c/new"));
        let text = metrics.encode().unwrap();
        assert!(!text.contains("c/old"), "{text}");
        for line in [
            r#"statusgate_audit_findings{policy="p",resource="foos.a.io",rule="c/new",action="deny"} 1"#,
            r#"statusgate_audit_objects{policy="p",resource="foos.a.io",phase="Ready"} 3"#,
            r#"statusgate_audit_conditions{policy="p",resource="foos.a.io",type="Ready",status="True"} 2"#,
            r#"statusgate_audit_disagreements{policy="p",resource="foos.a.io"} 2"#,
            r#"statusgate_audit_lasting_disagreements{policy="p",resource="foos.a.io"} 1"#,
            r#"statusgate_audit_to_fill_in{policy="p",resource="foos.a.io"} 0"#,
            r#"statusgate_audit_passes_total{outcome="success"} 2"#,
            "statusgate_audit_last_success_timestamp_seconds 1000",
            "statusgate_audit_duration_seconds 0.5",
            "statusgate_audit_unjudged 0",
            r#"statusgate_audit_gaps{check="subresource"} 2"#,
            "statusgate_audit_broken_policies 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn a_failed_pass_keeps_the_numbers_and_the_time_of_the_last_success() {
        let metrics = AuditMetrics::default();
        metrics.show(&numbers("c/a"));
        metrics.show(&AuditNumbers {
            unlisted: vec!["bars.a.io".into()],
            now: 2000,
            ..numbers("c/a")
        });
        metrics.failed();
        let text = metrics.encode().unwrap();
        assert!(text.contains("statusgate_audit_last_success_timestamp_seconds 1000\n"), "{text}");
        assert!(text.contains(r#"statusgate_audit_passes_total{outcome="failure"} 2"#), "{text}");
        assert!(text.contains(r#"statusgate_audit_unlisted{resource="bars.a.io"} 1"#), "{text}");
        assert!(text.contains("c/a"));
        assert!(text.contains("statusgate_audit_failed_reports 0\n"), "{text}");
        metrics.reports(3);
        let text = metrics.encode().unwrap();
        assert!(text.contains("statusgate_audit_failed_reports 3\n"), "{text}");
    }

    #[test]
    fn the_exposition_is_complete_before_the_first_pass() {
        let text = AuditMetrics::default().encode().unwrap();
        assert!(text.contains("statusgate_audit_last_success_timestamp_seconds 0\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
