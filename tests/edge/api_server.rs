//! `serve --watch-policies` with an API server that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use futures_util::future::join_all;
use futures_util::stream::StreamExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::api::{Api, answer, failure, status};
use crate::program::{ANY, Program, eventually, reviewed};
use crate::server::Desk;

/// What the API server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// A page of a proxy, with success.
    Page,
    /// The first half of each list, as if that were all.
    Half,
    /// The first half of each list; then the connection breaks.
    Broken,
    /// Each list and each watch is too old.
    Gone,
    /// Lists succeed, and each watch reports that it is too old.
    GoneEvents,
    /// Too many requests, with a time to come back.
    Overloaded,
    /// No response.
    Silence,
    /// Lists succeed, and each watch ends at once without an event.
    ShortWatches,
}

/// The faults, and what the log says about them. A watch that ends or does not begin yet is no error.
const FAULTS: [(Fault, &str); 8] = [
    (Fault::Page, "expected value at line 1 column 1"),
    (Fault::Half, "EOF while parsing"),
    (Fault::Broken, "failed to perform initial object list"),
    (Fault::Gone, "too old resource version"),
    (Fault::GoneEvents, "too old resource version"),
    (Fault::Overloaded, "too many requests"),
    (Fault::Silence, ""),
    (Fault::ShortWatches, ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_server_keeps_its_policies_until_a_failing_api_server_recovers() {
    let tests = FAULTS.map(|(fault, reason)| survives(fault, reason));
    join_all(tests).await;
}

/// Follows the policies of an API server that fails for some time.
async fn survives(fault: Fault, reason: &'static str) {
    let (desk, server) = (Desk::new(), Server::start().await);
    let mut command = server.api.command("serve");
    command.arg("--watch-policies");
    let mut program = Program::start(Program::serving(&mut command, &desk, ANY, ANY));
    let [address, _] = program.addresses().await;
    let is_denied = async || {
        let answer = reviewed(&desk, address, INVALID).await?;
        Some(answer.body.contains(r#""allowed":false"#))
    };
    eventually("the policy is in use", async || is_denied().await.filter(|denied| *denied)).await;
    // Both watches have begun.
    eventually("it watches", async || (server.state.watches.load(Relaxed) >= 2).then_some(()))
        .await;

    let (start, before) = (Instant::now(), server.state.requests.load(Relaxed));
    server.state.fault.send_replace(fault);
    program.logs(reason).await;
    while start.elapsed() < Duration::from_secs(4) {
        assert_eq!(is_denied().await, Some(true), "{fault:?}");
        sleep(Duration::from_millis(100)).await;
    }
    let (elapsed, requests) = (start.elapsed(), server.state.requests.load(Relaxed) - before);
    println!("{fault:?}: {requests} requests in {elapsed:?}");
    // Two watches: the first waits are short, then at most a list and a watch each second.
    assert!(requests as u64 <= 30 + 4 * elapsed.as_secs(), "{fault:?}: {requests} in {elapsed:?}");

    server.state.policies.store(0, Relaxed);
    server.state.fault.send_replace(Fault::Nothing);
    eventually("the deleted policy is not in use", async || {
        is_denied().await.filter(|denied| !denied)
    })
    .await;
    assert_eq!(program.terminate().await, Some(0));
}

/// A fake API server.
struct Server {
    api: Api,
    state: Arc<Shared>,
}

struct Shared {
    fault: watch::Sender<Fault>,
    /// The number of policies.
    policies: AtomicUsize,
    requests: AtomicUsize,
    watches: AtomicUsize,
}

impl Server {
    async fn start() -> Self {
        let state = Arc::new(Shared {
            fault: watch::Sender::new(Fault::Nothing),
            policies: AtomicUsize::new(1),
            requests: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
        });
        let routes = Router::new().fallback(respond).with_state(Arc::clone(&state));
        Self { api: Api::serve(routes).await, state }
    }
}

async fn respond(State(state): State<Arc<Shared>>, uri: Uri) -> Response {
    state.requests.fetch_add(1, Relaxed);
    let mut faults = state.fault.subscribe();
    let fault = *faults.borrow_and_update();
    let watches = uri.query().is_some_and(|query| query.contains("watch="));
    let list = match uri.path().strip_prefix("/apis/statusgate.dev/v1alpha1/") {
        Some("statuspolicies") => list("StatusPolicy", state.policies.load(Relaxed)),
        Some("statusconventions") => list("StatusConvention", 0),
        _ => status(404, "not found", ""),
    };
    match fault {
        Fault::Half | Fault::Broken if watches => failure(410, "too old resource version", ""),
        Fault::Page => Response::new("<html>\nTry later.\n</html>\n".into()),
        Fault::Half => Response::new(half(&list).into()),
        Fault::Broken => broken(half(&list)),
        Fault::Gone => failure(410, "too old resource version", ""),
        Fault::Overloaded => {
            let mut response = failure(429, "too many requests", "");
            let time = HeaderValue::from_static("Fri, 31 Dec 2100 23:59:59 GMT");
            response.headers_mut().insert("retry-after", time);
            response
        }
        Fault::Silence => {
            // The sender lives as long as the state.
            let _ = faults.changed().await;
            failure(503, "the server was silent", "")
        }
        Fault::ShortWatches if watches => Response::new(Body::empty()),
        Fault::GoneEvents if watches => {
            let event =
                json!({"type": "ERROR", "object": status(410, "too old resource version", "")});
            Response::new(format!("{event}\n").into())
        }
        _ if watches => {
            state.watches.fetch_add(1, Relaxed);
            watching(faults, state.policies.load(Relaxed) == 0)
        }
        Fault::Nothing | Fault::ShortWatches | Fault::GoneEvents => answer(200, &list),
    }
}

/// A watch until the fault changes.
fn watching(mut faults: watch::Receiver<Fault>, deleted: bool) -> Response {
    let object = list("StatusPolicy", 1)["items"][0].take();
    let event = json!({"type": "DELETED", "object": object});
    let first = if deleted { format!("{event}\n") } else { String::new() };
    let first = futures_util::stream::once(async { Ok(Bytes::from(first)) });
    let last = futures_util::stream::once(async move {
        // The sender lives as long as the state.
        let _ = faults.changed().await;
        match *faults.borrow() {
            Fault::Broken => Err(std::io::Error::other("broken")),
            // The first half of an event.
            _ => Ok(Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{")),
        }
    });
    Response::new(Body::from_stream(first.chain(last)))
}

fn broken(half: String) -> Response {
    let parts = [Ok(Bytes::from(half)), Err(std::io::Error::other("broken"))];
    Response::new(Body::from_stream(futures_util::stream::iter(parts)))
}

fn list(kind: &str, count: usize) -> Value {
    let item = |number| {
        json!({
            "apiVersion": "statusgate.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": format!("p{number}"), "uid": "u", "generation": 1, "resourceVersion": "1"},
            "spec": {
                "convention": "appcat",
                "resources": [{
                    "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"],
                }],
            },
        })
    };
    let items: Vec<Value> = (0..count).map(item).collect();
    json!({
        "apiVersion": "statusgate.dev/v1alpha1",
        "kind": format!("{kind}List"),
        "metadata": {"resourceVersion": "1"},
        "items": items,
    })
}

fn half(list: &Value) -> String {
    let mut text = list.to_string();
    text.truncate(text.len() / 2);
    text
}

/// A write that the policy denies.
const INVALID: &str = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","resource":{"group":"example.com","version":"v1","resource":"widgets"},"subResource":"status","operation":"UPDATE","userInfo":{"username":"u"},"object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"status":{"phase":"Nonsense"}},"oldObject":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"status":{}}}}"#;
