//! The metrics of `audit --watch`: the results of the last pass.
//!
//! They are gauges of one pass. The text is built when a pass ends and swapped as a whole, so that
//! a scrape never sees half of a pass and results that are no longer found disappear.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::Scrape;
use super::metrics::{Labels, registry};
use super::register::metrics;

/// The results of the last pass, as text, and totals over all passes.
#[derive(Debug)]
pub struct AuditMetrics {
    registry: Registry,
    totals: Totals,
    last_pass: Mutex<String>,
}

metrics! {
    /// The totals over all passes.
    struct Totals {
        /// Passes over all objects.
        passes: Family<Labels<1>, Counter> = "passes",
        /// End of the last pass that listed every resource, in seconds since 1970; 0 before the first.
        last_success: Gauge = "last_success_timestamp_seconds",
        /// 1 while the current policies are broken and those of an earlier pass are in use.
        broken_policies: Gauge = "broken_policies",
        /// Reports that the last pass could not store.
        failed_reports: Gauge = "failed_reports",
    }
}

/// A gauge of one pass.
#[derive(Clone, Debug)]
pub struct AuditGauge {
    /// The name, without the common prefix.
    pub name: &'static str,
    /// The help.
    pub help: &'static str,
    /// The values, each with its own labels.
    pub values: Vec<(GaugeLabels, u64)>,
}

/// The names and values of labels.
pub type GaugeLabels = Vec<(&'static str, String)>;

impl Default for AuditMetrics {
    fn default() -> Self {
        let mut registry = registry(PREFIX);
        let totals = Totals::register(&mut registry);
        Self { registry, totals, last_pass: Mutex::default() }
    }
}

impl AuditMetrics {
    /// Publishes the numbers of a pass and its duration in seconds. `success` is the end of a pass that
    /// listed every resource, in seconds since 1970.
    pub fn show(&self, gauges: Vec<AuditGauge>, seconds: f64, success: Option<i64>) {
        let mut last_pass = self.lock();
        self.count(success);
        if let Ok(text) = encode_pass(gauges, seconds) {
            *last_pass = text;
        }
    }

    /// Counts a pass without results. The numbers of the last pass and its time stay.
    pub fn failed(&self) {
        self.count(None);
    }

    /// Records whether the current policies are broken and those of an earlier pass are in use.
    pub fn policies(&self, broken: bool) {
        self.totals.broken_policies.set(broken.into());
    }

    /// Records how many reports this pass could not store.
    pub fn reports(&self, failed: usize) {
        self.totals.failed_reports.set(i64::try_from(failed).unwrap_or(i64::MAX));
    }

    fn count(&self, success: Option<i64>) {
        let outcome = if success.is_some() { "success" } else { "failure" };
        self.totals.passes.get_or_create(&[("outcome", outcome)]).inc();
        if let Some(now) = success {
            self.totals.last_success.set(now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        // The text is replaced in one assignment: a panic cannot leave half of it.
        self.last_pass.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scrape for AuditMetrics {
    fn encode(&self) -> Result<String, fmt::Error> {
        let last_pass = self.lock();
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        // Two registries form one exposition, which ends only once.
        if !last_pass.is_empty() {
            text.truncate(text.trim_end_matches("# EOF\n").len());
            text.push_str(&last_pass);
        }
        Ok(text)
    }
}

fn encode_pass(gauges: Vec<AuditGauge>, seconds: f64) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    for AuditGauge { name, help, values } in gauges {
        let family = Family::<GaugeLabels, Gauge>::default();
        for (labels, value) in &values {
            family.get_or_create(labels).set(i64::try_from(*value).unwrap_or(i64::MAX));
        }
        match family.get(&Vec::new()) {
            // In a family, it would have empty braces.
            Some(alone) => registry.register(name, help, alone.clone()),
            None => registry.register(name, help, family.clone()),
        }
    }
    let duration = Gauge::<f64, AtomicU64>::default();
    duration.set(seconds);
    let help = "Duration of the last pass";
    registry.register_with_unit("duration", help, Unit::Seconds, duration);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

const PREFIX: &str = "statusgate_audit";

#[cfg(test)]
mod tests {
    use super::*;

    fn gauges(rule: &str) -> Vec<AuditGauge> {
        let labels = vec![("policy", "p".to_owned()), ("rule", rule.to_owned())];
        let gauge = |name, values| AuditGauge { name, help: "Objects", values };
        vec![gauge("findings", vec![(labels, 1)]), gauge("unjudged", vec![(Vec::new(), 2)])]
    }

    #[test]
    fn a_pass_replaces_the_previous_one() {
        let metrics = AuditMetrics::default();
        metrics.show(gauges("c/old"), 0.5, Some(900));
        metrics.show(gauges("c/new"), 0.5, Some(1000));
        let text = metrics.encode().unwrap();
        assert!(!text.contains("c/old"), "{text}");
        for line in [
            r#"statusgate_audit_findings{policy="p",rule="c/new"} 1"#,
            "statusgate_audit_unjudged 2",
            r#"statusgate_audit_passes_total{outcome="success"} 2"#,
            "statusgate_audit_last_success_timestamp_seconds 1000",
            "statusgate_audit_duration_seconds 0.5",
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
        metrics.show(gauges("c/a"), 0.5, Some(1000));
        metrics.show(gauges("c/a"), 0.5, None);
        metrics.failed();
        let text = metrics.encode().unwrap();
        assert!(text.contains("statusgate_audit_last_success_timestamp_seconds 1000\n"), "{text}");
        assert!(text.contains(r#"statusgate_audit_passes_total{outcome="failure"} 2"#), "{text}");
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
