//! Traces over OTLP: one span for each review, which continues the trace of the API server.
//!
//! A request only reads a header and puts its span into a bounded queue; it never waits. Without a
//! collector there is no span. The exporter is a custom one: the SDK of OpenTelemetry would add 14 crates,
//! and has no metric of the spans that it drops.

mod context;
mod export;
mod protobuf;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::HeaderMap;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;

use self::context::Parent;
use super::metrics::Labels;

pub use self::context::{Sampler, SamplerError};
pub use self::export::{Collector, Exporter, TraceError};

/// Starts spans. Clones share the queue.
#[derive(Clone)]
pub struct Traces {
    queue: mpsc::Sender<Finished>,
    sampler: Sampler,
    ids: Arc<Ids>,
    counters: SpanCounters,
}

/// A span in progress. It is exported when it ends; dropping it exports nothing.
#[derive(Debug)]
pub struct Span {
    traces: Traces,
    span: Finished,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// An integer.
    Number(i64),
    /// Several texts.
    List(Vec<String>),
    /// A truth value.
    Flag(bool),
}

/// A name with its value.
pub type Attribute = (&'static str, Value);

/// A span that ended.
#[derive(Debug, Default)]
struct Finished {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<Parent>,
    name: &'static str,
    /// Nanoseconds since 1970.
    start: u64,
    end: u64,
    attributes: Vec<Attribute>,
    failed: bool,
}

impl Traces {
    /// Starts a span for a request with these headers, at a time in nanoseconds since 1970. `None` if the
    /// trace is not sampled.
    pub fn start(&self, name: &'static str, headers: &HeaderMap, now: u64) -> Option<Span> {
        let parent = Parent::of(headers);
        let trace = parent.as_ref().map_or_else(|| self.ids.trace(), |parent| parent.trace);
        if !self.sampler.samples(parent.as_ref(), trace) {
            return None;
        }
        let id = self.ids.next().to_be_bytes();
        let span = Finished { trace, id, parent, name, start: now, ..Finished::default() };
        Some(Span { traces: self.clone(), span })
    }
}

impl Span {
    /// Adds attributes.
    pub fn describe(&mut self, attributes: impl IntoIterator<Item = Attribute>) {
        self.span.attributes.extend(attributes);
    }

    /// Ends the span with the HTTP code of the response, at a time in nanoseconds since 1970.
    pub fn end(mut self, code: u16, now: u64) {
        self.span.attributes.push(("http.response.status_code", Value::Number(code.into())));
        // As in OpenTelemetry's conventions for servers: a 4xx is an error of the client.
        self.span.failed = code >= 500;
        self.span.end = now.max(self.span.start);
        if self.traces.queue.try_send(self.span).is_err() {
            self.traces.counters.dropped.inc();
        }
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("sampler", &self.sampler).finish_non_exhaustive()
    }
}

/// Ids of spans and traces. They have to be unique, not secret: SipHash with a random key suffices.
#[derive(Debug, Default)]
struct Ids {
    key: RandomState,
    used: AtomicU64,
}

impl Ids {
    fn next(&self) -> u64 {
        // An id of zeros is invalid.
        self.key.hash_one(self.used.fetch_add(1, Relaxed)).max(1)
    }

    fn trace(&self) -> [u8; 16] {
        (u128::from(self.next()) << 64 | u128::from(self.next())).to_be_bytes()
    }
}

/// The counters of spans by outcome.
#[derive(Clone, Debug)]
pub(super) struct SpanCounters {
    exported: Counter,
    failed: Counter,
    dropped: Counter,
}

impl SpanCounters {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let spans = Family::<Labels<1>, Counter>::default();
        registry.register(
            "spans",
            "Spans by outcome: exported, failed (the collector did not accept them), dropped (the queue was \
             full)",
            spans.clone(),
        );
        let of = |outcome| spans.get_or_create_owned(&[("outcome", outcome)]);
        Self { exported: of("exported"), failed: of("failed"), dropped: of("dropped") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{Metrics, Scrape};

    #[test]
    fn a_full_queue_drops_spans_and_counts_them() {
        let metrics = Metrics::new(None);
        let collector = Collector::new("http://localhost/v1/traces", None, Vec::new()).unwrap();
        let (traces, exporter) = collector.open(&metrics);
        for _ in 0..2_050 {
            traces.start("POST /mutate", &HeaderMap::new(), 1).unwrap().end(200, 2);
        }
        let text = metrics.encode().unwrap();
        assert!(text.contains("statusgate_spans_total{outcome=\"dropped\"} 2\n"), "{text}");
        drop(exporter);
    }

    #[test]
    fn ids_are_unique() {
        let ids = Ids::default();
        let found: std::collections::HashSet<[u8; 16]> = (0..1_000).map(|_| ids.trace()).collect();
        assert_eq!(found.len(), 1_000);
    }
}
