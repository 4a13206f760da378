//! One connection from accept to close: handshake, protocol, requests, shutdown.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::activity::{Activity, Due, IdleCheck, Observed};
use super::drain::StageWatch;
use super::handshake::{self, HandshakeLog};
use super::rejection::Rejection;
use crate::telemetry::Metrics;
use statusgate_tls::ServerTls;

/// The settings that all connections of a port share.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) transport: Transport,
    pub(super) router: Router,
    pub(super) stage: StageWatch,
    pub(super) handshake_timeout: Duration,
    pub(super) head_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) keep_alive: bool,
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
pub(super) async fn serve(stream: TcpStream, connections: &Connections, activity: Arc<Activity>) {
    // A response is one small write. Nagle's algorithm would delay it by up to 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    match &connections.transport {
        Transport::Plain => serve_http(stream, connections, activity).await,
        Transport::Tls { tls, metrics, failures } => {
            let _counted = CountedConnection::new(metrics);
            let handshake = TlsAcceptor::from(tls.config()).accept(stream);
            match timeout(connections.handshake_timeout, handshake).await {
                Ok(Ok(mut stream)) => {
                    stream.get_mut().1.set_buffer_limit(Some(UNSENT));
                    serve_http(stream, connections, activity).await;
                }
                Ok(Err(error)) => failures.record(handshake::reason(&error), &error, metrics),
                Err(elapsed) => failures.record(handshake::TIMEOUT, &elapsed, metrics),
            }
        }
    }
}

async fn serve_http<S>(stream: S, connections: &Connections, activity: Arc<Activity>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(Observed { stream, activity: Arc::clone(&activity) });
    // Without a variable of its own, the connection is in this future once.
    let mut connection = pin!(
        http1::Builder::new()
            // See `activity`: one hyper timer cannot enforce two timeouts.
            .header_read_timeout(None)
            .max_buf_size(BUFFER)
            .keep_alive(connections.keep_alive)
            // Clients that close their sending side do not wait for a response.
            .half_close(false)
            .serve_connection(io, service(connections, &activity))
    );
    let (mut check, every) = IdleCheck::new(connections.head_timeout, connections.idle_timeout);
    let mut checks = interval_at(Instant::now() + every, every);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stage = connections.stage.clone();
    let closing = async {
        stage.closing().await;
        if !activity.has_served() {
            sleep(FIRST_REQUEST_TIMEOUT).await;
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
                connection.as_mut().graceful_shutdown();
            }
            _ = checks.tick() => match check.run(&activity) {
                Due::Nothing => {}
                Due::Shutdown => connection.as_mut().graceful_shutdown(),
                Due::Close => {
                    tracing::debug!("closed a connection at its timeout");
                    return;
                }
            },
        }
    }
}

/// The router as a hyper service. Turns a panic into a 500, and asks clients to close their connection
/// once the server shuts down.
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
        let response = router.call(request);
        let stage = stage.clone();
        async move {
            let _active = active;
            let Ok(mut response) = catch_panic(response).await;
            if stage.is_leaving() {
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

/// How long a new connection may still send its first request when the server closes. hyper would
/// close it at once. The API server sends its request in the millisecond after the handshake.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The size of a request head (API servers send less than 1 KB) and of the largest read. hyper's
/// default grows to 400 KB per connection. Two TLS records are as fast, and 64 connections need
/// only 2 MB.
const BUFFER: usize = 32 << 10;

/// Encrypted bytes that the kernel does not accept yet, of a peer that does not read. rustls has 64 KiB
/// by default.
const UNSENT: usize = 16 << 10;
