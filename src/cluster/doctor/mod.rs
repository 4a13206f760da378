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
use serde_json::Value;

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
        let version = format!("version {}", cluster.version());
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
                    let help = format!("allow this account to list {}", door.resource());
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
        if found.as_ref().is_err_and(|error| error.code() == Some(404)) {
            let help = "install it (deploy/base), or correct clientConfig.service";
            return vec![Check::problem("service", subject, "the service does not exist", help)];
        }
        let found = found.ok().and_then(|body| serde_json::from_slice(&body).ok());
        if let Some(message) = found.and_then(|found| wrong_port(service, &found)) {
            let help = "correct clientConfig.service.port; the default is 443";
            return vec![Check::problem("service", subject, message, help)];
        }
        let path = format!("/api/v1/namespaces/{namespace}/endpoints/{name}");
        let body = match self.read("get the endpoints", &path, Patience::NONE).await {
            Ok(body) => body,
            // Nobody has ever been behind it.
            Err(error) if error.code() == Some(404) => Bytes::new(),
            Err(_) => return Vec::new(),
        };
        let endpoints: Value = serde_json::from_slice(&body).unwrap_or_default();
        let subsets = endpoints["subsets"].as_array().map_or(&[][..], Vec::as_slice);
        let ready: usize =
            subsets.iter().filter_map(|subset| subset["addresses"].as_array()).map(Vec::len).sum();
        vec![match ready {
            0 => {
                let help = "check its pods with kubectl describe and kubectl logs";
                Check::problem("service", subject, "no pod of the service is ready", help)
            }
            1 => {
                let help = "run two replicas, so that one can restart";
                Check::warning("service", subject, "only one pod of the service is ready", help)
            }
            ready => {
                Check::ok("service", subject, format!("{ready} pods of the service are ready"))
            }
        }]
    }
}

/// The ports that a service has, where the one that is called is none of them. One that is only
/// another name has none of its own.
fn wrong_port(service: &Service, found: &Value) -> Option<String> {
    let spec = &found["spec"];
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let ports: Vec<u64> = ports.iter().filter_map(|port| port["port"].as_u64()).collect();
    if spec["type"] == "ExternalName" || ports.contains(&u64::from(service.port)) {
        return None;
    }
    let ports: Vec<String> = ports.iter().map(u64::to_string).collect();
    Some(format!("the service has no port {}, only {}", service.port, ports.join(", ")))
}

/// The services that are called, each once.
fn services(hooks: &[Hook]) -> Vec<Service> {
    let mut services: Vec<Service> = Vec::new();
    for service in hooks.iter().filter_map(|hook| hook.service.as_ref()) {
        let known = |known: &Service| {
            (&known.namespace, &known.name, known.port)
                == (&service.namespace, &service.name, service.port)
        };
        if !services.iter().any(known) {
            services.push(service.clone());
        }
    }
    services
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_port_that_a_service_does_not_have_is_told() {
        let service =
            |port| Service { namespace: "n".into(), name: "s".into(), port, path: String::new() };
        let found = json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}, {"port": 80}]}});
        assert_eq!(wrong_port(&service(443), &found), None);
        let told = wrong_port(&service(8443), &found);
        assert_eq!(told.as_deref(), Some("the service has no port 8443, only 443, 80"));
        let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "a.b"}});
        assert_eq!(wrong_port(&service(8443), &elsewhere), None);
    }
}
