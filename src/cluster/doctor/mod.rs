//! Whether everything fits together: policies and schemas, registrations and policies, the
//! registered CA and the certificate that is served.
//!
//! The judging is pure and in [`rules`] and [`settings`]; what has to be asked for is asked for
//! here and in [`serving`].

mod hook;
mod rules;
mod serving;
mod settings;
mod trust;

use hyper::body::Bytes;
use jiff::Timestamp;

pub use hook::{Door, Hook, Service};
pub use serving::Address;

use super::{Check, Cluster, ClusterError, Patience, precheck};
use crate::policy::PolicySet;

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct Examination {
    /// The registrations, by name; without names those that look like statusgate's.
    pub registrations: Vec<String>,
    /// Where statusgate is reached from here, if not under the name of its service.
    pub address: Option<Address>,
}

impl Examination {
    /// Looks at everything.
    ///
    /// # Errors
    /// When the API server does not say what it serves. Everything else that cannot be asked is a
    /// warning among the checks.
    pub async fn run(
        &self,
        cluster: &Cluster,
        policies: &PolicySet,
        now: Timestamp,
    ) -> Result<Vec<Check>, ClusterError> {
        let version = format!("{} answers", cluster.version());
        let mut checks = vec![Check::ok("api-server", cluster.server(), version)];
        let targets = cluster.targets(policies).await?;
        checks.extend(precheck::gaps(&targets));
        for target in &targets.list {
            let definition = cluster.definition(target).await?;
            checks.extend(precheck::schema(policies, target, &definition));
        }
        let mut hooks = Vec::new();
        for door in [Door::Mutating, Door::Validating] {
            match cluster.hooks(door, &self.registrations).await {
                Ok(found) => hooks.extend(found),
                Err(error) => {
                    let help = format!("let this account list {}", door.resource());
                    let message = error.to_string();
                    checks.push(Check::warning("registration", door.kind(), message, help));
                }
            }
        }
        checks.extend(settings::presence(&hooks, &checks));
        for door in [Door::Mutating, Door::Validating] {
            let of_door: Vec<&Hook> = hooks.iter().filter(|hook| hook.door == door).collect();
            checks.extend(rules::fit(&of_door, policies, &targets));
        }
        checks.extend(hooks.iter().flat_map(settings::sane));
        for service in services(&hooks) {
            checks.extend(cluster.service(&service).await);
        }
        for hook in &hooks {
            checks.extend(serving::look(hook, self.address.as_ref(), now).await);
        }
        Ok(checks)
    }
}

impl Cluster {
    /// Whether there is a service and somebody behind it. What this account may not read is not
    /// looked at: the connection tells, too.
    async fn service(&self, service: &Service) -> Vec<Check> {
        let Service { namespace, name, .. } = service;
        let subject = format!("service {namespace}/{name}");
        let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
        let found = self.read("get the service", &path, Patience::NONE).await;
        if found.is_err_and(|error| error.code() == Some(404)) {
            let help = "install it (deploy/base), or correct clientConfig.service";
            return vec![Check::problem("service", subject, "it does not exist", help)];
        }
        let path = format!("/api/v1/namespaces/{namespace}/endpoints/{name}");
        let body = match self.read("get the endpoints", &path, Patience::NONE).await {
            Ok(body) => body,
            // Nobody has ever been behind it.
            Err(error) if error.code() == Some(404) => Bytes::new(),
            Err(_) => return Vec::new(),
        };
        let endpoints: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let subsets = endpoints["subsets"].as_array().map_or(&[][..], Vec::as_slice);
        let ready: usize =
            subsets.iter().filter_map(|subset| subset["addresses"].as_array()).map(Vec::len).sum();
        vec![match ready {
            0 => {
                let help = "look at its pods: kubectl describe and logs";
                Check::problem("service", subject, "no pod behind it is ready", help)
            }
            1 => {
                let help = "two replicas, so that one may restart";
                Check::warning("service", subject, "one pod behind it is ready", help)
            }
            ready => Check::ok("service", subject, format!("{ready} pods behind it are ready")),
        }]
    }
}

/// The services that are called, each once.
fn services(hooks: &[Hook]) -> Vec<Service> {
    let mut services: Vec<Service> = Vec::new();
    for service in hooks.iter().filter_map(|hook| hook.service.as_ref()) {
        let known = |known: &Service| {
            (&known.namespace, &known.name) == (&service.namespace, &service.name)
        };
        if !services.iter().any(known) {
            services.push(service.clone());
        }
    }
    services
}
