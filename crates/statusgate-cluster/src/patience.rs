//! Retries: for how long, and how long to wait between two attempts.

use std::time::Duration;

use tokio::time::Instant;

/// How long to retry a request that fails temporarily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience(pub Duration);

impl Patience {
    /// One attempt. For the first request: a wrong address is more likely than a restart, and a person
    /// waits.
    pub const NONE: Self = Self(Duration::ZERO);
    /// For optional requests.
    pub const SHORT: Self = Self(Duration::from_secs(5));
    /// For required requests: long enough for the restart of a control plane node.
    pub const LONG: Self = Self(Duration::from_secs(120));
    /// For a 500. The server may cause it (etcd elects a leader within seconds), or a webhook with
    /// `failurePolicy: Fail` for a single object.
    pub const OBJECT: Self = Self(Duration::from_secs(15));

    /// The delays of one request. The time starts at the first failure: a rate limit or a large page
    /// may delay the first response.
    pub const fn start(self) -> Backoff {
        Backoff { patience: self.0, deadline: None, next: FIRST }
    }
}

/// The delays of one request: they double up to a limit and are at least as long as the server
/// requests.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    patience: Duration,
    /// Set at the first failure.
    deadline: Option<Instant>,
    next: Duration,
}

impl Backoff {
    /// How long to wait before the next attempt; `None` to give up. Without jitter: the few workers
    /// fail at different times.
    pub fn wait(&mut self, asked: Option<Duration>) -> Option<Duration> {
        self.wait_at(Instant::now(), asked)
    }

    fn wait_at(&mut self, now: Instant, asked: Option<Duration>) -> Option<Duration> {
        let wait = asked.map_or(self.next, |asked| asked.min(LONGEST_ASKED)).max(self.next);
        self.next = (self.next * 2).min(LONGEST);
        let deadline = *self.deadline.get_or_insert(now + self.patience);
        (now + wait <= deadline).then_some(wait)
    }
}

/// A dropped connection usually works again at once.
const FIRST: Duration = Duration::from_millis(50);

/// Short enough to notice soon that the server is back.
const LONGEST: Duration = Duration::from_secs(5);

/// The API server requests 1 s, priority and fairness up to about 10 s. More is an error of a proxy.
const LONGEST_ASKED: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit_and_end() {
        let mut backoff = Patience(Duration::from_secs(60)).start();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        while let Some(wait) = backoff.wait_at(now, None) {
            now += wait;
            waits.push(wait);
        }
        assert!(waits.iter().map(Duration::as_millis).take(3).eq([50, 100, 200]));
        assert_eq!(waits.iter().max(), Some(&LONGEST));
        let total: Duration = waits.iter().sum();
        assert!(total <= Duration::from_secs(61) && total > Duration::from_secs(50), "{total:?}");
    }

    #[test]
    fn the_time_before_the_first_failure_does_not_count() {
        let mut backoff = Patience::LONG.start();
        let failed = Instant::now() + Duration::from_secs(3600);
        assert!(backoff.wait_at(failed, None).is_some());
        assert_eq!(backoff.wait_at(failed + Patience::LONG.0, None), None);
    }

    #[test]
    fn the_requested_delay_is_respected() {
        let mut backoff = Patience::LONG.start();
        assert_eq!(backoff.wait(Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(backoff.wait(Some(Duration::from_secs(3600))), Some(LONGEST_ASKED));
        assert_eq!(Patience::NONE.start().wait(None), None);
    }
}
