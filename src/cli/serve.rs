//! `statusgate serve`: runs the server with the settings of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_appender::non_blocking::ErrorCounter;

use super::managed::Managed;
use super::signals::Signals;
use super::traces::TraceArgs;
use super::{Outcome, values};
use crate::files;
use crate::manager::{Manager, Prepared};
use crate::server::{
    self, CertificateSource, Limits, Opening, ProbeSettings, Running, ServerSettings, StartError,
};
use crate::telemetry::logs::{self, FilterFile, Format, Logs};
use crate::tls::Bundle;

/// The arguments of `serve`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    group(
        clap::ArgGroup::new("certificate")
            .required(true)
            .args(["tls_cert", "self_signed", "manage_certificates"])
    ),
    after_help = "Durations are written as 15s, 2m or 500ms. SIGTERM and SIGINT start an orderly \
                  shutdown: /readyz returns 503, responses have `Connection: close` during --grace, then \
                  requests in flight finish within --drain-timeout. A second signal skips --grace."
)]
pub struct Args {
    /// Policies: a file, or a folder with *.yaml, *.yml and *.json files. May be repeated. The server
    /// reloads them when their content changes. Default: the built-in example policies, or with
    /// --watch-policies only those of the cluster.
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    /// Address and port for webhook calls (HTTPS); port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    listen: SocketAddr,

    /// Address and port for /livez, /readyz and /metrics (plain HTTP).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    probe_listen: SocketAddr,

    /// Serving certificate, PEM: the leaf, then optional intermediates.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Key of the serving certificate, PEM. The server reloads both files when their content changes.
    #[arg(long, value_name = "FILE", requires = "tls_cert", conflicts_with = "self_signed")]
    tls_key: Option<PathBuf>,

    /// Generate a certificate for this run and keep it in memory. For experiments only: clients
    /// cannot verify it.
    #[arg(long)]
    self_signed: bool,

    /// Accept only clients with a certificate of one of these authorities, PEM. API servers send
    /// one only if their admission configuration names a kubeconfig for webhooks.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// The log format. Default: pretty on a terminal, otherwise json.
    #[arg(long, value_enum, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    /// The log filter: a level (error, warn, info, debug, trace), or comma-separated target=level
    /// pairs. info logs each patched, warned and denied review; debug logs all reviews.
    #[arg(long, value_name = "FILTER", env = "STATUSGATE_LOG", default_value = "info")]
    log: String,

    /// Read the log filter from this file instead of --log. The server reloads it when its content changes.
    #[arg(long, value_name = "FILE")]
    log_from: Option<PathBuf>,

    /// How long to continue to serve after SIGTERM, until endpoints are updated.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = values::duration)]
    grace: Duration,

    /// How long to wait for requests in flight after --grace.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    drain_timeout: Duration,

    /// The maximum number of open connections. Others wait to be accepted.
    #[arg(long, value_name = "NUMBER", default_value = "1024", value_parser = values::count)]
    max_connections: usize,

    /// The maximum number of concurrent requests. Others receive 503 with Retry-After.
    #[arg(long, value_name = "NUMBER", default_value = "256", value_parser = values::count)]
    max_in_flight: usize,

    /// How often to check files for changes.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2s",
        value_parser = values::positive_duration
    )]
    reload_every: Duration,

    /// How long a client may take to send a request body.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = values::positive_duration
    )]
    body_timeout: Duration,

    /// How long a connection may be idle; at least 91s: API servers keep idle connections for 90 s.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "120s",
        value_parser = values::idle_timeout
    )]
    idle_timeout: Duration,

    /// How long a client may take for the TLS handshake.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = values::positive_duration
    )]
    handshake_timeout: Duration,

    /// Listen with SO_REUSEPORT: a new process can then listen on the same ports before this one
    /// stops.
    #[arg(long)]
    reuse_port: bool,

    #[command(flatten)]
    traces: TraceArgs,

    #[command(flatten)]
    managed: Managed,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For a terminal.
    Pretty,
}

/// Where the server reports to.
struct Telemetry {
    dropped_lines: ErrorCounter,
    log_from: Option<FilterFile>,
    traces: Option<SdkTracerProvider>,
}

