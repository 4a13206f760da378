//! How a server ends without failing anybody's write.
//!
//! ```text
//! Serving ──signal──► Unready ──grace over, or signal──► Closing ──all done──► Ended(Drained)
//!                                                           └──time up, or signal──► Ended(Cut)
//! ```
//!
//! *Unready*: `/readyz` says 503 so that endpoints are withdrawn, which takes a cluster some
//! seconds; requests still come, are answered, and each answer carries `Connection: close`, so that
//! API servers move to another replica one connection at a time. *Closing*: nothing new is
//! accepted, idle connections end, what is in flight finishes.
//!
//! The state machine is `Stage::step`; the rest tells it what happened and others what is.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// Where in its life the server is; later stages are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The normal state.
    Serving,
    /// Asked to end; still accepting, and saying goodbye in every answer.
    Unready,
    /// Not accepting; finishing.
    Closing,
    /// Over.
    Ended(End),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Every connection was finished.
    Drained,
    /// Some connection was still open when the time was up, or somebody insisted.
    Cut,
}

/// What moves a stage on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Signal,
    TimeUp,
    Drained,
}

impl Stage {
    /// The only transition function.
    const fn step(self, event: Event) -> Self {
        match (self, event) {
            (Self::Serving, Event::Signal) => Self::Unready,
            // A second signal skips the grace: a person at a terminal presses Ctrl-C twice.
            (Self::Unready, Event::Signal | Event::TimeUp) => Self::Closing,
            (Self::Closing, Event::Signal | Event::TimeUp) => Self::Ended(End::Cut),
            // The listener ends by itself only if it cannot go on.
            (Self::Serving | Self::Unready | Self::Closing, Event::Drained) => {
                Self::Ended(End::Drained)
            }
            (stage @ (Self::Serving | Self::Ended(_)), _) => stage,
        }
    }
}

/// Leads the server through its stages.
#[derive(Debug)]
pub(super) struct Conductor {
    stage: watch::Sender<Stage>,
    parting: Arc<AtomicBool>,
}

impl Conductor {
    pub(super) fn new() -> (Self, StageWatch) {
        let (stage, watch) = watch::channel(Stage::Serving);
        let parting = Arc::new(AtomicBool::new(false));
        (Self { stage, parting: Arc::clone(&parting) }, StageWatch { stage: watch, parting })
    }

    /// Runs until the end. `listener` completes when its last connection has; `entered` is called
    /// at each new stage.
    pub(super) async fn conduct(
        self,
        mut signals: mpsc::UnboundedReceiver<()>,
        listener: impl Future<Output = ()>,
        grace: Duration,
        drain_timeout: Duration,
        entered: impl Fn(Stage),
    ) -> End {
        let mut listener = std::pin::pin!(listener);
        let mut stage = Stage::Serving;
        loop {
            let time_limit = match stage {
                Stage::Serving => Duration::MAX,
                Stage::Unready => grace,
                Stage::Closing => drain_timeout,
                Stage::Ended(end) => return end,
            };
            let event = tokio::select! {
                () = &mut listener => Event::Drained,
                // Nobody left who could signal: that is a signal, or this would run for ever.
                _ = signals.recv() => Event::Signal,
                () = sleep(time_limit) => Event::TimeUp,
            };
            stage = stage.step(event);
            self.enter(stage);
            entered(stage);
        }
    }

    /// Enters a stage without the machine: the probe port follows the server and has no own grace.
    pub(super) fn enter(&self, stage: Stage) {
        self.parting.store(stage > Stage::Serving, Relaxed);
        self.stage.send_replace(stage);
    }
}

/// Tells a task which stage it is.
#[derive(Clone, Debug)]
pub(super) struct StageWatch {
    stage: watch::Receiver<Stage>,
    /// The same news for those who ask at every request: reading a watch takes a lock.
    parting: Arc<AtomicBool>,
}

impl StageWatch {
    /// Whether answers should say `Connection: close`.
    pub(super) fn is_parting(&self) -> bool {
        self.parting.load(Relaxed)
    }

    /// Waits until nothing new is to be accepted.
    pub(super) async fn closing(&mut self) {
        // The sender gone means the server is gone.
        let _ = self.stage.wait_for(|stage| *stage >= Stage::Closing).await;
    }

    /// Waits until everything has to stop.
    pub(super) async fn ended(&mut self) {
        let _ = self.stage.wait_for(|stage| matches!(stage, Stage::Ended(_))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_leads_through_grace_and_closing_to_a_drained_end() {
        let stage = Stage::Serving.step(Event::Signal);
        assert_eq!(stage, Stage::Unready);
        let stage = stage.step(Event::TimeUp);
        assert_eq!(stage, Stage::Closing);
        assert_eq!(stage.step(Event::Drained), Stage::Ended(End::Drained));
        assert_eq!(stage.step(Event::TimeUp), Stage::Ended(End::Cut));
    }

    #[test]
    fn a_second_signal_skips_the_grace_and_a_third_one_the_drain() {
        let stage = Stage::Unready.step(Event::Signal);
        assert_eq!(stage, Stage::Closing);
        assert_eq!(stage.step(Event::Signal), Stage::Ended(End::Cut));
    }

    #[test]
    fn no_event_leads_back() {
        let stages = [Stage::Serving, Stage::Unready, Stage::Closing, Stage::Ended(End::Cut)];
        for stage in stages {
            for event in [Event::Signal, Event::TimeUp, Event::Drained] {
                assert!(stage.step(event) >= stage, "{stage:?} and {event:?}");
            }
        }
    }
}
