//! The activity of a connection, for its timeouts.
//!
//! hyper has one timer for two limits: `header_read_timeout` runs from the end of a response to the
//! end of the next request head. Above 90 s (API servers keep idle connections that long) it lets a
//! client send a head for two minutes. At ten seconds it closes the API server's idle connections,
//! and their next POST fails. And it has no limit for a peer that does not read its response, which would
//! keep memory. So hyper's timer is off: [`Observed`] records the first byte of a head and the end of
//! writing, the service records the end of a head, and an [`IdleCheck`] compares a few times per timeout.
//! A request costs some relaxed atomic stores, but no timer and no clock.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The current activity of one connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Bytes arrived since the last response, but no complete head yet.
    in_head: AtomicBool,
    /// A request is in the service.
    in_request: AtomicBool,
    /// A response is not completely written.
    in_response: AtomicBool,
    /// Counts changes, so that two checks can distinguish the same head from the next one.
    changes: AtomicU64,
    /// Whether any request arrived.
    served: AtomicBool,
}

impl Activity {
    pub(super) fn bytes_arrived(&self) {
        if !self.in_request.load(Relaxed) && !self.in_head.load(Relaxed) {
            self.in_head.store(true, Relaxed);
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// Records a complete head. The request runs until the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.in_head.store(false, Relaxed);
        self.served.store(true, Relaxed);
        self.in_request.store(true, Relaxed);
        self.changes.fetch_add(1, Relaxed);
        ActiveRequest(Arc::clone(self))
    }

    /// Records that everything is written.
    pub(super) fn all_written(&self) {
        if self.in_response.load(Relaxed) {
            self.in_response.store(false, Relaxed);
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// Whether any request arrived on this connection.
    pub(super) fn has_served(&self) -> bool {
        self.served.load(Relaxed)
    }
}

/// A request in the service.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<Activity>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.in_request.store(false, Relaxed);
        self.0.in_response.store(true, Relaxed);
        self.0.changes.fetch_add(1, Relaxed);
    }
}

/// The stream of a connection, which records its activity.
#[derive(Debug)]
pub(super) struct Observed<S> {
    pub(super) stream: S,
    pub(super) activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.bytes_arrived();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it has written all that it has.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        if matches!(polled, Poll::Ready(Ok(()))) {
            self.activity.all_written();
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Checks an activity regularly and reports timeouts.
#[derive(Debug)]
pub(super) struct IdleCheck {
    /// The number of checks after which a head must be complete.
    head: u32,
    /// The number of checks after which an idle connection ends.
    idle: u32,
    changes: u64,
    unchanged: u32,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// The connection is idle for too long: shut it down gracefully.
    Shutdown,
    /// The peer is too slow to send a head or to read a response, or a graceful shutdown has no effect:
    /// close the connection.
    Close,
}

impl IdleCheck {
    /// Returns a check for these timeouts and the interval at which to run it.
    pub(super) fn new(head_timeout: Duration, idle_timeout: Duration) -> (Self, Duration) {
        let every = (head_timeout.min(idle_timeout) / CHECKS).max(Duration::from_millis(1));
        let checks = |timeout: Duration| {
            u32::try_from(timeout.as_nanos().div_ceil(every.as_nanos())).unwrap_or(u32::MAX)
        };
        let (head, idle) = (checks(head_timeout), checks(idle_timeout));
        (Self { head, idle, changes: 0, unchanged: 0 }, every)
    }

    pub(super) fn run(&mut self, activity: &Activity) -> Due {
        let changes = activity.changes.load(Relaxed);
        // The timeout of the body covers a request in the service.
        if changes != self.changes || activity.in_request.load(Relaxed) {
            self.changes = changes;
            self.unchanged = 0;
            return Due::Nothing;
        }
        self.unchanged = self.unchanged.saturating_add(1);
        if activity.in_head.load(Relaxed) || activity.in_response.load(Relaxed) {
            if self.unchanged >= self.head { Due::Close } else { Due::Nothing }
        } else if self.unchanged >= self.idle.saturating_add(self.head) {
            Due::Close
        } else if self.unchanged >= self.idle {
            Due::Shutdown
        } else {
            Due::Nothing
        }
    }
}

/// Checks per timeout. A timeout may last a quarter longer; with the default settings, a connection
/// wakes up every 2.5 s.
const CHECKS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_check() -> IdleCheck {
        // Four checks for a head, twelve for an idle connection.
        IdleCheck::new(Duration::from_secs(4), Duration::from_secs(12)).0
    }

    fn run(check: &mut IdleCheck, activity: &Activity, count: usize) -> Vec<Due> {
        (0..count).map(|_| check.run(activity)).filter(|due| *due != Due::Nothing).collect()
    }

    #[test]
    fn an_incomplete_head_is_closed_at_its_timeout_even_if_bytes_keep_arriving() {
        let (activity, mut check) = (Activity::default(), idle_check());
        activity.bytes_arrived();
        for _ in 0..4 {
            activity.bytes_arrived();
            assert_eq!(check.run(&activity), Due::Nothing);
        }
        activity.bytes_arrived();
        assert_eq!(check.run(&activity), Due::Close);
    }

    #[test]
    fn a_peer_that_does_not_read_its_response_is_closed_at_the_timeout_of_a_head() {
        let (activity, mut check) = (Arc::new(Activity::default()), idle_check());
        drop(activity.begin_request());
        // The first check sees the change.
        assert_eq!(run(&mut check, &activity, 4), []);
        assert_eq!(check.run(&activity), Due::Close);
        activity.all_written();
        assert_eq!(run(&mut check, &activity, 12), []);
        assert_eq!(check.run(&activity), Due::Shutdown);
    }

    #[test]
    fn an_idle_connection_ends_at_the_idle_timeout_not_at_the_head_timeout() {
        let (activity, mut check) = (Activity::default(), idle_check());
        assert_eq!(run(&mut check, &activity, 11), []);
        assert_eq!(check.run(&activity), Due::Shutdown);
    }

    #[test]
    fn a_connection_that_ignores_a_graceful_shutdown_is_closed() {
        let (activity, mut check) = (Activity::default(), idle_check());
        run(&mut check, &activity, 15);
        assert_eq!(check.run(&activity), Due::Close);
    }

    #[test]
    fn many_quick_requests_are_not_one_slow_head() {
        let (activity, mut check) = (Arc::new(Activity::default()), idle_check());
        for _ in 0..50 {
            activity.bytes_arrived();
            assert_eq!(check.run(&activity), Due::Nothing);
            drop(activity.begin_request());
        }
    }

    #[test]
    fn a_request_in_the_service_has_no_idle_timeout() {
        let (activity, mut check) = (Arc::new(Activity::default()), idle_check());
        activity.bytes_arrived();
        let request = activity.begin_request();
        assert_eq!(run(&mut check, &activity, 100), []);
        drop(request);
        activity.all_written();
        assert!(activity.has_served());
        // The first check sees the change; then the idle time runs.
        assert_eq!(run(&mut check, &activity, 12), []);
        assert_eq!(check.run(&activity), Due::Shutdown);
    }
}
