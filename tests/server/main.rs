//! The server: real sockets with TLS, limits, reloads, shutdown and traces. The tests of `program` run the program; the others
//! run the server in this process.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests, and their helpers too")]

#[path = "../support/command.rs"]
mod command;
#[path = "../support/server.rs"]
#[allow(dead_code, reason = "each test crate uses a part of it")]
mod server;
#[path = "../support/mod.rs"]
mod support;

mod metrics;
mod own_status;

mod certificates;
mod files;
mod limits;
mod program;
mod protocols;
mod shutdown;
mod traces;
mod ui;

use std::time::{Duration, Instant};

use server::{Client, LONG, REVIEW, head, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

async fn certificate_changes(served: &server::Served<'_>, old: &[u8]) {
    let start = Instant::now();
    while served.certificate().await == old {
        assert!(start.elapsed() < LONG, "the old certificate is still served");
        sleep(Duration::from_millis(5)).await;
    }
}

/// With TLS 1.3 a client learns at its first read that the server rejected it.
async fn is_served(served: &server::Served<'_>, trust: &server::Trust) -> bool {
    let Ok(mut client) = served.connect_as(trust).await else { return false };
    let sent = client.stream.write_all(post("/validate", REVIEW).as_bytes()).await;
    sent.is_ok()
        && matches!(server::Answer::read(&mut client.stream).await, Ok(a) if a.status == 200)
}

async fn is_closed(client: &mut Client) -> bool {
    let mut byte = [0];
    matches!(
        timeout(Duration::from_millis(1), client.stream.read(&mut byte)).await,
        Ok(Ok(0) | Err(_))
    )
}

/// A request without its two bytes of body. The handler has read the head and waits for the body.
async fn in_flight(served: &server::Served<'_>) -> Client {
    let mut client = served.connect().await;
    client.send(&expecting(REVIEW.len())).await;
    assert_eq!(client.answer().await.status, 100);
    client
}

fn expecting(length: usize) -> String {
    head(length).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")
}
