//! A server in this process with its own certificates, and a client that can misbehave.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use statusgate_server::{CertificateSource, Running, ServerSettings};
use statusgate_tls::{Authority, Issued, Validity};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A test that waits this long has failed, even on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Certificates, files and settings for one server.
pub(crate) struct Desk {
    pub(crate) folder: TempDir,
    pub(crate) authority: Authority,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let desk = Self { folder, authority: authority() };
        desk.write_pair(&desk.issue());
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        // kubelet and `statusgate certs` replace files atomically too.
        std::fs::write(self.path("new"), text).unwrap();
        std::fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    pub(crate) fn issue(&self) -> Issued {
        self.authority.issue(&["localhost".into()], Validity::from_now(DAY, now())).unwrap()
    }

    pub(crate) fn write_pair(&self, issued: &Issued) {
        self.write("tls.key", &issued.key);
        self.write("tls.crt", &issued.certificate);
    }

    /// Free ports, quick reloads and no grace time; otherwise the default settings.
    pub(crate) fn settings(&self) -> ServerSettings {
        let (certificate, key) = (self.path("tls.crt"), self.path("tls.key"));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        ServerSettings {
            listen: any,
            probe_listen: any,
            reload_every: Duration::from_millis(10),
            grace: Duration::ZERO,
            drain_timeout: LONG,
            ..ServerSettings::new(CertificateSource::Files { certificate, key })
        }
    }

    pub(crate) async fn start(&self, change: impl FnOnce(&mut ServerSettings)) -> Served<'_> {
        let mut settings = self.settings();
        change(&mut settings);
        Served { desk: self, running: statusgate_server::start(&settings).unwrap() }
    }

    pub(crate) async fn start_with(
        &self,
        router: Router,
        change: impl FnOnce(&mut ServerSettings),
    ) -> Served<'_> {
        let mut settings = self.settings();
        change(&mut settings);
        let running = statusgate_server::start_with_router(&settings, router).unwrap();
        Served { desk: self, running }
    }

    /// The trust that a client needs for this desk's servers.
    pub(crate) fn trust(&self) -> Trust {
        Trust {
            authority: self.authority.certificate().to_owned(),
            versions: rustls::ALL_VERSIONS,
            protocols: vec![b"http/1.1".to_vec()],
            identity: None,
        }
    }
}

/// A running server.
pub(crate) struct Served<'d> {
    pub(crate) desk: &'d Desk,
    pub(crate) running: Running,
}

impl Served<'_> {
    pub(crate) async fn connect(&self) -> Client {
        self.connect_as(&self.desk.trust()).await.unwrap()
    }

    pub(crate) async fn connect_as(&self, trust: &Trust) -> std::io::Result<Client> {
        let tcp = TcpStream::connect(self.running.address()).await?;
        Client::shake_hands(tcp, trust).await
    }

    /// The certificate of a new handshake.
    pub(crate) async fn certificate(&self) -> Vec<u8> {
        self.connect().await.certificate()
    }

    /// The status and the body of a probe.
    pub(crate) async fn probe(&self, path: &str) -> (u16, String) {
        let mut tcp = TcpStream::connect(self.running.probe_address()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: probe\r\nconnection: close\r\n\r\n");
        tcp.write_all(request.as_bytes()).await.unwrap();
        let answer = Answer::read(&mut tcp).await.unwrap();
        (answer.status, answer.body)
    }

    pub(crate) async fn metric(&self, line_start: &str) -> Option<f64> {
        let (_, text) = self.probe("/metrics").await;
        let line = text.lines().find_map(|line| line.strip_prefix(line_start)?.strip_prefix(' '));
        line.map(|value| value.parse().unwrap())
    }

    pub(crate) async fn metric_becomes(&self, line_start: &str, value: f64) {
        let start = std::time::Instant::now();
        while self.metric(line_start).await != Some(value) {
            assert!(start.elapsed() < LONG, "{line_start} is {:?}", self.metric(line_start).await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The settings of a client's handshake.
pub(crate) struct Trust {
    pub(crate) authority: String,
    pub(crate) versions: &'static [&'static SupportedProtocolVersion],
    pub(crate) protocols: Vec<Vec<u8>>,
    pub(crate) identity: Option<Issued>,
}

impl Trust {
    pub(crate) fn config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(self.versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(issued) => {
                let chain = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![chain], key).unwrap()
            }
        };
        config.alpn_protocols = self.protocols.clone();
        config
    }
}

/// One TLS connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TlsStream<TcpStream>,
}

impl Client {
    pub(crate) async fn shake_hands(tcp: TcpStream, trust: &Trust) -> std::io::Result<Self> {
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(trust.config()));
        Ok(Self { stream: connector.connect(name, tcp).await? })
    }

    pub(crate) fn certificate(&self) -> Vec<u8> {
        self.stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        Answer::read(&mut self.stream).await.unwrap()
    }

    /// Sends a small review and reads the answer.
    pub(crate) async fn review(&mut self) -> Answer {
        self.send(&post("/validate", REVIEW)).await;
        self.answer().await
    }

    /// Waits until the server closes.
    pub(crate) async fn closed(&mut self) {
        let mut rest = [0; 64];
        let reading = self.stream.read(&mut rest);
        let read = tokio::time::timeout(LONG, reading).await.expect("the server did not close");
        assert!(!matches!(read, Ok(1..)), "got bytes instead of the end");
    }
}

/// An HTTP/1.1 answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) async fn read(stream: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tokio::time::timeout(LONG, stream.read_u8()).await??);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await?;
        Ok(Self { status, head, body: String::from_utf8(body).unwrap() })
    }

    pub(crate) fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line == header)
    }
}

pub(crate) fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// The head of a POST without its body.
pub(crate) fn head(length: usize) -> String {
    format!("POST /validate HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n")
}

pub(crate) fn authority() -> Authority {
    Authority::make("test", Validity::from_now(DAY, now())).unwrap()
}

/// Replaces a symlink atomically, as kubelet does.
pub(crate) fn swap_link(target: &str, link: &Path) {
    let new = link.parent().unwrap().join("link");
    std::os::unix::fs::symlink(target, &new).unwrap();
    std::fs::rename(&new, link).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test of the edge, where time enters")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

const DAY: Duration = Duration::from_secs(86_400);

/// A policy document.
pub(crate) const POLICY: &str = "\
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: first}
spec:
  convention: appcat
  resources:
    - apiGroups: [example.com]
      apiVersions: [v1]
      resources: [widgets]
";

/// A policy with an error.
pub(crate) const BROKEN_POLICY: &str = "\
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: BROKEN}
spec: {convention: there-is-no-such-convention}
";

/// A certificate for a client; `Authority::issue` makes certificates for servers only.
pub(crate) fn client_of(authority: &Authority) -> Issued {
    let key = rcgen::KeyPair::from_pem(&authority.key()).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(authority.certificate(), key).unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["client".to_owned()]).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    Issued { certificate, key: key.serialize_pem() }
}

/// The smallest review. No policy selects it, so it is allowed.
pub(crate) const REVIEW: &str = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","resource":{"resource":"things"},"operation":"UPDATE"}}"#;
