//! `statusgate uninstall`: the reverse of `serve --manage-webhooks`.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::bail;

use super::Outcome;
use super::connection::{Connection, block_on};
use statusgate_cluster::Cluster;
use statusgate_cluster::manifests::registrations::REGISTRATIONS;
use statusgate_core::values;
use statusgate_manager::replicas::BEAT;

/// The arguments of `uninstall`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Run it before the Deployment is deleted: no write then waits for a deleted server. \
                  Running servers do not create the registrations again, but a server that starts later \
                  does. So delete the Deployment, then repeat the command.\n\n\
                  Policies, conventions and their CustomResourceDefinitions stay. To delete them:\n  \
                  kubectl delete crd statuspolicies.statusgate.dev statusconventions.statusgate.dev\n\n\
                  Exit code 0: the objects are deleted. 2: an object cannot be deleted, or a server runs (--all)."
)]
pub(super) struct Args {
    #[command(flatten)]
    connection: Connection,

    /// Also delete the Secret with the certificate, and the Leases of the servers. Servers must not run: they
    /// would create them again.
    #[arg(long)]
    all: bool,

    /// The namespace of the Secret and the Leases.
    #[arg(long, value_name = "NAME", default_value = "statusgate-system", value_parser = values::namespace)]
    namespace: String,

    /// The Secret with the certificate.
    #[arg(long, value_name = "NAME", default_value = "statusgate-tls")]
    certificate_secret: String,
}

/// Deletes what servers created.
///
/// # Errors
/// When an object cannot be deleted.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    block_on(async {
        let cluster = args.connection.open().await?;
        delete_registrations(&cluster).await?;
        if args.all {
            delete_others(&cluster, &args.namespace, &args.certificate_secret).await?;
        }
        Ok(Outcome::Clean)
    })
}

/// Deletes the registrations. First annotates them, so that running servers do not create them again.
async fn delete_registrations(cluster: &Cluster) -> anyhow::Result<()> {
    for _ in 0..ATTEMPTS {
        let mut exists = false;
        for (kind, name) in REGISTRATIONS {
            exists |= cluster.announce_removal(kind, name).await?;
        }
        if !exists {
            return Ok(());
        }
        tokio::time::sleep(NOTICE).await;
        for (kind, name) in REGISTRATIONS {
            if cluster.delete_registration(kind, name).await? {
                say_deleted(&format!("{} {name}", kind.name()))?;
            }
        }
        // The next round finds those that were created meanwhile.
        tokio::time::sleep(NOTICE).await;
    }
    bail!("something creates the registrations again: stop it, then repeat this command")
}

async fn delete_others(cluster: &Cluster, namespace: &str, secret: &str) -> anyhow::Result<()> {
    if let Some(server) = running(cluster, namespace).await? {
        bail!(
            "the server {server} runs and would create the Secret again: delete the Deployment, then repeat this command"
        )
    }
    if cluster.delete_secret(namespace, secret).await? {
        say_deleted(&format!("Secret {namespace}/{secret}"))?;
    }
    for lease in cluster.leases(namespace).await? {
        let name = &lease.name;
        if cluster.delete_lease(namespace, name, "").await? {
            say_deleted(&format!("Lease {namespace}/{name}"))?;
        }
    }
    Ok(())
}

/// A server that renews its Lease. One that was killed leaves a Lease behind.
async fn running(cluster: &Cluster, namespace: &str) -> anyhow::Result<Option<String>> {
    let known = cluster.leases(namespace).await?;
    if known.is_empty() {
        return Ok(None);
    }
    tokio::time::sleep(BEAT * 3 / 2).await;
    let mut leases = cluster.leases(namespace).await?.into_iter();
    Ok(leases.find(|lease| !known.contains(lease)).map(|lease| lease.holder))
}

fn say_deleted(object: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "deleted {object}")
}

/// Servers notice an annotation within milliseconds.
const NOTICE: Duration = Duration::from_secs(1);

const ATTEMPTS: usize = 5;
