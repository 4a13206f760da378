//! The settings of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::telemetry::{FilterFile, LostLines};
use statusgate_core::values;
use statusgate_tls::Bundle;

/// The settings of `statusgate serve`, which are also its arguments. [`ServerSettings::new`] has the defaults
/// of the command line.
#[derive(Clone, Debug, clap::Parser)]
pub struct ServerSettings {
    /// Policies: a file, or a folder with *.yaml, *.yml and *.json files. May be repeated. The server
    /// reloads them when their content changes. Default: the built-in example policies, or with
    /// --watch-policies only those of the cluster.
    #[arg(long, value_name = "PATH")]
    pub policies: Vec<PathBuf>,

    /// CustomResourceDefinitions of the resources that policies select: files or folders. May be repeated. What their
    /// schemas reject is not set, so no writer gets an error about a value that it never sent. The server reloads them
    /// when their content changes. With --manage-webhooks, it reads them from the cluster.
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,

    /// Address and port for webhook calls (HTTPS); port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    pub listen: SocketAddr,

    /// Address and port for /livez, /readyz and /metrics (plain HTTP).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub probe_listen: SocketAddr,

    /// Listen with SO_REUSEPORT: a new process can then listen on the same ports before this one
    /// stops.
    #[arg(long)]
    pub reuse_port: bool,

    /// Accept only clients with a certificate of one of these authorities, PEM. API servers send
    /// one only if their admission configuration names a kubeconfig for webhooks.
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,

    /// How often to check files for changes.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = values::positive_duration)]
    pub reload_every: Duration,

    /// How long to continue to serve after SIGTERM, until endpoints are updated.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = values::duration)]
    pub grace: Duration,

    /// How long to wait for requests in flight after --grace.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    pub drain_timeout: Duration,

    /// Limits for clients.
    #[command(flatten)]
    pub limits: Limits,

    /// The serving certificate.
    #[arg(skip = CertificateSource::SelfSigned)]
    pub certificate: CertificateSource,

    /// The file of the log filter; `None` if the filter is fixed.
    #[arg(skip)]
    pub log_from: Option<FilterFile>,

    /// The provider of spans, if traces are exported. The end of the server shuts it down.
    #[arg(skip)]
    pub traces: Option<SdkTracerProvider>,

    /// The counter of lost log lines, for the metrics.
    #[arg(skip)]
    pub lost_lines: Option<LostLines>,
}

impl ServerSettings {
    /// The defaults, with this certificate.
    pub fn new(certificate: CertificateSource) -> Self {
        Self { certificate, ..Self::parse_from([""]) }
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
    /// This one, until [`ServerTls::swap_certificate`](statusgate_tls::ServerTls::swap_certificate) replaces it.
    Given(Bundle),
}

/// Limits for one client and for all clients together.
#[derive(Clone, Debug, clap::Args)]
pub struct Limits {
    /// The maximum number of open connections. A further one replaces the oldest without a request, or
    /// waits.
    // An API server keeps up to 25 idle connections per webhook host and opens more in a burst. A hostile peer
    // can make each use 80 KB. And a process often has 1,024 file descriptors.
    #[arg(long, value_name = "NUMBER", default_value = "512", value_parser = count)]
    pub max_connections: usize,

    /// The maximum number of concurrent requests. Others receive 503 with Retry-After.
    #[arg(long, value_name = "NUMBER", default_value = "256", value_parser = count)]
    pub max_in_flight: usize,

    /// Bytes of one request body.
    #[arg(skip = BODY_BYTES)]
    pub body_bytes: usize,

    /// Bytes of all concurrent request bodies and of the answers that are not written yet; more get a 503.
    /// Without this limit, `max_in_flight` bodies of the largest size would need 2 GiB.
    #[arg(skip = 24_usize << 20)]
    pub held_bytes: usize,

    /// Bytes of the trees of all reviews and documents that are judged at the same time.
    #[arg(skip = 32_usize << 20)]
    pub tree_bytes: usize,

    /// How long a review waits for the memory of its trees; then it gets a 503.
    #[arg(skip = Duration::from_secs(2))]
    pub tree_timeout: Duration,

    /// How long a client may take for the TLS handshake.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::positive_duration)]
    pub handshake_timeout: Duration,

    /// The limit from the first to the last byte of a request head, and for reading an answer.
    #[arg(skip = Duration::from_secs(10))]
    pub head_timeout: Duration,

    /// How long a client may take to send a request body.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::positive_duration)]
    pub body_timeout: Duration,

    /// How long a connection may be idle; at least 91s: API servers keep idle connections for 90 s.
    // They do not retry a POST that fails on a closed connection.
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = idle_timeout)]
    pub idle_timeout: Duration,
}

/// The limit for the bytes of a request body. An object may have 3 MiB, and a review contains it twice.
pub const BODY_BYTES: usize = 8 << 20;

/// Reads an integer of at least 1.
fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("the number must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("{text:?} is not an integer")),
    }
}

/// Reads an idle timeout. Go's `http.DefaultTransport` keeps idle connections for 90 s, and API
/// servers inherit this.
fn idle_timeout(text: &str) -> Result<Duration, String> {
    let duration = values::duration(text)?;
    if duration < Duration::from_secs(91) {
        return Err(
            "the timeout must be at least 91s: API servers keep idle connections for 90 s, \
                    and a write on a closing connection fails"
                .to_owned(),
        );
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_timeout_below_that_of_api_servers_is_rejected() {
        assert!(idle_timeout("90s").unwrap_err().contains("API servers"));
        assert!(idle_timeout("91s").is_ok());
    }
}
