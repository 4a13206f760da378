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

use super::Scrape;
use super::histogram::{ByWebhook, Histogram, REQUESTS};
use super::lines::LostLines;
use super::policies::{Counters, Declared, Store};
use super::register::metrics;
use statusgate_core::model::Webhook;

metrics! {
    /// The metrics without webhooks and policies. Those of calls, watches, registrations and documents are
    /// recorded outside of requests, so a lock for each is no cost.
    pub struct ServerMetrics {
        /// Requests to the API server by purpose and outcome: success, not_found, conflict, rejected,
        /// unavailable, no_response.
        api_requests: Family<Labels<2>, Counter> = "api_requests",
        /// Time of the last event or list of a watch, in seconds since 1970.
        watch_last_event: Family<Labels<1>, Gauge> = "watch_last_event_timestamp_seconds",
        /// 1 while a watch fails and its last known content is in use.
        watch_failing: Family<Labels<1>, Gauge> = "watch_failing",
        /// 1 if the webhook configuration in the cluster is as it has to be, for at least two seconds.
        registration_in_sync: Family<Labels<1>, Gauge> = "registration_in_sync",
        /// Documents in the cluster by kind and state: accepted, rejected.
        documents: Family<Labels<2>, Gauge> = "documents",
        /// Replicas that renew their Lease, this one included; 0 without managed parts.
        replicas: Gauge = "replicas",
        /// Resources of policies that no CustomResourceDefinition defines; 0 without --manage-webhooks.
        resources_without_crd: Gauge = "resources_without_crd",
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
    /// The others.
    pub server: ServerMetrics,
}

impl Metrics {
    /// All metrics at zero. `lost_lines` is the counter of the log, if there is one.
    pub fn new(lost_lines: Option<LostLines>) -> Self {
        let mut registry = registry("statusgate");
        let requests = Family::<RequestLabels, Counter>::default();
        let unmatched = Family::<Labels<1>, Counter>::default();
        let webhooks =
            Webhook::ALL.map(|webhook| WebhookMetrics::new(webhook.name(), &requests, &unmatched));
        let latencies = webhooks.each_ref().map(|metrics| Arc::clone(&metrics.latency));
        let durations = Webhook::ALL.map(Webhook::name).into_iter().zip(latencies).collect();
        let help = "Requests on the webhook paths, by HTTP code";
        registry.register("requests", help, requests);
        registry.register("unmatched", "Reviews that no policy selects", unmatched);
        let help = "Time from the end of a request's head to its response";
        registry.register("request_duration_seconds", help, ByWebhook(durations));
        let help = "Log lines dropped because the log queue was full or they could not be written";
        registry.register("log_lines_dropped", help, DroppedLines(lost_lines));
        let of_policies = Store::default();
        of_policies.register(&mut registry);
        let server = ServerMetrics::register(&mut registry);
        Self { registry, webhooks, of_policies, server }
    }

    /// Looks up the counters of these policies, in their order. The counters of a removed policy are no longer
    /// shown.
    pub fn counters<'n>(&self, policies: impl Iterator<Item = Declared<'n>>) -> Counters {
        self.of_policies.load(policies)
    }

    /// The counters of a webhook.
    pub const fn of(&self, webhook: Webhook) -> &WebhookMetrics {
        &self.webhooks[webhook as usize]
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

    /// Counts one request to the API server. `code` is the HTTP status; `None` if there was no response.
    pub fn api_request(&self, purpose: &'static str, code: Option<u16>) {
        let labels = [("purpose", purpose), ("outcome", outcome(code))];
        self.server.api_requests.get_or_create(&labels).inc();
    }

    /// Records an event or a complete list of a watch.
    pub fn watch_event(&self, what: &'static str, now_seconds: i64) {
        self.server.watch_last_event.get_or_create(&[("what", what)]).set(now_seconds);
        self.server.watch_failing.get_or_create(&[("what", what)]).set(0);
    }

    /// Records that a watch failed. The next event ends this state.
    pub fn watch_failed(&self, what: &'static str) {
        self.server.watch_failing.get_or_create(&[("what", what)]).set(1);
    }

    /// Records whether a webhook configuration in the cluster is as it has to be.
    pub fn registration_in_sync(&self, configuration: &'static str, in_sync: bool) {
        let labels = [("configuration", configuration)];
        self.server.registration_in_sync.get_or_create(&labels).set(in_sync.into());
    }

    /// Records how many resources of policies no CustomResourceDefinition defines.
    pub fn resources_without_crd(&self, count: usize) {
        self.server.resources_without_crd.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Records the documents of a kind in the cluster. A rejected one is not in use, or only its last valid
    /// version.
    pub fn documents(&self, kind: &'static str, accepted: usize, rejected: usize) {
        for (state, count) in [("accepted", accepted), ("rejected", rejected)] {
            let labels = [("kind", kind), ("state", state)];
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.server.documents.get_or_create(&labels).set(count);
        }
    }

    /// Records the replicas that are alive, this one included.
    pub fn replicas(&self, alive: usize) {
        self.server.replicas.set(i64::try_from(alive).unwrap_or(i64::MAX));
    }
}

/// A missing object and a conflict are part of normal operation: the first replica creates objects, and
/// compare-and-swap fails for the others.
const fn outcome(code: Option<u16>) -> &'static str {
    match code {
        Some(..400) => "success",
        Some(404) => "not_found",
        Some(409) => "conflict",
        Some(429 | 500..) => "unavailable",
        Some(_) => "rejected",
        None => "no_response",
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
            latency: Arc::new(Histogram::new(&REQUESTS)),
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

/// The number of lost log lines, read at each scrape.
#[derive(Debug)]
struct DroppedLines(Option<LostLines>);

impl EncodeMetric for DroppedLines {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        let lines = self.0.as_ref().map_or(0, LostLines::count);
        ConstCounter::new(lines).encode(encoder)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Scrape;

    #[test]
    fn requests_are_counted_by_the_class_of_their_response() {
        let metrics = Metrics::new(None);
        for code in [Some(200), Some(201), Some(404), Some(409), Some(403), Some(429), Some(503)] {
            metrics.api_request("registrations", code);
        }
        metrics.api_request("registrations", None);
        let text = metrics.encode().unwrap();
        for (outcome, count) in [
            ("success", 2),
            ("not_found", 1),
            ("conflict", 1),
            ("rejected", 1),
            ("unavailable", 2),
            ("no_response", 1),
        ] {
            let line = format!(
                r#"statusgate_api_requests_total{{purpose="registrations",outcome="{outcome}"}} {count}"#
            );
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn an_event_ends_the_failure_of_its_watch() {
        let metrics = Metrics::new(None);
        let failing = |value: &str| {
            let line = format!("statusgate_watch_failing{{what=\"documents\"}} {value}\n");
            metrics.encode().unwrap().contains(&line)
        };
        metrics.watch_failed("documents");
        assert!(failing("1"));
        metrics.watch_event("documents", 1000);
        assert!(failing("0"));
    }
}
