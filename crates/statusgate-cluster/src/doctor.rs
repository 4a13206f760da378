//! Checks that policies, CRDs, webhook registrations and certificates are consistent.
//!
//! To add a check, write a function and call it in [`Examination::run`].

mod conditions;
mod documents;
mod hook;
mod managed;
mod rules;
mod service;
mod serving;
mod settings;
mod trust;

use jiff::Timestamp;

pub use serving::Address;

use self::hook::Hook;
use self::managed::Managed;
use super::{CheckResult, Cluster, ClusterError, StoredDocument, precheck};
use crate::crd::Definition;
use crate::manifests::registrations::HookKind;
use statusgate_core::policy::{PolicySet, Source};
use statusgate_core::values;

/// The options of `doctor`.
#[derive(Clone, Debug, clap::Args)]
pub struct Examination {
    /// The name of a registration. May be repeated. Default: registrations that look like those of
    /// statusgate.
    #[arg(long = "registration", value_name = "NAME")]
    pub registrations: Vec<String>,

    /// Where to reach statusgate from here, such as a forwarded port. The certificate must still be
    /// valid for the name that the API server uses.
    #[arg(long, value_name = "URL")]
    pub url: Option<Address>,

    /// The namespace of the servers. Default: that of the Service that the registrations call, or
    /// statusgate-system.
    #[arg(long, value_name = "NAME", value_parser = values::namespace)]
    pub namespace: Option<String>,

    /// The Secret with the managed certificate.
    #[arg(long, value_name = "NAME", default_value = CERTIFICATE_SECRET)]
    pub certificate_secret: String,
}

const CERTIFICATE_SECRET: &str = "statusgate-tls";

impl Default for Examination {
    fn default() -> Self {
        let certificate_secret = CERTIFICATE_SECRET.to_owned();
        Self { registrations: Vec::new(), url: None, namespace: None, certificate_secret }
    }
}

/// The policies and conventions of the cluster by kind, or why they cannot be read.
pub type StoredDocuments = Vec<(&'static str, Result<Vec<StoredDocument>, String>)>;

impl Examination {
    /// Runs all checks. `texts`: the documents that these policies were compiled from.
    ///
    /// # Errors
    /// When discovery fails. Other failures are warnings in the result.
    pub async fn run(
        &self,
        cluster: &Cluster,
        policies: &PolicySet,
        texts: &[Source],
        documents: &StoredDocuments,
        now: Timestamp,
    ) -> Result<Vec<CheckResult>, ClusterError> {
        let targets = cluster.targets(policies).await?;
        // Registrations that cannot be listed have a reason.
        let (mut hooks, mut unread) = (Vec::new(), Vec::new());
        for kind in [HookKind::Mutating, HookKind::Validating] {
            match cluster.hooks(kind, &self.registrations).await {
                Ok(found) => hooks.extend(found),
                Err(error) => unread.push((kind, error.to_string())),
            }
        }
        let managed = Managed::read(cluster, self, &hooks).await;
        // In the order of the report.
        let version = format!("version {}", cluster.version());
        let mut checks = vec![CheckResult::ok("api-server", cluster.server(), version)];
        checks.extend(managed.check(&hooks, &unread, now));
        checks.extend(documents::check(documents));
        checks.extend(precheck::gaps(&targets));
        let (mut defined, mut are_all) = (Vec::new(), true);
        for target in &targets.list {
            let definition = cluster.definition(target).await?;
            checks.extend(precheck::schema(policies, target, &definition));
            match definition {
                Definition::Custom(version) => defined.push(version),
                Definition::Other | Definition::Unknown(_) => are_all = false,
            }
        }
        // A field may be in a schema that is not known.
        if are_all {
            checks.extend(precheck::texts(policies, texts, &defined));
        }
        checks.extend(settings::presence(&hooks, &unread));
        checks.extend(rules::coverage(&hooks, policies, &targets));
        checks.extend(conditions::check(&hooks, cluster, policies).await);
        checks.extend(hooks.iter().flat_map(settings::sane));
        checks.extend(service::check(&hooks, cluster).await);
        for hook in &hooks {
            checks.extend(serving::check(hook, self.url.as_ref(), now).await);
        }
        Ok(checks)
    }
}

/// The registered webhooks of a kind that judge objects.
fn about_objects(hooks: &[Hook], kind: HookKind) -> impl Iterator<Item = &Hook> {
    hooks.iter().filter(move |hook| hook.kind == kind && !hook.is_about_documents())
}
