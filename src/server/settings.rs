//! The settings of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_appender::non_blocking::ErrorCounter;

use crate::telemetry::FilterFile;
use crate::tls::Bundle;

/// The settings of `statusgate serve`. [`ServerSettings::new`] has the same defaults as the command line.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address of the webhooks. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The address of probes and metrics, in plain HTTP.
    pub probe_listen: SocketAddr,
    /// Allows another process to listen on the same ports.
    pub reuse_port: bool,
    /// The serving certificate.
    pub certificate: CertificateSource,
    /// The CA file of accepted client certificates.
    pub client_ca: Option<PathBuf>,
    /// Files and folders with policies. Empty: the embedded examples.
    pub policies: Vec<PathBuf>,
    /// How often the server checks files for changes.
    pub reload_every: Duration,
    /// How long the server accepts requests after the signal to end.
    pub grace: Duration,
    /// How long the server waits for requests in flight after that.
    pub drain_timeout: Duration,
    /// Limits for clients.
    pub limits: Limits,
    /// The file of the log filter; `None` if the filter is fixed.
    pub log_from: Option<FilterFile>,
    /// The provider of spans, if traces are exported. The end of the server shuts it down.
    pub traces: Option<SdkTracerProvider>,
    /// The counter of dropped log lines, for the metrics.
    pub dropped_lines: Option<ErrorCounter>,
}

impl ServerSettings {
    /// The defaults, with this certificate.
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
            log_from: None,
            traces: None,
            dropped_lines: None,
        }
    }
}

/// The settings of the probe port, which opens before there is a certificate.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// As [`ServerSettings::probe_listen`].
    pub listen: SocketAddr,
    /// As [`ServerSettings::reuse_port`].
    pub reuse_port: bool,
    /// As [`ServerSettings::dropped_lines`].
    pub dropped_lines: Option<ErrorCounter>,
}

impl From<&ServerSettings> for ProbeSettings {
    fn from(settings: &ServerSettings) -> Self {
        let &ServerSettings { probe_listen: listen, reuse_port, ref dropped_lines, .. } = settings;
        Self { listen, reuse_port, dropped_lines: dropped_lines.clone() }
    }
}

/// The source of the serving certificate.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// A pair of PEM files, reloaded when their content changes.
    Files {
        /// The chain, leaf first.
        certificate: PathBuf,
        /// The leaf's key.
        key: PathBuf,
    },
    /// Created at the start and kept in memory, for local tests: no client can verify it.
    SelfSigned,
    /// This one, until [`super::ServingCertificate::swap`] replaces it.
    Given(Bundle),
}

/// Limits for one client and for all clients together.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open connections; more wait in the kernel's queue. An API server keeps up to 25 idle
    /// connections per webhook host and opens more in a burst.
    pub max_connections: usize,
    /// Concurrent requests; more get a 503 with `Retry-After`.
    pub max_in_flight: usize,
    /// Bytes of one request body. An object may have 3 MiB, and a review contains it twice.
    pub body_bytes: usize,
    /// Bytes of all concurrent request bodies; more get a 503. Without this limit, `max_in_flight`
    /// bodies of the largest size would need 2 GiB.
    pub held_bytes: usize,
    /// The limit for a TLS handshake.
    pub handshake_timeout: Duration,
    /// The limit from the first to the last byte of a request head.
    pub head_timeout: Duration,
    /// The limit for a complete request body.
    pub body_timeout: Duration,
    /// The limit from a response to the first byte of the next request. API servers keep idle
    /// connections for 90 s and do not retry a POST that fails on a closed one, so keep this higher.
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
