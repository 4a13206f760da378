//! Shutdown and takeover of the port.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use statusgate_server::End;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::in_flight;
use crate::server::{Client, Desk, LONG, REVIEW};

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
