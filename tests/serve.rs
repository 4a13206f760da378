//! The server on real sockets: TLS, limits, reloads and shutdown. The last tests run the program; the
//! others run the server in this process.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and their helpers too")]

#[path = "support/server.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post as on_post;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use statusgate::server::{self, End, StartError};
use support::{Client, Desk, LONG, REVIEW, authority, client_of, head, post, swap_link};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

// === protocols ===

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

// === certificates ===

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_certificate_is_used_for_new_connections_only() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut open = served.connect().await;
    assert_eq!(open.review().await.status, 200);
    desk.write_pair(&desk.issue());
    certificate_changes(&served, &open.certificate()).await;
    assert_eq!(open.review().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_replaced_by_a_symlink_is_reloaded() {
    let desk = Desk::new();
    for generation in ["..1", "..2"] {
        std::fs::create_dir(desk.path(generation)).unwrap();
        let issued = desk.issue();
        std::fs::write(desk.path(generation).join("tls.crt"), issued.certificate).unwrap();
        std::fs::write(desk.path(generation).join("tls.key"), issued.key).unwrap();
    }
    swap_link("..1", &desk.path("..data"));
    swap_link("..data/tls.crt", &desk.path("tls.crt"));
    swap_link("..data/tls.key", &desk.path("tls.key"));
    let served = desk.start(|_| {}).await;
    let first = served.certificate().await;
    swap_link("..2", &desk.path("..data"));
    certificate_changes(&served, &first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_certificate_keeps_the_last_good_one_and_is_counted_once() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let good = served.certificate().await;
    desk.write("tls.crt", "not a certificate");
    served.metric_becomes(r#"statusgate_reload_failing{what="certificate"}"#, 1.0).await;
    sleep(Duration::from_millis(50)).await;
    assert_eq!(served.certificate().await, good);
    let failures = r#"statusgate_reloads_total{what="certificate",outcome="failure"}"#;
    assert_eq!(served.metric(failures).await, Some(1.0));
    assert_eq!(served.probe("/readyz").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_used_after_its_key_arrives() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let old = served.certificate().await;
    let next = desk.issue();
    desk.write("tls.crt", &next.certificate);
    served.metric_becomes(r#"statusgate_reload_failing{what="certificate"}"#, 1.0).await;
    assert_eq!(served.certificate().await, old);
    desk.write("tls.key", &next.key);
    served.metric_becomes(r#"statusgate_reload_failing{what="certificate"}"#, 0.0).await;
    assert_ne!(served.certificate().await, old);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_certificates_change_under_load() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.reload_every = Duration::from_millis(2)).await;
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let load = async || {
        let mut kept = served.connect().await;
        while !stop.load(Ordering::Relaxed) {
            assert_eq!(kept.review().await.status, 200);
            assert_eq!(served.connect().await.review().await.status, 200);
            answered.fetch_add(2, Ordering::Relaxed);
        }
    };
    let change = async {
        let taken = r#"statusgate_reloads_total{what="certificate",outcome="success"}"#;
        for round in 0..10 {
            let before = answered.load(Ordering::Relaxed);
            desk.write_pair(&desk.issue());
            served.metric_becomes(taken, f64::from(round) + 2.0).await;
            while answered.load(Ordering::Relaxed) < before + 6 {
                sleep(Duration::from_millis(1)).await;
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(load(), load(), load(), change);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_client_ca_other_clients_are_rejected() {
    let desk = Desk::new();
    let clients = authority();
    desk.write("clients.crt", clients.certificate());
    let served = desk.start(|settings| settings.client_ca = Some(desk.path("clients.crt"))).await;
    let mut trust = desk.trust();
    assert!(!is_served(&served, &trust).await, "no certificate");
    trust.identity = Some(client_of(&authority()));
    assert!(!is_served(&served, &trust).await, "a stranger's certificate");
    trust.identity = Some(client_of(&clients));
    assert!(is_served(&served, &trust).await);
    let refused = r#"statusgate_handshake_failures_total{reason="no_client_certificate"}"#;
    assert_eq!(served.metric(refused).await, Some(1.0));

    // Now the file contains another authority.
    let others = authority();
    desk.write("clients.crt", others.certificate());
    let taken = r#"statusgate_reloads_total{what="client_ca",outcome="success"}"#;
    served.metric_becomes(taken, 2.0).await;
    assert!(!is_served(&served, &trust).await, "yesterday's client");
    trust.identity = Some(client_of(&others));
    assert!(is_served(&served, &trust).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_rejects_the_certificate_is_counted() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut trust = desk.trust();
    trust.authority = authority().certificate().to_owned();
    assert!(served.connect_as(&trust).await.is_err());
    let counted = r#"statusgate_handshake_failures_total{reason="not_trusted"}"#;
    served.metric_becomes(counted, 1.0).await;
}

// === policies ===

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_edit_keeps_the_last_good_policies_and_a_good_one_replaces_them() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("policies")).unwrap();
    desk.write("policies/a.yaml", support::POLICY);
    let served = desk.start(|settings| settings.policies = vec![desk.path("policies")]).await;
    desk.write("policies/b.yaml", support::BROKEN_POLICY);
    served.metric_becomes(r#"statusgate_reload_failing{what="policies"}"#, 1.0).await;
    assert_eq!(served.metric("statusgate_policies").await, Some(1.0));
    assert_eq!(served.connect().await.review().await.status, 200);
    // Another resource: two policies with a phase must not name the same one.
    let second = support::POLICY.replace("first", "second").replace("widgets", "gadgets");
    desk.write("policies/b.yaml", &second);
    served.metric_becomes("statusgate_policies", 2.0).await;
    // The number of policies is set a moment earlier.
    served.metric_becomes(r#"statusgate_reload_failing{what="policies"}"#, 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_with_invalid_or_missing_files_names_them() {
    let desk = Desk::new();
    desk.write("broken.yaml", support::BROKEN_POLICY);
    let mut settings = desk.settings();
    settings.policies = vec![desk.path("broken.yaml")];
    let error = server::start(&settings).unwrap_err();
    assert!(matches!(error, StartError::BrokenPolicies(_)), "{error}");
    assert!(error.to_string().contains("broken.yaml"));

    desk.write("tls.key", &desk.issue().key);
    let error = server::start(&desk.settings()).unwrap_err().to_string();
    assert!(error.contains("does not belong to the certificate"), "{error}");

    std::fs::remove_file(desk.path("tls.crt")).unwrap();
    let error = server::start(&desk.settings()).unwrap_err().to_string();
    assert_eq!(error, format!("failed to read {}", desk.path("tls.crt").display()));
}

// === limits ===

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

// === shutdown ===

#[tokio::test(flavor = "multi_thread")]
async fn during_the_grace_time_requests_are_answered_with_connection_close() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.grace = LONG).await;
    let mut open = served.connect().await;
    assert_eq!(served.probe("/readyz").await.0, 200);
    served.running.shutdown().signal();
    while served.probe("/readyz").await.0 != 503 {}
    assert_eq!(served.probe("/readyz").await.1, "shutting down\n");
    assert_eq!(served.probe("/livez").await.0, 200);
    for client in [&mut open, &mut served.connect().await] {
        let answer = client.review().await;
        assert_eq!(answer.status, 200);
        assert!(answer.has("connection: close"));
        client.closed().await;
    }
    served.running.shutdown().signal();
    assert_eq!(timeout(LONG, served.running.ended()).await.unwrap(), End::Drained);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_answers_running_requests_and_closes_idle_connections() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut idle = served.connect().await;
    assert_eq!(idle.review().await.status, 200);
    let mut busy = in_flight(&served).await;
    let address = served.running.address();
    served.running.shutdown().signal();
    idle.closed().await;
    while TcpStream::connect(address).await.is_ok() {}
    busy.send(REVIEW).await;
    let answer = busy.answer().await;
    assert_eq!(answer.status, 200);
    assert!(answer.has("connection: close"));
    assert_eq!(timeout(LONG, served.running.ended()).await.unwrap(), End::Drained);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_answers_connections_in_the_accept_queue() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.limits.max_connections = 1).await;
    let mut busy = in_flight(&served).await;
    let queued = TcpStream::connect(served.running.address()).await.unwrap();
    served.running.shutdown().signal();
    let mut queued = Client::shake_hands(queued, &desk.trust()).await.unwrap();
    assert_eq!(queued.review().await.status, 200);
    busy.send(REVIEW).await;
    assert_eq!(busy.answer().await.status, 200);
    assert_eq!(timeout(LONG, served.running.ended()).await.unwrap(), End::Drained);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_request_is_closed_at_the_drain_timeout() {
    let desk = Desk::new();
    let served = desk.start(|s| s.drain_timeout = Duration::from_millis(100)).await;
    let mut busy = in_flight(&served).await;
    served.running.shutdown().signal();
    assert_eq!(timeout(LONG, served.running.ended()).await.unwrap(), End::Cut);
    busy.closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_takes_over_the_port_without_a_failed_request() {
    let desk = Desk::new();
    let first = desk.start(|settings| settings.reuse_port = true).await;
    let address = first.running.address();
    let stop = AtomicBool::new(false);
    let trust = desk.trust();
    let load = async || {
        let mut answered = 0;
        while !stop.load(Ordering::Relaxed) {
            let tcp = TcpStream::connect(address).await.unwrap();
            let mut client = Client::shake_hands(tcp, &trust).await.unwrap();
            assert_eq!(client.review().await.status, 200);
            answered += 1;
        }
        answered
    };
    let change = async {
        let second = desk
            .start(|settings| {
                settings.reuse_port = true;
                settings.listen = address;
            })
            .await;
        sleep(Duration::from_millis(50)).await;
        first.running.shutdown().signal();
        assert_eq!(first.running.ended().await, End::Drained);
        sleep(Duration::from_millis(50)).await;
        stop.store(true, Ordering::Relaxed);
        second
    };
    let (one, two, _second) = tokio::join!(load(), load(), change);
    assert!(one + two > 0);
}

// === probes and metrics ===

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_count_requests_and_connections() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut client = served.connect().await;
    for body in [REVIEW, REVIEW, ""] {
        client.send(&post("/validate", body)).await;
        client.answer().await;
    }
    let expected = [
        (r#"statusgate_requests_total{webhook="validate",code="200"}"#, 2.0),
        (r#"statusgate_requests_total{webhook="validate",code="400"}"#, 1.0),
        (r#"statusgate_requests_total{webhook="mutate",code="200"}"#, 0.0),
        (r#"statusgate_request_duration_seconds_count{webhook="validate"}"#, 3.0),
        ("statusgate_connections", 1.0),
        ("statusgate_log_lines_dropped_total", 0.0),
        (r#"statusgate_reload_failing{what="policies"}"#, 0.0),
        (r#"statusgate_reload_failing{what="certificate"}"#, 0.0),
    ];
    for (line_start, value) in expected {
        served.metric_becomes(line_start, value).await;
    }
    assert!(served.metric("statusgate_tls_certificate_not_after_seconds").await > Some(1.7e9));
    let (_, text) = served.probe("/metrics").await;
    assert!(text.ends_with("# EOF\n"));
    let build = format!("statusgate_build_info{{version={:?}}} 1", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&build));
}

// === the program ===

#[test]
fn the_program_serves_until_sigterm_and_exits_with_0() {
    use std::io::{BufRead, BufReader};
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_statusgate"))
        .args(["serve", "--self-signed", "--listen", "127.0.0.1:0"])
        .args(["--probe-listen", "127.0.0.1:0", "--grace", "0s"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines().map(Result::unwrap);
    let listening = lines.find(|line| line.contains("listening")).unwrap();
    assert!(listening.contains(r#""address":"127.0.0.1:"#), "{listening}");
    let id = program.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let rest: Vec<_> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("Drained")), "flushed at exit: {rest:?}");
    assert_eq!(program.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_follows_its_file_and_ignores_an_invalid_filter() {
    use std::io::{BufRead, BufReader};
    let desk = Desk::new();
    desk.write("log", "info\n");
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_statusgate"))
        .args(["serve", "--listen", "127.0.0.1:0", "--probe-listen", "127.0.0.1:0"])
        .args(["--grace", "0s", "--reload-every", "10ms"])
        .args(["--tls-cert".as_ref(), &*desk.path("tls.crt")])
        .args(["--tls-key".as_ref(), &*desk.path("tls.key")])
        .args(["--log-from".as_ref(), &*desk.path("log")])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines().map(Result::unwrap);
    let listening = lines.find(|line| line.contains("listening")).unwrap();
    let (_, address) = listening.split_once(r#""address":""#).unwrap();
    let (address, _) = address.split_once('"').unwrap();
    let tcp = TcpStream::connect(address).await.unwrap();
    let mut client = Client::shake_hands(tcp, &desk.trust()).await.unwrap();
    let decision = |line: &String| line.contains(r#""decision":"allowed""#);

    assert_eq!(client.review().await.status, 200);
    desk.write("log", "statusgate=debug");
    let reloaded = |line: &String| line.contains("reloaded changed files");
    let until: Vec<_> = lines.by_ref().take_while(|line| !reloaded(line)).collect();
    assert!(!until.iter().any(decision), "{until:?}");
    assert_eq!(client.review().await.status, 200);
    assert!(lines.any(|line| decision(&line)));

    desk.write("log", "debgu");
    let broken = lines.find(|line| line.contains("changed files are broken")).unwrap();
    assert!(broken.contains(r#""what":"log""#) && broken.contains("use error"), "{broken}");
    assert_eq!(client.review().await.status, 200);
    assert!(lines.any(|line| decision(&line)));

    let id = program.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    drop(lines.collect::<Vec<_>>());
    assert_eq!(program.wait().unwrap().code(), Some(0));
}

#[test]
fn the_program_reports_invalid_settings_and_exits_with_2() {
    let desk = Desk::new();
    desk.write("broken.yaml", support::BROKEN_POLICY);
    let broken = desk.path("broken.yaml").display().to_string();
    let idle = ["--self-signed", "--idle-timeout", "60s"];
    desk.write("log", "debgu\n");
    let log = desk.path("log").display().to_string();
    let cases: [(&[&str], &str); 6] = [
        (&["--self-signed", "--log-from", "/nowhere"], "the log filter in /nowhere"),
        (&["--self-signed", "--log-from", &log], "failed to parse the log filter \"debgu\""),
        (&[], "--self-signed"),
        (&idle, "API servers keep idle connections for 90 s"),
        (&["--self-signed", "--policies", &broken], "broken.yaml"),
        (&["--self-signed", "--policies", "/nowhere"], "/nowhere: this cannot be read"),
    ];
    for (arguments, said) in cases {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_statusgate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--probe-listen", "127.0.0.1:0"])
            .args(arguments)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

// === helpers ===

async fn certificate_changes(served: &support::Served<'_>, old: &[u8]) {
    let start = Instant::now();
    while served.certificate().await == old {
        assert!(start.elapsed() < LONG, "the old certificate is still served");
        sleep(Duration::from_millis(5)).await;
    }
}

/// With TLS 1.3 a client learns at its first read that the server rejected it.
async fn is_served(served: &support::Served<'_>, trust: &support::Trust) -> bool {
    let Ok(mut client) = served.connect_as(trust).await else { return false };
    let sent = client.stream.write_all(post("/validate", REVIEW).as_bytes()).await;
    sent.is_ok()
        && matches!(support::Answer::read(&mut client.stream).await, Ok(a) if a.status == 200)
}

async fn is_closed(client: &mut Client) -> bool {
    let mut byte = [0];
    matches!(
        timeout(Duration::from_millis(1), client.stream.read(&mut byte)).await,
        Ok(Ok(0) | Err(_))
    )
}

/// A request without its two bytes of body. The handler has read the head and waits for the body.
async fn in_flight(served: &support::Served<'_>) -> Client {
    let mut client = served.connect().await;
    client.send(&expecting(REVIEW.len())).await;
    assert_eq!(client.answer().await.status, 100);
    client
}

fn expecting(length: usize) -> String {
    head(length).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")
}
