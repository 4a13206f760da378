//! A log on a disk that is full.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use tokio::net::TcpSocket;

use crate::command::STATUSGATE;
use crate::program::{ANY, Program, eventually, reviewed};
use crate::server::{Desk, REVIEW};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_write_its_log_serves() {
    let desk = Desk::new();
    // The log would contain the port. This socket is bound and does not listen, so that no other process gets
    // the port, and all connections are for the server.
    let reserved = TcpSocket::new_v4().unwrap();
    reserved.set_reuseport(true).unwrap();
    reserved.bind(ANY).unwrap();
    let address = reserved.local_addr().unwrap();
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut command = Command::new(STATUSGATE);
    command.args(["serve", "--log=debug", "--reuse-port"]).stdout(full()).stderr(full());
    let mut program = Program::unread(Program::serving(&mut command, &desk, address));
    for _ in 0..50 {
        let answer = eventually("it answers", async || reviewed(&desk, address, REVIEW).await);
        assert_eq!(answer.await.status, 200);
    }
    assert_eq!(program.terminate().await, Some(0));
}
