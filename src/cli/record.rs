//! `statusgate record`: judges the status writes of a running cluster, and changes none.

mod recording;

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use clap::Parser;
use serde_json::Value;
use tokio::time::sleep;

use self::recording::{Recording, record};
use super::check::{self, Judging, Reporting};
use super::connection::{Connection, block_on};
use super::plurals::read_crds;
use super::report::plural;
use super::signals::Signals;
use super::time::clock;
use super::{Outcome, fail_with, say};
use statusgate_cluster::Cluster;
use statusgate_cluster::manifests::registrations::{
    Address, FailurePolicy, RECORD, RECORDING, RegistrationSettings, https_url, recording,
};
use statusgate_cluster::manifests::rules::{gaps, rules};
use statusgate_core::policy::PolicySet;
use statusgate_core::values;
use statusgate_server::{
    BODY_BYTES, CertificateSource, Running, ServerSettings, start_with_router,
};
use statusgate_tls::{Authority, Validity};

/// The arguments of `record`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Registers a webhook that allows every write, and deletes it at the end: after --for, SIGINT or \
                  SIGTERM. Then prints the report of `check` about the recording.\n\n\
                  Exit code 0: no finding at or above --fail-on. 1: findings. 2: nothing was recorded, the recording is \
                  incomplete, or the registration could not be deleted."
)]
pub(super) struct Args {
    /// The recording: a new file with an AdmissionReview and its findings in each line, an input of `check` and `review`.
    #[arg(long, value_name = "FILE", default_value = "recording.jsonl")]
    to: PathBuf,

    /// How long to record. Default: until a signal arrives.
    #[arg(long = "for", value_name = "DURATION", value_parser = values::positive_duration)]
    duration: Option<Duration>,

    /// Address and port for webhook calls (HTTPS); port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Where the API server reaches this address, such as https://192.0.2.1:8443. Default: the address itself.
    #[arg(long, value_name = "URL", value_parser = https_url)]
    url: Option<String>,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    judging: Judging,

    #[command(flatten)]
    reporting: Reporting,
}

/// Records until a signal arrives or the time is over, and reports.
///
/// # Errors
/// When the recording is empty or incomplete.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = Arc::new(args.judging.policies()?);
    args.reporting.check(&policies, args.judging.has_policies())?;
    if args.listen.ip().is_unspecified() && args.url.is_none() {
        let listen = args.listen;
        bail!(
            "--listen {listen} is no address that the API server can call: add --url https://ADDRESS:PORT"
        );
    }
    let name = args.to.display();
    let file = File::create_new(&args.to);
    let file = file.with_context(|| format!("cannot create the recording {name}"))?;
    let recording = Arc::new(Recording::new(file));
    let ended = block_on(record_writes(args, &policies, &recording));
    if recording.count() == 0 {
        // An empty file is in the way of the next run.
        let _ = std::fs::remove_file(&args.to);
        ended?;
        bail!(
            "nothing was recorded: there was no status write, or the API server cannot reach this address"
        );
    }
    say(format_args!("recorded {} in {name}", plural(recording.count(), "write")));
    let file = ["check".into(), "--".into(), args.to.clone().into_os_string()];
    let outcome = check::run(&check::Args {
        judging: args.judging.clone(),
        // A broken line is a mistake in any case.
        strict: true,
        reporting: args.reporting.clone(),
        ..check::Args::parse_from(file)
    });
    let (outcome, failed) = match outcome {
        Ok(outcome) => (outcome, None),
        Err(error) => (Outcome::Findings, Some(error)),
    };
    fail_with([ended.err(), failed].into_iter().flatten())?;
    Ok(outcome)
}

async fn record_writes(
    args: &Args,
    policies: &Arc<PolicySet>,
    recording: &Arc<Recording>,
) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let cluster = args.connection.open().await?;
    let resources = match args.judging.crds.as_slice() {
        [] => cluster.custom_resources(policies, |resource, _| resource).await?,
        paths => read_crds(paths, true)?,
    };
    for gap in gaps(policies, &resources) {
        say(format_args!("not recorded: {}: {}", gap.resource, gap.reason.describe()));
    }
    let rules = rules(policies, &resources);
    if rules.is_empty() {
        bail!("no policy selects a custom resource of this cluster: nothing can be recorded");
    }
    let (server, settings) = start(args, policies, recording)?;
    let registration = self::recording(&rules, &settings);
    let registered = async {
        let (kind, name) = RECORDING;
        // One that was left over by a process that was killed.
        if cluster.delete_registration(kind, name).await? {
            say(format_args!("replaced the registration {name} of another recording"));
        }
        if !cluster.create_registration(kind, &registration).await? {
            bail!("another recording was started at the same time");
        }
        say(format_args!("recording; the registration is {} {name}", kind.name()));
        tokio::select! {
            () = sleep(args.duration.unwrap_or(Duration::MAX)) => {}
            () = signals.next() => {}
            () = recording.failed() => {}
        }
        remove(&cluster, &registration).await
    };
    let removed = registered.await;
    server.shutdown().signal();
    pin!(server.ended()).await;
    fail_with(removed.err().into_iter().chain(recording.error()))
}

/// Deletes the registration, unless it is that of another recording.
async fn remove(cluster: &Cluster, registration: &Value) -> anyhow::Result<()> {
    let (kind, name) = RECORDING;
    let client = |of: &Value| of.pointer("/webhooks/0/clientConfig").cloned();
    let stays =
        || format!("the registration stays; delete it: kubectl delete {} {name}", kind.plural());
    match cluster.registration(kind, name).await.with_context(stays)? {
        Some(stored) if client(&stored) == client(registration) => {
            cluster.delete_registration(kind, name).await.with_context(stays)?;
            Ok(())
        }
        _ => bail!("the registration was deleted or replaced: the recording is incomplete"),
    }
}

/// Starts the server, and returns where the API server finds it.
fn start(
    args: &Args,
    policies: &Arc<PolicySet>,
    recording: &Arc<Recording>,
) -> anyhow::Result<(Running, RegistrationSettings)> {
    let state = (Arc::clone(policies), Arc::clone(recording));
    let router = Router::new()
        .route(RECORD, post(record))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(state);
    let host = match &args.url {
        Some(url) => url.parse::<http::Uri>()?.host().unwrap_or_default().to_owned(),
        None => args.listen.ip().to_string(),
    };
    let host = host.trim_matches(['[', ']']).to_owned();
    let validity = Validity::from_now(LIFETIME, clock());
    let authority = Authority::make("statusgate record", validity)?;
    let bundle = authority.issue(&[host], validity)?.bundle()?;
    let server = start_with_router(
        &ServerSettings {
            listen: args.listen,
            probe_listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            // The registration is deleted before the end.
            grace: Duration::ZERO,
            ..ServerSettings::new(CertificateSource::Given(bundle))
        },
        router,
    )?;
    let url = args.url.clone().unwrap_or_else(|| format!("https://{}", server.address()));
    let settings = RegistrationSettings {
        namespace: String::new(),
        address: Address::Url(url),
        authorities: authority.certificate().to_owned(),
        failure_policy: FailurePolicy::Ignore,
    };
    Ok((server, settings))
}

/// Longer than any recording.
const LIFETIME: Duration = Duration::from_secs(365 * 86_400);
