//! The shutdown of a server without a failed write.
//!
//! ```text
//! Serving ──signal──► Unready ──grace over, or signal──► Closing ──all done──► Ended(Drained)
//!                                                           └──timeout, or signal──► Ended(Cut)
//! ```
//!
//! *Unready*: `/readyz` returns 503 so that the endpoints are removed, which takes a cluster some
//! seconds. Requests are still answered, each with `Connection: close`, so that API servers move to
//! another replica one connection at a time. *Closing*: the server accepts no connections, closes
//! idle ones and finishes requests in flight.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// The lifecycle stage of a server. Later stages are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The normal state.
    Serving,
    /// The server accepts requests, but asks clients to leave.
    Unready,
    /// The server accepts no connections and finishes the open ones.
    Closing,
    /// The server has ended.
    Ended(End),
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Every connection was finished.
    Drained,
    /// A connection was still open at the timeout or at the last signal.
    Cut,
}

/// Sets the stage of a server.
#[derive(Debug)]
pub(super) struct Lifecycle {
    stage: watch::Sender<Stage>,
    leaving: Arc<AtomicBool>,
}

impl Lifecycle {
    pub(super) fn new() -> (Self, StageWatch) {
        let (stage, watch) = watch::channel(Stage::Serving);
        let leaving = Arc::new(AtomicBool::new(false));
        (Self { stage, leaving: Arc::clone(&leaving) }, StageWatch { stage: watch, leaving })
    }

    /// Runs until the end. `listener` completes with its last connection; `entered` is called at
    /// each new stage.
    pub(super) async fn run(
        self,
        mut signals: mpsc::UnboundedReceiver<()>,
        listener: impl Future<Output = ()>,
        grace: Duration,
        drain_timeout: Duration,
        entered: impl Fn(Stage),
    ) -> End {
        let mut listener = std::pin::pin!(listener);
        for (time_limit, next) in
            [(Duration::MAX, Stage::Unready), (grace, Stage::Closing), (drain_timeout, CUT)]
        {
            let stage = tokio::select! {
                () = &mut listener => Stage::Ended(End::Drained),
                // A second signal skips the grace time, a third one the drain: people press Ctrl-C
                // again. A closed channel counts as a signal, or the server could run forever.
                _ = signals.recv() => next,
                () = sleep(time_limit) => next,
            };
            self.enter(stage);
            entered(stage);
            if stage == Stage::Ended(End::Drained) {
                return End::Drained;
            }
        }
        End::Cut
    }

    /// Enters a stage directly: the probe port follows the server and has no grace time.
    pub(super) fn enter(&self, stage: Stage) {
        self.leaving.store(stage > Stage::Serving, Relaxed);
        self.stage.send_replace(stage);
    }
}

const CUT: Stage = Stage::Ended(End::Cut);

/// Reads the stage of a server.
#[derive(Clone, Debug)]
pub(super) struct StageWatch {
    stage: watch::Receiver<Stage>,
    /// Whether the stage is later than `Serving`. Every request reads it, and reading a watch
    /// takes a lock.
    leaving: Arc<AtomicBool>,
}

impl StageWatch {
    /// Whether responses ask clients to close their connection.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    /// Waits until the server accepts no more connections.
    pub(super) async fn closing(&mut self) {
        // An error means that the sender and with it the server is dropped.
        let _ = self.stage.wait_for(|stage| *stage >= Stage::Closing).await;
    }

    /// Waits until the server has ended.
    pub(super) async fn ended(&mut self) {
        let _ = self.stage.wait_for(|stage| matches!(stage, Stage::Ended(_))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn signals_skip_the_grace_time_and_then_the_drain() {
        let (lifecycle, watch) = Lifecycle::new();
        let (signal, signals) = mpsc::unbounded_channel();
        for _ in 0..3 {
            signal.send(()).unwrap();
        }
        let stages = std::sync::Mutex::new(Vec::new());
        let entered = |stage| stages.lock().unwrap().push(stage);
        let hour = Duration::from_secs(3600);
        let end = lifecycle.run(signals, std::future::pending(), hour, hour, entered).await;
        assert_eq!(end, End::Cut);
        assert_eq!(stages.into_inner().unwrap(), [Stage::Unready, Stage::Closing, CUT]);
        assert!(watch.is_leaving());
    }
}
