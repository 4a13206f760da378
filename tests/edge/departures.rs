//! Clients that leave in the middle of a request.
//!
//! Each test allows one request at a time and the memory of one body. If a connection that ended did not
//! return its share, the next request would get a 503.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::routing::any;
use rustls::pki_types::ServerName;
use statusgate_server::ServerSettings;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::program::eventually;
use crate::server::{Answer, Desk, REVIEW, Served, post};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_leave_after_any_byte_of_its_request() {
    let desk = Desk::new();
    let served = desk.start(narrow(SMALL)).await;
    let mut departures = 0;
    // Each connection breaks a few bytes later than the one before, until a whole request is sent and answered.
    for bytes in (0..).step_by(9) {
        let answered = review_until(&served, bytes).await;
        recovers(&served, &format!("after {bytes} bytes")).await;
        if answered.is_ok() {
            break;
        }
        departures += 1;
    }
    println!("{departures} departures");
    assert!(departures > 40, "the handshake and the request have several hundred bytes");
    assert_eq!(served.metric(r#"statusgate_shed_total{reason="requests"}"#).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_leave_before_its_response() {
    let desk = Desk::new();
    let served = desk.start(narrow(SMALL)).await;
    for _ in 0..20 {
        let mut client = served.connect().await;
        client.send(&post("/validate", REVIEW)).await;
        drop(client);
        recovers(&served, "before the response").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_keeps_its_memory_only_until_it_is_judged() {
    let desk = Desk::new();
    // Large bodies are judged on another thread, which continues when the client leaves.
    let body = format!("{{{}}}", " ".repeat(1 << 20));
    let served = desk.start(narrow(body.len())).await;
    for _ in 0..5 {
        let mut client = served.connect().await;
        client.send(&post("/validate", &body)).await;
        drop(client);
        eventually("the memory of the body is free", async || {
            let mut client = served.connect().await;
            client.send(&post("/validate", &body)).await;
            (client.answer().await.status == 400).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_leave_while_it_reads_its_response() {
    let desk = Desk::new();
    // More than the buffers of both sockets, so that the server still writes.
    let large = Router::new()
        .route("/large", any(async || "x".repeat(32 << 20)))
        .route("/validate", any(async |_: String| "fine"));
    let served = desk.start_with(large, |_| {}).await;
    for read in [1, 100, 100_000, 3_000_000] {
        let mut client = served.connect().await;
        client.send(&post("/large", "")).await;
        client.stream.read_exact(&mut vec![0; read]).await.unwrap();
        drop(client);
        recovers(&served, &format!("after {read} bytes")).await;
    }
}

// === helpers ===

/// The memory of the answer to a small review, and less than that of two bodies.
const SMALL: usize = 256;

/// One request at a time, and memory for this many bytes of bodies.
fn narrow(bytes: usize) -> impl FnOnce(&mut ServerSettings) {
    move |settings| {
        settings.limits.max_in_flight = 1;
        settings.limits.held_bytes = bytes;
    }
}

/// The server noticed that the client left, and answers the next one.
async fn recovers(served: &Served<'_>, when: &str) {
    served.metric_becomes("statusgate_connections", 0.0).await;
    let answer = served.connect().await.review().await;
    assert_eq!(answer.status, 200, "{when}: {answer:?}");
    served.metric_becomes("statusgate_connections", 0.0).await;
}

/// Sends a small review on a TLS connection that breaks after this many bytes, and reads the answer.
async fn review_until(served: &Served<'_>, bytes: usize) -> io::Result<Answer> {
    let tcp = TcpStream::connect(served.running.address()).await?;
    // Every second client resets its connection instead of closing it.
    if bytes % 2 == 1 {
        tcp.set_zero_linger()?;
    }
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(served.desk.trust().config()));
    let mut stream = connector.connect(name, Fragile { tcp, left: bytes }).await?;
    stream.write_all(post("/validate", REVIEW).as_bytes()).await?;
    stream.flush().await?;
    Answer::read(&mut stream).await
}

/// A connection that can send only so many bytes.
struct Fragile {
    tcp: TcpStream,
    left: usize,
}

impl AsyncRead for Fragile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Fragile {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let part = &bytes[..bytes.len().min(self.left)];
        if part.is_empty() && !bytes.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let polled = Pin::new(&mut self.tcp).poll_write(cx, part);
        if let Poll::Ready(Ok(written)) = polled {
            self.left -= written;
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
