//! The permissions that `statusgate manifests install` grants are sufficient, and each is necessary.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::replica::Installation;
use crate::command::run;
use crate::harness::objects::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, COMPOSITE, CONVENTION, Kind, LEASE, MUTATING, POLICY,
    SECRET, VALIDATING, name_of,
};
use crate::harness::patience::{PATIENCE, until};
use crate::harness::plane::{Plane, documents};
use crate::harness::pool::in_own_cluster;

/// The API server adds the groups of a service account to its impersonated name, as to its token
/// (kube-apiserver, endpoints/filters/impersonation.go).
pub(super) const ACCOUNT: &str = "system:serviceaccount:statusgate-system:statusgate";

const REVIEW: Kind = Kind {
    api_version: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
};

/// Roles and bindings.
const GRANTS: [Kind; 4] = [
    Kind {
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        path: "/apis/rbac.authorization.k8s.io/v1/namespaces/statusgate-system/roles",
    },
    CLUSTER_ROLE,
    Kind {
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        path: "/apis/rbac.authorization.k8s.io/v1/namespaces/statusgate-system/rolebindings",
    },
    CLUSTER_ROLE_BINDING,
];

/// The roles and bindings of the account.
pub(super) struct Grants<'p> {
    plane: &'p Plane,
    objects: Vec<(Kind, Value)>,
}

/// One verb for one resource, and for one name if the role has names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Permission {
    pub(super) verb: String,
    group: String,
    pub(super) resource: String,
    name: Option<String>,
    namespaced: bool,
}

impl<'p> Grants<'p> {
    /// What the installation grants.
    pub(super) fn new(plane: &'p Plane) -> Self {
        let printed = run(["manifests", "install", "--certificates=managed"]);
        let objects = documents(&printed.out).into_iter().filter_map(|object| {
            let kind = GRANTS.into_iter().find(|kind| object["kind"] == kind.kind)?;
            Some((kind, object))
        });
        Self { plane, objects: objects.collect() }
    }

    /// Applies everything that is granted, except these permissions.
    pub(super) async fn apply_without(&self, revoked: &[Permission]) {
        for (kind, object) in &self.objects {
            let mut object = object.clone();
            if object["rules"].is_array() {
                let left = permissions_of(&object);
                let left = left.iter().filter(|permission| !revoked.contains(permission));
                object["rules"] = left.map(Permission::rule).collect();
            }
            let objects = self.plane.objects(*kind);
            let applied = objects.apply(name_of(&object), "test", object.clone()).await;
            applied.expect("a role or a binding");
        }
        for permission in self.permissions() {
            self.is_effective(&permission, !revoked.contains(&permission)).await;
        }
    }

    /// Everything that is granted.
    pub(super) fn permissions(&self) -> Vec<Permission> {
        let roles = self.objects.iter().filter(|(_, object)| object["rules"].is_array());
        roles.flat_map(|(_, role)| permissions_of(role)).collect()
    }

    /// Waits until the API server has noticed a changed role.
    async fn is_effective(&self, permission: &Permission, allowed: bool) {
        let Permission { verb, group, resource, name, namespaced } = permission;
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": REVIEW.api_version,
            "kind": REVIEW.kind,
            "spec": {
                "user": ACCOUNT,
                "resourceAttributes": {
                    "verb": verb, "group": group, "resource": resource, "subresource": part,
                    "name": name.clone().unwrap_or_default(),
                    "namespace": if *namespaced { "statusgate-system" } else { "" },
                },
            },
        });
        let reviews = self.plane.objects(REVIEW);
        until("a changed role is effective", async || {
            let reviewed = reviews.create(&review).await.ok()?;
            (reviewed["status"]["allowed"] == allowed).then_some(())
        })
        .await;
    }
}

impl Permission {
    /// A rule that grants only this.
    fn rule(&self) -> Value {
        let Self { verb, group, resource, name, .. } = self;
        let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
        if let Some(name) = name {
            rule["resourceNames"] = json!([name]);
        }
        rule
    }

