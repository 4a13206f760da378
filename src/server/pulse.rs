//! Whether an HTTP/1 connection lives, and what it is in the middle of.
//!
//! hyper has one timer for two questions: `header_read_timeout` runs from the end of an answer to
//! the end of the next request head. Kept above 90 s (an API server keeps connections idle that
//! long) it lets a client dribble a head for two minutes; set to ten seconds it cuts the API
//! server's idle connections, whose next POST then fails. So hyper's timer is off, and the two are
//! told apart here: a [`PulseIo`] notes the first byte of a head, the service notes its end, and a
//! [`Lookout`] looks a few times per timeout whether anything changed. A request costs some relaxed
//! atomic stores; no timer is armed, no clock is read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What one connection is doing.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Bytes have come since the last answer, and no whole head yet.
    head: AtomicBool,
    /// Requests in the service: at most one with HTTP/1, several with HTTP/2.
    busy: AtomicU32,
    /// Counts every change, so that two looks can tell "still this head" from "the next one".
    changes: AtomicU64,
    /// Whether any request ever came.
    served: AtomicBool,
}

impl Pulse {
    /// Bytes came in.
    fn bytes(&self) {
        if self.busy.load(Relaxed) == 0 && !self.head.load(Relaxed) {
            self.head.store(true, Relaxed);
            self.changes.fetch_add(1, Relaxed);
        }
    }

    /// A head is complete. The connection is busy until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.head.store(false, Relaxed);
        self.served.store(true, Relaxed);
        self.busy.fetch_add(1, Relaxed);
        self.changes.fetch_add(1, Relaxed);
        Busy(Arc::clone(self))
    }

    /// Whether any request has come on this connection.
    pub(super) fn has_served(&self) -> bool {
        self.served.load(Relaxed)
    }

    fn look(&self) -> (u64, Doing) {
        let doing = if self.busy.load(Relaxed) > 0 {
            Doing::Request
        } else if self.head.load(Relaxed) {
            Doing::Head
        } else {
            Doing::Nothing
        };
        (self.changes.load(Relaxed), doing)
    }
}

/// A request is being handled.
#[derive(Debug)]
pub(super) struct Busy(Arc<Pulse>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Relaxed);
        self.0.changes.fetch_add(1, Relaxed);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    Head,
    Request,
}

/// Looks at a pulse now and then, and says what to do about it.
#[derive(Debug)]
pub(super) struct Lookout {
    /// Looks after which a head must be complete.
    head: u32,
    /// Looks after which an idle connection ends.
    idle: u32,
    changes: u64,
    unchanged: u32,
}

/// What a look leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// All is well.
    Wait,
    /// Idle for too long: end it in an orderly way.
    End,
    /// It does not finish a head, or did not end when asked to: drop it.
    Cut,
}

impl Lookout {
    /// Looks for these timeouts, and how often [`Lookout::step`] is to be called.
    pub(super) fn new(head_timeout: Duration, idle_timeout: Duration) -> (Self, Duration) {
        let every = (head_timeout.min(idle_timeout) / LOOKS).max(Duration::from_millis(1));
        let looks = |timeout: Duration| {
            u32::try_from(timeout.as_nanos().div_ceil(every.as_nanos())).unwrap_or(u32::MAX)
        };
        let lookout =
            Self { head: looks(head_timeout), idle: looks(idle_timeout), changes: 0, unchanged: 0 };
        (lookout, every)
    }

    /// One look.
    pub(super) fn step(&mut self, pulse: &Pulse) -> Look {
        self.judge(pulse.look())
    }

    fn judge(&mut self, (changes, doing): (u64, Doing)) -> Look {
        // A request in the service has timeouts of its own (the body's).
        if changes != self.changes || doing == Doing::Request {
            self.changes = changes;
            self.unchanged = 0;
            return Look::Wait;
        }
        self.unchanged = self.unchanged.saturating_add(1);
        match doing {
            Doing::Head if self.unchanged >= self.head => Look::Cut,
            // Asked to end and still here: a peer that does not read its last answer would keep
            // the connection, and its permit, for ever.
            Doing::Nothing if self.unchanged >= self.idle.saturating_add(self.head) => Look::Cut,
            Doing::Nothing if self.unchanged >= self.idle => Look::End,
            _ => Look::Wait,
        }
    }
}

/// A stream that notes when bytes come in.
#[derive(Debug)]
pub(super) struct PulseIo<S> {
    stream: S,
    pulse: Arc<Pulse>,
}

impl<S> PulseIo<S> {
    pub(super) fn new(stream: S, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PulseIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.pulse.bytes();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PulseIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Looks per timeout: a timeout is met with up to a quarter more, for one wake-up of a connection
/// every 2.5 s with the default settings.
const LOOKS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn lookout() -> Lookout {
        // Four looks for a head, twelve for idling.
        Lookout::new(Duration::from_secs(4), Duration::from_secs(12)).0
    }

    fn looks(lookout: &mut Lookout, pulse: &Pulse, count: usize) -> Vec<Look> {
        (0..count).map(|_| lookout.step(pulse)).filter(|look| *look != Look::Wait).collect()
    }

    #[test]
    fn a_head_that_does_not_end_is_cut_after_its_timeout_however_many_bytes_come() {
        let (pulse, mut lookout) = (Pulse::default(), lookout());
        pulse.bytes();
        for _ in 0..4 {
            pulse.bytes();
            assert_eq!(lookout.step(&pulse), Look::Wait);
        }
        pulse.bytes();
        assert_eq!(lookout.step(&pulse), Look::Cut);
    }

    #[test]
    fn an_idle_connection_outlives_the_head_timeout_and_ends_at_its_own() {
        let (pulse, mut lookout) = (Pulse::default(), lookout());
        assert_eq!(looks(&mut lookout, &pulse, 11), []);
        assert_eq!(lookout.step(&pulse), Look::End);
    }

    #[test]
    fn a_connection_that_does_not_end_when_asked_is_cut() {
        let (pulse, mut lookout) = (Pulse::default(), lookout());
        looks(&mut lookout, &pulse, 15);
        assert_eq!(lookout.step(&pulse), Look::Cut);
    }

    #[test]
    fn many_quick_requests_are_never_mistaken_for_one_slow_head() {
        let (pulse, mut lookout) = (Arc::new(Pulse::default()), lookout());
        for _ in 0..50 {
            pulse.bytes();
            assert_eq!(lookout.step(&pulse), Look::Wait);
            drop(pulse.begin());
        }
    }

    #[test]
    fn a_request_in_the_service_is_left_alone() {
        let (pulse, mut lookout) = (Arc::new(Pulse::default()), lookout());
        pulse.bytes();
        let busy = pulse.begin();
        assert_eq!(looks(&mut lookout, &pulse, 100), []);
        drop(busy);
        assert!(pulse.has_served());
        // One look to see the change, then the idle time runs.
        assert_eq!(looks(&mut lookout, &pulse, 12), []);
        assert_eq!(lookout.step(&pulse), Look::End);
    }
}
