//! The counters of policies as metrics.

use std::fmt;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;

use super::super::writes::{Counts, Labels};
use super::{Decision, Loaded, Store};
use statusgate_core::engine::{Action, Change};
use statusgate_core::model::Webhook;

impl Store {
    /// Registers the metrics of all policies.
    pub(in super::super) fn register(&self, registry: &mut Registry) {
        let of = |encode: Encode| OfPolicies(self.clone(), MetricType::Counter, encode);
        registry.register("decisions", "Reviews by policy and decision", of(decisions));
        registry.register("findings", "Findings by policy and rule", of(findings));
        registry.register(
            "changes",
            "Changes by the mutating webhook, by policy and reason: a default, an imposed phase, a repair, \
             the time of a phase, a restored field",
            of(changes),
        );
        registry.register(
            "status_writes",
            "Status writes that a policy allows, by resource and by what they change: nothing, only times, content",
            of(|loaded, encoder| loaded.writes(encoder, Counts::changes)),
        );
        registry.register(
            "phase_transitions",
            "Changes of the phase by these writes",
            of(|loaded, encoder| loaded.writes(encoder, Counts::transitions)),
        );
        let of = |encode: Encode| OfPolicies(self.clone(), MetricType::Histogram, encode);
        registry.register(
            "phase_duration_seconds",
            "Time in a phase until such a write replaces it",
            of(|loaded, encoder| loaded.writes(encoder, Counts::in_phase)),
        );
        registry.register(
            "first_current_seconds",
            "Time from the creation of an object to a write that makes its health current",
            of(|loaded, encoder| loaded.writes(encoder, Counts::first_current)),
        );
    }
}

/// Writes the counters of one policy.
type Encode = fn(&Loaded, &mut MetricEncoder<'_>) -> fmt::Result;

/// Counters of all policies as one metric.
#[derive(Debug)]
struct OfPolicies(Store, MetricType, Encode);

impl EncodeMetric for OfPolicies {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.lock().policies.values().try_for_each(|loaded| self.2(loaded, &mut encoder))
    }

    fn metric_type(&self) -> MetricType {
        self.1
    }
}

impl Loaded {
    fn writes(
        &self,
        encoder: &mut MetricEncoder<'_>,
        encode: fn(&Counts, Labels<'_>, &mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        for (resource, writes) in &self.writes {
            if let Some(counts) = writes.counts.get() {
                encode(counts, [("policy", &self.policy.name), ("resource", resource)], encoder)?;
            }
        }
        Ok(())
    }
}

fn decisions(Loaded { policy, .. }: &Loaded, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    for webhook in Webhook::ALL {
        for decision in Decision::ALL {
            let count = policy.decisions[webhook as usize][decision as usize].get();
            let labels = [
                ("policy", &*policy.name),
                ("webhook", webhook.name()),
                ("decision", decision.name()),
            ];
            encode(encoder, labels, count)?;
        }
    }
    Ok(())
}

fn findings(Loaded { policy, rules, .. }: &Loaded, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    for (rule, counts) in rules.iter() {
        for (action, count) in Action::WORST_FIRST.iter().zip(counts) {
            let labels = [("policy", &*policy.name), ("rule", rule), ("action", action.label())];
            encode(encoder, labels, count.get())?;
        }
    }
    Ok(())
}

fn changes(Loaded { policy, .. }: &Loaded, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    for (change, count) in Change::ALL.iter().zip(&*policy.changes) {
        let labels = [("policy", &*policy.name), ("change", change.label())];
        encode(encoder, labels, count.get())?;
    }
    Ok(())
}

pub(in super::super) fn encode<const N: usize>(
    encoder: &mut MetricEncoder<'_>,
    labels: [(&str, &str); N],
    count: Option<u64>,
) -> fmt::Result {
    let Some(count) = count else { return Ok(()) };
    ConstCounter::new(count).encode(encoder.encode_family(&labels)?)
}
