//! statusgate itself: the binary, in its own process.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::cluster::Cluster;
use crate::command::STATUSGATE;
use crate::harness::leash::Leashed;
use crate::harness::patience::until;
use crate::harness::probes::{is_ready, member};

/// The folder of a server: its certificate and its policies.
pub(crate) struct Home(PathBuf);

/// The settings of a server.
pub(crate) struct Start {
    home: Arc<Home>,
    listen: SocketAddr,
    reuse_port: bool,
}

/// A running server, which stops when this value is dropped.
pub(crate) struct Server {
    process: Leashed,
    home: Arc<Home>,
    address: SocketAddr,
    probes: SocketAddr,
}

impl Home {
    fn make(path: PathBuf) -> Self {
        let policies = path.join("policies");
        fs::create_dir_all(&policies).expect("a folder");
        let example = include_str!("../../../deploy/policies/appcat.yaml");
        fs::write(policies.join("appcat.yaml"), example).expect("a policy");
        fs::write(policies.join("test.yaml"), include_str!("../harness/policies.yaml"))
            .expect("a policy");
        let home = Self(path);
        home.issue(&[]);
        home
    }

    /// Runs `statusgate certs`. With other names it creates a new leaf under the same CA.
    pub(crate) fn issue(&self, arguments: &[&str]) {
        let certs = Command::new(STATUSGATE)
            .args(["certs", "--out"])
            .arg(self.certificates())
            .args(arguments)
            .output()
            .expect("statusgate starts");
        assert!(certs.status.success(), "{}", String::from_utf8_lossy(&certs.stderr));
    }

    /// The CA in the form of a registration.
    pub(crate) fn ca(&self) -> Vec<u8> {
        fs::read(self.certificates().join("ca.crt")).expect("a CA")
    }

    /// The leaf on disk.
    pub(crate) fn leaf(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.certificates().join("tls.crt")).expect("a certificate")
    }

    /// The policy for the AppCat kinds, which a test may edit.
    pub(crate) fn policy(&self) -> PathBuf {
        self.0.join("policies/appcat.yaml")
    }

    fn certificates(&self) -> PathBuf {
        self.0.join("certs")
    }
}

impl Start {
    pub(crate) fn reuse_port(mut self) -> Self {
        self.reuse_port = true;
        self
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(self) -> Server {
        let Self { home, listen, reuse_port } = self;
        // Several processes may share a home.
        let mut logs = (0..).map(|number| home.0.join(format!("{number}.log")));
        let log = logs.find(|log| !log.exists()).expect("numbers do not end");
        let path = |path: PathBuf| path.into_os_string().into_string().expect("a path of text");
        let mut arguments = vec![
            "serve".to_owned(),
            format!("--listen={listen}"),
            "--probe-listen=127.0.0.1:0".to_owned(),
            format!("--tls-cert={}", path(home.certificates().join("tls.crt"))),
            format!("--tls-key={}", path(home.certificates().join("tls.key"))),
            format!("--policies={}", path(home.0.join("policies"))),
            "--log-format=json".to_owned(),
            "--reload-every=500ms".to_owned(),
            "--grace=2s".to_owned(),
        ];
        if reuse_port {
            arguments.push("--reuse-port".to_owned());
        }
        let process = Leashed::start(&log, STATUSGATE, arguments);
        let (address, probes) = until("statusgate listens", async || {
            let log = process.log();
            Some((member(&log, "address")?, member(&log, "probe_address")?))
        })
        .await;
        let server = Server { process, home, address, probes };
        until("statusgate is ready", async || is_ready(server.probes).await.then_some(())).await;
        server
    }
}

impl Server {
    /// A server with its own folder.
    #[expect(clippy::new_ret_no_self, reason = "it reads as it should: Server::new(…).start()")]
    pub(crate) fn new(cluster: &Cluster, name: &str) -> Start {
        let home = Arc::new(Home::make(cluster.plane().folder(name)));
        Start { home, listen: ([127, 0, 0, 1], 0).into(), reuse_port: false }
    }

    /// Another server with the same certificate and policies.
    pub(crate) fn another(&self) -> Start {
        let listen = ([127, 0, 0, 1], 0).into();
        Start { home: Arc::clone(&self.home), listen, reuse_port: false }
    }

    /// The next server, on the same port.
    pub(crate) fn successor(&self) -> Start {
        Start { home: Arc::clone(&self.home), listen: self.address, reuse_port: true }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn probes(&self) -> SocketAddr {
        self.probes
    }

    /// Sends SIGTERM, as kubelet does.
    pub(crate) fn terminate(&self) {
        self.process.signal("TERM");
    }

    /// Kills it.
    pub(crate) fn kill(&self) {
        self.process.signal("KILL");
        self.process.ended();
    }

    /// Waits for its end, which must be a clean one.
    pub(crate) fn ended_well(&self) {
        let code = self.process.ended();
        assert_eq!(code, "0", "statusgate ends with 0; {}", self.process.log());
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// Prints the log if a test fails, because its file is removed.
    pub(crate) fn tell_why(&self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(20)..];
            println!("statusgate at {} said last:\n{}", self.address, last.join("\n"));
        }
    }

    /// The certificate that a new connection gets.
    pub(crate) async fn shown_certificate(&self) -> CertificateDer<'static> {
        let mut roots = RootCertStore::empty();
        for ca in CertificateDer::pem_slice_iter(&self.home.ca()) {
            roots.add(ca.expect("a certificate")).expect("a CA");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        let name = ServerName::from(self.address.ip());
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let (_, session) = stream.as_ref().expect("a handshake").get_ref();
        let shown = session.peer_certificates().and_then(<[_]>::first);
        shown.expect("a certificate").clone().into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tell_why();
    }
}
