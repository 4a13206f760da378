//! The program in its own process.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::server::{Answer, Client, Desk, LONG, post};

/// A running `statusgate serve`, killed when this value is dropped.
pub(crate) struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Program {
    /// Adds the flags of a server with the certificate of the desk.
    pub(crate) fn serving<'c>(
        command: &'c mut Command,
        desk: &Desk,
        address: SocketAddr,
        probes: SocketAddr,
    ) -> &'c mut Command {
        command
            .args(["--log-format=json", "--grace=0s"])
            .args(["--listen", &address.to_string(), "--probe-listen", &probes.to_string()])
            .args(["--tls-cert".as_ref(), &*desk.path("tls.crt")])
            .args(["--tls-key".as_ref(), &*desk.path("tls.key")])
    }

    /// Starts a command without reading its log.
    pub(crate) fn unread(command: &mut Command) -> Self {
        Self { child: command.spawn().unwrap(), lines: Arc::default() }
    }

    /// Starts a command and reads its log.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut program = Self::unread(command.stderr(Stdio::piped()));
        let stderr = program.child.stderr.take().unwrap();
        let read = Arc::clone(&program.lines);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                read.lock().unwrap().push(line);
            }
        });
        program
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The lines of the log that contain a text.
    pub(crate) fn logged(&self, text: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).cloned().collect()
    }

    /// Waits for a line with this text.
    pub(crate) async fn logs(&self, text: &str) -> String {
        eventually(&format!("{text:?} is logged"), async || self.logged(text).pop()).await
    }

    /// The addresses of webhooks and of probes, when it listens.
    pub(crate) async fn addresses(&self) -> [SocketAddr; 2] {
        let line = self.logs("\"listening\"").await;
        ["address", "probe_address"].map(|name| {
            let (_, rest) = line.split_once(&format!("\"{name}\":\"")).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        })
    }

    /// The processor time so far.
    pub(crate) fn used(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        // The name before the last bracket may contain spaces. Times are in hundredths of a second.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) async fn terminate(&mut self) -> Option<i32> {
        let id = self.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let ended = async || self.child.try_wait().unwrap();
        eventually("the program has ended", ended).await.code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that the system chooses.
pub(crate) const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The response to a review on a new connection; `None` if there is no connection.
pub(crate) async fn reviewed(desk: &Desk, address: SocketAddr, review: &str) -> Option<Answer> {
    let tcp = TcpStream::connect(address).await.ok()?;
    let mut client = Client::shake_hands(tcp, &desk.trust()).await.ok()?;
    client.send(&post("/validate", review)).await;
    Answer::read(&mut client.stream).await.ok()
}

/// A metric, by the start of its line.
pub(crate) async fn metric(probes: SocketAddr, line_start: &str) -> Option<f64> {
    let mut tcp = TcpStream::connect(probes).await.ok()?;
    let request = "GET /metrics HTTP/1.1\r\nhost: probe\r\nconnection: close\r\n\r\n";
    tcp.write_all(request.as_bytes()).await.ok()?;
    let text = Answer::read(&mut tcp).await.ok()?.body;
    text.lines().find_map(|line| line.strip_prefix(line_start)?.trim().parse().ok())
}

/// Repeats a question until it has an answer.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(start.elapsed() < LONG, "waited too long until {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
