//! `statusgate ui`: which requests it answers, the headers of all responses, and the size of the page.

use std::process::{Command, Stdio};

use serde_json::Value;
use statusgate::ui::Ui;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::command::{Ended, STATUSGATE, run};

/// A served page.
struct Page {
    url: String,
    port: u16,
    _end: oneshot::Sender<()>,
}

/// A response; its body may be compressed.
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Page {
    async fn on(address: &str) -> Self {
        let ui = Ui::bind(format!("{address}:0").parse().unwrap()).await.unwrap();
        let url = ui.url();
        let port = url.split([':', '/']).find_map(|part| part.parse().ok()).unwrap();
        let (end, ended) = oneshot::channel();
        tokio::spawn(ui.serve(None, async {
            let _ = ended.await;
        }));
        Self { url, port, _end: end }
    }

    async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        // A server that rejects the head does not read the body.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: bytes[end + 4..].to_vec() }
    }

    /// With its own name as the host.
    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &self.host(), "").await
    }

    fn host(&self) -> String {
        format!("host: 127.0.0.1:{}\r\n", self.port)
    }
}

#[tokio::test]
async fn requests_of_other_sites_are_rejected() {
    let page = Page::on("127.0.0.1").await;
    let port = page.port;
    let (own, local) = (format!("127.0.0.1:{port}"), format!("localhost:{port}"));
    for (host, origin, status) in [
        (own.as_str(), "", 200),
        (&local, "", 200),
        (&own, &format!("http://{own}"), 200),
        (&local, &format!("http://{local}"), 200),
        // DNS rebinding.
        (&format!("attacker.example:{port}"), "", 403),
        ("127.0.0.1", "", 403),
        ("", "", 403),
        // A form or a script of another site.
        (&own, "https://attacker.example", 403),
        (&own, "null", 403),
        (&own, &format!("http://{local}"), 403),
        (&own, &format!("ftp://{own}"), 403),
    ] {
        let mut headers = format!("host: {host}\r\n");
        if !origin.is_empty() {
            headers.push_str(&format!("origin: {origin}\r\n"));
        }
        let answer = page.ask("POST", "/calls/conventions", &headers, "{}").await;
        assert_eq!(answer.status, status, "{host} {origin}");
        let answer = page.ask("GET", "/", &headers, "").await;
        assert_eq!(answer.status, status, "{host} {origin}");
    }
}

#[tokio::test]
async fn an_address_for_other_machines_contains_a_token() {
    let page = Page::on("0.0.0.0").await;
    let (_, token) = page.url.split_once("/?token=").unwrap();
    assert_eq!(token.len(), 32, "{token}");
    let wrong = "0".repeat(32);
    let host = "host: tools.example\r\n";
    for (path, status) in [
        (format!("/?token={token}"), 200),
        (format!("/?token={wrong}"), 401),
        (format!("/?token={}", &token[1..]), 401),
        ("/".to_owned(), 401),
        ("/main.js".to_owned(), 200),
    ] {
        assert_eq!(page.ask("GET", &path, host, "").await.status, status, "{path}");
    }
    for (given, status) in [(token, 200), (wrong.as_str(), 401), ("", 401)] {
        let headers = format!("{host}authorization: Bearer {given}\r\n");
        let answer = page.ask("POST", "/calls/conventions", &headers, "{}").await;
        assert_eq!(answer.status, status, "{given}");
    }
    assert_eq!(page.ask("POST", "/calls/conventions", host, "{}").await.status, 401);
    assert!(!Page::on("127.0.0.1").await.url.contains("token"));
}

#[tokio::test]
async fn all_responses_forbid_inline_scripts_and_other_types() {
    let page = Page::on("127.0.0.1").await;
    let refused = page.ask("GET", "/", "host: attacker.example\r\n", "").await;
    for answer in
        [page.get("/").await, page.get("/main.js").await, page.get("/nothing").await, refused]
    {
        let policy = answer.head.lines().find(|line| line.starts_with("content-security-policy: "));
        let policy = policy.unwrap();
        assert!(policy.contains("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(answer.head.contains("x-content-type-options: nosniff"), "{}", answer.head);
    }
    let index = String::from_utf8(page.get("/").await.body).unwrap();
    assert!(!index.contains("<style") && !index.contains("style="), "{index}");
    assert!(!index.contains("<script>") && !index.contains("onclick"), "{index}");
}

#[tokio::test]
async fn the_page_is_small_and_complete() {
    let page = Page::on("127.0.0.1").await;
    let mut size = 0;
    let mut open = vec!["".to_owned()];
    let mut known = Vec::new();
    while let Some(name) = open.pop() {
        if known.contains(&name) {
            continue;
        }
        let answer = page.get(&format!("/{name}")).await;
        assert_eq!(answer.status, 200, "{name}");
        size += answer.body.len();
        let text = String::from_utf8_lossy(&answer.body);
        let names =
            text.split(['"', '\'']).filter(|text| text.ends_with(".js") || text.ends_with(".css"));
        let names = names.map(|name| name.trim_start_matches("./").to_owned());
        open.extend(names.filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '.')));
        known.push(name);
    }
    assert!(known.iter().any(|name| name == "editor.js"), "{known:?}");
    assert!(size < 250_000, "{size} bytes");
}

#[tokio::test]
async fn calls_have_limits() {
    let page = Page::on("127.0.0.1").await;
    let host = page.host();
    assert_eq!(page.get("/calls/judge").await.status, 405);
    assert_eq!(page.get("/../Cargo.toml").await.status, 404);
    let large = " ".repeat(statusgate_server::BODY_BYTES + 1);
    assert_eq!(page.ask("POST", "/calls/judge", &host, &large).await.status, 413);
    let answer = page.ask("POST", "/calls/judge", &host, "{").await;
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert!(answer["error"].as_str().unwrap().starts_with("invalid request"), "{answer}");
    let answer = page.ask("POST", "/calls/audit", &host, "{}").await;
    let expected =
        r#"{"error":"there is no cluster here: start `statusgate ui --kubeconfig FILE`"}"#;
    assert_eq!(String::from_utf8_lossy(&answer.body), expected);
}

#[test]
fn a_cluster_that_cannot_be_read_is_reported_at_the_start() {
    for (arguments, expected) in [
        (["--kubeconfig=no/such/file", "--kind=Foo"], "no/such/file"),
        (["--kubeconfig=no/such/file", "--policies=no/such/policies"], "no/such/policies"),
        (["--namespace=n", "--kind=Foo"], "add --kubeconfig or --context"),
    ] {
        let Ended { code, err, .. } = run(["ui", "--listen=127.0.0.1:0"].iter().chain(&arguments));
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(expected), "{err}");
    }
}

#[tokio::test]
async fn the_program_reports_a_port_that_is_taken() {
    let page = Page::on("127.0.0.1").await;
    let listen = format!("127.0.0.1:{}", page.port);
    let Ended { code, err, .. } = run(["ui", "--listen", &listen]);
    assert_eq!(code, Some(2), "{err}");
    let expected = format!("cannot listen on {listen}; choose another address with --listen: ");
    assert!(err.starts_with(&expected), "{err}");
}

#[test]
fn the_program_prints_its_address_and_ends_with_0_at_a_signal() {
    use std::io::{BufRead, BufReader};
    let mut program = Command::new(STATUSGATE)
        .args(["ui", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(
        line.starts_with("statusgate ui: http://127.0.0.1:") && line.ends_with("/\n"),
        "{line}"
    );
    let id = program.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(program.wait().unwrap().code(), Some(0));
}
