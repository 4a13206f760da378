//! The Services that webhooks call, and the pods of these Services.

use k8s_openapi::api::core::v1;
use kube::Api;

use super::hook::{Hook, Service};
use crate::cluster::{CheckResult, Cluster};

/// Checks each Service once.
pub(super) async fn check(hooks: &[Hook], cluster: &Cluster) -> Vec<CheckResult> {
    let (mut services, mut checks) = (Vec::new(), Vec::new());
    for service in hooks.iter().filter_map(Hook::service) {
        if !services.contains(&service) {
            checks.extend(check_one(cluster, &service).await);
            services.push(service);
        }
    }
    checks
}

/// Checks a Service. Missing permission is no result: the connection shows whether it works.
async fn check_one(cluster: &Cluster, service: &Service) -> Option<CheckResult> {
    let Service { namespace, name, .. } = service;
    let subject = format!("service {namespace}/{name}");
    let services: Api<v1::Service> = Api::namespaced(cluster.client(), namespace);
    let found = cluster.ask("get the service", services.get_opt(name)).await;
    if matches!(found, Ok(None)) {
        let help = "install it (`statusgate manifests install`), or correct clientConfig.service";
        return Some(CheckResult::problem("service", subject, "the service does not exist", help));
    }
    if let Some(message) = found.ok().flatten().and_then(|found| wrong_port(service, found)) {
        let help = "correct clientConfig.service.port; the default is 443";
        return Some(CheckResult::problem("service", subject, message, help));
    }
    let endpoints: Api<v1::Endpoints> = Api::namespaced(cluster.client(), namespace);
    // None if the Service never had a pod.
    let endpoints = cluster.ask("get the endpoints", endpoints.get_opt(name)).await.ok()?;
    let subsets = endpoints.into_iter().flat_map(|of| of.subsets.unwrap_or_default());
    let ready = subsets.flat_map(|subset| subset.addresses.unwrap_or_default()).count();
    Some(match ready {
        0 => {
            let help = "check its pods with kubectl describe and kubectl logs";
            CheckResult::problem("service", subject, "no pod of the service is ready", help)
        }
        1 => {
            let help = "run two replicas, so that one can restart";
            CheckResult::warning("service", subject, "only one pod of the service is ready", help)
        }
        ready => {
            CheckResult::ok("service", subject, format!("{ready} pods of the service are ready"))
        }
    })
}

/// The error of a port that the Service lacks. An ExternalName Service has no ports.
fn wrong_port(service: &Service, found: v1::Service) -> Option<String> {
    let v1::ServiceSpec { ports, type_, .. } = found.spec.unwrap_or_default();
    let ports: Vec<i32> = ports.into_iter().flatten().map(|port| port.port).collect();
    if type_.as_deref() == Some("ExternalName") || ports.contains(&service.port.into()) {
        return None;
    }
    let ports: Vec<String> = ports.iter().map(i32::to_string).collect();
    Some(format!("the service has no port {}, only {}", service.port, ports.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_port_that_the_service_lacks_is_reported() {
        let service = |port| Service { namespace: "n".into(), name: "s".into(), port };
        let wrong = |port, found: &Value| {
            wrong_port(&service(port), serde_json::from_value(found.clone()).unwrap())
        };
        let found = json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}, {"port": 80}]}});
        assert_eq!(wrong(443, &found), None);
        let message = wrong(8443, &found);
        assert_eq!(message.as_deref(), Some("the service has no port 8443, only 443, 80"));
        let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "a.b"}});
        assert_eq!(wrong(8443, &elsewhere), None);
    }
}
