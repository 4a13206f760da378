//! The probes and the log of a running server.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The readiness probe.
pub(crate) async fn is_ready(probes: SocketAddr) -> bool {
    let answer = get(probes, "/readyz").await;
    answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

/// The response of the probe port to a GET.
pub(crate) async fn get(probes: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(probes).await?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The value of a member in the first log line that contains it.
pub(crate) fn member(log: &str, name: &str) -> Option<SocketAddr> {
    let start = format!("\"{name}\":\"");
    let (_, rest) = log.split_once(&start)?;
    rest.split_once('"')?.0.parse().ok()
}
