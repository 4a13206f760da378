//! One connection from accept to close: handshake, protocol, requests, shutdown.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
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
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::io::InspectReader;

use super::activity::{Activity, Due, IdleCheck};
use super::drain::StageWatch;
use super::handshake::{self, HandshakeLog};
use super::rejection::Rejection;
use crate::telemetry::Metrics;
use crate::tls::ServerTls;

/// The settings that all connections of a port share.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) transport: Transport,
    pub(super) router: Router,
    pub(super) stage: StageWatch,
    pub(super) handshake_timeout: Duration,
    pub(super) head_timeout: Duration,
    pub(super) idle_timeout: Duration,
}

/// The layer below HTTP.
#[derive(Debug)]
pub(super) enum Transport {
    /// TCP: the probe port.
    Plain,
    /// TLS with metrics: the webhook port.
    Tls { tls: Arc<ServerTls>, metrics: Arc<Metrics>, failures: HandshakeLog },
}

/// Serves one accepted connection to its end.
pub(super) async fn serve(stream: TcpStream, connections: &Connections) {
    // A response is one small write. Nagle's algorithm would delay it by up to 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    match &connections.transport {
        Transport::Plain => serve_http1(stream, connections).await,
        Transport::Tls { tls, metrics, failures } => {
            let _counted = CountedConnection::new(metrics);
            let handshake = TlsAcceptor::from(tls.config()).accept(stream);
            match timeout(connections.handshake_timeout, handshake).await {
                // ALPN has selected the protocol. hyper-util's `auto` would wait for the first
                // bytes, without a timeout.
                Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                    serve_http2(stream, connections).await;
                }
                Ok(Ok(stream)) => serve_http1(stream, connections).await,
                Ok(Err(error)) => failures.record(handshake::reason(&error), &error, metrics),
                Err(elapsed) => failures.record(handshake::TIMEOUT, &elapsed, metrics),
            }
        }
    }
}

async fn serve_http1<S>(stream: S, connections: &Connections)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::default());
    let reader = Arc::clone(&activity);
    let io = TokioIo::new(InspectReader::new(stream, move |bytes: &[u8]| {
        if !bytes.is_empty() {
            reader.bytes_arrived();
        }
    }));
    let connection = http1::Builder::new()
        // See `activity`: one hyper timer cannot enforce two timeouts.
        .header_read_timeout(None)
        .max_buf_size(HTTP1_BUFFER)
        // HTTP/1.1 clients that close their sending side do not wait for a response.
        .half_close(false)
        .serve_connection(io, service(connections, &activity));
    drive(
        pin!(connection),
        http1::Connection::graceful_shutdown,
        &activity,
        connections,
        FIRST_REQUEST_TIMEOUT,
    )
    .await;
}

async fn serve_http2<S>(stream: S, connections: &Connections)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // The stream's bytes are not recorded: pings and window updates do not belong to a request. An
    // incomplete head therefore counts as idle.
    let activity = Arc::new(Activity::default());
    let connection = http2::Builder::new(Streams::default())
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .max_frame_size(HTTP2_FRAME)
        .max_header_list_size(HTTP2_HEADERS)
        .max_send_buf_size(HTTP2_SEND_BUFFER)
        .keep_alive_interval(HTTP2_PING)
        .keep_alive_timeout(HTTP2_PING)
        .serve_connection(TokioIo::new(stream), service(connections, &activity));
    // hyper sends GOAWAY in two steps and answers what the client sent before it read the first.
    let shutdown = http2::Connection::graceful_shutdown;
    drive(pin!(connection), shutdown, &activity, connections, Duration::ZERO).await;
}

