//! The Deployment.

use serde_json::{Value, json};

use super::{Certificates, FailurePolicy, Installation, NAME, POLICIES, SECRET, labels, selector};

pub(super) fn deployment(installation: &Installation) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": installation.metadata(NAME),
        "spec": {
            "#replicas": "At least two, so that one may fail or move. One replica can serve the load of any API server.",
            "replicas": installation.replicas,
            "revisionHistoryLimit": 3,
            "selector": selector(),
            "strategy": {
                "#rollingUpdate": "Start new pods first: a roll-out never has less than all replicas.",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
                "type": "RollingUpdate",
            },
            "template": {"metadata": {"labels": labels()}, "spec": pod(installation)},
        },
    })
}

fn pod(installation: &Installation) -> Value {
    let mut pod = json!({
        "affinity": {
            "podAntiAffinity": {
                "#preferredDuringSchedulingIgnoredDuringExecution": "Prefer different nodes. `required` would block: with maxSurge \
                    a roll-out on two nodes needs a place for a third pod, and on one node the second replica would stay pending.",
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "podAffinityTerm": {"labelSelector": selector(), "topologyKey": "kubernetes.io/hostname"},
                    "weight": 100,
                }],
            },
        },
        "automountServiceAccountToken": installation.calls_the_api(),
        "containers": [container(installation)],
        "#enableServiceLinks": "Otherwise the environment lists every Service of the namespace.",
        "enableServiceLinks": false,
        "#securityContext": "The \"restricted\" Pod Security Standard. There is no runAsUser and no fsGroup: the image sets a \
            numeric user, which runAsNonRoot can check, and OpenShift assigns each namespace a range of users and rejects others.",
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "serviceAccountName": NAME,
        "#terminationGracePeriodSeconds": "More than --grace and --drain-timeout together (15 s + 30 s); otherwise kubelet kills \
            requests in flight. A preStop hook is not needed: after SIGTERM the server is unready and serves for --grace, until \
            the endpoints are removed.",
        "terminationGracePeriodSeconds": 60,
        "topologySpreadConstraints": [
            "# Prefer different zones. DoNotSchedule would block for the same reason as above, and because tainted control plane \
             nodes count as empty zones.",
            {
                "labelSelector": selector(),
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
            },
        ],
    });
    match &installation.priority_class {
        Some(class) => pod["priorityClassName"] = class.as_str().into(),
        None => {
            pod["#serviceAccountName"] = "No priorityClassName: a webhook with failurePolicy Ignore should not evict a database, \
                and some clusters (GKE) allow system-cluster-critical only with a ResourceQuota. Use it with failurePolicy Fail, \
                where status writes need these pods."
                .into();
        }
    }
    let volumes: Vec<Value> =
        mounted(installation).into_iter().map(|mounted| mounted.volume).collect();
    if !volumes.is_empty() {
        pod["volumes"] = volumes.into();
    }
    pod
}

