//! Kubernetes' own kinds: which they are, and their failures that kstatus does not report.

use crate::model::Json;

use super::builtin::key;
use super::fields::Fields;

/// The API groups of kube-apiserver and kube-aggregator. Groups of custom resources can also end with k8s.io.
const GROUPS: [&str; 24] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Kinds with a phase that is a failure: PodFailed, VolumeFailed and ClaimLost in k8s.io/api/core/v1.
const PHASES: [(&str, &str); 3] =
    [("Pod", "Failed"), ("PersistentVolume", "Failed"), ("PersistentVolumeClaim", "Lost")];

/// Kinds with a condition whose status is a failure, and whether the controller tries again: NodeReady in k8s.io/api/core/v1,
/// AbleToScale and ScalingActive in autoscaling/v2, CertificateDenied and CertificateFailed in certificates/v1, Available in
/// k8s.io/kube-aggregator's apiregistration/v1.
const CONDITIONS: [(&str, &str, &str, bool); 7] = [
    ("Node", "Ready", "False", true),
    ("Node", "Ready", "Unknown", true),
    ("apiregistration.k8s.io/APIService", "Available", "False", true),
    ("autoscaling/HorizontalPodAutoscaler", "AbleToScale", "False", true),
    ("autoscaling/HorizontalPodAutoscaler", "ScalingActive", "False", true),
    ("certificates.k8s.io/CertificateSigningRequest", "Denied", "True", false),
    ("certificates.k8s.io/CertificateSigningRequest", "Failed", "True", false),
];

/// The reason of ScalingActive when somebody scaled to zero (kubernetes pkg/controller/podautoscaler/horizontal.go).
const SCALED_TO_ZERO: &str = "ScalingDisabled";

/// Whether an object is of a kind of Kubernetes itself, not of a custom resource.
pub(crate) fn is_of_kubernetes(object: &Json<'_>) -> bool {
    let fields = Fields::new(object);
    let api_version = fields.text("apiVersion", "");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    !version.is_empty() && is_group_of_kubernetes(group)
}

/// Whether a group is one of Kubernetes itself.
pub fn is_group_of_kubernetes(group: &str) -> bool {
    GROUPS.contains(&group)
}

/// A failure that kstatus does not report, and whether the controller tries again.
pub(crate) fn failure(object: &Json<'_>) -> Option<(String, bool)> {
    let fields = Fields::new(object);
    let key = key(&fields)?;
    let phase = fields.text("status.phase", "");
    if PHASES.contains(&(key.as_str(), phase)) {
        let texts = ["status.message", "status.reason"].map(|path| fields.text(path, ""));
        let text = texts.into_iter().find(|text| !text.is_empty());
        return Some((text.map_or_else(|| format!("phase {phase}"), str::to_owned), false));
    }
    let conditions = fields.conditions().ok()?;
    let mut counted = conditions.iter().filter(|condition| condition.reason != SCALED_TO_ZERO);
    counted.find_map(|condition| {
        let found = (key.as_str(), condition.kind, condition.status);
        let mut rows = CONDITIONS.iter();
        let (_, of, status, retried) = rows.find(|row| (row.0, row.1, row.2) == found)?;
        let texts = [condition.message, condition.reason];
        let text = texts.into_iter().find(|text| !text.is_empty());
        Some((text.map_or_else(|| format!("{of} is {status}"), str::to_owned), *retried))
    })
}
