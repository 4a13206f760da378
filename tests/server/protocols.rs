//! HTTP/1.1, TLS, and the answers to wrong requests.

use crate::server::{Desk, REVIEW, post};

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
async fn http1_is_selected_also_for_a_client_that_prefers_http2() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut trust = desk.trust();
    trust.protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut client = served.connect_as(&trust).await.unwrap();
    assert_eq!(client.stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    assert_eq!(client.review().await.status, 200);
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
