//! HTTP/1.1, HTTP/2, TLS, and the answers to wrong requests.

use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use statusgate::server::End;
use tokio::time::timeout;

use crate::server::{Desk, LONG, REVIEW, post};

#[tokio::test(flavor = "multi_thread")]
async fn one_http1_connection_answers_many_reviews() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut client = served.connect().await;
    for _ in 0..3 {
        let answer = client.review().await;
        assert_eq!(answer.status, 200);
        assert!(answer.has("content-type: application/json"));
        assert!(!answer.has("connection: close"));
    }
    assert_eq!(served.metric("statusgate_connections_accepted_total").await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_used_if_alpn_selects_it() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut trust = desk.trust();
    trust.protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = served.connect_as(&trust).await.unwrap();
    assert_eq!(client.stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let io = TokioIo::new(client.stream);
    let (mut requests, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    for _ in 0..3 {
        let request = http::Request::post("https://localhost/validate");
        let request = request.body(Full::<&[u8]>::from(REVIEW.as_bytes())).unwrap();
        let answer = requests.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert!(!answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    }
    // A shutdown sends GOAWAY on an open HTTP/2 connection.
    served.running.shutdown().signal();
    assert!(timeout(LONG, connection).await.unwrap().unwrap().is_ok());
    assert_eq!(served.running.ended().await, End::Drained);
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_1_2_and_1_3_are_both_served_without_resumption() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    for version in rustls::ALL_VERSIONS {
        let mut trust = desk.trust();
        trust.versions = std::slice::from_ref(version);
        let mut client = served.connect_as(&trust).await.unwrap();
        assert_eq!(client.review().await.status, 200);
        let connection = client.stream.get_ref().1;
        assert_eq!(connection.protocol_version(), Some(version.version));
        assert_eq!(connection.handshake_kind(), Some(rustls::HandshakeKind::Full));
        assert_eq!(connection.tls13_tickets_received(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_path_method_or_body_gets_one_sentence() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut client = served.connect().await;
    let cases = [
        (post("/", REVIEW), 404),
        ("GET /mutate HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), 405),
        (post("/mutate?timeout=10s", ""), 400),
        (post("/mutate?timeout=10s", REVIEW), 200),
    ];
    for (request, status) in cases {
        client.send(&request).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, status, "{request}");
        if status != 200 {
            assert!(answer.has("content-type: text/plain; charset=utf-8"));
            assert_eq!(answer.body.lines().count(), 1);
        }
        assert_eq!(answer.has("allow: post"), status == 405);
    }
}
