//! A rate limit for requests.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Allows requests at even intervals, without bursts after idle time.
#[derive(Debug)]
pub(super) struct Pace {
    distance: Option<Duration>,
    next: Mutex<Instant>,
}

impl Pace {
    /// `per_second` of 0: no limit.
    pub(super) fn new(per_second: f64) -> Self {
        let distance = (per_second > 0.0).then(|| Duration::from_secs_f64(1.0 / per_second));
        Self { distance, next: Mutex::new(Instant::now()) }
    }

    /// Waits until the next request is allowed.
    pub(super) async fn turn(&self) {
        if let Some(distance) = self.distance {
            let turn = self.take(distance, Instant::now());
            sleep_until(turn).await;
        }
    }

    fn take(&self, distance: Duration, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = (*next).max(now);
        *next = turn + distance;
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_have_even_intervals_and_no_bursts() {
        let pace = Pace::new(10.0);
        let distance = pace.distance.unwrap();
        let start = Instant::now();
        let turns: Vec<Instant> = (0..3).map(|_| pace.take(distance, start)).collect();
        assert_eq!(turns[1] - turns[0], Duration::from_millis(100));
        assert_eq!(turns[2] - turns[1], Duration::from_millis(100));
        let later = start + Duration::from_secs(60);
        assert_eq!(pace.take(distance, later), later);
        assert_eq!(pace.take(distance, later), later + Duration::from_millis(100));
    }
}
