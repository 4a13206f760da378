//! Traces, with a collector in this process that decodes them with the published types of OTLP.

use std::collections::HashMap;

use crate::server::{self, Desk, LONG, post};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post as on_post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prost::Message;
use statusgate_server::End;
use statusgate_server::telemetry::traces;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

#[tokio::test(flavor = "multi_thread")]
async fn a_review_continues_the_trace_of_the_api_server_without_its_content() {
    let (url, mut received) = collector(StatusCode::OK).await;
    let provider = provider(&url);
    let desk = Desk::new();
    let served = desk.start(|settings| settings.traces = Some(provider.clone())).await;
    let mut client = served.connect().await;
    client.send(&traced("/validate", "01", REVIEW)).await;
    assert_eq!(client.answer().await.status, 200);
    flush(&provider).await.unwrap();

    let (headers, request) = timeout(LONG, received.recv()).await.unwrap().unwrap();
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["authorization"], "Bearer token");
    let [group] = &*request.resource_spans else { panic!("{request:?}") };
    let resource = group.resource.as_ref().unwrap();
    assert_eq!(resource.attributes[0].key, "service.name");
    let [scope] = &*group.scope_spans else { panic!("{group:?}") };
    assert_eq!(scope.scope.as_ref().unwrap().name, "statusgate");
    let [span] = &*scope.spans else { panic!("{scope:?}") };
    assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (TRACE.into(), PARENT.into()));
    assert!(span.span_id.len() == 8 && span.span_id != span.parent_span_id);
    assert_eq!((&*span.name, span.kind, &*span.trace_state), ("POST /validate", 2, "vendor=1"));
    assert_eq!(span.flags, 0x301);
    assert!(span.end_time_unix_nano > span.start_time_unix_nano);
    assert!(span.start_time_unix_nano > 1_700_000_000_000_000_000);
    assert_eq!(span.status.clone().unwrap_or_default().code, 0);
    for (key, value) in [
        ("statusgate.webhook", "validate"),
        ("statusgate.decision", "denied"),
        ("statusgate.policies", "[appcat]"),
        ("statusgate.rules", "[appcat/phase-value]"),
        ("k8s.admission.operation", "UPDATE"),
        ("k8s.resource.group", "vshn.appcat.vshn.io"),
        ("k8s.resource.name", "vshnredis"),
        ("k8s.namespace.name", "team"),
        ("k8s.object.name", "cache"),
        ("k8s.admission.dry_run", "false"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(attribute(span, key), value, "{key}");
    }
    let text = format!("{request:?}");
    for secret in ["not-a-phase", "alice", "password"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_the_api_server_does_not_sample_is_not_exported_and_one_without_parent_is() {
    let (url, mut received) = collector(StatusCode::OK).await;
    let desk = Desk::new();
    let served = desk.start(|settings| settings.traces = Some(provider(&url))).await;
    let mut client = served.connect().await;
    client.send(&traced("/mutate", "00", server::REVIEW)).await;
    assert_eq!(client.answer().await.status, 200);
    client.send(&post("/mutate", "not a review")).await;
    assert_eq!(client.answer().await.status, 400);
    // The end exports the queue.
    served.running.shutdown().signal();
    drop(client);
    assert_eq!(served.running.ended().await, End::Drained);
    let (_, request) = timeout(LONG, received.recv()).await.unwrap().unwrap();
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    let [span] = &**spans else { panic!("{spans:?}") };
    assert_eq!(attribute(span, "http.response.status_code"), "400");
    assert!(span.parent_span_id.is_empty() && span.trace_id != [0; 16]);
    assert_eq!(span.flags, 0x101);
    assert!(received.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_fails_or_is_unreachable_fails_no_review() {
    let (failing, _received) = collector(StatusCode::INTERNAL_SERVER_ERROR).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unreachable = format!("http://{}/v1/traces", closed.local_addr().unwrap());
    drop(closed);
    for url in [failing, unreachable] {
        let provider = provider(&url);
        let desk = Desk::new();
        let served = desk.start(|settings| settings.traces = Some(provider.clone())).await;
        let mut client = served.connect().await;
        for _ in 0..3 {
            assert_eq!(client.review().await.status, 200);
        }
        assert!(flush(&provider).await.is_err());
        assert_eq!(client.review().await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_does_not_delay_the_end() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", silent.local_addr().unwrap());
    let desk = Desk::new();
    let served = desk.start(|settings| settings.traces = Some(provider(&url))).await;
    assert_eq!(served.connect().await.review().await.status, 200);
    served.running.shutdown().signal();
    let ended = timeout(LONG, served.running.ended()).await;
    assert_eq!(ended.expect("the export has a timeout"), End::Drained);
}

fn provider(url: &str) -> SdkTracerProvider {
    let headers = HashMap::from([("authorization".to_owned(), "Bearer%20token".to_owned())]);
    let exporter = traces::exporter(url, None, headers, Handle::current()).unwrap();
    SdkTracerProvider::builder()
        .with_resource(Resource::builder_empty().with_service_name("statusgate").build())
        .with_batch_exporter(exporter)
        .build()
}

/// Exports the spans of all reviews so far, and returns whether the collector accepts them.
async fn flush(provider: &SdkTracerProvider) -> OTelSdkResult {
    let provider = provider.clone();
    spawn_blocking(move || provider.force_flush()).await.unwrap()
}

type Received = mpsc::UnboundedReceiver<(HeaderMap, ExportTraceServiceRequest)>;

/// Starts a collector that answers with this status. Returns its address and what it receives.
async fn collector(status: StatusCode) -> (String, Received) {
    let (sender, received) = mpsc::unbounded_channel();
    let receive = async move |headers: HeaderMap, body: Bytes| {
        let _ = sender.send((headers, ExportTraceServiceRequest::decode(body).unwrap()));
        status
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/traces", on_post(receive));
    tokio::spawn(async { axum::serve(listener, router).await });
    (url, received)
}

/// A review with the headers of a trace.
fn traced(path: &str, flags: &str, body: &str) -> String {
    let headers = format!("traceparent: 00-{TRACE}-{PARENT}-{flags}\r\ntracestate: vendor=1\r\n");
    post(path, body).replacen("content-length", &format!("{headers}content-length"), 1)
}

fn attribute(span: &Span, key: &str) -> String {
    let text = |value: &Option<Value>| match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        other => format!("{other:?}"),
    };
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    match &found.and_then(|found| found.value.as_ref()).expect(key).value {
        Some(Value::ArrayValue(array)) => {
            let texts: Vec<String> = array.values.iter().map(|value| text(&value.value)).collect();
            format!("[{}]", texts.join(","))
        }
        other => text(other),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const REVIEW: &str = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",
"resource":{"group":"vshn.appcat.vshn.io","version":"v1","resource":"vshnredis"},"subResource":"status",
"operation":"UPDATE","namespace":"team","name":"cache","userInfo":{"username":"alice"},
"object":{"spec":{"key":"password"},"status":{"phase":"not-a-phase"}},
"oldObject":{"spec":{"key":"password"},"status":{"phase":"Ready"}}}}"#;