fn container(installation: &Installation) -> Value {
    let mut container = json!({
        "name": NAME,
        "args": arguments(installation),
        "env": [
            "# Without a CPU limit, tokio starts a thread per core of the node, and malloc keeps memory per thread. Four threads \
             serve more reviews than API servers send.",
            {"name": "TOKIO_WORKER_THREADS", "value": "4"},
        ],
        "image": installation.image,
        "imagePullPolicy": "IfNotPresent",
        "#livenessProbe": "Tolerant: a restart only helps a process that hangs. On a node without CPU time it would only close \
            working connections.",
        "livenessProbe": probe("/livez", json!({"failureThreshold": 6, "periodSeconds": 10, "timeoutSeconds": 5})),
        "ports": [
            {"containerPort": 8443, "name": "webhook", "protocol": "TCP"},
            {"containerPort": 8080, "name": "probes", "protocol": "TCP"},
        ],
        "readinessProbe": probe("/readyz", json!({"failureThreshold": 2, "periodSeconds": 5, "timeoutSeconds": 2})),
        "resources": {
            "#limits": "The request covers an idle server (20 to 30 MB); the limit covers the worst load. The server limits \
                concurrent bodies to 64 MiB, trees to 200,000 values, and judges one large body at a time. Sixteen concurrent \
                bodies of 8 MiB of single digits peaked at 161 MB. With a lower limit, a client could end both replicas and then \
                write any status.\n\
                No CPU limit: the kernel would stop the process for the rest of each 100 ms period, and with it every status \
                write of the cluster. The request guarantees a share.",
            "limits": {"memory": "512Mi"},
            "requests": {"cpu": "50m", "memory": "32Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "#startupProbe": STARTUP,
        "startupProbe": probe("/readyz", json!({"failureThreshold": 300, "periodSeconds": 1})),
    });
    let mounts: Vec<Value> =
        mounted(installation).into_iter().map(|mounted| mounted.mount).collect();
    if !mounts.is_empty() {
        container["#volumeMounts"] =
            "Complete folders: kubelet never updates a subPath mount, and the server reloads changes.".into();
        container["volumeMounts"] = mounts.into();
    }
    container
}

const STARTUP: &str = "Ready when certificate and policies are loaded, which takes milliseconds, or longer if the API server does not answer: a \
     restart would not help. If a mounted Secret does not exist yet, kubelet waits before it starts the container.";

fn probe(path: &str, mut probe: Value) -> Value {
    probe["httpGet"] = json!({"path": path, "port": "probes"});
    probe
}

fn arguments(installation: &Installation) -> Vec<Value> {
    let mut arguments = vec!["serve".to_owned()];
    if installation.calls_the_api() {
        arguments.push(format!("--namespace={}", installation.namespace));
    }
    arguments.push(if installation.watch_policies {
        "--watch-policies".to_owned()
    } else {
        "--policies=/etc/statusgate/policies".to_owned()
    });
    if installation.manage_webhooks {
        arguments.push("--manage-webhooks".to_owned());
        if installation.failure_policy == FailurePolicy::Fail {
            arguments.push("--failure-policy=fail".to_owned());
        }
    }
    arguments.extend(match installation.certificates {
        Certificates::Managed => {
            ["--manage-certificates".to_owned(), format!("--certificate-secret={SECRET}")]
        }
        Certificates::CertManager | Certificates::Files => [
            "--tls-cert=/etc/statusgate/tls/tls.crt".to_owned(),
            "--tls-key=/etc/statusgate/tls/tls.key".to_owned(),
        ],
    });
    let rest = [
        "# [::] would serve IPv4 and IPv6, but fails on nodes with ipv6.disable=1, which are more common than clusters with only \
         IPv6. Such clusters need [::] in both places.",
        "--listen=0.0.0.0:8443",
        "--probe-listen=0.0.0.0:8080",
        "--log-format=json",
        "# The defaults; terminationGracePeriodSeconds depends on them.",
        "--grace=15s",
        "--drain-timeout=30s",
    ];
    arguments.into_iter().chain(rest.map(str::to_owned)).map(Value::from).collect()
}

/// A folder of the container.
struct Mounted {
    volume: Value,
    mount: Value,
}

fn mounted(installation: &Installation) -> Vec<Mounted> {
    let mut mounted = Vec::new();
    if !installation.watch_policies {
        mounted.push(Mounted {
            volume: json!({"name": "policies", "configMap": {"name": POLICIES}}),
            mount: json!({"name": "policies", "mountPath": "/etc/statusgate/policies", "readOnly": true}),
        });
    }
    if installation.certificates != Certificates::Managed {
        mounted.push(Mounted {
            volume: json!({
                "name": "tls",
                "#secret": "The default mode 0644: the files belong to root, and without fsGroup the server's user is in \
                    \"others\". The container has one process and one user; on the node only root can read the folder.",
                "secret": {"secretName": SECRET},
            }),
            mount: json!({"name": "tls", "mountPath": "/etc/statusgate/tls", "readOnly": true}),
        });
    }
    mounted
}
