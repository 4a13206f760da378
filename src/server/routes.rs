//! The paths of the webhook port, and what happens to a request before and after it is judged.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, EXPECT, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use tokio::sync::Mutex;

use super::admit::{self, Reply};
use super::body::{self, BodyLimits};
use super::budget::Budget;
use super::refusal::{Overload, Refusal};
use super::snapshot::Snapshot;
use super::{clock, observe};
use crate::model::Webhook;
use crate::telemetry::{Code, Metrics, WebhookMetrics};

/// What a request needs.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) in_flight: Arc<Budget>,
    pub(super) bodies: BodyLimits,
    /// Held while a large body is judged: its tree may be many times its size, and a second one
    /// can wait the milliseconds that the first takes.
    pub(super) large: Arc<Mutex<()>>,
}

/// `/mutate` and `/validate`. No layers: each would box every request's future once more, and what
/// they could do (limits, timeouts, panics) needs to know the connection.
pub(super) fn router(edge: Arc<Edge>) -> Router {
    Router::new()
        .route("/mutate", any(mutate))
        .route("/validate", any(validate))
        .fallback(async || Refusal::NotFound)
        .with_state(edge)
}

async fn mutate(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    review(edge, Webhook::Mutate, request).await
}

async fn validate(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    review(edge, Webhook::Validate, request).await
}

async fn review(edge: Arc<Edge>, webhook: Webhook, request: Request) -> Response {
    let mut tally = Tally::start(&edge, webhook);
    let answer = answer(&edge, webhook, request).await;
    match answer {
        Ok(reply) => {
            let (status, code, content_type) = match reply.status {
                200 => (StatusCode::OK, Code::Ok, "application/json"),
                _ => (StatusCode::BAD_REQUEST, Code::BadRequest, "text/plain; charset=utf-8"),
            };
            tally.code = Some(code);
            let content_type = HeaderValue::from_static(content_type);
            let mut response = Response::new(Body::from(reply.body));
            *response.status_mut() = status;
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        }
        Err(refusal) => {
            tally.code = refusal.code();
            if let Refusal::Overloaded(what) = refusal {
                edge.metrics.shed(what.name());
            }
            refusal.into_response()
        }
    }
}

async fn answer(edge: &Arc<Edge>, webhook: Webhook, request: Request) -> Result<Reply, Refusal> {
    if request.method() != Method::POST {
        return Err(Refusal::MethodNotAllowed);
    }
    let waits = request.headers().contains_key(EXPECT);
    // Whatever the content type says is accepted: API servers say application/json, and a person
    // whose curl says something else has sent what the parser will tell better about.
    let body = request.into_body();
    let Some(_place) = edge.in_flight.take(1) else {
        let refusal = Refusal::Overloaded(Overload::Requests);
        if !waits {
            body::discard(body, refusal).await;
        }
        return Err(refusal);
    };
    let whole = body::read(body, waits, &edge.bodies).await?;
    if whole.bytes.len() <= INLINE_BYTES {
        return Ok(judge(edge, webhook, &whole.bytes));
    }
    // A task of its own, so that the other connections of this worker go on. Not `block_in_place`:
    // it needs a multi-threaded runtime, and panics where an embedder or a test has another.
    // The body goes there with its share of the memory and its turn: if the client leaves, all stay
    // until the judgement is over.
    let own = Arc::clone(edge);
    let turn = Arc::clone(&edge.large).lock_owned().await;
    let judged = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        judge(&own, webhook, &whole.bytes)
    });
    match judged.await {
        Ok(reply) => Ok(reply),
        // As if it had been here: the connection's guard turns it into a 500.
        Err(failed) => match failed.try_into_panic() {
            Ok(payload) => std::panic::resume_unwind(payload),
            // The runtime is being dropped.
            Err(_) => Err(Refusal::Overloaded(Overload::Requests)),
        },
    }
}

fn judge(edge: &Edge, webhook: Webhook, body: &[u8]) -> Reply {
    let snapshot = edge.snapshot.load();
    admit::admit(&snapshot.policies, webhook, body, clock::now(), |identity, verdict| {
        observe::decision(&edge.metrics, &snapshot, webhook, identity, verdict);
    })
}

/// Counts a request when it is over, also when it ends in a panic.
struct Tally<'e> {
    metrics: &'e WebhookMetrics,
    start: Instant,
    code: Option<Code>,
}

impl<'e> Tally<'e> {
    fn start(edge: &'e Edge, webhook: Webhook) -> Self {
        let metrics = match webhook {
            Webhook::Mutate => &edge.metrics.mutate,
            Webhook::Validate => &edge.metrics.validate,
        };
        Self { metrics, start: Instant::now(), code: None }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        let panicked = std::thread::panicking().then_some(Code::Internal);
        // No code and no panic: the client left before its answer. Nobody was answered, nothing is
        // counted.
        if let Some(code) = self.code.or(panicked) {
            self.metrics.request(code);
            self.metrics.latency.observe(self.start.elapsed());
        }
    }
}

/// Judged in place up to here: about a quarter of a millisecond. Handing over to another thread
/// costs some ten microseconds, which is more than a review of common size needs altogether; a
/// body of 8 MiB would hold a worker, and all connections on it, for ten milliseconds and more.
const INLINE_BYTES: usize = body::LARGE_BYTES;
