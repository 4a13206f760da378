//! The page of `statusgate ui` and its calls, on one port.
//!
//! The page is static, and each call is answered by [`statusgate_pages::calls`] or, about a cluster, by [`OfCluster`].
//! Nothing is stored or logged.

mod assets;
mod gate;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::available_parallelism;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use self::gate::Gate;
use statusgate_pages::calls;
use statusgate_server::BODY_BYTES;

/// Answers the calls about a cluster ([`calls::OF_CLUSTER`]).
pub type OfCluster = Arc<dyn Fn(String, Bytes) -> BoxFuture<'static, Vec<u8>> + Send + Sync>;

/// A bound port.
#[derive(Debug)]
pub struct Ui {
    listener: TcpListener,
    gate: Arc<Gate>,
}

impl Ui {
    /// Binds the port.
    ///
    /// # Errors
    /// When the port is not free, or there are no random numbers for a token.
    pub async fn bind(listen: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let gate = Arc::new(Gate::at(listener.local_addr()?)?);
        Ok(Self { listener, gate })
    }

    /// The address for a browser.
    pub fn url(&self) -> String {
        self.gate.url()
    }

    /// Serves until `end`, and then until the last answer is sent. Without a cluster, the calls about it are errors.
    ///
    /// # Errors
    /// When the port fails.
    pub async fn serve(
        self,
        cluster: Option<OfCluster>,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        // A call is work for a CPU.
        let permits = Arc::new(Semaphore::new(available_parallelism().map_or(1, Into::into)));
        let router = Router::new()
            .route("/", get(|| async { assets::response("index.html") }))
            .route(
                "/{name}",
                get(|Path(name): Path<String>| async move { assets::response(&name) }),
            )
            .route("/calls/{name}", post(answer))
            .with_state(Answers { permits, cluster })
            .layer(DefaultBodyLimit::max(BODY_BYTES))
            .layer(from_fn_with_state(self.gate, guard));
        axum::serve(self.listener, router).with_graceful_shutdown(end).await
    }
}

/// Rejects requests of other sites, and adds the headers of all responses.
async fn guard(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let mut response = match gate.admit(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The page has no inline scripts and no inline styles; the marks of the editor are images in its style sheet.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-cache"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

#[derive(Clone)]
struct Answers {
    permits: Arc<Semaphore>,
    cluster: Option<OfCluster>,
}

async fn answer(State(answers): State<Answers>, Path(name): Path<String>, body: Bytes) -> Response {
    if let Some(cluster) = answers.cluster.filter(|_| calls::OF_CLUSTER.contains(&name.as_str())) {
        return json(cluster(name, body).await);
    }
    let Ok(permit) = answers.permits.acquire_owned().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let called = spawn_blocking(move || {
        let _permit = permit;
        calls::call(&name, &body)
    });
    match called.await {
        Ok(answer) => json(answer),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn json(answer: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/json")], answer).into_response()
}
