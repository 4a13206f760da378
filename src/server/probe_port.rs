//! The probe port: a server's, or that of a command that serves nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connection::{Connections, Transport};
use super::drain::{Conductor, Stage};
use super::readiness::{Gate, Readiness};
use super::{StartError, bind, probes};
use crate::telemetry::Scrape;

/// The listener, and what is answered there. Dropping it stops it at once.
#[derive(Debug)]
pub(super) struct Probes {
    address: SocketAddr,
    conductor: Conductor,
    listening: JoinSet<()>,
}

impl Probes {
    pub(super) fn open(
        address: SocketAddr,
        reuse_port: bool,
        readiness: Readiness,
        metrics: Arc<dyn Scrape>,
    ) -> Result<Self, StartError> {
        let (conductor, stage) = Conductor::new();
        let connections = Connections {
            transport: Transport::Plain,
            router: probes::router(readiness, metrics),
            stage,
            handshake_timeout: Duration::ZERO,
            head_timeout: probes::HEAD_TIMEOUT,
            idle_timeout: probes::IDLE_TIMEOUT,
        };
        let (listener, address) =
            bind(address, reuse_port, probes::CONNECTIONS, Arc::new(connections))?;
        let mut listening = JoinSet::new();
        listening.spawn(listener.run());
        Ok(Self { address, conductor, listening })
    }

    /// Where probes are answered; the real port, where 0 was asked for.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it. A probe in progress is answered; one that is not done within a moment is not.
    pub(super) async fn close(mut self) {
        self.conductor.enter(Stage::Closing);
        let answered = async { while self.listening.join_next().await.is_some() {} };
        let _ = timeout(END, answered).await;
        self.listening.shutdown().await;
    }
}

/// A probe port by itself, with one thing to wait for.
#[derive(Debug)]
pub struct ProbePort {
    probes: Probes,
    gate: Option<Gate>,
}

impl ProbePort {
    /// Answers from now on; `/readyz` says `waiting_for` until [`Self::ready`].
    ///
    /// # Errors
    /// A port that cannot be bound.
    pub fn open(
        address: SocketAddr,
        waiting_for: &'static str,
        metrics: Arc<dyn Scrape>,
    ) -> Result<Self, StartError> {
        let readiness = Readiness::default();
        let gate = readiness.gate(waiting_for);
        Ok(Self { probes: Probes::open(address, false, readiness, metrics)?, gate: Some(gate) })
    }

    /// Where probes are answered; the real port, where 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.probes.address()
    }

    /// What was waited for is there.
    pub fn ready(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.open();
        }
    }

    /// Ends it.
    pub async fn close(self) {
        self.probes.close().await;
    }
}

/// For a probe that is being answered while the process ends.
const END: Duration = Duration::from_secs(1);
