//! The policies that judge a cluster: those of `--policies`, those of the cluster, or the examples.

use std::path::PathBuf;

use anyhow::Context;

use super::connection::Connection;
use super::policies::judging;
use statusgate_cluster::doctor::StoredDocuments;
use statusgate_cluster::{Cluster, ClusterError, StoredDocument};
use statusgate_core::documents::DocumentKind;
use statusgate_core::policy::{PolicySet, Source};
use statusgate_manager::registry::{Document, DocumentId, Registry};
use statusgate_server::files;

/// Where the policies are.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct PoliciesInUse {
    /// Policies: a file or a folder. May be repeated. Default: those of the cluster, or the built-in
    /// example policies if it has none.
    #[arg(long = "policies", value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
}

/// What judges a cluster.
#[derive(Debug)]
pub(super) struct InUse {
    pub(super) policies: PolicySet,
    /// Their texts; none for the example policies.
    pub(super) sources: Vec<Source>,
    /// All documents of the cluster.
    pub(super) documents: StoredDocuments,
}

impl PoliciesInUse {
    /// Connects, and reads the policies.
    pub(super) async fn open(&self, connection: &Connection) -> anyhow::Result<(Cluster, InUse)> {
        // Before the connection: mistakes in files are reported without a cluster, too.
        let given = files::load_policies(&self.paths)?;
        let compiled = (!self.paths.is_empty()).then(|| judging(&given)).transpose()?;
        let cluster = connection.open().await?;
        let mut documents = Vec::new();
        for kind in [DocumentKind::StatusConvention, DocumentKind::StatusPolicy] {
            let list = match cluster.documents(kind).await {
                Ok(list) => Ok(list),
                Err(error @ ClusterError::Rejected { .. }) => Err(error.to_string()),
                Err(error) => return Err(error.into()),
            };
            documents.push((kind, list));
        }
        let known: Vec<(DocumentKind, &StoredDocument)> = documents
            .iter()
            .flat_map(|(kind, list)| list.iter().flatten().map(move |document| (*kind, document)))
            .collect();
        let (policies, sources) = match compiled {
            Some(policies) => (policies, given),
            None if known.iter().any(|(kind, _)| *kind == DocumentKind::StatusPolicy) => {
                accepted(&known)?
            }
            None => (judging(&PolicySet::examples())?, Vec::new()),
        };
        let documents = documents.into_iter().map(|(kind, list)| (kind.name(), list)).collect();
        Ok((cluster, InUse { policies, sources, documents }))
    }
}

/// The policies that a server without an earlier state would use: those with mistakes are left out.
fn accepted(
    documents: &[(DocumentKind, &StoredDocument)],
) -> anyhow::Result<(PolicySet, Vec<Source>)> {
    let mut registry = Registry::default();
    for (kind, StoredDocument { name, spec, created, .. }) in documents {
        let id = DocumentId { kind: *kind, name: name.clone() };
        let created = created.clone();
        registry.set(&id, Some(Document { created, ..Document::new(id.clone(), spec) }));
    }
    let mut used = Vec::new();
    let settled = registry.settle(|sources| {
        used = sources;
        PolicySet::compile_with_cluster(&[], &used)
    });
    Ok((settled.context("the policies of the cluster do not compile")?, used))
}
