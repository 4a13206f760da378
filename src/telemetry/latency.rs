//! A latency histogram without a lock.
//!
//! prometheus-client's own `Histogram` takes a mutex at every observation, which workers would
//! contend for at tens of thousands of requests per second. This one is a fixed array of atomics.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// The duration of requests, in buckets that start at five microseconds.
#[derive(Debug, Default)]
pub struct Latency {
    /// One count per bucket, not cumulative. The last bucket counts the requests above all bounds.
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    /// Cannot overflow: 2⁶⁴ nanoseconds are 584 years.
    sum_nanos: AtomicU64,
}

impl Latency {
    /// Counts one request.
    pub fn observe(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // A scan of two cache lines; most requests stop in the first half.
        let bucket = BOUNDS_MICROS
            .iter()
            .position(|bound| nanos <= bound * 1_000)
            .unwrap_or(BOUNDS_MICROS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum_nanos.fetch_add(nanos, Relaxed);
    }

    /// Writes the buckets in seconds, the base unit of Prometheus.
    pub(super) fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = BOUNDS_MICROS.iter().map(|&micros| micros as f64 / 1e6).chain([f64::MAX]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        // The count is the sum of the buckets just read. With a separate counter, a scrape during
        // an observation could show a +Inf bucket that differs from the count.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.sum_nanos.load(Relaxed) as f64 / 1e9;
        encoder
            .encode_histogram::<prometheus_client::encoding::NoLabelSet>(sum, count, &buckets, None)
    }
}

/// The latencies of all webhooks as one metric with a `webhook` label.
#[derive(Debug)]
pub(super) struct ByWebhook(pub(super) Vec<(&'static str, std::sync::Arc<Latency>)>);

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

/// Judging takes tens of microseconds. The buckets end at one second: the API server's default
/// timeout is ten, and a request above one second is a problem at any length.
const BOUNDS_MICROS: [u64; 16] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_the_last_bucket_has_no_bound() {
        let latency = Latency::default();
        latency.observe(Duration::from_micros(5));
        latency.observe(Duration::from_nanos(5_001));
        latency.observe(Duration::from_secs(60));
        let counts: Vec<u64> = latency.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        assert_eq!(counts[0], 1);
        assert_eq!(counts[1], 1);
        assert_eq!(counts[BOUNDS_MICROS.len()], 1);
        assert_eq!(counts.iter().sum::<u64>(), 3);
    }
}