impl Args {
    /// Distinguishes this server from others on its host: the port, or the process if the system chooses
    /// the port or two servers share it. In a pod it is always the port, so a restarted container keeps
    /// its name.
    fn distinction(&self) -> String {
        match self.listen.port() {
            port if port != 0 && !self.reuse_port => port.to_string(),
            _ => format!("pid{}", std::process::id()),
        }
    }

    fn probes(&self, telemetry: &Telemetry) -> ProbeSettings {
        let dropped_lines = Some(telemetry.dropped_lines.clone());
        ProbeSettings { listen: self.probe_listen, reuse_port: self.reuse_port, dropped_lines }
    }

    /// The settings, with the certificate of the cluster if that is managed.
    fn settings(
        &self,
        Telemetry { dropped_lines, log_from, traces }: Telemetry,
        managed: Option<&Bundle>,
    ) -> ServerSettings {
        let certificate = match (managed, &self.tls_cert, &self.tls_key) {
            (Some(bundle), ..) => CertificateSource::Given(bundle.clone()),
            (None, Some(certificate), Some(key)) => {
                CertificateSource::Files { certificate: certificate.clone(), key: key.clone() }
            }
            // clap requires one of the three.
            _ => CertificateSource::SelfSigned,
        };
        let defaults = ServerSettings::new(certificate);
        ServerSettings {
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
            log_from,
            traces,
            dropped_lines: Some(dropped_lines),
            ..defaults
        }
    }
}

/// Serves until a signal arrives.
///
/// # Errors
/// When the server cannot start.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = match args.log_format {
        Some(LogFormat::Json) => Format::Json,
        Some(LogFormat::Pretty) => Format::Pretty,
        None => Format::for_stderr(),
    };
    let from_file = args.log_from.as_deref().map(FilterFile::read).transpose()?;
    let logs = Logs::start(format, from_file.as_ref().unwrap_or(&args.log))?;
    let log_from = args.log_from.clone().zip(from_file);
    let log_from = log_from.map(|(path, used)| FilterFile { path, used, filter: logs.filter() });
    logs::log_panics_without_their_message();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    let traces = args.traces.provider(runtime.handle())?;
    let telemetry = Telemetry { dropped_lines: logs.dropped(), log_from, traces };
    let args = args.clone();
    // On a worker, not on this thread: each thread has memory of its own, and compiling policies leaves
    // gaps in it. On a worker, connections use them: 0.4 MB less under load.
    let serving = runtime.spawn(async move { serve(&args, telemetry).await });
    runtime.block_on(serving).context("the server panicked")??;
    Ok(Outcome::Clean)
}

async fn serve(args: &Args, telemetry: Telemetry) -> anyhow::Result<()> {
    // Before the start: a signal during the start must not kill a server that already listens.
    let mut signals = Signals::listen()?;
    let (running, manager) = if args.managed.is_used() {
        tokio::select! {
            started = start_managed(args, telemetry) => started?,
            // No client has connected yet.
            () = signals.next() => return Ok(()),
        }
    } else {
        (server::start(&args.settings(telemetry, None))?, None)
    };
    let shutdown = running.shutdown();
    let mut ended = pin!(running.ended());
    loop {
        tokio::select! {
            _ = &mut ended => break,
            () = signals.next() => shutdown.signal(),
        }
    }
    if let Some(manager) = manager {
        manager.end().await;
    }
    Ok(())
}

/// Starts a server with managed parts, when the API server is available.
async fn start_managed(
    args: &Args,
    telemetry: Telemetry,
) -> anyhow::Result<(Running, Option<Manager>)> {
    let opening = Opening::of(args.probes(&telemetry))?;
    let options = args.managed.options(&args.distinction());
    let files = if options.watch_policies {
        files::load_policies(&args.policies)
    } else {
        files::load_policies_or_examples(&args.policies)
    };
    let policies = opening.policies(files.map_err(StartError::BrokenPolicies)?)?;
    let (kubeconfig, context) = (args.managed.kubeconfig(), args.managed.context());
    let prepared = Prepared::new(options, kubeconfig, context, &opening, policies).await?;
    let settings = args.settings(telemetry, prepared.certificate());
    let (running, manager) = prepared.start(opening, &settings)?;
    Ok((running, Some(manager)))
}
