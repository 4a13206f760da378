//! One connection, from accepted to closed: handshake, protocol, requests, end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::http::{Request, Version};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::drain::StageWatch;
use super::handshake::{self, HandshakeLog};
use super::pulse::{Look, Lookout, Pulse, PulseIo};
use super::refusal::Refusal;
use crate::telemetry::Metrics;
use crate::tls::ServerTls;

/// What all connections of a port share.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) transport: Transport,
    pub(super) router: Router,
    pub(super) stage: StageWatch,
    pub(super) handshake_timeout: Duration,
    pub(super) head_timeout: Duration,
    pub(super) idle_timeout: Duration,
}

/// What is under HTTP.
#[derive(Debug)]
pub(super) enum Transport {
    /// Nothing: the probe port.
    Plain,
    /// TLS, counted: the webhook port.
    Tls { tls: Arc<ServerTls>, metrics: Arc<Metrics>, failures: HandshakeLog },
}

/// Serves one accepted connection to its end.
pub(super) async fn serve(stream: TcpStream, connections: &Connections) {
    // An answer is one small write; waiting for more to put into the packet only costs 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    match &connections.transport {
        Transport::Plain => serve_http1(stream, connections).await,
        Transport::Tls { tls, metrics, failures } => {
            let _counted = Open::count(metrics);
            let handshake = TlsAcceptor::from(tls.config()).accept(stream);
            match timeout(connections.handshake_timeout, handshake).await {
                // ALPN has said what will be spoken. hyper-util's `auto` would wait for the first
                // bytes to tell, without a timeout.
                Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                    serve_http2(stream, connections).await;
                }
                Ok(Ok(stream)) => serve_http1(stream, connections).await,
                Ok(Err(error)) => failures.note(handshake::Failure::of(&error), &error, metrics),
                Err(elapsed) => failures.note(handshake::Failure::Timeout, &elapsed, metrics),
            }
        }
    }
}

async fn serve_http1<S>(stream: S, connections: &Connections)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pulse = Arc::new(Pulse::default());
    let io = TokioIo::new(PulseIo::new(stream, Arc::clone(&pulse)));
    let connection = http1::Builder::new()
        // See `pulse`: one hyper timer cannot serve two timeouts.
        .header_read_timeout(None)
        .max_buf_size(HTTP1_BUFFER)
        // A client that shuts down its sending side has gone, for all that HTTP/1.1 clients do;
        // keeping half of it open would only keep its request running for nobody.
        .half_close(false)
        .serve_connection(io, service(connections, &pulse));
    let mut connection = pin!(connection);
    let (mut lookout, every) = Lookout::new(connections.head_timeout, connections.idle_timeout);
    let mut looks = interval_at(Instant::now() + every, every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stage = connections.stage.clone();
    let mut phase = Phase::Open;
    let mut last_call = Instant::now();
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    // Clients come and go; their mistakes are not our operator's business.
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = stage.closing(), if phase == Phase::Open => {
                if pulse.has_served() {
                    phase = Phase::Ending;
                    connection.as_mut().graceful_shutdown();
                } else {
                    phase = Phase::LastCall;
                    last_call = Instant::now() + FIRST_REQUEST;
                }
            }
            () = sleep_until(last_call), if phase == Phase::LastCall => {
                phase = Phase::Ending;
                connection.as_mut().graceful_shutdown();
            }
            _ = looks.tick() => match lookout.step(&pulse) {
                Look::Wait => {}
                Look::End => connection.as_mut().graceful_shutdown(),
                Look::Cut => {
                    tracing::debug!("cut a connection that did not finish its request head");
                    return;
                }
            },
        }
    }
}

/// How far a connection is on its way to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// As ever.
    Open,
    /// The server closes, and this client has not been answered yet: it connected a moment ago and
    /// its request is on the way. hyper would close at once; we wait for that one request.
    LastCall,
    /// Ends after the answer in progress.
    Ending,
}

