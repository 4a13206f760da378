//! What a server is told at its start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tracing_appender::non_blocking::ErrorCounter;

/// Everything `statusgate serve` can be told, parsed. The defaults are those of the command line,
/// which are written here once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where webhook calls are answered. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where probes and metrics are answered, in plain HTTP.
    pub probe_listen: SocketAddr,
    /// Let another process listen on the same port at the same time.
    pub reuse_port: bool,
    /// The serving certificate.
    pub certificate: CertificateSource,
    /// Serve only clients with a certificate of these authorities.
    pub client_ca: Option<PathBuf>,
    /// Files and folders with policies; none means the embedded examples.
    pub policies: Vec<PathBuf>,
    /// How often files are compared with what is in use.
    pub reload_every: Duration,
    /// How long to serve on after the signal to end.
    pub grace: Duration,
    /// How long to wait for requests in flight after that.
    pub drain_timeout: Duration,
    /// What a client may take.
    pub limits: Limits,
    /// The counter of the log queue, to show it among the metrics.
    pub dropped_lines: Option<ErrorCounter>,
}

impl Settings {
    /// The defaults, with this certificate.
    #[must_use]
    pub fn new(certificate: CertificateSource) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)),
            probe_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            reuse_port: false,
            certificate,
            client_ca: None,
            policies: Vec::new(),
            reload_every: Duration::from_secs(2),
            grace: Duration::from_secs(15),
            drain_timeout: Duration::from_secs(30),
            limits: Limits::default(),
            dropped_lines: None,
        }
    }
}

/// Where the serving certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// A pair of PEM files, read again when their content changes.
    Files {
        /// The chain, leaf first.
        certificate: PathBuf,
        /// The leaf's key.
        key: PathBuf,
    },
    /// Made at the start and kept in memory: nobody can verify it, which is fine on a desk.
    SelfSigned,
}

/// What one client, and all of them together, may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open connections; more wait in the kernel's queue. An API server keeps up to 25 idle ones a
    /// webhook host, and opens more in a burst.
    pub max_connections: usize,
    /// Requests at once; more are answered 503 with `Retry-After`.
    pub max_in_flight: usize,
    /// One request body. An object may reach 3 MiB, and a review carries it twice.
    pub body_bytes: usize,
    /// All request bodies at once; more are answered 503. Without it `max_in_flight` bodies of the
    /// largest size would be 2 GiB.
    pub held_bytes: usize,
    /// For the TLS handshake.
    pub handshake_timeout: Duration,
    /// From the first byte of a request head to its last.
    pub head_timeout: Duration,
    /// For the whole of a request body.
    pub body_timeout: Duration,
    /// From an answer to the first byte of the next request. API servers keep idle connections for
    /// 90 s and do not repeat a POST that met a closing one: keep this above.
    pub idle_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            max_in_flight: 256,
            body_bytes: 8 << 20,
            held_bytes: 64 << 20,
            handshake_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
        }
    }
}
