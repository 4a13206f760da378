//! `statusgate serve`: settings from the command line, signals from the system, a server between.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Outcome, duration};
use crate::server::{CertificateSource, Limits, Server, Settings};
use crate::telemetry::logs::{self, Format, Logs};

/// What `serve` can be told.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("certificate").required(true).args(["tls_cert", "self_signed"])),
    after_help = "Durations are written as 15s, 2m or 500ms. SIGTERM and SIGINT begin an orderly \
                  end: /readyz turns to 503, answers say `Connection: close` during --grace, then \
                  requests in flight finish within --drain-timeout. A second signal skips the grace."
)]
pub struct Args {
    /// Policies: a file, or a folder with *.yaml, *.yml and *.json files. May be repeated. They are
    /// read again when their content changes. Without it: the example policies that are built in.
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    /// Address and port for webhook calls (HTTPS); port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,

    /// Address and port for /livez, /readyz and /metrics (plain HTTP).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    probe_listen: SocketAddr,

    /// Serving certificate, PEM: the leaf, then intermediates if there are any.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Key of the serving certificate, PEM. Both are read again when their content changes.
    #[arg(long, value_name = "FILE", requires = "tls_cert", conflicts_with = "self_signed")]
    tls_key: Option<PathBuf>,

    /// Make up a certificate for this run and keep it in memory. For trying things out only: no
    /// client can verify it.
    #[arg(long)]
    self_signed: bool,

    /// Serve only clients that show a certificate of one of these authorities, PEM. API servers
    /// show one only if their admission configuration names a kubeconfig for webhooks.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// How log lines look. Default: pretty on a terminal, json elsewhere.
    #[arg(long, value_enum, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    /// What is logged: a level (error, warn, info, debug, trace), or target=level pairs with
    /// commas between. At info every patched, warned and denied review is told; at debug all are.
    #[arg(long, value_name = "FILTER", env = "STATUSGATE_LOG", default_value = "info")]
    log: String,

    /// How long to serve on after SIGTERM, while endpoints are withdrawn.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration::parse)]
    grace: Duration,

    /// How long to wait for requests in flight after that.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    drain_timeout: Duration,

    /// Open connections; more wait to be accepted.
    #[arg(long, value_name = "NUMBER", default_value = "1024", value_parser = parse_count)]
    max_connections: usize,

    /// Requests at once; more are answered 503 with Retry-After.
    #[arg(long, value_name = "NUMBER", default_value = "256", value_parser = parse_count)]
    max_in_flight: usize,

    /// How often files are compared with what is in use.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2s",
        value_parser = duration::parse_positive
    )]
    reload_every: Duration,

    /// How long a client may take to send a request body.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = duration::parse_positive
    )]
    body_timeout: Duration,

    /// How long a connection may be idle; at least 91s, because API servers keep theirs for 90 s.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "120s",
        value_parser = duration::parse_idle
    )]
    idle_timeout: Duration,

    /// How long a client may take for the TLS handshake.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = duration::parse_positive
    )]
    handshake_timeout: Duration,

    /// Listen with SO_REUSEPORT, so that a new process can listen on the same ports before this
    /// one stops.
    #[arg(long)]
    reuse_port: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For a person at a terminal.
    Pretty,
}

impl Args {
    fn settings(&self, logs: &Logs) -> Settings {
        let certificate = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                CertificateSource::Files { certificate: certificate.clone(), key: key.clone() }
            }
            // clap has made sure that it is one or the other.
            _ => CertificateSource::SelfSigned,
        };
        let defaults = Settings::new(certificate);
        Settings {
            listen: self.listen,
            probe_listen: self.probe_listen,
            reuse_port: self.reuse_port,
            client_ca: self.client_ca.clone(),
            policies: self.policies.clone(),
            reload_every: self.reload_every,
            grace: self.grace,
            drain_timeout: self.drain_timeout,
            limits: Limits {
                max_connections: self.max_connections,
                max_in_flight: self.max_in_flight,
                handshake_timeout: self.handshake_timeout,
                body_timeout: self.body_timeout,
                idle_timeout: self.idle_timeout,
                ..defaults.limits
            },
            dropped_lines: Some(logs.dropped()),
            ..defaults
        }
    }
}

/// Serves until a signal ends it.
///
/// # Errors
/// Whatever keeps the server from starting.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = match args.log_format {
        Some(LogFormat::Json) => Format::Json,
        Some(LogFormat::Pretty) => Format::Pretty,
        None => Format::for_stderr(),
    };
    let logs = Logs::start(format, &args.log)?;
    logs::log_panics_without_their_message();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?
        .block_on(serve(args.settings(&logs)))?;
    Ok(Outcome::Clean)
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    // Before the start: a signal that comes during it must not kill a server that is listening.
    let mut terminate = listen_to(SignalKind::terminate())?;
    let mut interrupt = listen_to(SignalKind::interrupt())?;
    let running = Server::start(settings).await?;
    let shutdown = running.shutdown();
    let mut ended = std::pin::pin!(running.ended());
    loop {
        tokio::select! {
            _ = &mut ended => return Ok(()),
            _ = terminate.recv() => shutdown.signal(),
            _ = interrupt.recv() => shutdown.signal(),
        }
    }
}

fn listen_to(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("failed to listen to signals")
}

fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("{text:?} is not a number")),
    }
}
