use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::manifests::registrations::{DOCUMENTS_NAME, OBJECTS};

/// The name of most objects.
const NAME: &str = "statusgate";

/// The Secret with the serving certificate.
const SECRET: &str = "statusgate-tls";

impl Installation {
    /// The objects.
    pub(crate) fn objects(&self) -> Vec<Value> {
        serde_saphyr::from_multiple(&self.print().unwrap()).unwrap()
    }
}

const SOURCES: [Certificates; 3] =
    [Certificates::Managed, Certificates::CertManager, Certificates::Files];

fn installation(certificates: Certificates) -> Installation {
    Installation {
        namespace: "gates".to_owned(),
        image: "registry.example.org/statusgate:1".to_owned(),
        replicas: 2,
        certificates,
        without: Vec::new(),
        failure_policy: FailurePolicy::Ignore,
        priority_class: None,
        kubernetes_version: 27,
    }
}

/// The parts that are left out.
fn without(watch_policies: bool, manage_webhooks: bool) -> Vec<Part> {
    let parts = [(watch_policies, Part::WatchPolicies), (manage_webhooks, Part::ManageWebhooks)];
    parts.into_iter().filter_map(|(is_included, part)| (!is_included).then_some(part)).collect()
}

fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found =
        objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn kinds(objects: &[Value]) -> Vec<String> {
    objects
        .iter()
        .map(|object| {
            format!(
                "{} {}",
                object["kind"].as_str().unwrap(),
                object["metadata"]["name"].as_str().unwrap()
            )
        })
        .collect()
}

fn arguments(objects: &[Value]) -> Vec<&str> {
    let args =
        &object(objects, "Deployment", NAME)["spec"]["template"]["spec"]["containers"][0]["args"];
    args.as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect()
}

#[test]
fn every_object_is_in_the_namespace_or_cluster_scoped() {
    for certificates in SOURCES {
        for object in installation(certificates).objects() {
            let kind = object["kind"].as_str().unwrap();
            let cluster = kind == "Namespace"
                || kind.starts_with("Cluster")
                || kind.ends_with("WebhookConfiguration");
            let namespace = if cluster { Value::Null } else { "gates".into() };
            assert_eq!(object["metadata"]["namespace"], namespace, "{object}");
            assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], NAME, "{object}");
        }
    }
}

#[test]
fn all_conditions_and_values_of_the_template_are_known() {
    let directives = TEMPLATE.lines().filter_map(|line| line.strip_prefix("#if "));
    let names: BTreeSet<&str> = directives.map(|name| name.trim_start_matches('!')).collect();
    // Each of them is true for some settings.
    let most = |certificates| Installation {
        failure_policy: FailurePolicy::Fail,
        priority_class: Some("high".to_owned()),
        ..installation(certificates)
    };
    let all = SOURCES.map(most);
    for name in names {
        assert!(all.iter().any(|installation| installation.has(name)), "{name}");
    }
    for installation in all {
        let text = installation.print().unwrap();
        assert!(!text.contains('$') && !text.contains("#if") && !text.contains("#end"), "{text}");
    }
}

#[test]
fn a_name_that_looks_like_a_number_stays_a_name() {
    let installation = Installation {
        namespace: "1".to_owned(),
        priority_class: Some("1e3".to_owned()),
        ..installation(Certificates::CertManager)
    };
    let objects = installation.objects();
    assert_eq!(objects[0]["metadata"]["name"], "1");
    let deployment = object(&objects, "Deployment", NAME);
    assert_eq!(deployment["metadata"]["namespace"], "1");
    assert_eq!(deployment["spec"]["template"]["spec"]["priorityClassName"], "1e3");
    assert!(arguments(&objects).contains(&"--namespace=1"));
}

