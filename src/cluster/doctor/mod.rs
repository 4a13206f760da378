//! Checks that policies, CRDs, webhook registrations and certificates are consistent.
//!
//! [`Facts`] is everything that is read from the API server first. To add a check, write a function
//! over the facts and add it to [`CHECKS`].

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

pub use managed::Place;
pub use serving::Address;

use self::hook::{Hook, Kind};
use self::managed::Managed;
use super::{Check, Cluster, ClusterError, Definition, StoredDocument, Targets, precheck};
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

/// The checks, in the order of the report.
const CHECKS: [RunCheck; 10] = [
    |facts| done(vec![api_server(facts)]),
    |facts| done(managed::check(facts)),
    |facts| done(documents::check(facts)),
    |facts| done(precheck::gaps(&facts.targets)),
    |facts| done(schemas(facts)),
    |facts| done(settings::presence(&facts.hooks, &facts.unread)),
    |facts| done(rules::coverage(facts)),
    |facts| done(facts.hooks.iter().flat_map(settings::sane).collect()),
    |facts| Box::pin(service::check(facts)),
    |facts| Box::pin(serving::check(facts)),
];

type RunCheck = for<'f> fn(&'f Facts<'f>) -> Running<'f>;

type Running<'f> = Pin<Box<dyn Future<Output = Vec<Check>> + 'f>>;

/// The options of `doctor`.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The names of the registrations; without names, those that look like statusgate's.
    pub registrations: Vec<String>,
    /// Where to reach statusgate from here, if not by the name of its Service.
    pub address: Option<Address>,
    /// Where servers keep their objects.
    pub place: Place,
    /// The policies and conventions of the cluster by kind, or why they cannot be read.
    pub documents: Vec<(&'static str, Result<Vec<StoredDocument>, String>)>,
}

/// The input of the checks.
struct Facts<'f> {
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
    ) -> Result<Vec<Check>, ClusterError> {
        let targets = cluster.targets(policies).await?;
        let mut definitions = Vec::new();
        for target in &targets.list {
            definitions.push(cluster.definition(target).await?);
        }
        let (mut hooks, mut unread) = (Vec::new(), Vec::new());
        for kind in Kind::ALL {
            match cluster.hooks(kind, &self.registrations).await {
                Ok(found) => hooks.extend(found),
                Err(error) => unread.push((kind, error.to_string())),
            }
        }
        let managed = Managed::read(cluster, &self.place, &hooks).await;
        let address = self.address.as_ref();
        let documents = &self.documents;
        let facts = Facts {
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
            checks.extend(check(&facts).await);
        }
        Ok(checks)
    }
}

fn done<'f>(checks: Vec<Check>) -> Running<'f> {
    Box::pin(ready(checks))
}

fn api_server(facts: &Facts<'_>) -> Check {
    let version = format!("version {}", facts.cluster.version());
    Check::ok("api-server", facts.cluster.server(), version)
}

fn schemas(facts: &Facts<'_>) -> Vec<Check> {
    let pairs = facts.targets.list.iter().zip(&facts.definitions);
    pairs.flat_map(|(target, of)| precheck::schema(facts.policies, target, of)).collect()
}

/// What webhooks judge, each with the webhooks of which one must be registered.
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
