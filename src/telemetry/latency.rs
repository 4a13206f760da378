//! A histogram that can be written to from every worker without a lock.
//!
//! prometheus-client's own `Histogram` takes a mutex at every observation: at tens of thousands of
//! requests a second two workers would meet there. A fixed array of atomics says the same.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// How long requests took, in buckets that start at five microseconds.
#[derive(Debug, Default)]
pub struct Latency {
    /// One count a bucket, not cumulative, and one more for what is slower than the last bound.
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    /// 2⁶⁴ nanoseconds are 584 years of handling: it does not overflow.
    sum_nanos: AtomicU64,
}

impl Latency {
    /// Counts one request.
    pub fn observe(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // A scan of sixteen numbers in one cache line or two; most requests stop in the first half.
        let bucket = BOUNDS_MICROS
            .iter()
            .position(|bound| nanos <= bound * 1_000)
            .unwrap_or(BOUNDS_MICROS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_nanos.fetch_add(nanos, Relaxed);
    }

    /// How many requests were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Relaxed)).sum()
    }

    /// Writes the buckets in seconds, which is the unit Prometheus expects whatever the resolution.
    pub(super) fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = BOUNDS_MICROS.iter().map(|&micros| micros as f64 / 1e6).chain([f64::MAX]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        // The count is the sum of what was just read, not a number of its own: a scrape in the
        // middle of an observation must not show a +Inf bucket that differs from the count.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.sum_nanos.load(Relaxed) as f64 / 1e9;
        encoder
            .encode_histogram::<prometheus_client::encoding::NoLabelSet>(sum, count, &buckets, None)
    }
}

/// The latencies of both webhooks as one metric with a `webhook` label.
#[derive(Debug)]
pub(super) struct ByWebhook(pub(super) [(&'static str, std::sync::Arc<Latency>); 2]);

impl EncodeMetric for ByWebhook {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (webhook, latency) in &self.0 {
            latency.encode(encoder.encode_family(&[("webhook", *webhook)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// A judgement takes tens of microseconds and the API server's default timeout is ten seconds; a
/// request that needs more than one is lost in all but name, so there the buckets end.
const BOUNDS_MICROS: [u64; 16] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_own_bucket_and_slower_requests_to_the_last() {
        let latency = Latency::default();
        latency.observe(Duration::from_micros(5));
        latency.observe(Duration::from_nanos(5_001));
        latency.observe(Duration::from_secs(60));
        let counts: Vec<u64> = latency.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        assert_eq!(counts[0], 1);
        assert_eq!(counts[1], 1);
        assert_eq!(counts[BOUNDS_MICROS.len()], 1);
        assert_eq!(latency.count(), 3);
    }
}