#[test]
fn each_capability_has_its_own_role_and_flag() {
    let flags = ["--watch-policies", "--manage-webhooks", "--manage-certificates"];
    for watch_policies in [true, false] {
        for manage_webhooks in [true, false] {
            for certificates in SOURCES {
                let without = without(watch_policies, manage_webhooks);
                let installation = Installation { without, ..installation(certificates) };
                let managed = certificates == Certificates::Managed;
                let expected: Vec<&str> = flags
                    .into_iter()
                    .zip([watch_policies, manage_webhooks, managed])
                    .filter_map(|(flag, enabled)| enabled.then_some(flag))
                    .collect();
                let objects = installation.objects();
                let found: Vec<&str> =
                    arguments(&objects).into_iter().filter(|flag| flags.contains(flag)).collect();
                assert_eq!(found, expected);
                let roles: BTreeSet<&str> = objects
                    .iter()
                    .filter(|object| object["kind"].as_str().unwrap().ends_with("Role"))
                    .map(|role| role["metadata"]["name"].as_str().unwrap())
                    .collect();
                let mut expected: BTreeSet<String> =
                    expected.iter().map(|flag| flag.replace("--", "statusgate-")).collect();
                if manage_webhooks || managed {
                    expected.insert("statusgate-registrations".to_owned());
                }
                if watch_policies || managed {
                    expected.insert("statusgate-replicas".to_owned());
                }
                assert_eq!(roles, expected.iter().map(String::as_str).collect());
            }
        }
    }
}

