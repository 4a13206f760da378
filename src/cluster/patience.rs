//! How long to go on trying, and how long to wait between two tries.

use std::time::Duration;

use tokio::time::Instant;

/// For how long a request that fails for reasons that pass is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience(pub Duration);

impl Patience {
    /// One try: for the first words with a server, where a wrong address is likelier than a
    /// restart, and a person waits.
    pub const NONE: Self = Self(Duration::ZERO);
    /// For what one can do without.
    pub const SHORT: Self = Self(Duration::from_secs(5));
    /// For the work itself. A control plane node that reboots is back within this; what takes
    /// longer is for a person, or for the Job that starts us again.
    pub const LONG: Self = Self(Duration::from_secs(120));
    /// For a 500. It may be the server's (etcd elects a leader within seconds), and it is what a
    /// webhook with `failurePolicy: Fail` makes of one object alone.
    pub const OBJECT: Self = Self(Duration::from_secs(15));

    /// The waits of one request. The time runs from the first failure: a turn at a slow pace may be
    /// long in coming, and a page long in being made.
    #[must_use]
    pub const fn start(self) -> Backoff {
        Backoff { patience: self.0, deadline: None, next: FIRST }
    }
}

/// The waits of one request: doubling, bounded, and no shorter than the server asks for.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    patience: Duration,
    /// From the first failure on.
    deadline: Option<Instant>,
    next: Duration,
}

impl Backoff {
    /// How long to wait before the next try; `None` where there is to be none.
    ///
    /// Without jitter: every worker waits for an answer of its own, so they are apart already, and
    /// there are a handful of them, not a fleet.
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

/// A dropped connection is back at once, more often than not.
const FIRST: Duration = Duration::from_millis(50);

/// So that the return of the server is noticed soon.
const LONGEST: Duration = Duration::from_secs(5);

/// The API server asks for 1 s, priority and fairness for up to 10 s or so; more is a mistake of
/// some proxy.
const LONGEST_ASKED: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_end() {
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
    fn the_server_is_given_the_time_it_asks_for() {
        let mut backoff = Patience::LONG.start();
        assert_eq!(backoff.wait(Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(backoff.wait(Some(Duration::from_secs(3600))), Some(LONGEST_ASKED));
        assert_eq!(Patience::NONE.start().wait(None), None);
    }
}
