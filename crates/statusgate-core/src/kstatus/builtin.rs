//! Built-in kinds of Kubernetes, which kstatus knows by group and kind.

use super::fields::{Condition, Fields};
use super::{ComputeError, Fork, KStatus, job, pod, workloads};

/// The result for a built-in kind; `None` for every other kind.
///
/// The version is ignored, and a `Deployment` of a custom group is not built-in. The key is one text,
/// as in kstatus, so that an invalid object (`apiVersion: v1`, `kind: apps/Deployment`) has the same
/// result.
pub(crate) fn compute(
    fields: &Fields<'_, '_>,
    conditions: &[Condition<'_>],
    now: i64,
    fork: Fork,
) -> Option<Result<KStatus, ComputeError>> {
    Some(match key(fields)?.as_str() {
        "Service" => Ok(service(fields)),
        "Pod" => pod::compute(fields, conditions, now),
        "PersistentVolumeClaim" => Ok(claim(fields)),
        "apps/StatefulSet" => Ok(workloads::stateful_set(fields)),
        "apps/DaemonSet" | "extensions/DaemonSet" => workloads::daemon_set(fields),
        "apps/Deployment" | "extensions/Deployment" => {
            Ok(workloads::deployment(fields, conditions))
        }
        "apps/ReplicaSet" | "extensions/ReplicaSet" => {
            Ok(workloads::replica_set(fields, conditions))
        }
        "batch/Job" => Ok(job::compute(fields, conditions, fork)),
        "apiextensions.k8s.io/CustomResourceDefinition" => Ok(definition(conditions)),
        // Its controller writes observedGeneration with the rest of the status, and `compute` has
        // already compared the generations.
        "policy/PodDisruptionBudget" => {
            Ok(KStatus::current("AllowedDisruptions has been computed."))
        }
        "Secret" | "ConfigMap" | "batch/CronJob" => {
            Ok(KStatus::current("Resource is always ready"))
        }
        _ => return None,
    })
}

/// `GROUP/KIND`, or only the kind in the core group. `None` for an apiVersion with two slashes.
pub(super) fn key(fields: &Fields<'_, '_>) -> Option<String> {
    let kind = fields.text("kind", "");
    let group = match fields.text("apiVersion", "").split_once('/') {
        None => "",
        Some((_, version)) if version.contains('/') => return None,
        Some((group, _)) => group,
    };
    Some(if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") })
}

/// A load balancer needs a cluster address. kstatus does not check the external one.
fn service(fields: &Fields<'_, '_>) -> KStatus {
    let balancer = fields.text("spec.type", "ClusterIP") == "LoadBalancer";
    if balancer && fields.text("spec.clusterIP", "").is_empty() {
        let message = "ClusterIP not set. Service type: LoadBalancer";
        return KStatus::in_progress("NoIPAssigned", message);
    }
    KStatus::current("Service is ready")
}

fn claim(fields: &Fields<'_, '_>) -> KStatus {
    match fields.text("status.phase", "unknown") {
        "Bound" => KStatus::current("PVC is Bound"),
        phase => KStatus::in_progress("NotBound", format!("PVC is not Bound. phase: {phase}")),
    }
}

/// The first deciding condition, in list order.
fn definition(conditions: &[Condition<'_>]) -> KStatus {
    for condition in conditions {
        let failed = match condition.kind {
            "NamesAccepted" => condition.is_false(),
            "Established" if condition.is_true() => {
                return KStatus::current("CRD is established");
            }
            "Established" => condition.is_false() && condition.reason != "Installing",
            _ => false,
        };
        if failed {
            return KStatus::failed(condition.reason, condition.message);
        }
    }
    KStatus::in_progress("Installing", "Install in progress")
}
