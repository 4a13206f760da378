//! How calls reach the pods, and how many pods a drain may stop.

use serde_json::{Value, json};

use super::{Installation, KubernetesVersion, NAME, labels, selector};

pub(super) fn objects(installation: &Installation) -> [Value; 3] {
    [service(installation), network_policy(installation), disruption_budget(installation)]
}

fn service(installation: &Installation) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": installation.metadata(NAME),
        "spec": {
            "#ports": "Without the probe port: kubelet and Prometheus query each pod directly.",
            "ports": [{"name": "webhook", "port": 443, "protocol": "TCP", "targetPort": "webhook"}],
            "selector": labels(),
            "type": "ClusterIP",
        },
    })
}

fn network_policy(installation: &Installation) -> Value {
    let tcp = |port: u16| json!({"port": port, "protocol": "TCP"});
    let (about, egress) = if installation.calls_the_api() {
        let about = "The API server, which no selector matches: it runs on the host network or outside the cluster. Network \
                     plugins check the port after the address of the Service `kubernetes` is translated. If your API server \
                     listens on another port, change it here (`kubectl get endpoints kubernetes`). The server resolves no names.";
        (about, json!([{"ports": [tcp(443), tcp(6443)]}]))
    } else {
        ("statusgate makes no calls and resolves no names.", json!([]))
    };
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": installation.metadata(NAME),
        "spec": {
            "#egress": about,
            "egress": egress,
            "ingress": [
                "# From anywhere: no selector matches API servers. If their addresses are known, use an ipBlock. --client-ca \
                 also restricts clients.",
                {"ports": [tcp(8443)]},
                "# From anywhere: no selector matches kubelet. The port serves metrics, no objects. To restrict it to the \
                 monitoring namespace, add a namespaceSelector; most network plugins still let a node probe its own pods.",
                {"ports": [tcp(8080)]},
            ],
            "podSelector": selector(),
            "policyTypes": ["Ingress", "Egress"],
        },
    })
}

fn disruption_budget(installation: &Installation) -> Value {
    let mut spec = json!({
        "#maxUnavailable": "minAvailable: 1 would block every drain of a single replica.",
        "maxUnavailable": 1,
        "selector": selector(),
    });
    if installation.kubernetes_version >= KubernetesVersion(27) {
        spec["#unhealthyPodEvictionPolicy"] =
            "The default would block the drain of a node with an unready pod.".into();
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    }
    json!({
        // v1 is served since 1.21, v1beta1 was removed in 1.25.
        "apiVersion": if installation.kubernetes_version >= KubernetesVersion(21) { "policy/v1" } else { "policy/v1beta1" },
        "kind": "PodDisruptionBudget",
        "metadata": installation.metadata(NAME),
        "spec": spec,
    })
}
