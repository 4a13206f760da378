//! The metrics of a server. Each server has its own registry, so that two servers in one process
//! (the tests) do not share counters.
//!
//! Labels are bounded: fixed values, or names of loaded policies and rules. They never name an
//! object, a namespace or a user, because each value costs Prometheus memory.

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
use super::histogram::{ByWebhook, Histogram};
use super::managed::Managed;
use super::policies::{Counters, Declared, Store};
use super::register::metrics;
use statusgate_core::model::Webhook;

metrics! {
    /// The metrics without webhooks and policies.
    pub struct ServerMetrics {
        /// Patches that did not apply on replay and were not sent: a bug in statusgate.
        pub patch_failures: Counter = "patch_failures",
        /// Open webhook connections.
        pub connections: Gauge = "connections",
        // OpenMetrics forbids a gauge and a counter with the same family name.
        /// Accepted webhook connections.
        pub connections_accepted: Counter = "connections_accepted",
        /// Loaded policies.
        pub policies: Gauge = "policies",
        /// Expiry of the serving certificate, in seconds since 1970.
        pub certificate_not_after: Gauge = "tls_certificate_not_after_seconds",
        /// Failed TLS handshakes.
        handshake_failures: Family<Labels<1>, Counter> = "handshake_failures",
        /// Requests answered with 503 under load.
        shed: Family<Labels<1>, Counter> = "shed",
        /// Steps of this replica in the rotation of the managed certificate.
        certificate_steps: Family<Labels<1>, Counter> = "certificate_steps",
        /// Reloads of changed files and documents, by outcome.
        reloads: Family<Labels<2>, Counter> = "reloads",
        /// Time of the last successful reload, in seconds since 1970.
        reload_last_success: Family<Labels<1>, Gauge> = "reload_last_success_timestamp_seconds",
        /// 1 while changed files or documents cannot be loaded and the last valid content is in use.
        reload_failing: Family<Labels<1>, Gauge> = "reload_failing",
    }
}

/// All metrics of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// By the discriminants of [`Webhook`].
    webhooks: [WebhookMetrics; Webhook::ALL.len()],
    of_policies: Store,
    pub(super) managed: Managed,
    /// The others.
    pub server: ServerMetrics,
}

impl Metrics {
    /// All metrics at zero. `dropped_lines` is the counter of the log queue, if there is one.
    pub fn new(dropped_lines: Option<ErrorCounter>) -> Self {
        let mut registry = registry("statusgate");
        let requests = Family::<RequestLabels, Counter>::default();
        let unmatched = Family::<Labels<1>, Counter>::default();
        let webhooks =
            Webhook::ALL.map(|webhook| WebhookMetrics::new(webhook.name(), &requests, &unmatched));
        let latencies = webhooks.iter().map(|metrics| metrics.latency.clone());
        let names = Webhook::ALL.map(Webhook::name);
        let durations = ByWebhook(names.into_iter().zip(latencies).collect());
        let help = "Requests on the webhook paths, by HTTP code";
        registry.register("requests", help, requests);
        registry.register("unmatched", "Reviews that no policy selects", unmatched);
        let help = "Time from the end of a request's head to its response";
        registry.register("request_duration_seconds", help, durations);
        let help = "Log lines dropped because the log queue was full";
        registry.register("log_lines_dropped", help, DroppedLines(dropped_lines));
        let of_policies = Store::default();
        of_policies.register(&mut registry);
        let managed = Managed::register(&mut registry);
        let server = ServerMetrics::register(&mut registry);
        Self { registry, webhooks, of_policies, managed, server }
    }

    /// Looks up the counters of these policies, in their order. The counters of a removed policy are no longer
    /// shown.
    pub fn counters<'n>(&self, policies: impl Iterator<Item = Declared<'n>>) -> Counters {
        self.of_policies.load(policies)
    }

    /// The counters of a webhook.
    pub const fn of(&self, webhook: Webhook) -> &WebhookMetrics {
        let [mutate, validate, mandatory, agreement] = &self.webhooks;
        match webhook {
            Webhook::Mutate => mutate,
            Webhook::Validate => validate,
            Webhook::Mandatory => mandatory,
            Webhook::Agreement => agreement,
        }
    }

    /// Counts one failed handshake.
    pub fn handshake_failure(&self, reason: &'static str) {
        self.server.handshake_failures.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts one request answered with 503.
    pub fn shed(&self, reason: &'static str) {
        self.server.shed.get_or_create(&[("reason", reason)]).inc();
    }

    /// Counts one step in the rotation of the managed certificate.
    pub fn certificate_step(&self, step: &'static str) {
        self.server.certificate_steps.get_or_create(&[("step", step)]).inc();
    }

    /// Records that changed files are in use.
    pub fn reloaded(&self, what: &'static str, now_seconds: i64) {
        self.server.reloads.get_or_create(&[("what", what), ("outcome", "success")]).inc();
        self.server.reload_last_success.get_or_create(&[("what", what)]).set(now_seconds);
        self.reload_recovered(what);
    }

    /// Records that changed files are broken; the last valid content stays in use.
    pub fn reload_failed(&self, what: &'static str) {
        self.server.reloads.get_or_create(&[("what", what), ("outcome", "failure")]).inc();
        self.server.reload_failing.get_or_create(&[("what", what)]).set(1);
    }

    /// Records that the files on disk are again those in use.
    pub fn reload_recovered(&self, what: &'static str) {
        self.server.reload_failing.get_or_create(&[("what", what)]).set(0);
    }
}

/// An empty registry, apart from the version.
pub(super) fn registry(prefix: &str) -> Registry {
    let mut registry = Registry::with_prefix(prefix);
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The running build", version);
    registry
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
    /// The duration of requests.
    pub latency: Arc<Histogram>,
    /// Reviews that no policy selects.
    pub unmatched: Counter,
    requests: [Counter; CODES.len()],
}

impl WebhookMetrics {
    fn new(
        webhook: &'static str,
        requests: &Family<RequestLabels, Counter>,
        unmatched: &Family<Labels<1>, Counter>,
    ) -> Self {
        Self {
            latency: Arc::new(Histogram::of_requests()),
            unmatched: unmatched.get_or_create_owned(&[("webhook", webhook)]),
            requests: CODES
                .map(|code| requests.get_or_create_owned(&RequestLabels { webhook, code })),
        }
    }

    /// Counts one request by the HTTP code of its response.
    pub fn request(&self, code: u16) {
        let position = CODES.iter().position(|known| *known == code);
        if let Some(counter) = position.and_then(|position| self.requests.get(position)) {
            counter.inc();
        }
    }
}

/// The HTTP codes of the webhook paths.
const CODES: [u16; 7] = [200, 400, 405, 408, 413, 500, 503];

/// The number of log lines that the full queue dropped, read at each scrape.
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

/// Labels with fixed values.
pub(super) type Labels<const N: usize> = [(&'static str, &'static str); N];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    webhook: &'static str,
    code: u16,
}