    /// What the log contains if it is missing.
    fn message(&self) -> String {
        let Self { verb, resource, name, .. } = self;
        let name =
            name.as_ref().map(|name| format!("\"{name}\" is forbidden: User \"{ACCOUNT}\" "));
        format!("{}cannot {verb} resource \"{resource}\"", name.unwrap_or_default())
    }
}

fn permissions_of(role: &Value) -> Vec<Permission> {
    let texts = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten();
        texts.map(|text| text.as_str().expect("a text").to_owned()).collect()
    };
    let mut permissions = Vec::new();
    for rule in role["rules"].as_array().expect("rules") {
        let names = texts(&rule["resourceNames"]);
        let names =
            if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for name in &names {
                    permissions.extend(texts(&rule["verbs"]).into_iter().map(|verb| Permission {
                        verb,
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        namespaced: role["kind"] == "Role",
                    }));
                }
            }
        }
    }
    permissions
}

/// The number of warnings that contain a text.
fn warnings(log: &str, text: &str) -> usize {
    let text = text.replace('"', "\\\"");
    let has = |line: &&str| line.contains("\"WARN\"") && line.contains(&text);
    log.lines().filter(has).count()
}

/// Creates what another replica of an older version could have left, so that a new one has to change it.
async fn create_outdated(plane: &Plane) {
    let data = json!({"tls.crt": "", "tls.key": ""});
    let mut secret = plane.objects(SECRET).named("statusgate-tls");
    secret["type"] = "kubernetes.io/tls".into();
    secret["data"] = data;
    plane.objects(SECRET).create(&secret).await.expect("a Secret");
    for (kind, name) in
        [(MUTATING, "statusgate"), (VALIDATING, "statusgate"), (VALIDATING, "statusgate-documents")]
    {
        let objects = plane.objects(kind);
        objects.create(&objects.named(name)).await.expect("a registration");
    }
}

async fn create_convention(plane: &Plane) {
    let mut convention = plane.objects(CONVENTION).named("tested");
    convention["spec"] = json!({"title": "Tested", "extends": "metav1"});
    plane.objects(CONVENTION).create(&convention).await.expect("a convention");
}

