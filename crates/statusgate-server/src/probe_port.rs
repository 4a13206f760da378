//! The probe port: `/livez`, `/readyz` and `/metrics` in plain HTTP.
//!
//! It has its own listener and limits: kubelet and Prometheus have no client certificates, and they
//! need an answer even if the webhook port has no connection left. It closes after the webhook
//! port, so that the shutdown can be observed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::StartError;
use super::answer::body_with;
use super::budget::Budget;
use super::connection::{Connections, Transport};
use super::drain::{Lifecycle, Stage};
use super::listener::Listener;
use crate::telemetry::Scrape;

/// A listener for probes. Dropping it closes the port immediately.
#[derive(Debug)]
pub struct ProbePort {
    /// The bound address, with the real port if port 0 was requested.
    pub address: SocketAddr,
    lifecycle: Lifecycle,
    listening: JoinSet<()>,
}

impl ProbePort {
    /// Opens the port and answers from now on.
    ///
    /// # Errors
    /// A port that cannot be bound.
    pub fn open(
        address: SocketAddr,
        reuse_port: bool,
        readiness: Readiness,
        metrics: Arc<dyn Scrape>,
    ) -> Result<Self, StartError> {
        let (lifecycle, stage) = Lifecycle::new();
        let connections = Connections {
            transport: Transport::Plain,
            router: router(Probed { readiness, metrics, scrapes: Budget::new(MAX_SCRAPES) }),
            stage,
            handshake_timeout: Duration::ZERO,
            head_timeout: HEAD_TIMEOUT,
            idle_timeout: HEAD_TIMEOUT,
            // A peer with a connection for each of the 64 would keep kubelet out. Prometheus reconnects.
            keep_alive: false,
        };
        let listener = Listener::bind(address, reuse_port, MAX_CONNECTIONS, Arc::new(connections))?;
        let address = listener.address;
        let mut listening = JoinSet::new();
        listening.spawn(listener.run());
        Ok(Self { address, lifecycle, listening })
    }

    /// Closes the port. Probes in progress have a second to finish.
    pub async fn close(mut self) {
        self.lifecycle.enter(Stage::Closing);
        let answered = async { while self.listening.join_next().await.is_some() {} };
        let _ = timeout(CLOSE_TIMEOUT, answered).await;
        self.listening.shutdown().await;
    }
}

/// The reasons why a server is not ready, as `/readyz` lists them.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<Vec<&'static str>>>);

impl Readiness {
    /// A server that is not ready for these reasons.
    pub fn blocked_by<const N: usize>(reasons: [&'static str; N]) -> Self {
        Self(Arc::new(Mutex::new(reasons.into())))
    }

    /// Adds a reason.
    pub fn block(&self, reason: &'static str) {
        self.lock().push(reason);
    }

    /// Removes a reason.
    pub fn unblock(&self, reason: &'static str) {
        self.lock().retain(|known| *known != reason);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<&'static str>> {
        // A panic cannot leave a list of words half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Debug)]
struct Probed {
    readiness: Readiness,
    metrics: Arc<dyn Scrape>,
    scrapes: Arc<Budget>,
}

fn router(probed: Probed) -> Router {
    Router::new()
        // A process that answers is alive. With a stricter check, such as for broken policies,
        // kubelet would restart a server that works with its last valid policies.
        .route("/livez", get(async || "ok\n"))
        // The older name of `/livez`.
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(probed)
}

async fn readyz(State(probed): State<Probed>) -> Response {
    let reasons = probed.readiness.lock().join("\n");
    match &*reasons {
        "" => "ok\n".into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, reasons + "\n").into_response(),
    }
}

async fn metrics(State(probed): State<Probed>) -> Response {
    let Some(scrape) = probed.scrapes.take(1) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    match probed.metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, OPENMETRICS)], body_with(text.into(), scrape)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Enough for kubelet, two Prometheus servers and some people.
const MAX_CONNECTIONS: usize = 64;

/// Answers of `/metrics` that are not written yet. Those of many policies have megabytes.
const MAX_SCRAPES: usize = 4;

/// Probes send their head at once.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
