//! The numbers, by name. One [`Metrics`] a server, no global registry: two servers in one process
//! (the tests) do not share counters.
//!
//! Labels are bounded: enumerations of ours, or names of loaded policies and rules. Never an
//! object, a namespace or a user, of which a cluster has more than a Prometheus has memory.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tracing_appender::non_blocking::ErrorCounter;

use super::Scrape;
use super::latency::{ByWebhook, Latency};

/// Everything the server counts.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Counters of `/mutate`.
    pub mutate: WebhookMetrics,
    /// Counters of `/validate`.
    pub validate: WebhookMetrics,
    /// Patches of ours that did not apply on replay, and were therefore not sent.
    pub patch_failures: Counter,
    /// Open connections on the webhook port, handshakes in progress included.
    pub connections: Gauge,
    /// Connections accepted on the webhook port.
    pub connections_accepted: Counter,
    /// Loaded policies.
    pub policies: Gauge,
    /// When the serving certificate ends, in seconds since 1970.
    pub certificate_not_after: Gauge,
    findings: Family<FindingLabels, Counter>,
    handshake_failures: Family<ReasonLabel, Counter>,
    shed: Family<ReasonLabel, Counter>,
    reloads: Family<ReloadLabels, Counter>,
    reload_last_success: Family<WhatLabel, Gauge>,
    reload_failing: Family<WhatLabel, Gauge>,
}

impl Metrics {
    /// All metrics at zero. `dropped_lines` is the counter of a log queue, where there is one.
    #[must_use]
    pub fn new(dropped_lines: Option<ErrorCounter>) -> Self {
        let mut registry = Registry::with_prefix("statusgate");
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The running build", version);

        let requests = Family::<RequestLabels, Counter>::default();
        let unmatched = Family::<WebhookLabel, Counter>::default();
        let decisions = Family::<DecisionLabels, Counter>::default();
        let mutate = WebhookMetrics::new("mutate", &requests, &unmatched, &decisions);
        let validate = WebhookMetrics::new("validate", &requests, &unmatched, &decisions);
        let durations =
            ByWebhook([("mutate", mutate.latency.clone()), ("validate", validate.latency.clone())]);

        // A macro and not a function: what is registered is also kept, whatever its type.
        macro_rules! register {
            ($name:literal, $help:literal, $metric:expr) => {{
                let metric = $metric;
                registry.register($name, $help, metric.clone());
                metric
            }};
        }
        register!("requests", "Requests on the webhook paths, by HTTP code", requests);
        register!("unmatched", "Reviews that no policy matched", unmatched);
        register!("decisions", "Reviews by matched policy and what came of them", decisions);
        registry.register(
            "request_duration_seconds",
            "From the end of a request's head to its answer",
            durations,
        );
        registry.register(
            "log_lines_dropped",
            "Log lines dropped because stderr was slower than the server",
            DroppedLines(dropped_lines),
        );
        Self {
            patch_failures: register!(
                "patch_failures",
                "Patches that did not apply on replay and were not sent: a bug of statusgate",
                Counter::default()
            ),
            connections: register!("connections", "Open webhook connections", Gauge::default()),
            connections_accepted: register!(
                // Not `connections`: OpenMetrics forbids a gauge and a counter of one family name.
                "connections_accepted",
                "Accepted webhook connections",
                Counter::default()
            ),
            policies: register!("policies", "Loaded policies", Gauge::default()),
            certificate_not_after: register!(
                "tls_certificate_not_after_seconds",
                "End of the serving certificate, in seconds since 1970",
                Gauge::default()
            ),
            findings: register!("findings", "Findings by policy and rule", Family::default()),
            handshake_failures: register!(
                "handshake_failures",
                "TLS handshakes that failed",
                Family::default()
            ),
            shed: register!("shed", "Requests answered with 503 under load", Family::default()),
            reloads: register!(
                "reloads",
                "Changed inputs that were taken over or refused",
                Family::default()
            ),
            reload_last_success: register!(
                "reload_last_success_timestamp_seconds",
                "When an input was last taken over, in seconds since 1970",
                Family::default()
            ),
            reload_failing: register!(
                "reload_failing",
                "1 while the content on disk is broken and the last good one is in use",
                Family::default()
            ),
            registry,
            mutate,
            validate,
        }
    }

    /// Counts one finding. The only look-up by label on a request's way; findings are rare.
    pub fn finding(&self, policy: &str, rule: &str, action: &'static str) {
        let labels = FindingLabels { policy: policy.to_owned(), rule: rule.to_owned(), action };
        self.findings.get_or_create(&labels).inc();
    }

