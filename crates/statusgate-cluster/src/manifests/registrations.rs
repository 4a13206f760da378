//! The webhook registrations: which requests the API server sends to statusgate.
//!
//! The names are fixed: a cluster has one installation, and two would judge each write twice.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use super::conditions;
use super::resource::CustomResource;
use super::rules::{RuleWithOperations, rules};
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

/// The name of the registrations about objects.
pub const OBJECTS: &str = "statusgate";

/// The name of the registration about policies and conventions.
pub const DOCUMENTS_NAME: &str = "statusgate-documents";

/// The webhook about policies and conventions.
pub const DOCUMENTS_WEBHOOK: &str = "documents.statusgate.dev";

/// Its path.
pub const DOCUMENTS: &str = "/documents";

/// The registration of `statusgate record`.
pub const RECORDING: (HookKind, &str) = (HookKind::Validating, "statusgate-record");

/// Its path.
pub const RECORD: &str = "/record";

/// The label that every namespace has since Kubernetes 1.21.
pub const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// The annotation of a registration that is about to be deleted: running servers leave all of them alone
/// until one without it exists again.
pub const UNINSTALL: &str = "statusgate.dev/uninstall";

/// The annotation of a registration with webhooks that get their failure policy when they have a caBundle.
pub const RAISE: &str = "statusgate.dev/failure-policy";

/// The kind of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookKind {
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `ValidatingWebhookConfiguration`.
    Validating,
}

/// What the API server does with a write while no replica answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum FailurePolicy {
    /// The API server stores the write unjudged.
    Ignore,
    /// The API server rejects the write.
    Fail,
}

/// Where the API server reaches statusgate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Port 443 of this Service in the namespace of the installation.
    Service(String),
    /// `https://127.0.0.1:8443`, for a server outside the cluster; no slash at the end.
    Url(String),
}

/// What the registrations depend on besides their rules.
#[derive(Clone, Debug)]
pub struct RegistrationSettings {
    /// The namespace of the installation. Its objects are not judged.
    pub namespace: String,
    /// Where the server is.
    pub address: Address,
    /// The PEM certificates of the authorities; empty if another tool sets the caBundle.
    pub authorities: String,
    /// For the webhooks about objects. The one about documents always ignores failures.
    pub failure_policy: FailurePolicy,
}

/// What the API server calls the webhooks about objects for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// The rules of these webhooks.
    pub rules: Vec<RuleWithOperations>,
    /// Their match conditions, by the discriminants of [`Webhook`].
    pub conditions: [Vec<Value>; 2],
}

impl Calls {
    /// The calls that these policies need. `match_conditions`: whether the API server supports them.
    pub fn of(policies: &PolicySet, resources: &[CustomResource], match_conditions: bool) -> Self {
        let conditions = Webhook::ALL.map(|webhook| match match_conditions {
            true => conditions::match_conditions(policies, resources, webhook),
            false => Vec::new(),
        });
        Self { rules: rules(policies, resources), conditions }
    }
}

impl HookKind {
    /// The kind of the object.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// The plural in paths.
    pub fn plural(self) -> String {
        format!("{}s", self.name().to_lowercase())
    }
}

/// The kinds and names of all registrations.
pub const REGISTRATIONS: [(HookKind, &str); 3] = [
    (HookKind::Mutating, OBJECTS),
    (HookKind::Validating, OBJECTS),
    (HookKind::Validating, DOCUMENTS_NAME),
];

/// Whether an API server supports match conditions: since 1.28 without a feature gate.
/// `version` is `v1.33.2` or `1.28`.
pub fn has_match_conditions(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split(['.', '-', '+']);
    let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok());
    (number(), number()) >= (Some(1), Some(28))
}

/// The registrations, in the order of [`REGISTRATIONS`].
pub fn registrations(calls: &Calls, settings: &RegistrationSettings) -> [Value; 3] {
    let [mut mutate, validate] = Webhook::ALL.map(|of| object_webhook(of, calls, settings));
    mutate["reinvocationPolicy"] = "IfNeeded".into();
    let rules = [RuleWithOperations::documents()];
    let mut documents = webhook(DOCUMENTS_WEBHOOK, DOCUMENTS, &rules, settings);
    // With `Fail`, a wrong policy could not be corrected while no replica answers.
    documents["failurePolicy"] = json!(FailurePolicy::Ignore);
    let webhooks = [mutate, validate, documents];
    std::array::from_fn(|at| registration(REGISTRATIONS[at], &webhooks[at]))
}

/// The registration of `statusgate record`. Without match conditions: they omit writes that no rule can reject.
pub fn recording(rules: &[RuleWithOperations], settings: &RegistrationSettings) -> Value {
    registration(RECORDING, &webhook("record.statusgate.dev", RECORD, rules, settings))
}

/// `mutate.statusgate.dev`.
pub fn webhook_name(webhook: Webhook) -> String {
    format!("{}.statusgate.dev", webhook.name())
}

fn registration((kind, name): (HookKind, &str), webhook: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind.name(),
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "statusgate"}},
        "webhooks": [webhook],
    })
}

