//! The registrations that two servers manage on a real API server.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use statusgate_cluster::Cluster;
use statusgate_cluster::manifests::registrations::FailurePolicy;
use statusgate_core::policy::{PolicySet, Source};
use statusgate_manager::exchange::Exchange;
use statusgate_manager::registrations::Registrar;
use statusgate_manager::{Context, ManagerOptions};
use statusgate_server::PolicyStore;
use statusgate_server::telemetry::Metrics;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::command::{run, text};
use crate::command;
use crate::harness::objects::{CRD, Kind, MUTATING, Objects, VALIDATING, name_of};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;

/// A running loop.
struct Server {
    exchange: Arc<Exchange>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One policy for some resources of `test.statusgate.dev`.
fn policies(resources: &str) -> Arc<PolicySet> {
    let text = format!(
        "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: p}}, spec: \
         {{convention: metav1, resources: [{resources}]}}}}"
    );
    Arc::new(PolicySet::compile(&[Source { name: "p.yaml".into(), text }]).unwrap())
}

const GADGETS: &str = "{apiGroups: [test.statusgate.dev], apiVersions: [v1], resources: [gadgets]}";

impl Server {
    async fn start(plane: &Plane, rules: bool) -> Self {
        let cluster = Cluster::connect(Some(&plane.kubeconfig()), None).await.unwrap();
        let exchange = Arc::new(Exchange::new(watch::Sender::new(policies(GADGETS))));
        let options = ManagerOptions {
            namespace: "statusgate-system".into(),
            webhook_url: Some("https://127.0.0.1:1".into()),
            failure_policy: FailurePolicy::Fail,
            manage_webhooks: rules,
            manage_certificates: true,
            ..ManagerOptions::new("one")
        };
        let metrics = Arc::new(Metrics::new(None));
        let registrar = Registrar(Context {
            cluster,
            options: Arc::new(options),
            store: PolicyStore::new(Vec::new(), &metrics).unwrap(),
            exchange: Arc::clone(&exchange),
            metrics,
            clock: || jiff::Timestamp::UNIX_EPOCH,
        });
        Self { exchange, task: tokio::spawn(registrar.run()) }
    }

