//! Checks that policies, CRDs, webhook registrations and certificates are consistent.
//!
//! [`CheckInput`] is everything that is read from the API server first. To add a check, write a function
//! over the input and add it to [`CHECKS`].

mod conditions;
mod documents;
mod hook;
mod managed;
mod rules;
mod service;
mod serving;
mod settings;
mod trust;

use std::future::ready;
use std::pin::Pin;

use jiff::Timestamp;

pub use managed::ObjectLocation;
pub use serving::Address;

use self::hook::Hook;
use self::managed::Managed;
use super::{CheckResult, Cluster, ClusterError, Definition, StoredDocument, Targets, precheck};
use crate::manifests::registrations::Kind;
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

/// The checks, in the order of the report.
const CHECKS: [RunCheck; 11] = [
    |input| done(vec![api_server(input)]),
    |input| done(managed::check(input)),
    |input| done(documents::check(input)),
    |input| done(precheck::gaps(&input.targets)),
    |input| done(schemas(input)),
    |input| done(settings::presence(&input.hooks, &input.unread)),
    |input| done(rules::coverage(input)),
    |input| Box::pin(conditions::check(input)),
    |input| done(input.hooks.iter().flat_map(settings::sane).collect()),
    |input| Box::pin(service::check(input)),
    |input| Box::pin(serving::check(input)),
];

type RunCheck = for<'f> fn(&'f CheckInput<'f>) -> Running<'f>;

type Running<'f> = Pin<Box<dyn Future<Output = Vec<CheckResult>> + 'f>>;

/// The options of `doctor`.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The names of the registrations; without names, those that look like statusgate's.
    pub registrations: Vec<String>,
    /// Where to reach statusgate from here, if not by the name of its Service.
    pub address: Option<Address>,
    /// Where servers keep their objects.
    pub objects: ObjectLocation,
    /// The policies and conventions of the cluster by kind, or why they cannot be read.
    pub documents: Vec<(&'static str, Result<Vec<StoredDocument>, String>)>,
}

/// The input of the checks.
struct CheckInput<'f> {
    cluster: &'f Cluster,
    policies: &'f PolicySet,
    address: Option<&'f Address>,
    documents: &'f [(&'static str, Result<Vec<StoredDocument>, String>)],
    managed: Managed,
    now: Timestamp,
    targets: Targets,
    /// One for each target.
    definitions: Vec<Definition>,
    hooks: Vec<Hook>,
    /// Registrations that could not be listed, with the reason.
    unread: Vec<(Kind, String)>,
}

impl Examination {
    /// Runs all checks.
    ///
    /// # Errors
    /// When discovery fails. Other failures are warnings in the result.
    pub async fn run(
        &self,
        cluster: &Cluster,
        policies: &PolicySet,
        now: Timestamp,
    ) -> Result<Vec<CheckResult>, ClusterError> {
        let targets = cluster.targets(policies).await?;
        let mut definitions = Vec::new();
        for target in &targets.list {
            definitions.push(cluster.definition(target).await?);
        }
        let (mut hooks, mut unread) = (Vec::new(), Vec::new());
        for kind in [Kind::Mutating, Kind::Validating] {
            match cluster.hooks(kind, &self.registrations).await {
                Ok(found) => hooks.extend(found),
                Err(error) => unread.push((kind, error.to_string())),
            }
        }
        let managed = Managed::read(cluster, &self.objects, &hooks).await;
        let address = self.address.as_ref();
        let documents = &self.documents;
        let input = CheckInput {
            cluster,
            policies,
            address,
            documents,
            managed,
            now,
            targets,
            definitions,
            hooks,
            unread,
        };
        let mut checks = Vec::new();
        for check in CHECKS {
            checks.extend(check(&input).await);
        }
        Ok(checks)
    }
}

fn done<'f>(checks: Vec<CheckResult>) -> Running<'f> {
    Box::pin(ready(checks))
}

fn api_server(input: &CheckInput<'_>) -> CheckResult {
    let version = format!("version {}", input.cluster.version());
    CheckResult::ok("api-server", input.cluster.server(), version)
}

fn schemas(input: &CheckInput<'_>) -> Vec<CheckResult> {
    let pairs = input.targets.list.iter().zip(&input.definitions);
    pairs.flat_map(|(target, of)| precheck::schema(input.policies, target, of)).collect()
}

/// What webhooks judge, each with its alternative webhooks: one of them must be registered.
const PARTS: [Part; 3] = [
    Part {
        kind: Kind::Mutating,
        of: &[Webhook::Mutate],
        lost: "it sets no defaults and repairs nothing",
    },
    Part {
        kind: Kind::Validating,
        of: &[Webhook::Validate, Webhook::Mandatory],
        lost: "invalid values are stored",
    },
    Part {
        kind: Kind::Validating,
        of: &[Webhook::Validate, Webhook::Agreement],
        lost: "phases that disagree with the conditions are stored",
    },
];

struct Part {
    kind: Kind,
    of: &'static [Webhook],
    /// What happens without it.
    lost: &'static str,
}

impl Part {
    /// The webhooks that judge it.
    fn hooks<'h>(&self, hooks: &'h [Hook]) -> impl Iterator<Item = &'h Hook> {
        let judges =
            |hook: &&Hook| hook.webhook().is_some_and(|webhook| self.of.contains(&webhook));
        hooks.iter().filter(move |hook| hook.kind == self.kind).filter(judges)
    }
}
