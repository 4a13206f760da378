//! A log on a disk that is full, and a log of what a peer sends.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use tokio::net::TcpSocket;

use crate::command::STATUSGATE;
use crate::program::{ANY, Program, eventually, metric, reviewed};
use crate::server::{Desk, REVIEW};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_write_its_log_serves() {
    let desk = Desk::new();
    // The log would contain the ports. These sockets are bound and do not listen, so that no other process gets
    // the ports, and all connections are for the server.
    let reserve = || {
        let reserved = TcpSocket::new_v4().unwrap();
        reserved.set_reuseport(true).unwrap();
        reserved.bind(ANY).unwrap();
        reserved
    };
    let (webhooks, probes) = (reserve(), reserve());
    let (address, probes_at) = (webhooks.local_addr().unwrap(), probes.local_addr().unwrap());
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut command = Command::new(STATUSGATE);
    command.args(["serve", "--log=debug", "--reuse-port"]).stdout(full()).stderr(full());
    let command = Program::serving(&mut command, &desk, address, probes_at);
    let mut program = Program::unread(command);
    for _ in 0..50 {
        let answer = eventually("it answers", async || reviewed(&desk, address, REVIEW).await);
        assert_eq!(answer.await.status, 200);
    }
    eventually("the lost lines are counted", async || {
        metric(probes_at, "statusgate_log_lines_dropped_total ").await.filter(|lost| *lost >= 50.0)
    })
    .await;
    assert_eq!(program.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_with_long_names_logs_short_lines() {
    let desk = Desk::new();
    let mut command = Command::new(STATUSGATE);
    command.args(["serve", "--log=debug"]);
    let program = Program::start(Program::serving(&mut command, &desk, ANY, ANY));
    let [address, _] = program.addresses().await;
    let mut review: serde_json::Value = serde_json::from_str(REVIEW).unwrap();
    let long = "x\"".repeat(1 << 20);
    review["request"]["uid"] = long.as_str().into();
    review["request"]["userInfo"]["username"] = long.as_str().into();
    let answer = reviewed(&desk, address, &review.to_string()).await.unwrap();
    assert_eq!(answer.status, 200);
    let line = program.logs("\"decision\"").await;
    assert!(line.len() < 8 << 10, "{}", line.len());
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(line["user"].as_str().is_some_and(|user| user.ends_with('…')), "{line}");
}
