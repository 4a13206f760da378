//! A server without free file descriptors.

use std::process::Command;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::command::STATUSGATE;
use crate::program::{ANY, Program, eventually, reviewed};
use crate::server::{Desk, REVIEW};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_free_descriptors_waits_and_serves_again_when_clients_leave() {
    let desk = Desk::new();
    let mut command = Command::new("prlimit");
    // The clients must stay until the test drops them.
    command.args(["--nofile=64", STATUSGATE, "serve", "--handshake-timeout=60m"]);
    let mut program = Program::start(Program::serving(&mut command, &desk, ANY, ANY));
    let [address, probes] = program.addresses().await;
    assert_eq!(reviewed(&desk, address, REVIEW).await.unwrap().status, 200);

    let start = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..100 {
        clients.push(TcpStream::connect(address).await.unwrap());
    }
    program.logs(FAILED).await;
    let used = program.used();
    sleep(Duration::from_secs(3)).await;
    let (used, lines) = (program.used() - used, program.logged(FAILED).len());
    let elapsed = start.elapsed();
    println!("without descriptors for {elapsed:?}: {used:?} of processor time, {lines} log lines");
    // Pauses grow from 10 ms to 1 s: eight failures in the first two seconds, then one each second.
    assert!(lines as u64 <= 8 + elapsed.as_secs(), "{:?}", program.logged(""));
    assert!(used < elapsed / 4, "it spins: {used:?} of {elapsed:?}");

    drop(clients);
    eventually("it serves again", async || reviewed(&desk, address, REVIEW).await).await;
    eventually("its probes answer", async || TcpStream::connect(probes).await.ok()).await;
    assert_eq!(program.terminate().await, Some(0));
}

const FAILED: &str = "failed to accept a connection";