fn object_webhook(of: Webhook, calls: &Calls, settings: &RegistrationSettings) -> Value {
    let mut webhook = webhook(&webhook_name(of), of.path(), &calls.rules, settings);
    webhook["namespaceSelector"] = json!({"matchExpressions": [
        {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": [settings.namespace]}
    ]});
    let conditions = &calls.conditions[of as usize];
    if !conditions.is_empty() {
        webhook["matchConditions"] = json!(conditions);
    }
    webhook
}

fn webhook(
    name: &str,
    path: &str,
    rules: &[RuleWithOperations],
    settings: &RegistrationSettings,
) -> Value {
    let mut client = match &settings.address {
        Address::Service(service) => json!({"service": {
            "namespace": settings.namespace, "name": service, "path": path, "port": 443
        }}),
        Address::Url(url) => json!({"url": format!("{url}{path}")}),
    };
    if !settings.authorities.is_empty() {
        client["caBundle"] = STANDARD.encode(&settings.authorities).into();
    }
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": settings.failure_policy,
        "matchPolicy": "Equivalent",
        "rules": rules,
        // So that dry runs are judged too.
        "sideEffects": "None",
        // A decision takes less than a millisecond. A server under load or during shutdown answers 503
        // with `Retry-After: 1`, and the API server retries within this time.
        "timeoutSeconds": 5,
    })
}

/// Reads the address of a server: `https://127.0.0.1:8443`, without a path.
///
/// # Errors
/// Any other text.
pub fn https_url(text: &str) -> Result<String, String> {
    let url: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    let is_bare = url.query().is_none() && url.path().trim_matches('/').is_empty();
    if url.scheme_str() != Some("https") || url.host().is_none() || !is_bare {
        return Err("expected an address such as https://127.0.0.1:8443".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::resource::ServedVersion;
    use crate::manifests::rules::gaps;
    use crate::manifests::yaml;
    use statusgate_core::policy::Source;

    fn settings() -> RegistrationSettings {
        RegistrationSettings {
            namespace: "statusgate-system".into(),
            address: Address::Service("statusgate".into()),
            authorities: String::new(),
            failure_policy: FailurePolicy::Ignore,
        }
    }

    fn webhooks(settings: &RegistrationSettings) -> Vec<Value> {
        let registrations = registrations(&Calls::default(), settings);
        registrations.iter().flat_map(|of| of["webhooks"].as_array().unwrap().clone()).collect()
    }

    fn members(settings: &RegistrationSettings, pointer: &str) -> Vec<Value> {
        let member = |webhook: &Value| webhook.pointer(pointer).cloned().unwrap_or_default();
        webhooks(settings).iter().map(member).collect()
    }

    #[test]
    fn the_registrations_of_appcat_are_the_recorded_ones() {
        let is_appcat = |source: &Source| source.name.contains("appcat");
        let source = PolicySet::examples().into_iter().find(is_appcat).unwrap();
        let policies = PolicySet::compile(&[source]).unwrap();
        let mut resources = Vec::new();
        for rule in policies.policies().iter().flat_map(|policy| &policy.resources) {
            let group = rule.api_groups[0].exact().unwrap();
            let version =
                ServedVersion { name: "v1".into(), status_subresource: rule.status_subresource };
            resources.extend(rule.resources.iter().filter_map(|glob| glob.exact()).map(|plural| {
                let (group, plural) = (group.to_owned(), plural.to_owned());
                CustomResource {
                    group,
                    plural,
                    kind: String::new(),
                    versions: vec![version.clone()],
                }
            }));
        }
        assert_eq!(gaps(&policies, &resources), []);
        let calls = Calls::of(&policies, &resources, true);
        insta::assert_snapshot!(yaml::print(&registrations(&calls, &settings())).unwrap());
    }

    #[test]
    fn only_the_webhooks_about_objects_can_fail() {
        let failing = RegistrationSettings { failure_policy: FailurePolicy::Fail, ..settings() };
        assert_eq!(members(&failing, "/failurePolicy"), ["Fail", "Fail", "Ignore"]);
    }

    #[test]
    fn a_url_gets_the_path_of_each_webhook() {
        let address = Address::Url("https://127.0.0.1:8443".into());
        let settings = RegistrationSettings { address, authorities: "PEM".into(), ..settings() };
        let urls = |paths: &[&str]| {
            let url = |path: &&str| format!("https://127.0.0.1:8443{path}").into();
            paths.iter().map(url).collect::<Vec<Value>>()
        };
        assert_eq!(
            members(&settings, "/clientConfig/url"),
            urls(&["/mutate", "/validate", "/documents"])
        );
        assert_eq!(members(&settings, "/clientConfig/caBundle"), ["UEVN"; 3]);
        assert_eq!(members(&settings, "/clientConfig/service"), vec![Value::Null; 3]);
    }

    #[test]
    fn match_conditions_exist_since_1_28() {
        for (version, has) in [
            ("v1.28.0", true),
            ("1.28", true),
            ("v1.33.2+k3s1", true),
            ("v2.0", true),
            ("v1.27.9-gke.1", false),
            ("v1.20.2", false),
            ("", false),
        ] {
            assert_eq!(has_match_conditions(version), has, "{version}");
        }
    }
}
