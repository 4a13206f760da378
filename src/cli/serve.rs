//! `statusgate serve`: runs the server with the settings of the command line.

use std::path::PathBuf;
use std::pin::pin;

use anyhow::{Context, bail};

use super::connection::Connection;
use super::signals::Signals;
use super::traces::TraceArgs;
use super::{Outcome, time};
use statusgate_manager::{Manager, ManagerOptions, host_name};
use statusgate_server::files;
use statusgate_server::telemetry::logs::{self, FilterFile, Format, Logs};
use statusgate_server::{CertificateSource, Opening, Running, ServerSettings, StartError};

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
pub(super) struct Args {
    #[command(flatten)]
    server: ServerSettings,

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

    /// The log format. Default: pretty on a terminal, otherwise json.
    #[arg(long, value_enum, value_name = "FORMAT")]
    log_format: Option<Format>,

    /// The log filter: a level (error, warn, info, debug, trace), or comma-separated target=level
    /// pairs. info logs each patched, warned and denied review; debug logs all reviews.
    #[arg(long, value_name = "FILTER", env = "STATUSGATE_LOG", default_value = "info")]
    log: String,

    /// Read the log filter from this file instead of --log. The server reloads it when its content changes.
    #[arg(long, value_name = "FILE")]
    log_from: Option<PathBuf>,

    #[command(flatten)]
    traces: TraceArgs,

    #[command(flatten, next_help_heading = "Managed in the cluster")]
    connection: Connection,

    #[command(flatten)]
    managed: ManagerOptions,
}

impl Args {
    /// Distinguishes this server from others on its host: the port, or the process if the system chooses
    /// the port or two servers share it. In a pod it is always the port, so a restarted container keeps
    /// its name.
    fn distinction(&self) -> String {
        match self.server.listen.port() {
            port if port != 0 && !self.server.reuse_port => port.to_string(),
            _ => format!("pid{}", std::process::id()),
        }
    }

    /// The source of the certificate, unless that is managed.
    fn certificate(&self) -> CertificateSource {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                CertificateSource::Files { certificate: certificate.clone(), key: key.clone() }
            }
            // clap requires a certificate, --self-signed or --manage-certificates.
            _ => CertificateSource::SelfSigned,
        }
    }
}

/// Serves until a signal arrives.
///
/// # Errors
/// When the server cannot start.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = args.log_format.unwrap_or_else(Format::for_stderr);
    let from_file = args.log_from.as_deref().map(FilterFile::read).transpose()?;
    let logs = Logs::start(format, from_file.as_ref().unwrap_or(&args.log))?;
    let log_from = args.log_from.clone().zip(from_file);
    let log_from = log_from.map(|(path, used)| FilterFile { path, used, filter: logs.filter });
    logs::log_panics_without_their_message();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(crate::STACK)
        .build()
        .context("failed to start the runtime")?;
    let traces = args.traces.provider(runtime.handle())?;
    let args = args.clone();
    let settings = ServerSettings {
        certificate: args.certificate(),
        log_from,
        traces,
        lost_lines: Some(logs.lost),
        ..args.server.clone()
    };
    // On a worker, not on this thread: each thread has memory of its own, and compiling policies leaves
    // gaps in it. On a worker, connections use them: 0.4 MB less under load.
    let serving = runtime.spawn(async move { serve(&args, settings).await });
    runtime.block_on(serving).context("the server panicked")??;
    Ok(Outcome::Clean)
}

async fn serve(args: &Args, settings: ServerSettings) -> anyhow::Result<()> {
    if !settings.crds.is_empty() && args.managed.manage_webhooks {
        bail!(
            "--manage-webhooks reads the CustomResourceDefinitions of the cluster: leave out --crds"
        );
    }
    if settings.crds.is_empty() && !args.managed.manage_webhooks {
        tracing::info!(
            "no default is checked against a CustomResourceDefinition: --crds or --manage-webhooks does that"
        );
    }
    // Before the start: a signal during the start must not kill a server that already listens.
    let mut signals = Signals::listen()?;
    let (running, manager) = if args.managed.is_used() {
        tokio::select! {
            started = start_managed(args, settings) => started?,
            // No client has connected yet.
            () = signals.next() => return Ok(()),
        }
    } else {
        (statusgate_server::start(&settings)?, None)
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
    settings: ServerSettings,
) -> anyhow::Result<(Running, Option<Manager>)> {
    let opening = Opening::of(&settings)?;
    let replica = format!("{}-{}", host_name(), args.distinction());
    let options = ManagerOptions { replica, ..args.managed.clone() };
    let files = if options.watch_policies {
        files::load_policies(&settings.policies)
    } else {
        files::load_policies_or_examples(&settings.policies)
    };
    let watches = options.watch_policies;
    let policies = opening.policies(files.map_err(StartError::BrokenPolicies)?)?;
    if !watches && policies.current().policies().is_empty() {
        return Err(StartError::NoPolicy.into());
    }
    let Connection { kubeconfig, context } = &args.connection;
    let (file, context) = (kubeconfig.as_deref(), context.as_deref());
    let cluster = statusgate_manager::connect(file, context).await?;
    let started = Manager::start(cluster, options, opening, settings, &policies, time::clock);
    let (running, manager) = started.await?;
    Ok((running, Some(manager)))
}