/// Waits until the log has a warning with each text. Returns what is missing after some time.
async fn missing(texts: &[String], log: impl Fn() -> String) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let log = log();
        let missing = texts.iter().filter(|text| warnings(&log, text) == 0);
        let missing: Vec<String> = missing.cloned().collect();
        if missing.is_empty() || Instant::now() > deadline {
            return missing;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn everything_works_with_exactly_the_permissions_of_the_installation() {
    in_own_cluster(async |plane| {
        Grants::new(plane).apply_without(&[]).await;
        let installation = Installation::of_user(plane, ACCOUNT).await;
        create_outdated(plane).await;
        create_convention(plane).await;
        plane.create_policy().await;
        let [one, two] = installation.two().await;
        let name = plane.composite("permitted").await;
        plane.judged(&name).await;
        plane.enforced(2).await;
        assert_eq!(plane.list(LEASE).await.len(), 2);

        plane.objects(SECRET).delete("statusgate-tls").await.unwrap();
        plane.objects(MUTATING).delete("statusgate").await.unwrap();
        plane.objects(VALIDATING).delete("statusgate-documents").await.unwrap();
        until("everything is created again", async || {
            plane.objects(SECRET).get("statusgate-tls").await.ok()?;
            plane.objects(MUTATING).get("statusgate").await.ok()?;
            plane.objects(VALIDATING).get("statusgate-documents").await.ok()
        })
        .await;
        plane.judged(&name).await;

        one.terminate();
        until("one Lease is left", async || (plane.list(LEASE).await.len() == 1).then_some(()))
            .await;
        for log in [one.log(), two.log()] {
            assert!(!log.contains("forbidden"), "{log}");
        }
    });
}

#[test]
fn a_server_without_one_of_its_permissions_names_it() {
    in_own_cluster(async |plane| {
        let grants = Grants::new(plane);
        let installation = Installation::of_user(plane, ACCOUNT).await;
        let permissions = grants.permissions();
        assert!(permissions.len() > 20, "{permissions:#?}");
        let mut unnamed = Vec::new();
        for permission in permissions {
            plane.empty().await;
            grants.apply_without(std::slice::from_ref(&permission)).await;
            if permission.verb != "create" {
                create_outdated(plane).await;
            }
            create_convention(plane).await;
            plane.create_policy().await;
            let server = installation.starting("without");
            let texts = [permission.message()];
            if permission.verb == "delete" {
                let replica = installation.ready(server).await;
                replica.terminate();
                unnamed.extend(missing(&texts, || replica.log()).await);
            } else {
                unnamed.extend(missing(&texts, || server.log()).await);
            }
        }
        assert_eq!(unnamed, [""; 0]);
    });
}

#[test]
fn a_watch_that_is_not_allowed_is_logged_once_while_the_server_tries_again() {
    in_own_cluster(async |plane| {
        let grants = Grants::new(plane);
        let mut revoked = grants.permissions();
        revoked.retain(|permission| permission.verb == "list" && permission.resource != "leases");
        grants.apply_without(&revoked).await;
        let policies = |permission: &Permission| permission.group == "statusgate.dev";
        let installation = Installation::of_user(plane, ACCOUNT).await;
        let server = installation.starting("repeated");
        let of_start: Vec<Permission> =
            revoked.iter().filter(|permission| policies(permission)).cloned().collect();
        let texts: Vec<String> = of_start.iter().map(Permission::message).collect();
        assert_eq!(missing(&texts, || server.log()).await, [""; 0]);

        revoked.retain(|permission| !policies(permission));
        grants.apply_without(&revoked).await;
        let replica = installation.ready(server).await;
        let texts: Vec<String> = revoked.iter().map(Permission::message).collect();
        assert_eq!(missing(&texts, || replica.log()).await, [""; 0]);
        // At least two more attempts of each watch.
        sleep(Duration::from_secs(4)).await;
        let log = replica.log();
        for permission in of_start.iter().chain(&revoked) {
            assert_eq!(warnings(&log, &permission.message()), 1, "{permission:?}: {log}");
        }
    });
}

#[test]
fn a_server_that_loses_all_permissions_serves_what_it_has_until_it_gets_them_back() {
    in_own_cluster(async |plane| {
        let grants = Grants::new(plane);
        let all = grants.permissions();
        grants.apply_without(&all).await;
        plane.create_policy().await;
        let installation = Installation::of_user(plane, ACCOUNT).await;
        let server = installation.starting("late");
        let first = ["cannot list resource \"statuspolicies\"".to_owned()];
        assert_eq!(missing(&first, || server.log()).await, [""; 0]);
        grants.apply_without(&[]).await;
        let replica = installation.ready(server).await;
        let name = plane.composite("lost").await;
        plane.judged(&name).await;
        plane.enforced(1).await;

        grants.apply_without(&all).await;
        // Watches that are running go on.
        let (policies, objects) = (plane.objects(POLICY), plane.objects(COMPOSITE));
        for enforcement in ["Warn", "Deny"] {
            policies.merge("appcat", json!({"spec": {"enforcement": enforcement}})).await.unwrap();
            until("the changed policy is in force", async || {
                let wrong = objects.dry_merge_status(&name, json!({"phase": "Nonsense"})).await;
                (wrong.is_ok() == (enforcement == "Warn")).then_some(())
            })
            .await;
        }
        plane.objects(MUTATING).delete("statusgate").await.unwrap();
        plane.objects(SECRET).delete("statusgate-tls").await.unwrap();
        let named = [
            "cannot patch resource \"statuspolicies/status\"",
            "cannot get resource \"mutatingwebhookconfigurations\"",
            "cannot get resource \"secrets\"",
            "cannot patch resource \"leases\"",
        ];
        let named = named.map(str::to_owned);
        assert_eq!(missing(&named, || replica.log()).await, [""; 0]);
        let wrong = objects.dry_merge_status(&name, json!({"phase": "Nonsense"})).await;
        assert!(wrong.is_err(), "{wrong:?}");

        grants.apply_without(&[]).await;
        plane.judged(&name).await;
        plane.enforced(1).await;
        for text in &named {
            assert_eq!(warnings(&replica.log(), text), 1, "{text}: {}", replica.log());
        }
    });
}