async fn serve_http2<S>(stream: S, connections: &Connections)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pulse = Arc::new(Pulse::default());
    let streams = Streams::default();
    let connection = http2::Builder::new(streams)
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .max_frame_size(HTTP2_FRAME)
        .max_header_list_size(HTTP2_HEADERS)
        .max_send_buf_size(HTTP2_SEND_BUFFER)
        .keep_alive_interval(HTTP2_PING)
        .keep_alive_timeout(HTTP2_PING)
        .serve_connection(TokioIo::new(stream), service(connections, &pulse));
    let mut connection = pin!(connection);
    // Bytes are not watched here: pings and window updates are none of a request's. A head that
    // does not end therefore counts as idling.
    let (mut lookout, every) = Lookout::new(connections.head_timeout, connections.idle_timeout);
    let mut looks = interval_at(Instant::now() + every, every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stage = connections.stage.clone();
    let mut ending = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            // GOAWAY in two steps: what was sent before the client has read it is still answered.
            () = stage.closing(), if !ending => {
                ending = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = looks.tick() => match lookout.step(&pulse) {
                Look::Wait => {}
                Look::End => connection.as_mut().graceful_shutdown(),
                Look::Cut => return,
            },
        }
    }
}

/// The router as hyper calls it, with what holds for every answer: a panic becomes a 500, and once
/// the server is parting, HTTP/1 answers say so.
fn service(
    connections: &Connections,
    pulse: &Arc<Pulse>,
) -> impl Service<
    Request<Incoming>,
    Response = Response,
    Error = Infallible,
    Future = impl Future<Output = Result<Response, Infallible>> + Send + use<>,
> + use<> {
    let router = TowerToHyperService::new(connections.router.clone());
    let stage = connections.stage.clone();
    let pulse = Arc::clone(pulse);
    service_fn(move |request: Request<Incoming>| {
        let busy = pulse.begin();
        let version = request.version();
        let answer = router.call(request);
        let stage = stage.clone();
        async move {
            let _busy = busy;
            let Ok(mut response) = caught(answer).await;
            // HTTP/2 has no such header; it gets a GOAWAY when the server closes.
            if stage.is_parting() && version < Version::HTTP_2 {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response)
        }
    })
}

/// Turns a panic into an answer. The state a panic may leave behind is one request's: what requests
/// share are atomics and immutable snapshots, so asserting unwind safety is true here.
async fn caught(
    answer: impl Future<Output = Result<Response, Infallible>>,
) -> Result<Response, Infallible> {
    let mut answer = pin!(answer);
    poll_fn(|cx| {
        catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))).unwrap_or_else(|_payload| {
            // The payload is dropped unread: it may quote somebody's object.
            tracing::error!("a request ended in a panic and was answered with 500");
            std::task::Poll::Ready(Ok(Refusal::Panicked.into_response()))
        })
    })
    .await
}

/// A counted connection.
struct Open<'m>(&'m Metrics);

impl<'m> Open<'m> {
    fn count(metrics: &'m Metrics) -> Self {
        metrics.connections.inc();
        metrics.connections_accepted.inc();
        Self(metrics)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}

/// Where an HTTP/2 connection's requests run: in a set that the connection owns, so that none of
/// them outlives it. hyper would spawn them into the runtime, where nobody could wait for them.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while streams.try_join_next().is_some() {}
        streams.spawn(stream);
    }
}

/// How long a connection that never sent a request may still do so when the server closes. The API
/// server writes its request in the same millisecond as the handshake's end.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// Holds a request's head (API servers send less than 1 KB) and is the largest read. hyper's
/// default grows to some 400 KB a connection; two TLS records are read as fast and 64 connections
/// stay within 2 MB.
const HTTP1_BUFFER: usize = 32 << 10;

/// Above what one API server could want at once, far below what would let one connection take all
/// of `max_in_flight`.
const HTTP2_STREAMS: u32 = 64;

/// A review of common size without a round trip; memory that a peer may fill unread.
const HTTP2_STREAM_WINDOW: u32 = 64 << 10;

/// For all streams of a connection together.
const HTTP2_CONNECTION_WINDOW: u32 = 256 << 10;

/// The protocol's minimum, and one TLS record.
const HTTP2_FRAME: u32 = 16 << 10;

/// As for HTTP/1 heads, and for their sum over continuation frames.
const HTTP2_HEADERS: u32 = 16 << 10;

/// Answers are small; a patch of 64 KB waits for the window like any other.
const HTTP2_SEND_BUFFER: usize = 64 << 10;

/// Finds dead peers: after twice that they are gone.
const HTTP2_PING: Duration = Duration::from_secs(20);