/// Runs a connection until it ends or its timeouts close it. When the server closes, a connection
/// without a request yet waits for `first_request_timeout`.
///
/// The caller pins the connection. As an argument, it would be in this future twice.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    shutdown: impl Fn(Pin<&mut C>),
    activity: &Activity,
    connections: &Connections,
    first_request_timeout: Duration,
) {
    let (mut check, every) = IdleCheck::new(connections.head_timeout, connections.idle_timeout);
    let mut checks = interval_at(Instant::now() + every, every);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stage = connections.stage.clone();
    let closing = async {
        stage.closing().await;
        if !activity.has_served() {
            sleep(first_request_timeout).await;
        }
    };
    let mut closing = pin!(closing);
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    // Errors of clients are frequent and no concern of the server's operator.
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = closing.as_mut(), if open => {
                open = false;
                shutdown(connection.as_mut());
            }
            _ = checks.tick() => match check.run(activity) {
                Due::Nothing => {}
                Due::Shutdown => shutdown(connection.as_mut()),
                Due::Close => {
                    tracing::debug!("closed a connection at its timeout");
                    return;
                }
            },
        }
    }
}

/// The router as a hyper service. Turns a panic into a 500, and asks HTTP/1 clients to close their
/// connection once the server shuts down.
fn service(
    connections: &Connections,
    activity: &Arc<Activity>,
) -> impl Service<
    Request<Incoming>,
    Response = Response,
    Error = Infallible,
    Future = impl Future<Output = Result<Response, Infallible>> + Send + use<>,
> + use<> {
    let router = TowerToHyperService::new(connections.router.clone());
    let stage = connections.stage.clone();
    let activity = Arc::clone(activity);
    service_fn(move |request: Request<Incoming>| {
        let active = activity.begin_request();
        let version = request.version();
        let response = router.call(request);
        let stage = stage.clone();
        async move {
            let _active = active;
            let Ok(mut response) = catch_panic(response).await;
            // HTTP/2 has no such header; it gets a GOAWAY when the server closes.
            if stage.is_leaving() && version < Version::HTTP_2 {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response)
        }
    })
}

/// Turns a panic into a response. This is unwind safe: requests share only atomics and immutable
/// snapshots, so a panic cannot leave shared state half-changed.
async fn catch_panic(
    response: impl Future<Output = Result<Response, Infallible>>,
) -> Result<Response, Infallible> {
    let mut response = pin!(response);
    poll_fn(|cx| {
        catch_unwind(AssertUnwindSafe(|| response.as_mut().poll(cx))).unwrap_or_else(|_payload| {
            // The payload may quote user data, so it is not logged.
            tracing::error!("a request panicked; the response is 500");
            std::task::Poll::Ready(Ok(Rejection::Panicked.into_response()))
        })
    })
    .await
}

/// An open connection in the metrics.
struct CountedConnection<'m>(&'m Metrics);

impl<'m> CountedConnection<'m> {
    fn new(metrics: &'m Metrics) -> Self {
        metrics.server.connections.inc();
        metrics.server.connections_accepted.inc();
        Self(metrics)
    }
}

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.0.server.connections.dec();
    }
}

/// The tasks of an HTTP/2 connection's requests. The connection owns them, so that none outlives
/// it. hyper's default executor would detach them.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while streams.try_join_next().is_some() {}
        streams.spawn(stream);
    }
}

/// How long a new connection may still send its first request when the server closes. hyper would
/// close it at once. The API server sends its request in the millisecond after the handshake.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The size of a request head (API servers send less than 1 KB) and of the largest read. hyper's
/// default grows to 400 KB per connection. Two TLS records are as fast, and 64 connections need
/// only 2 MB.
const HTTP1_BUFFER: usize = 32 << 10;

/// More than one API server needs at once, and far less than `max_in_flight`.
const HTTP2_STREAMS: u32 = 64;

/// Enough for a typical review without a round trip. A peer can fill this much memory unread.
const HTTP2_STREAM_WINDOW: u32 = 64 << 10;

/// For all streams of a connection together.
const HTTP2_CONNECTION_WINDOW: u32 = 256 << 10;

/// The protocol's minimum, and one TLS record.
const HTTP2_FRAME: u32 = 16 << 10;

/// The size of a request head, including its continuation frames.
const HTTP2_HEADERS: u32 = 16 << 10;

/// Responses are small; larger ones wait for the window.
const HTTP2_SEND_BUFFER: usize = 64 << 10;

/// Detects dead peers within twice this time.
const HTTP2_PING: Duration = Duration::from_secs(20);
