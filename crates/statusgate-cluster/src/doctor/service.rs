//! The Services that webhooks call, and the pods of these Services.

use serde_json::Value;

use super::hook::{Hook, Service};
use crate::error::unless_missing;
use crate::{CheckResult, Cluster, Patience};

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
    let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
    let found = unless_missing(cluster.read("get the service", &path, Patience::NONE).await);
    if matches!(found, Ok(None)) {
        let help = "install it (`statusgate manifests install`), or correct clientConfig.service";
        return Some(CheckResult::problem("service", subject, "the service does not exist", help));
    }
    let found = found.ok().flatten().and_then(|body| serde_json::from_slice(&body).ok());
    if let Some(message) = found.and_then(|found| wrong_port(service, &found)) {
        let help = "correct clientConfig.service.port; the default is 443";
        return Some(CheckResult::problem("service", subject, message, help));
    }
    let path = format!("/api/v1/namespaces/{namespace}/endpoints/{name}");
    let body =
        unless_missing(cluster.read("get the endpoints", &path, Patience::NONE).await).ok()?;
    // A Service that never had a pod has none.
    let endpoints: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    let subsets = endpoints["subsets"].as_array().map_or(&[][..], Vec::as_slice);
    let ready: usize =
        subsets.iter().filter_map(|subset| subset["addresses"].as_array()).map(Vec::len).sum();
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_port_that_the_service_lacks_is_reported() {
        let service = |port| Service { namespace: "n".into(), name: "s".into(), port };
        let found = json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}, {"port": 80}]}});
        assert_eq!(wrong_port(&service(443), &found), None);
        let message = wrong_port(&service(8443), &found);
        assert_eq!(message.as_deref(), Some("the service has no port 8443, only 443, 80"));
        let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "a.b"}});
        assert_eq!(wrong_port(&service(8443), &elsewhere), None);
    }
}
