//! Limits of time, size and number.

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post as on_post;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::server::{Desk, LONG, REVIEW, head, post};
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
    let first = served.connect().await;
    let trust = desk.trust();
    let mut second = std::pin::pin!(served.connect_as(&trust));
    assert!(timeout(Duration::from_millis(100), second.as_mut()).await.is_err());
    assert_eq!(served.probe("/livez").await.0, 200);
    drop(first);
    let mut second = timeout(LONG, second).await.unwrap().unwrap();
    assert_eq!(second.review().await.status, 200);
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
