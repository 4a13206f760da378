//! The metrics of the parts that work with the API server. Without these parts, no value is shown.
//!
//! All of them are recorded outside of requests, so a lock for each is no cost.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::metrics::{Labels, Metrics};
use super::register::metrics;

metrics! {
    /// The metrics of calls, watches, registrations and documents.
    pub(super) struct Managed {
        /// Requests to the API server by purpose and outcome: success, not_found, conflict, rejected,
        /// unavailable, no_response.
        api_requests: Family<Labels<2>, Counter> = "api_requests",
        /// Time of the last event or list of a watch, in seconds since 1970.
        watch_last_event: Family<Labels<1>, Gauge> = "watch_last_event_timestamp_seconds",
        /// 1 while a watch fails and its last known content is in use.
        watch_failing: Family<Labels<1>, Gauge> = "watch_failing",
        /// 1 if the webhook configuration in the cluster is as it has to be.
        registration_in_sync: Family<Labels<1>, Gauge> = "registration_in_sync",
        /// Documents in the cluster by kind and state: accepted, rejected.
        documents: Family<Labels<2>, Gauge> = "documents",
        /// Replicas that renew their Lease, this one included; 0 without managed parts.
        replicas: Gauge = "replicas",
        /// Resources of policies that no CustomResourceDefinition defines; 0 without --manage-webhooks.
        resources_without_crd: Gauge = "resources_without_crd",
    }
}

impl Metrics {
    /// Counts one request to the API server. `code` is the HTTP status; `None` if there was no response.
    pub fn api_request(&self, purpose: &'static str, code: Option<u16>) {
        let labels = [("purpose", purpose), ("outcome", outcome(code))];
        self.managed.api_requests.get_or_create(&labels).inc();
    }

    /// Records an event or a complete list of a watch.
    pub fn watch_event(&self, what: &'static str, now_seconds: i64) {
        self.managed.watch_last_event.get_or_create(&[("what", what)]).set(now_seconds);
        self.managed.watch_failing.get_or_create(&[("what", what)]).set(0);
    }

    /// Records that a watch failed. The next event ends this state.
    pub fn watch_failed(&self, what: &'static str) {
        self.managed.watch_failing.get_or_create(&[("what", what)]).set(1);
    }

    /// Records whether a webhook configuration in the cluster is as it has to be.
    pub fn registration_in_sync(&self, configuration: &'static str, in_sync: bool) {
        let labels = [("configuration", configuration)];
        self.managed.registration_in_sync.get_or_create(&labels).set(in_sync.into());
    }

    /// Records how many resources of policies no CustomResourceDefinition defines.
    pub fn resources_without_crd(&self, count: usize) {
        self.managed.resources_without_crd.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Records the documents of a kind in the cluster. A rejected one is not in use, or only its last valid
    /// version.
    pub fn documents(&self, kind: &'static str, accepted: usize, rejected: usize) {
        for (state, count) in [("accepted", accepted), ("rejected", rejected)] {
            let labels = [("kind", kind), ("state", state)];
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.managed.documents.get_or_create(&labels).set(count);
        }
    }

    /// Records the replicas that are alive, this one included.
    pub fn replicas(&self, alive: usize) {
        self.managed.replicas.set(i64::try_from(alive).unwrap_or(i64::MAX));
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