#[test]
fn every_role_is_bound_to_the_account_of_the_pods_and_has_no_wildcard() {
    let objects = installation(Certificates::Managed).objects();
    let is_role = |object: &&Value| object["kind"].as_str().unwrap().ends_with("Role");
    let roles: Vec<&Value> = objects.iter().filter(is_role).collect();
    assert_eq!(roles.len(), 5);
    for role in roles {
        assert!(!role["rules"].to_string().contains('*'), "{role}");
        let (kind, name) = (role["kind"].as_str().unwrap(), &role["metadata"]["name"]);
        let binding = object(&objects, &format!("{kind}Binding"), name.as_str().unwrap());
        assert_eq!(
            (&binding["roleRef"]["kind"], &binding["roleRef"]["name"]),
            (&role["kind"], name)
        );
        let account = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": "gates"}]);
        assert_eq!(binding["subjects"], account);
    }
    let pod = &object(&objects, "Deployment", NAME)["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], NAME);
}

#[test]
fn the_names_in_the_roles_are_those_of_the_objects() {
    let objects = installation(Certificates::Managed).objects();
    let names =
        |kind, role, rule: usize| &object(&objects, kind, role)["rules"][rule]["resourceNames"];
    assert_eq!(*names("Role", "statusgate-manage-certificates", 1), json!([SECRET]));
    assert_eq!(*names("ClusterRole", "statusgate-registrations", 0), json!([OBJECTS]));
    let validating = names("ClusterRole", "statusgate-registrations", 1);
    assert_eq!(*validating, json!([OBJECTS, DOCUMENTS_NAME]));
}

#[test]
fn a_server_that_manages_nothing_has_no_rights_no_token_and_no_egress() {
    let without = without(false, false);
    let installation = Installation { without, ..installation(Certificates::Files) };
    let objects = installation.objects();
    let expected = [
        "Namespace gates",
        "ServiceAccount statusgate",
        "Deployment statusgate",
        "Service statusgate",
        "NetworkPolicy statusgate",
        "PodDisruptionBudget statusgate",
    ];
    assert_eq!(kinds(&objects), expected);
    let pod = &object(&objects, "Deployment", NAME)["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(object(&objects, "NetworkPolicy", NAME)["spec"]["egress"], json!([]));
    assert!(arguments(&objects).contains(&"--policies=/etc/statusgate/policies"));
    assert_eq!(pod["volumes"][0]["configMap"]["name"], "statusgate-policies");
}

#[test]
fn a_managed_server_mounts_nothing_and_reaches_the_api_server() {
    let objects = installation(Certificates::Managed).objects();
    let pod = &object(&objects, "Deployment", NAME)["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], true);
    assert_eq!((pod.get("volumes"), pod["containers"][0].get("volumeMounts")), (None, None));
    let arguments = arguments(&objects);
    assert!(arguments.contains(&"--namespace=gates"), "{arguments:?}");
    assert!(arguments.contains(&"--certificate-secret=statusgate-tls"), "{arguments:?}");
    let egress = &object(&objects, "NetworkPolicy", NAME)["spec"]["egress"][0]["ports"];
    assert_eq!((&egress[0]["port"], &egress[1]["port"]), (&json!(443), &json!(6443)));
}

#[test]
fn the_termination_period_exceeds_the_time_of_a_shutdown() {
    let objects = installation(Certificates::Files).objects();
    let seconds = |flag: &str| -> u64 {
        let found = arguments(&objects).into_iter().find_map(|arg| arg.strip_prefix(flag));
        found.unwrap().trim_end_matches('s').parse().unwrap()
    };
    let period = object(&objects, "Deployment", NAME)["spec"]["template"]["spec"]
        ["terminationGracePeriodSeconds"]
        .as_u64();
    assert!(period > Some(seconds("--grace=") + seconds("--drain-timeout=")));
}

#[test]
fn the_parts_refer_to_one_another() {
    for certificates in SOURCES {
        let objects = installation(certificates).objects();
        let deployment = &object(&objects, "Deployment", NAME)["spec"];
        let labels = &deployment["template"]["metadata"]["labels"];
        assert_eq!(&deployment["selector"]["matchLabels"], labels);
        let service = &object(&objects, "Service", NAME)["spec"];
        assert_eq!(&service["selector"], labels);
        let ports = deployment["template"]["spec"]["containers"][0]["ports"].as_array().unwrap();
        assert_eq!(service["ports"][0]["targetPort"], ports[0]["name"]);
        assert_eq!(
            &object(&objects, "PodDisruptionBudget", NAME)["spec"]["selector"]["matchLabels"],
            labels
        );
        let policy = &object(&objects, "NetworkPolicy", NAME)["spec"];
        assert_eq!(&policy["podSelector"]["matchLabels"], labels);
        for (rule, port) in policy["ingress"].as_array().unwrap().iter().zip(ports) {
            assert_eq!(rule["ports"][0]["port"], port["containerPort"]);
            assert!(
                arguments(&objects)
                    .iter()
                    .any(|arg| arg.ends_with(&format!(":{}", port["containerPort"])))
            );
        }
        for mount in deployment["template"]["spec"]["containers"][0]["volumeMounts"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let path = mount["mountPath"].as_str().unwrap();
            assert!(arguments(&objects).iter().any(|arg| arg.contains(path)), "{path}");
        }
    }
}

#[test]
fn cert_manager_signs_the_secret_of_the_pods_and_injects_its_authority() {
    let objects = installation(Certificates::CertManager).objects();
    let certificate = &object(&objects, "Certificate", SECRET)["spec"];
    assert_eq!(certificate["dnsNames"][0], "statusgate.gates.svc");
    let volumes = &object(&objects, "Deployment", NAME)["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["secret"]["secretName"], certificate["secretName"]);
    let issuer = object(&objects, "Issuer", certificate["issuerRef"]["name"].as_str().unwrap());
    let authority = &object(&objects, "Certificate", "statusgate-ca")["spec"];
    assert_eq!(issuer["spec"]["ca"]["secretName"], authority["secretName"]);
    object(&objects, "Issuer", authority["issuerRef"]["name"].as_str().unwrap());
    let injected: Vec<&Value> = objects
        .iter()
        .filter(|object| object["kind"].as_str().unwrap().ends_with("WebhookConfiguration"))
        .collect();
    assert_eq!(injected.len(), 3);
    for registration in injected {
        let source = &registration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        assert_eq!(source, "gates/statusgate-tls");
        assert_eq!(registration.get("webhooks"), None, "the server owns the webhooks");
    }
}

#[test]
fn old_servers_get_the_objects_that_they_serve() {
    let budget = |minor| {
        let objects =
            Installation { kubernetes_version: minor, ..installation(Certificates::Managed) }
                .objects();
        let budget = object(&objects, "PodDisruptionBudget", NAME);
        (budget["apiVersion"].clone(), budget["spec"].get("unhealthyPodEvictionPolicy").is_some())
    };
    assert_eq!(budget(20), ("policy/v1beta1".into(), false));
    assert_eq!(budget(21), ("policy/v1".into(), false));
    assert_eq!(budget(27), ("policy/v1".into(), true));
}

#[test]
fn only_a_server_that_manages_registrations_gets_their_failure_policy() {
    for manage_webhooks in [true, false] {
        for failure_policy in [FailurePolicy::Ignore, FailurePolicy::Fail] {
            let installation = Installation {
                without: without(true, manage_webhooks),
                failure_policy,
                ..installation(Certificates::Managed)
            };
            let objects = installation.objects();
            let expected = manage_webhooks && failure_policy == FailurePolicy::Fail;
            assert_eq!(arguments(&objects).contains(&"--failure-policy=fail"), expected);
        }
    }
}

#[test]
fn a_version_is_a_minor_version_of_kubernetes_1() {
    for text in ["1.27", "v1.27", "1.27.3", "v1.27.3"] {
        assert_eq!(minor_version(text), Ok(27), "{text}");
    }
    for text in ["", "1", "1.", "2.27", "1.x", "27"] {
        assert!(minor_version(text).is_err(), "{text}");
    }
}
