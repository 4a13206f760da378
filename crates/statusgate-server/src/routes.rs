//! The paths of the webhook port and the handling of a request around its judgement.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::EXPECT;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, Status};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::answer::{self, Held};
use super::body::{self, BodyLimits};
use super::budget::Budget;
use super::observe;
use super::policies::Snapshot;
use super::rejection::{Overload, Rejection};
use super::trees::TreeMemory;
use crate::telemetry::{Metrics, WebhookMetrics, traces};
use statusgate_core::admit::{Reply, admit};
use statusgate_core::model::Webhook;

/// Answers an AdmissionReview of a StatusPolicy or StatusConvention. It may take seconds.
pub type DocumentReview = Arc<dyn Fn(&[u8]) -> Reply + Send + Sync>;

/// What the handler of a request needs.
pub(super) struct Handler {
    pub(super) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) in_flight: Arc<Budget>,
    pub(super) bodies: BodyLimits,
    /// Judges documents of statusgate itself, if they are in the cluster.
    pub(super) documents: Option<DocumentReview>,
    /// Starts the spans of reviews, if traces are exported.
    pub(super) tracer: Option<SdkTracer>,
    pub(super) trees: TreeMemory,
}

/// The paths of all webhooks, without tower layers: each layer would box the future of every request, and
/// limits, timeouts and panics need to know the connection anyway.
pub(super) fn router(handler: Arc<Handler>) -> Router {
    let mut router = Router::new();
    for webhook in Webhook::ALL {
        let answer = any(move |State(handler): State<Arc<Handler>>, request: Request| {
            review(handler, webhook, request)
        });
        router = router.route(webhook.path(), answer);
    }
    let router = router.route("/documents", any(documents));
    router.fallback(async || Rejection::NotFound).with_state(handler)
}

async fn review(handler: Arc<Handler>, webhook: Webhook, request: Request) -> Response {
    let mut count = RequestCount::start(&handler, webhook, request.headers());
    let response = match answer(&handler, webhook, request, count.span.is_some()).await {
        Ok((response, attributes)) => {
            if let Some(span) = &mut count.span {
                span.set_attributes(attributes);
            }
            response
        }
        Err(rejection) => {
            if let Rejection::Overloaded(overload) = rejection {
                handler.metrics.shed(overload.name());
            }
            rejection.into_response()
        }
    };
    count.status = Some(response.status());
    response
}

async fn documents(
    State(handler): State<Arc<Handler>>,
    request: Request,
) -> Result<Response, Rejection> {
    let Some(review) = handler.documents.clone() else { return Err(Rejection::NotFound) };
    let (body, held) = read(&handler, request).await?;
    let memory = handler.trees.of_document().await?;
    let (reply, held) = memory.run(body, held, move |body| review(body)).await?;
    answer::respond(reply, held)
}

async fn answer(
    handler: &Arc<Handler>,
    webhook: Webhook,
    request: Request,
    traced: bool,
) -> Result<(Response, Vec<KeyValue>), Rejection> {
    let (body, held) = read(handler, request).await?;
    let memory = handler.trees.of_review(body.len()).await?;
    let ((reply, attributes), held) = if body.len() <= INLINE_BYTES {
        let judged = judge(handler, webhook, &body, traced);
        drop((body, memory));
        (judged, held)
    } else {
        let handler = Arc::clone(handler);
        memory.run(body, held, move |body| judge(&handler, webhook, body, traced)).await?
    };
    Ok((answer::respond(reply, held)?, attributes))
}

/// Reads the body of a request, within the limits of all requests.
async fn read(handler: &Arc<Handler>, request: Request) -> Result<(Bytes, Held), Rejection> {
    if request.method() != Method::POST {
        return Err(Rejection::MethodNotAllowed);
    }
    let expects_continue = request.headers().contains_key(EXPECT);
    // Any content type is accepted: the parser's error explains more than a 415.
    let body = request.into_body();
    let Some(request) = handler.in_flight.take(1) else {
        let rejection = Rejection::Overloaded(Overload::Requests);
        body::discard_unread(body, expects_continue, rejection).await;
        return Err(rejection);
    };
    let (bytes, share) = body::read(body, expects_continue, &handler.bodies).await?;
    Ok((bytes, Held { _request: request, bytes: share }))
}

/// Judges a review. The attributes describe it if it is traced.
fn judge(handler: &Handler, webhook: Webhook, body: &[u8], traced: bool) -> (Reply, Vec<KeyValue>) {
    let (snapshot, now) = (handler.snapshot.load(), super::now());
    let mut attributes = Vec::new();
    let reply = admit(&snapshot.policies, webhook, body, now, |request, verdict| {
        observe::decision(&handler.metrics, &snapshot, webhook, request, verdict, now);
        if traced {
            attributes = observe::attributes(&snapshot.counters, webhook, request, verdict);
        }
    });
    (reply, attributes)
}

/// Counts a request when it ends, even if it panics.
struct RequestCount<'h> {
    metrics: &'h WebhookMetrics,
    start: Instant,
    status: Option<StatusCode>,
    /// In a box: traces are off by default, and each request has this member.
    span: Option<Box<Span>>,
}

impl<'h> RequestCount<'h> {
    fn start(handler: &'h Handler, webhook: Webhook, headers: &HeaderMap) -> Self {
        let span = handler.tracer.as_ref().and_then(|tracer| {
            let name = match webhook {
                Webhook::Mutate => "POST /mutate",
                Webhook::Validate => "POST /validate",
            };
            traces::start(tracer, name, headers).map(Box::new)
        });
        Self { metrics: handler.metrics.of(webhook), start: Instant::now(), status: None, span }
    }
}

impl Drop for RequestCount<'_> {
    fn drop(&mut self) {
        let panicked = std::thread::panicking().then_some(StatusCode::INTERNAL_SERVER_ERROR);
        // Without a status and a panic, the client left before its response: nothing to count.
        if let Some(status) = self.status.or(panicked) {
            self.metrics.request(status.as_u16());
            self.metrics.latency.observe(self.start.elapsed());
            if let Some(span) = &mut self.span {
                let code = i64::from(status.as_u16());
                span.set_attribute(KeyValue::new("http.response.status_code", code));
                // As in OpenTelemetry's conventions for servers: a 4xx is an error of the client.
                if status.is_server_error() {
                    span.set_status(Status::error(""));
                }
            }
        }
    }
}

/// Bodies up to this size are judged on the worker, in about a quarter of a millisecond. Moving to
/// another thread costs some ten microseconds, more than a typical review needs in total. A body of
/// 8 MiB would block a worker and all its connections for ten milliseconds and more.
const INLINE_BYTES: usize = 256 << 10;
