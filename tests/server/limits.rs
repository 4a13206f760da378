//! Limits of time, size and number.

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post as on_post;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::server::{Answer, Client, Desk, LONG, POLICY, REVIEW, head, post};
use crate::{expecting, in_flight, is_closed};

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_handshake_is_closed_at_its_timeout() {
    let desk = Desk::new();
    let served = desk.start(|s| s.limits.handshake_timeout = Duration::from_millis(100)).await;
    let mut tcp = TcpStream::connect(served.running.address()).await.unwrap();
    assert!(matches!(timeout(LONG, tcp.read(&mut [0; 8])).await.unwrap(), Ok(0) | Err(_)));
    let counted = r#"statusgate_handshake_failures_total{reason="timeout"}"#;
    served.metric_becomes(counted, 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_request_head_is_closed_and_an_idle_connection_stays_open() {
    let desk = Desk::new();
    let served = desk.start(|s| s.limits.head_timeout = Duration::from_millis(200)).await;
    let mut idle = served.connect().await;
    assert_eq!(idle.review().await.status, 200);
    let mut slow = served.connect().await;
    assert_eq!(slow.review().await.status, 200);
    let start = Instant::now();
    // One byte every 10 ms would take half a second for this head.
    for byte in post("/validate", REVIEW).as_bytes() {
        let sent = slow.stream.write_all(&[*byte]).await;
        if sent.is_err() || is_closed(&mut slow).await {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    let open_for = start.elapsed();
    assert!(is_closed(&mut slow).await, "it was let dribble");
    assert!(open_for >= Duration::from_millis(190), "cut after {open_for:?}");
    assert_eq!(idle.review().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed_at_the_idle_timeout() {
    let desk = Desk::new();
    let served = desk.start(|s| s.limits.idle_timeout = Duration::from_millis(100)).await;
    let mut client = served.connect().await;
    assert_eq!(client.review().await.status, 200);
    client.closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_is_answered_408() {
    let desk = Desk::new();
    let served = desk.start(|s| s.limits.body_timeout = Duration::from_millis(100)).await;
    let mut client = served.connect().await;
    client.send(&head(10)).await;
    client.send("{").await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 408);
    assert!(answer.has("connection: close"));
    client.closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nine_mebibytes_are_answered_413_with_and_without_a_length() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let body = " ".repeat(9 << 20);
    let chunked = format!(
        "POST /mutate HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for request in [post("/mutate", &body), chunked] {
        let mut client = served.connect().await;
        client.send(&request).await;
        assert_eq!(client.answer().await.status, 413);
        client.closed().await;
    }
    assert_eq!(served.connect().await.review().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_mebibytes_are_judged() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut client = served.connect().await;
    let body = format!("{{{}}}", " ".repeat((8 << 20) - 2));
    client.send(&post("/mutate", &body)).await;
    assert_ne!(client.answer().await.status, 413);
    // The connection stays usable, and its share of the memory is free again.
    for _ in 0..10 {
        client.send(&post("/mutate", &body)).await;
        assert!(matches!(client.answer().await.status, 200 | 400));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_expects_100_continue_gets_it_or_the_error() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut client = served.connect().await;
    client.send(&expecting(REVIEW.len())).await;
    assert_eq!(client.answer().await.status, 100);
    client.send(REVIEW).await;
    assert_eq!(client.answer().await.status, 200);
    client.send(&expecting(9 << 20)).await;
    assert_eq!(client.answer().await.status, 413, "before any of its body was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_rejected_while_it_is_read_gets_its_answer_after_100_continue() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.limits.held_bytes = 1000).await;
    let body = " ".repeat(8 << 20);
    let mut client = served.connect().await;
    client.send(&expecting(body.len())).await;
    assert_eq!(client.answer().await.status, 100);
    client.send(&body).await;
    assert_eq!(client.answer().await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn above_the_limit_a_connection_waits_and_probes_are_answered() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.limits.max_connections = 1).await;
    let mut first = served.connect().await;
    assert_eq!(first.review().await.status, 200);
    let trust = desk.trust();
    let mut second = std::pin::pin!(served.connect_as(&trust));
    assert!(timeout(Duration::from_millis(100), second.as_mut()).await.is_err());
    assert_eq!(served.probe("/livez").await.0, 200);
    drop(first);
    let mut second = timeout(LONG, second).await.unwrap().unwrap();
    assert_eq!(second.review().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn above_the_limit_the_oldest_connection_without_a_request_is_closed() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.limits.max_connections = 4).await;
    let mut used = served.connect().await;
    assert_eq!(used.review().await.status, 200);
    // Before the handshake, after it, and in the first head.
    let mut silent = TcpStream::connect(served.running.address()).await.unwrap();
    let mut idle = served.connect().await;
    let mut slow = served.connect().await;
    slow.send("POST /validate").await;
    // The connections in use of these are closed, so that there is room for one more.
    assert_eq!(served.connect().await.review().await.status, 200);
    assert!(matches!(timeout(LONG, silent.read(&mut [0])).await.unwrap(), Ok(0) | Err(_)));
    assert!(!is_closed(&mut idle).await);
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut other = served.connect().await;
        assert_eq!(other.review().await.status, 200);
        others.push(other);
    }
    idle.closed().await;
    slow.closed().await;
    assert_eq!(used.review().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_do_not_delay_probes() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    // As many as the probe port has.
    let mut idle = Vec::new();
    for _ in 0..64 {
        idle.push(TcpStream::connect(served.running.probe_address()).await.unwrap());
    }
    assert_eq!(served.probe("/livez").await.0, 200);
    assert!(matches!(timeout(LONG, idle[0].read(&mut [0])).await.unwrap(), Ok(0) | Err(_)));
    let last = timeout(Duration::from_millis(1), idle[63].read(&mut [0])).await;
    assert!(last.is_err(), "all are closed, not only the oldest: {last:?}");
    let mut kept = TcpStream::connect(served.running.probe_address()).await.unwrap();
    kept.write_all(b"GET /livez HTTP/1.1\r\nhost: probe\r\n\r\n").await.unwrap();
    assert!(Answer::read(&mut kept).await.unwrap().has("connection: close"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_does_not_read_its_answer_holds_memory_only_until_it_is_closed() {
    let desk = Desk::new();
    // More than the kernel and TLS hold for a peer that does not read.
    let default = format!("  backfill: [{{path: /status/note, value: {}}}]\n", "x".repeat(1 << 20));
    desk.write("policies.yaml", &format!("{POLICY}{default}"));
    let review = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{
        "uid":"u","resource":{"group":"example.com","version":"v1","resource":"widgets"},
        "operation":"UPDATE","subResource":"status","object":{"status":{"phase":"Unknown"}}}}"#;
    let request = post("/mutate", review);
    let served = desk
        .start(|settings| {
            settings.policies = vec![desk.path("policies.yaml")];
            settings.limits.held_bytes = 3 << 20;
            settings.limits.head_timeout = Duration::from_secs(3);
        })
        .await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let tcp = socket.connect(served.running.address()).await.unwrap();
    let mut deaf = Client::shake_hands(tcp, &desk.trust()).await.unwrap();
    deaf.send(&request).await;
    // Now its answer exists.
    deaf.stream.read_exact(&mut [0]).await.unwrap();
    let status = async || {
        let mut client = served.connect().await;
        client.send(&request).await;
        client.answer().await.status
    };
    assert_eq!(status().await, 503);
    served.metric_becomes("statusgate_connections", 0.0).await;
    assert_eq!(status().await, 200);
    drop(deaf);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_concurrent_requests_are_answered_with_retry_after() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.limits.max_in_flight = 1).await;
    let mut first = in_flight(&served).await;
    let answer = served.connect().await.review().await;
    assert_eq!(answer.status, 503);
    assert!(answer.has("retry-after: 1") && answer.has("connection: close"), "{answer:?}");
    first.send(REVIEW).await;
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(served.connect().await.review().await.status, 200);
    assert!(served.metric(r#"statusgate_shed_total{reason="requests"}"#).await >= Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_above_the_memory_limit_are_answered_with_retry_after() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.limits.held_bytes = 1000).await;
    let mut client = served.connect().await;
    client.send(&post("/validate", &" ".repeat(2000))).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 503);
    assert!(answer.has("retry-after: 1"));
    assert_eq!(served.connect().await.review().await.status, 200);
    assert_eq!(served.metric(r#"statusgate_shed_total{reason="bytes"}"#).await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_answered_500_and_its_connection_stays_open() {
    let desk = Desk::new();
    let router = Router::new()
        .route("/panic", on_post(async |_: String| -> &str { panic!("as asked") }))
        .route("/validate", on_post(async |_: String| "fine"));
    let served = desk.start_with(router, |_| {}).await;
    let mut client = served.connect().await;
    for _ in 0..3 {
        client.send(&post("/panic", REVIEW)).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 500);
        assert!(!answer.body.contains("as asked"));
        assert_eq!(client.review().await.body, "fine");
    }
}
