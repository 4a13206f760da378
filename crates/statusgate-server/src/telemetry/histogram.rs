//! A histogram without a lock.
//!
//! prometheus-client's own `Histogram` takes a mutex at every observation, which workers would
//! contend for at tens of thousands of requests per second. This one is a fixed array of atomics.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// Durations in buckets.
#[derive(Debug)]
pub struct Histogram {
    scale: &'static Scale,
    /// One count per bucket, not cumulative. The last bucket counts the durations above all bounds.
    buckets: Box<[AtomicU64]>,
    /// Cannot overflow: 2⁶⁴ nanoseconds are 584 years of requests.
    sum: AtomicU64,
}

/// The buckets of a histogram.
#[derive(Debug)]
pub(super) struct Scale {
    /// The upper bounds of all buckets but the last, in units.
    bounds: &'static [u64],
    per_second: f64,
}

impl Histogram {
    pub(super) fn new(scale: &'static Scale) -> Self {
        let buckets = (0..=scale.bounds.len()).map(|_| AtomicU64::default()).collect();
        Self { scale, buckets, sum: AtomicU64::default() }
    }

    /// Counts one request.
    pub fn observe(&self, took: Duration) {
        self.count(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts one duration, in the unit of the histogram.
    pub(super) fn count(&self, took: u64) {
        // A scan of two cache lines; most requests stop in the first half.
        let bounds = self.scale.bounds;
        let bucket = bounds.iter().position(|bound| took <= *bound).unwrap_or(bounds.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Relaxed);
        }
        self.sum.fetch_add(took, Relaxed);
    }

    /// Whether nothing was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.load(Relaxed) == 0)
    }

    /// Writes the buckets in seconds, the base unit of Prometheus.
    pub(super) fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Scale { bounds, per_second } = self.scale;
        let bounds = bounds.iter().map(|&bound| bound as f64 / per_second).chain([f64::MAX]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        // The count is the sum of the buckets just read. With a separate counter, a scrape during
        // an observation could show a +Inf bucket that differs from the count.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.sum.load(Relaxed) as f64 / per_second;
        encoder
            .encode_histogram::<prometheus_client::encoding::NoLabelSet>(sum, count, &buckets, None)
    }
}

/// The latencies of all webhooks as one metric with a `webhook` label.
#[derive(Debug)]
pub(super) struct ByWebhook(pub(super) Vec<(&'static str, std::sync::Arc<Histogram>)>);

impl EncodeMetric for ByWebhook {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (webhook, histogram) in &self.0 {
            histogram.encode(encoder.encode_family(&[("webhook", *webhook)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// The duration of requests. Judging takes tens of microseconds. The buckets end at one second: the API server's default
/// timeout is ten, and a request above one second is a problem at any length.
pub(super) static REQUESTS: Scale = Scale {
    bounds: &[
        5_000,
        10_000,
        25_000,
        50_000,
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        1_000_000_000,
    ],
    per_second: 1e9,
};

/// The duration of states of objects, in seconds, as times in a status: a start takes seconds to hours. The last bounds are an hour, six hours
/// and a day.
pub(super) static STATES: Scale = Scale {
    bounds: &[1, 5, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 21_600, 86_400],
    per_second: 1.0,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_the_last_bucket_has_no_bound() {
        let histogram = Histogram::new(&REQUESTS);
        histogram.observe(Duration::from_micros(5));
        histogram.observe(Duration::from_nanos(5_001));
        histogram.observe(Duration::from_secs(60));
        let buckets = histogram.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let counts: Vec<u64> = buckets.collect();
        assert_eq!(counts[0], 1);
        assert_eq!(counts[1], 1);
        assert_eq!(counts[REQUESTS.bounds.len()], 1);
        assert_eq!(counts.iter().sum::<u64>(), 3);
    }
}