    /// Counts one failed handshake. `reason` comes from an enumeration of the caller.
    pub fn handshake_failure(&self, reason: &'static str) {
        self.handshake_failures.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// Counts one request answered with 503. `reason` comes from an enumeration of the caller.
    pub fn shed(&self, reason: &'static str) {
        self.shed.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// A changed input was taken over.
    pub fn reloaded(&self, what: &'static str, now_seconds: i64) {
        self.reloads.get_or_create(&ReloadLabels { what, outcome: "success" }).inc();
        self.reload_last_success.get_or_create(&WhatLabel { what }).set(now_seconds);
        self.reload_failing.get_or_create(&WhatLabel { what }).set(0);
    }

    /// A changed input was broken; the last good one stays in use.
    pub fn reload_failed(&self, what: &'static str) {
        self.reloads.get_or_create(&ReloadLabels { what, outcome: "failure" }).inc();
        self.reload_failing.get_or_create(&WhatLabel { what }).set(1);
    }

    /// The broken content went away again; what is on disk is what is in use.
    pub fn reload_recovered(&self, what: &'static str) {
        self.reload_failing.get_or_create(&WhatLabel { what }).set(0);
    }
}

impl Scrape for Metrics {
    fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The counters of one webhook, looked up once.
#[derive(Debug)]
pub struct WebhookMetrics {
    /// How long requests took.
    pub latency: Arc<Latency>,
    /// Reviews that no policy matched.
    pub unmatched: Counter,
    webhook: &'static str,
    requests: [Counter; Code::ALL.len()],
    decisions: Family<DecisionLabels, Counter>,
}

impl WebhookMetrics {
    fn new(
        webhook: &'static str,
        requests: &Family<RequestLabels, Counter>,
        unmatched: &Family<WebhookLabel, Counter>,
        decisions: &Family<DecisionLabels, Counter>,
    ) -> Self {
        Self {
            latency: Arc::default(),
            unmatched: unmatched.get_or_create_owned(&WebhookLabel { webhook }),
            webhook,
            requests: Code::ALL.map(|code| {
                requests.get_or_create_owned(&RequestLabels { webhook, code: code.number() })
            }),
            decisions: decisions.clone(),
        }
    }

    /// Counts one answered request.
    pub fn request(&self, code: Code) {
        if let Some(counter) = self.requests.get(code as usize) {
            counter.inc();
        }
    }

    /// Looks up the decision counters of these policies, in their order. A policy that was there
    /// before keeps its numbers; those of one that is gone stay visible and stand still, which is
    /// what `rate()` wants to see.
    #[must_use]
    pub fn decisions<'n>(&self, policies: impl Iterator<Item = &'n str>) -> DecisionCounters {
        let counters = |policy: &str| {
            Decision::ALL.map(|decision| {
                self.decisions.get_or_create_owned(&DecisionLabels {
                    policy: policy.to_owned(),
                    webhook: self.webhook,
                    decision: decision.name(),
                })
            })
        };
        DecisionCounters(policies.map(|policy| (policy.to_owned(), counters(policy))).collect())
    }
}

/// The decision counters of one loaded set of policies, by policy index. It lives and dies with
/// the set it was made for, so that an index can never meet the counters of another set.
#[derive(Debug)]
pub struct DecisionCounters(Vec<(String, [Counter; Decision::ALL.len()])>);

impl DecisionCounters {
    /// Counts one decision. An index that does not exist counts nothing.
    pub fn count(&self, policy: usize, decision: Decision) {
        let counters = self.0.get(policy).map(|(_, counters)| counters);
        if let Some(counter) = counters.and_then(|counters| counters.get(decision as usize)) {
            counter.inc();
        }
    }

    /// The name of a policy.
    #[must_use]
    pub fn policy(&self, policy: usize) -> Option<&str> {
        self.0.get(policy).map(|(name, _)| name.as_str())
    }
}

/// What came of a review, for one of the policies that matched it; weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Nothing to say.
    Allowed,
    /// Allowed, with a warning.
    Warned,
    /// Allowed, with a patch.
    Patched,
    /// Refused.
    Denied,
}

impl Decision {
    const ALL: [Self; 4] = [Self::Allowed, Self::Warned, Self::Patched, Self::Denied];

    /// The name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Warned => "warned",
            Self::Patched => "patched",
            Self::Denied => "denied",
        }
    }
}

/// The HTTP codes that the webhook paths answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A review was answered, whatever the answer.
    Ok,
    /// The body was not a review.
    BadRequest,
    /// Not a POST.
    MethodNotAllowed,
    /// The body came too slowly.
    Timeout,
    /// The body was too large.
    TooLarge,
    /// A panic: a bug of ours.
    Internal,
    /// Shed under load.
    Overloaded,
}

impl Code {
    const ALL: [Self; 7] = [
        Self::Ok,
        Self::BadRequest,
        Self::MethodNotAllowed,
        Self::Timeout,
        Self::TooLarge,
        Self::Internal,
        Self::Overloaded,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::BadRequest => 400,
            Self::MethodNotAllowed => 405,
            Self::Timeout => 408,
            Self::TooLarge => 413,
            Self::Internal => 500,
            Self::Overloaded => 503,
        }
    }
}

/// The lines a full log queue dropped, read when somebody scrapes.
#[derive(Debug)]
struct DroppedLines(Option<ErrorCounter>);

impl EncodeMetric for DroppedLines {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        let lines = self.0.as_ref().map_or(0, ErrorCounter::dropped_lines);
        ConstCounter::new(lines as u64).encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabel {
    webhook: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    webhook: &'static str,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    policy: String,
    webhook: &'static str,
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FindingLabels {
    policy: String,
    rule: String,
    action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WhatLabel {
    what: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    what: &'static str,
    outcome: &'static str,
}
