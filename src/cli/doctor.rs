//! `statusgate doctor`: checks that an installation is consistent.

use std::path::PathBuf;

use anyhow::Context;

use super::connection::{Connection, block_on};
use super::output::{Output, stdout};
use super::policies::following;
use super::{Outcome, checks, time};
use crate::cluster::doctor::Examination;
use crate::cluster::{CheckResult, ClusterError, StoredDocument};
use crate::manager::registry::{Document, DocumentId, Registry};
use statusgate_core::documents::DocumentKind;
use statusgate_core::policy::PolicySet;

/// The arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Changes nothing. Checks that the CRDs declare the fields that the policies set, \
                  that the webhook registrations match the resources that the policies select, and \
                  that the registered CA verifies the served certificate. Of servers with managed \
                  parts, checks their CRDs, their Leases and the Secret of the certificate.\n\n\
                  Exit code 0: no problem; there may be warnings. 1: there is a problem. 2: the API \
                  server does not respond."
)]
pub struct Args {
    /// Policies: a file or a folder. May be repeated. Default: those of the cluster, or the built-in
    /// example policies if it has none.
    #[arg(long = "policies", value_name = "PATH")]
    policies: Vec<PathBuf>,

    #[command(flatten)]
    connection: Connection,

    #[command(flatten)]
    examination: Examination,

    /// The output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// Checks an installation.
///
/// # Errors
/// Policies that cannot be read, or an API server that does not respond.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let checks = block_on(examine(args))?;
    let mut out = stdout(args.output == Output::Table);
    match args.output {
        Output::Table => checks::print_table(&mut out, &checks)?,
        Output::Json => checks::print_json(&mut out, &checks)?,
    }
    Ok(Outcome::of(checks::has_problem(&checks)))
}

async fn examine(args: &Args) -> anyhow::Result<Vec<CheckResult>> {
    // Before the connection: mistakes in files are reported without a cluster, too.
    let given =
        if args.policies.is_empty() { None } else { Some(following(&args.policies, None)?) };
    let cluster = args.connection.open().await?;
    let mut documents = Vec::new();
    for kind in [DocumentKind::StatusConvention, DocumentKind::StatusPolicy] {
        let list = match cluster.documents(kind).await {
            Ok(list) => Ok(list),
            Err(error @ ClusterError::Rejected { .. }) => Err(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        documents.push((kind, list));
    }
    let known = documents.iter().filter_map(|(kind, list)| Some((*kind, list.as_ref().ok()?)));
    let known: Vec<(DocumentKind, &StoredDocument)> =
        known.flat_map(|(kind, list)| list.iter().map(move |document| (kind, document))).collect();
    let policies = match given {
        Some(policies) => policies,
        None if known.iter().any(|(kind, _)| *kind == DocumentKind::StatusPolicy) => {
            in_use(&known)?
        }
        None => following(&[], None)?,
    };
    let documents = documents.into_iter().map(|(kind, list)| (kind.name(), list)).collect();
    Ok(args.examination.run(&cluster, &policies, &documents, time::clock()).await?)
}

/// The policies that a server without an earlier state would use: those with mistakes are left out.
fn in_use(documents: &[(DocumentKind, &StoredDocument)]) -> anyhow::Result<PolicySet> {
    let mut registry = Registry::default();
    for (kind, StoredDocument { name, spec, .. }) in documents {
        let id = DocumentId { kind: *kind, name: name.clone() };
        registry.set(&id, Some(Document::new(id.clone(), spec)));
    }
    let settled = registry.settle(|sources| PolicySet::compile(&sources));
    settled.context("the policies of the cluster do not compile")
}
