//! Many clients that send a byte now and then.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::server::{Client, Desk, Trust, head};

/// The connections that are slow in the handshake, in the head and in the body of a request. Below the limit
/// of requests.
const HANDSHAKES: usize = 400;
const HEADS: usize = 400;
const BODIES: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_slow_clients_do_not_prevent_the_responses_of_others() {
    // Both ends of all connections are in this process. 1024 is a common soft limit.
    let own = std::process::id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &own, "--nofile=4096:"]).status();
    assert!(raised.unwrap().success(), "the hard limit of open files is below 4096");

    let desk = Desk::new();
    // No slow client reaches a timeout during the test.
    let served = desk
        .start(|settings| {
            let limits = &mut settings.limits;
            limits.max_connections = 1100;
            limits.handshake_timeout = HOUR;
            (limits.head_timeout, limits.body_timeout) = (HOUR, HOUR);
        })
        .await;
    let (address, trust) = (served.running.address(), Arc::new(desk.trust()));
    let mut slow = JoinSet::new();
    for number in 0..HANDSHAKES + HEADS + BODIES {
        let tcp = TcpStream::connect(address).await.unwrap();
        if number < HANDSHAKES {
            slow.spawn(dribble(tcp, HELLO.to_vec()));
            continue;
        }
        let client = Client::shake_hands(tcp, &trust).await.unwrap();
        let text = head(100_000);
        let mut stream = client.stream;
        if number < HANDSHAKES + HEADS {
            slow.spawn(dribble(stream, text.trim_end().as_bytes().to_vec()));
        } else {
            stream.write_all(text.as_bytes()).await.unwrap();
            slow.spawn(dribble(stream, b"{".to_vec()));
        }
    }
    let all = (HANDSHAKES + HEADS + BODIES) as f64;
    served.metric_becomes("statusgate_connections", all).await;

    let others = (0..8).map(|_| reviews(address, Arc::clone(&trust)));
    let mut times = join_all(others).await.concat();
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100];
    println!("{} reviews beside {all} slow clients: p99 {p99:?}", times.len());
    // The others leave and the slow clients stay.
    served.metric_becomes("statusgate_connections", all).await;
    assert_eq!(served.metric(r#"statusgate_shed_total{reason="requests"}"#).await, None);
    slow.shutdown().await;
    served.metric_becomes("statusgate_connections", 0.0).await;
}

/// Sends a byte now and then, and never all.
async fn dribble(mut stream: impl AsyncWrite + Unpin, bytes: Vec<u8>) {
    for byte in bytes {
        stream.write_all(&[byte]).await.unwrap();
        stream.flush().await.unwrap();
        sleep(NOW_AND_THEN).await;
    }
    std::future::pending().await
}

/// Sends reviews on an open connection and on new ones. Returns the times.
async fn reviews(address: std::net::SocketAddr, trust: Arc<Trust>) -> Vec<Duration> {
    let connect = async || {
        let tcp = TcpStream::connect(address).await.unwrap();
        Client::shake_hands(tcp, &trust).await.unwrap()
    };
    let (mut kept, mut times) = (connect().await, Vec::new());
    for number in 0..60 {
        let start = Instant::now();
        let answer =
            if number % 4 == 0 { connect().await.review().await } else { kept.review().await };
        assert_eq!(answer.status, 200, "{answer:?}");
        times.push(start.elapsed());
    }
    times
}

/// The start of a TLS record with a ClientHello of 512 bytes.
const HELLO: [u8; 9] = [22, 3, 1, 2, 0, 1, 0, 1, 252];

const NOW_AND_THEN: Duration = Duration::from_millis(500);

const HOUR: Duration = Duration::from_secs(3600);
