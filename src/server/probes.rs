//! The probe port: `/livez`, `/readyz` and `/metrics`, in plain HTTP.
//!
//! A port, a listener and limits of its own: kubelets and Prometheus have no client certificates,
//! and they must be answered when the webhook port has no connection left to give. It outlives the
//! webhook port, so that the end can be watched.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::readiness::Readiness;
use crate::telemetry::Scrape;

#[derive(Clone, Debug)]
struct Seen {
    readiness: Readiness,
    metrics: Arc<dyn Scrape>,
}

/// The three paths.
pub(super) fn router(readiness: Readiness, metrics: Arc<dyn Scrape>) -> Router {
    Router::new()
        // Alive is who can answer. Anything more, a broken policy say, would make kubelet restart
        // a server that goes on well with its last good one.
        .route("/livez", get(async || "ok\n"))
        // The name from before there were three of them; whoever knows only that is answered.
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .with_state(Seen { readiness, metrics })
}

async fn readyz(State(seen): State<Seen>) -> Response {
    let reasons = seen.readiness.reasons();
    if reasons.is_empty() {
        return "ok\n".into_response();
    }
    let mut text = reasons.join("\n");
    text.push('\n');
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn metrics_text(State(seen): State<Seen>) -> Response {
    match seen.metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A kubelet, a Prometheus or two and a person.
pub(super) const CONNECTIONS: usize = 64;

/// Probes send their head at once.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Kubelet opens a connection a probe; Prometheus may keep one from scrape to scrape, and comes
/// again if it is closed.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
