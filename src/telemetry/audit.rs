//! The numbers of `audit --watch`: what the last pass found.
//!
//! Gauges and not counters, and all of one pass: the text is made when a pass ends and swapped
//! whole, so that a scrape never sees half of one, and what is not found any more is gone.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::Scrape;

/// What the last pass of a watch found, as text.
#[derive(Debug, Default)]
pub struct AuditMetrics {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    text: String,
    passes: Family<OutcomeLabel, Counter>,
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
    /// Objects with a disagreement, by policy and resource: all, and those that last.
    pub disagreements: Vec<(PolicyLabels, u64, u64)>,
    /// Objects that backfill would write, by policy and resource.
    pub to_fill_in: Vec<(PolicyLabels, u64)>,
    /// Objects that could not be judged.
    pub unjudged: u64,
    /// Resources that could not be listed.
    pub unlisted: Vec<String>,
    /// How much policies name that nobody judges, by the name of the check that told.
    pub gaps: Vec<(&'static str, u64)>,
    /// How long the pass took.
    pub seconds: f64,
    /// When it ended, in seconds since 1970.
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
    /// Shows the numbers of a pass. It is a success unless a resource could not be listed.
    pub fn show(&self, numbers: &AuditNumbers) {
        let mut state = self.lock();
        state.count(numbers.unlisted.is_empty().then_some(numbers.now));
        if let Ok(text) = state.encode(numbers) {
            state.text = text;
        }
    }

    /// A pass that found nothing out: the numbers of the last one stay, with the time of its end.
    pub fn failed(&self) {
        self.lock().count(None);
    }

    /// Whether the policies cannot be read as they are now, and those of an earlier pass are used.
    pub fn policies(&self, broken: bool) {
        self.lock().broken_policies.set(broken.into());
    }

    /// How many reports could not be stored in this pass: of one that is stored afterwards the next
    /// pass tells.
    pub fn reports(&self, failed: usize) {
        self.lock().failed_reports.set(i64::try_from(failed).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic between two assignments leaves an older text, not half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scrape for AuditMetrics {
    fn encode(&self) -> Result<String, fmt::Error> {
        let state = self.lock();
        let mut registry = Registry::with_prefix("statusgate_audit");
        state.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry)?;
        // One exposition of two registries: the first without its end.
        Ok(format!("{}{}", text.trim_end_matches(EOF), with_eof(&state.text)))
    }
}

impl State {
    fn count(&self, success: Option<i64>) {
        let outcome = if success.is_some() { "success" } else { "failure" };
        self.passes.get_or_create(&OutcomeLabel { outcome }).inc();
        if let Some(now) = success {
            self.last_success.set(now);
        }
    }

    /// What outlives a pass.
    fn register(&self, registry: &mut Registry) {
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The running build", version);
        registry.register("passes", "Passes over all objects", self.passes.clone());
        registry.register(
            "last_success_timestamp_seconds",
            "End of the last pass that reached every resource, in seconds since 1970; 0 before",
            self.last_success.clone(),
        );
        registry.register(
            "broken_policies",
            "1 while the policies cannot be read and those of an earlier pass are used",
            self.broken_policies.clone(),
        );
        registry.register(
            "failed_reports",
            "Reports that the last pass could not store; all of them, where it could not begin to",
            self.failed_reports.clone(),
        );
    }

    fn encode(&self, numbers: &AuditNumbers) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("statusgate_audit");
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);

        let objects = Family::<PhaseLabels, Gauge>::default();
        for (of, phase, count) in &numbers.objects {
            let (policy, resource) = of.parts();
            let labels = PhaseLabels { policy, resource, phase: phase.clone() };
            objects.get_or_create(&labels).set(number(*count));
        }
        registry.register("objects", "Objects by the phase that is stored", objects);

        let conditions = Family::<ConditionLabels, Gauge>::default();
        for (of, (kind, status), count) in &numbers.conditions {
            let (policy, resource) = of.parts();
            let labels = ConditionLabels { policy, resource, r#type: kind.clone(), status };
            conditions.get_or_create(&labels).set(number(*count));
        }
        registry.register("conditions", "Conditions by type and status", conditions);

        let findings = Family::<RuleLabels, Gauge>::default();
        for (of, (rule, action), count) in &numbers.findings {
            let (policy, resource) = of.parts();
            let labels = RuleLabels { policy, rule: rule.clone(), action, resource };
            findings.get_or_create(&labels).set(number(*count));
        }
        registry.register("findings", "Objects with a finding that counts, by rule", findings);

        let all = Family::<PolicyLabels, Gauge>::default();
        let lasting = Family::<PolicyLabels, Gauge>::default();
        for (of, count, count_lasting) in &numbers.disagreements {
            all.get_or_create(of).set(number(*count));
            lasting.get_or_create(of).set(number(*count_lasting));
        }
        registry.register("disagreements", "Objects with a disagreement, new or not", all);
        registry.register(
            "lasting_disagreements",
            "Objects with a disagreement that has lasted longer than --older-than",
            lasting,
        );

        let to_fill_in = Family::<PolicyLabels, Gauge>::default();
        for (of, count) in &numbers.to_fill_in {
            to_fill_in.get_or_create(of).set(number(*count));
        }
        registry.register("to_fill_in", "Objects that backfill would write", to_fill_in);

        let unlisted = Family::<ResourceLabel, Gauge>::default();
        for resource in &numbers.unlisted {
            unlisted.get_or_create(&ResourceLabel { resource: resource.clone() }).set(1);
        }
        registry.register("unlisted", "1 for a resource that could not be listed", unlisted);

        let gaps = Family::<CheckLabel, Gauge>::default();
        for (check, count) in &numbers.gaps {
            gaps.get_or_create(&CheckLabel { check }).set(number(*count));
        }
        let help = "What policies name and nobody judges, by the check that tells: not served, the \
                    wrong subresource, a group that does not answer";
        registry.register("gaps", help, gaps);

        let unjudged = Gauge::<i64>::default();
        unjudged.set(number(numbers.unjudged));
        registry.register("unjudged", "Objects that could not be judged", unjudged);
        let duration = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
        duration.set(numbers.seconds);
        let help = "How long the last pass took";
        registry.register_with_unit("duration", help, Unit::Seconds, duration);

        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl PolicyLabels {
    fn parts(&self) -> (String, String) {
        (self.policy.clone(), self.resource.clone())
    }
}

fn with_eof(text: &str) -> &str {
    if text.is_empty() { EOF } else { text }
}

/// The end of an exposition.
const EOF: &str = "# EOF\n";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabel {
    check: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    policy: String,
    resource: String,
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    policy: String,
    resource: String,
    r#type: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuleLabels {
    policy: String,
    rule: String,
    action: &'static str,
    resource: String,
}

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
    fn a_pass_replaces_the_one_before() {
        let metrics = AuditMetrics::default();
        metrics.show(&numbers("c/old"));
        metrics.show(&numbers("c/new"));
        let text = metrics.encode().unwrap();
        assert!(!text.contains("c/old"), "{text}");
        for line in [
            r#"statusgate_audit_findings{policy="p",rule="c/new",action="deny",resource="foos.a.io"} 1"#,
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
    fn before_the_first_pass_there_is_a_whole_exposition() {
        let text = AuditMetrics::default().encode().unwrap();
        assert!(text.contains("statusgate_audit_last_success_timestamp_seconds 0\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