    fn set(&self, resources: &str, authorities: &str) {
        self.exchange.policies.send_replace(policies(resources));
        self.exchange.authorities.send_replace(authorities.to_owned());
    }
}

/// PEM of a certificate: the API server parses caBundles.
fn authority(name: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.self_signed(&key).unwrap().pem()
}

fn all(plane: &Plane) -> [(Objects, &'static str); 3] {
    [(MUTATING, "statusgate"), (VALIDATING, "statusgate"), (VALIDATING, "statusgate-documents")]
        .map(|(kind, name): (Kind, _)| (plane.objects(kind), name))
}

async fn stored(plane: &Plane) -> Option<Vec<Value>> {
    let mut found = Vec::new();
    for (objects, name) in all(plane) {
        found.push(objects.get(name).await.ok()?);
    }
    Some(found)
}

/// Waits until the rules of gadgets and widgets are those, and each caBundle is this one.
async fn agreed(plane: &Plane, resources: &[&str], authorities: &str) -> Vec<Value> {
    let bundle = STANDARD.encode(authorities);
    until("the registrations are up to date", async || {
        let stored = stored(plane).await?;
        let webhooks = stored.iter().flat_map(|of| of["webhooks"].as_array().unwrap());
        let bundles = webhooks.clone().all(|of| of["clientConfig"]["caBundle"] == bundle.as_str());
        let judged = webhooks.filter(|of| of["name"] != "documents.statusgate.dev");
        let rules = judged.clone().all(|of| {
            let rules = of["rules"].as_array().into_iter().flatten();
            rules.map(|rule| &rule["resources"][0]).eq(resources)
        });
        (bundles && rules && judged.count() == 2).then_some(stored)
    })
    .await
}

fn versions(stored: &[Value]) -> Vec<&Value> {
    stored.iter().map(|of| &of["metadata"]["resourceVersion"]).collect()
}

#[test]
fn two_servers_create_and_update_the_registrations_and_leave_everything_else_alone() {
    in_own_cluster(async |plane| {
        let servers = [Server::start(plane, true).await, Server::start(plane, true).await];
        // Without an authority, nothing is created.
        sleep(Duration::from_millis(1500)).await;
        assert!(stored(plane).await.is_none());

        let first = authority("first");
        servers.iter().for_each(|server| server.set(GADGETS, &first));
        let created = agreed(plane, &["gadgets/status"], &first).await;
        until("the coverage is known", async || {
            let coverage = servers[0].exchange.coverage.borrow().clone()?;
            (coverage.policies.get("p")?.covered == ["gadgets.test.statusgate.dev"]).then_some(())
        })
        .await;
        until("the caBundles are known", async || {
            let bundles = servers[1].exchange.registered.borrow().clone()?;
            (bundles == vec![first.clone(); 3]).then_some(())
        })
        .await;

        // What the API server adds by default is no difference.
        sleep(Duration::from_millis(2500)).await;
        assert_eq!(versions(&stored(plane).await.unwrap()), versions(&created));

        // A user changes other fields, and adds a webhook.
        let (objects, name) = &all(plane)[1];
        let mut changed = objects.get(name).await.unwrap();
        let mut own = changed["webhooks"][0].clone();
        own["name"] = "own.example.org".into();
        assert_eq!(changed["webhooks"][0]["failurePolicy"], "Fail");
        changed["webhooks"][0]["failurePolicy"] = "Ignore".into();
        changed["webhooks"][0]["timeoutSeconds"] = 9.into();
        changed["webhooks"].as_array_mut().unwrap().insert(0, own);
        changed["metadata"]["annotations"] = json!({"a": "b"});
        let changed = objects.put(&changed).await.unwrap();
        // Policies, a definition and the authorities change.
        let second = format!("{}{first}", authority("second"));
        let both = format!(
            "{GADGETS}, {{apiGroups: [test.statusgate.dev], apiVersions: ['*'], \
            resources: [gizmos], statusSubresource: false}}"
        );
        servers.iter().for_each(|server| server.set(&both, &second));
        plane.objects(CRD).create(&gizmos()).await.unwrap();
        let updated = until("the registration follows", async || {
            let stored = stored(plane).await?;
            let rules = stored[1]["webhooks"][1]["rules"].as_array()?.clone();
            let bundle = &stored[1]["webhooks"][1]["clientConfig"]["caBundle"];
            let is_new = *bundle == STANDARD.encode(&second);
            (is_new && rules.len() == 2 && rules[0]["resources"][0] == "gizmos").then_some(stored)
        })
        .await;
        let webhooks = updated[1]["webhooks"].as_array().unwrap();
        assert_eq!(webhooks[0], changed["webhooks"][0], "the webhook of the user");
        assert_eq!(webhooks[1]["failurePolicy"], "Ignore");
        assert_eq!(webhooks[1]["timeoutSeconds"], 9);
        assert_eq!(updated[1]["metadata"]["annotations"], json!({"a": "b"}));
        assert_eq!(webhooks[1]["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
        plane.objects(CRD).delete("gizmos.test.statusgate.dev").await.unwrap();
        until("the resource is missing", async || {
            let coverage = servers[0].exchange.coverage.borrow().clone()?;
            let missing = &coverage.policies.get("p")?.absent;
            (missing == &["gizmos.test.statusgate.dev"]).then_some(())
        })
        .await;

        // Somebody deletes one.
        all(plane)[0].0.delete("statusgate").await.unwrap();
        until("it is created again", async || all(plane)[0].0.get("statusgate").await.ok()).await;

        // An uninstallation persists while the servers run.
        let ended = run("uninstall", &plane.kubeconfig(), &["--all"]);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out.lines().count(), 3, "{}", ended.out);
        sleep(Duration::from_millis(1500)).await;
        for (objects, name) in all(plane) {
            assert!(objects.get(name).await.is_err(), "{name}");
        }
        let again = run("uninstall", &plane.kubeconfig(), &[]);
        assert_eq!((again.code, again.out.as_str()), (Some(0), ""));
    });
}

#[test]
fn without_rules_to_manage_only_the_authorities_of_existing_registrations_change() {
    in_own_cluster(async |plane| {
        let server = Server::start(plane, false).await;
        let (kubeconfig, policies) = (plane.kubeconfig(), plane.policies());
        let ended = command::run([
            "manifests",
            "registrations",
            "--from-cluster",
            "--kubeconfig",
            text(&kubeconfig),
            "--policies",
            text(&policies),
        ]);
        assert!(ended.out.contains("xvshnpostgresqls/status"), "{}{}", ended.out, ended.err);
        let first = authority("first");
        server.set(GADGETS, &first);
        let objects = plane.objects(VALIDATING);
        let mut registration = objects.named("statusgate");
        let webhook = |name: &str| {
            json!({"name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:2/validate"}, "failurePolicy": "Ignore",
                "rules": [{"apiGroups": ["a"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["b"]}]})
        };
        registration["webhooks"] =
            json!([webhook("own.example.org"), webhook("validate.statusgate.dev")]);
        let created = objects.create(&registration).await.unwrap();
        let changed = until("the caBundle is set", async || {
            let found = objects.get(name_of(&created)).await.ok()?;
            let bundle = found["webhooks"][1]["clientConfig"]["caBundle"].as_str()?;
            (bundle == STANDARD.encode(&first)).then_some(found)
        })
        .await;
        assert_eq!(changed["webhooks"][0], created["webhooks"][0]);
        assert_eq!(changed["webhooks"][1]["rules"], created["webhooks"][1]["rules"]);
        assert!(plane.objects(MUTATING).get("statusgate").await.is_err());
        objects.delete("statusgate").await.unwrap();
    });
}

pub(crate) fn gizmos() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.test.statusgate.dev"},
        "spec": {"group": "test.statusgate.dev", "scope": "Cluster",
            "names": {"plural": "gizmos", "kind": "Gizmo", "singular": "gizmo", "listKind": "GizmoList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}
