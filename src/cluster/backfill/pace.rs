//! A rate limit for requests.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Allows requests at even intervals, without bursts after idle time. `None`: no limit.
#[derive(Debug)]
pub(super) struct Pace(Option<Mutex<Interval>>);

impl Pace {
    /// `per_second` of 0: no limit.
    pub(super) fn new(per_second: f64) -> Self {
        Self((per_second > 0.0).then(|| {
            let mut turns = interval(Duration::from_secs_f64(1.0 / per_second));
            turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Mutex::new(turns)
        }))
    }

    /// Waits until the next request is allowed.
    pub(super) async fn turn(&self) {
        if let Some(turns) = &self.0 {
            turns.lock().await.tick().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test]
    async fn turns_have_even_intervals_and_no_bursts() {
        let start = Instant::now();
        let pace = Pace::new(20.0);
        let distance = Duration::from_millis(50);
        for turn in 0..3 {
            pace.turn().await;
            assert!(start.elapsed() >= turn * distance, "{turn}");
        }
        sleep(4 * distance).await;
        let later = Instant::now();
        for turn in 0..3 {
            pace.turn().await;
            assert!(later.elapsed() >= turn * distance, "{turn}");
        }
    }
}
