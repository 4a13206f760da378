//! The webhook registrations: which requests the API server sends to statusgate.
//!
//! The names are fixed: a cluster has one installation, and two would judge each write twice.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::rules::RuleWithOperations;
use statusgate_core::model::Webhook;

/// The name of the registrations about objects.
pub const OBJECTS: &str = "statusgate";

/// The name of the registration about policies and conventions.
pub const DOCUMENTS_NAME: &str = "statusgate-documents";

/// The webhook about policies and conventions.
pub const DOCUMENTS_WEBHOOK: &str = "documents.statusgate.dev";

/// Its path.
pub const DOCUMENTS: &str = "/documents";

/// The label that every namespace has since Kubernetes 1.21.
pub const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// The name of the match condition that omits writes without a change of the status.
pub const STATUS_CHANGES: &str = "status-changes";

/// For validating webhooks. A write that leaves the status as it is may not fail while no replica answers:
/// without the status subresource, it may remove a finalizer.
pub const STATUS_CHANGES_EXPRESSION: &str = "request.operation != 'UPDATE' \
    || has(object.status) != has(oldObject.status) \
    || (has(object.status) && object.status != oldObject.status)";

/// In addition for the mutating webhook: a write through `/status` without a change lets it set the defaults
/// of a stored object. The API server omits an empty `subResource`.
pub const THROUGH_STATUS_EXPRESSION: &str =
    "(has(request.subResource) && request.subResource == 'status')";

/// The annotation of a registration that is about to be deleted: running servers leave all of them alone
/// until one without it exists again.
pub const UNINSTALL: &str = "statusgate.dev/uninstall";

/// The annotation of a registration with webhooks that get their failure policy when they have a caBundle.
pub const RAISE: &str = "statusgate.dev/failure-policy";

/// The kind of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `ValidatingWebhookConfiguration`.
    Validating,
}

/// What the API server does with a write while no replica answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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
    /// For the webhooks that may reject writes. Those about agreement and documents always ignore.
    pub failure_policy: FailurePolicy,
    /// Whether the API server supports match conditions.
    pub match_conditions: bool,
}

impl Kind {
    /// The kind of the object.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// The plural in paths.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }
}

impl FailurePolicy {
    /// As the API server spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Fail => "Fail",
        }
    }
}

/// The kinds and names of all registrations.
pub const REGISTRATIONS: [(Kind, &str); 3] =
    [(Kind::Mutating, OBJECTS), (Kind::Validating, OBJECTS), (Kind::Validating, DOCUMENTS_NAME)];

/// Whether an API server supports match conditions: since 1.28 without a feature gate.
/// `version` is `v1.33.2` or `1.28`.
pub fn has_match_conditions(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split(['.', '-', '+']);
    let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok());
    (number(), number()) >= (Some(1), Some(28))
}

/// The registrations, in the order of [`REGISTRATIONS`].
pub fn registrations(rules: &[RuleWithOperations], settings: &RegistrationSettings) -> [Value; 3] {
    let mandatory = settings.failure_policy;
    let mut mutate = object_webhook(Webhook::Mutate, rules, mandatory, settings);
    mutate["reinvocationPolicy"] = "IfNeeded".into();
    let validating = [
        object_webhook(Webhook::Mandatory, rules, mandatory, settings),
        // A wrong phase does less harm than a status that cannot be written.
        object_webhook(Webhook::Agreement, rules, FailurePolicy::Ignore, settings),
    ];
    // With `Fail`, a wrong policy could not be corrected while no replica answers.
    let documents = webhook(
        DOCUMENTS_WEBHOOK,
        DOCUMENTS,
        &[RuleWithOperations::documents()],
        FailurePolicy::Ignore,
        settings,
    );
    let [first, second, third] = REGISTRATIONS;
    [
        registration(first, &json!([mutate])),
        registration(second, &json!(validating)),
        registration(third, &json!([documents])),
    ]
}

/// `mutate.statusgate.dev`.
pub fn webhook_name(webhook: Webhook) -> String {
    format!("{}.statusgate.dev", webhook.name())
}

fn registration((kind, name): (Kind, &str), webhooks: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind.name(),
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "statusgate"}},
        "webhooks": webhooks,
    })
}

fn object_webhook(
    of: Webhook,
    rules: &[RuleWithOperations],
    failure_policy: FailurePolicy,
    settings: &RegistrationSettings,
) -> Value {
    let mut webhook = webhook(&webhook_name(of), of.path(), rules, failure_policy, settings);
    webhook["namespaceSelector"] = json!({"matchExpressions": [
        {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": [settings.namespace]}
    ]});
    if settings.match_conditions {
        let expression = match of {
            Webhook::Mutate => {
                format!("{THROUGH_STATUS_EXPRESSION} || {STATUS_CHANGES_EXPRESSION}")
            }
            _ => STATUS_CHANGES_EXPRESSION.to_owned(),
        };
        webhook["matchConditions"] = json!([{"name": STATUS_CHANGES, "expression": expression}]);
    }
    webhook
}

fn webhook(
    name: &str,
    path: &str,
    rules: &[RuleWithOperations],
    failure_policy: FailurePolicy,
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
        "failurePolicy": failure_policy.name(),
        "matchPolicy": "Equivalent",
        "rules": rules,
        // So that dry runs are judged too.
        "sideEffects": "None",
        // A decision takes less than a millisecond. A server under load or during shutdown answers 503
        // with `Retry-After: 1`, and the API server retries within this time.
        "timeoutSeconds": 5,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::resource::{CustomResource, ServedVersion};
    use crate::manifests::rules::{gaps, rules};
    use crate::manifests::yaml;
    use statusgate_core::policy::{PolicySet, Source};

    fn settings() -> RegistrationSettings {
        RegistrationSettings {
            namespace: "statusgate-system".into(),
            address: Address::Service("statusgate".into()),
            authorities: String::new(),
            failure_policy: FailurePolicy::Ignore,
            match_conditions: false,
        }
    }

    fn webhooks(settings: &RegistrationSettings) -> Vec<Value> {
        let registrations = registrations(&[], settings);
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
        let documents = registrations(&rules(&policies, &resources), &settings());
        insta::assert_snapshot!(yaml::print(&documents).unwrap());
    }

    #[test]
    fn only_mandatory_webhooks_can_fail() {
        let settings = RegistrationSettings { failure_policy: FailurePolicy::Fail, ..settings() };
        assert_eq!(members(&settings, "/failurePolicy"), ["Fail", "Fail", "Ignore", "Ignore"]);
    }

    #[test]
    fn a_url_gets_the_path_of_each_webhook() {
        let address = Address::Url("https://127.0.0.1:8443".into());
        let settings = RegistrationSettings { address, authorities: "PEM".into(), ..settings() };
        let paths = ["/mutate", "/validate/mandatory", "/validate/agreement", "/documents"];
        let urls = paths.map(|path| format!("https://127.0.0.1:8443{path}"));
        assert_eq!(members(&settings, "/clientConfig/url"), urls);
        assert_eq!(members(&settings, "/clientConfig/caBundle"), ["UEVN"; 4]);
        assert_eq!(members(&settings, "/clientConfig/service"), vec![Value::Null; 4]);
    }

    /// Whether the API server sends an UPDATE to the mutating and to the validating webhooks.
    fn is_sent(subresource: &str, old: &Value, new: &Value) -> [bool; 2] {
        let mut request = json!({"operation": "UPDATE"});
        if !subresource.is_empty() {
            request["subResource"] = subresource.into();
        }
        is_matched(&request, old, new)
    }

    fn is_matched(request: &Value, old: &Value, new: &Value) -> [bool; 2] {
        let settings = RegistrationSettings { match_conditions: true, ..settings() };
        let conditions = members(&settings, "/matchConditions/0/expression");
        assert_eq!((&conditions[1], &conditions[3]), (&conditions[2], &Value::Null));
        [&conditions[0], &conditions[1]].map(|condition| {
            let program = cel::Program::compile(condition.as_str().unwrap()).unwrap();
            let mut context = cel::Context::default();
            context.add_variable("request", request).unwrap();
            context.add_variable("object", new).unwrap();
            context.add_variable("oldObject", old).unwrap();
            program.execute(&context).unwrap() == cel::Value::Bool(true)
        })
    }

    #[test]
    fn a_write_that_leaves_the_status_as_it_is_can_never_fail() {
        let old = json!({"metadata": {"finalizers": ["a"]}, "status": {"phase": "Ready"}});
        let without_finalizer = json!({"metadata": {}, "status": {"phase": "Ready"}});
        assert_eq!(is_sent("", &old, &without_finalizer), [false, false]);
        let (empty, old_empty) = (json!({"metadata": {}}), json!({"metadata": {"finalizers": []}}));
        assert_eq!(is_sent("", &old_empty, &empty), [false, false]);
        // The mutating webhook sets defaults of the stored object.
        assert_eq!(is_sent("status", &old, &old), [true, false]);
        assert_eq!(is_sent("status", &empty, &empty), [true, false]);
    }

    #[test]
    fn a_write_that_changes_the_status_is_judged() {
        let (ready, failed) =
            (json!({"status": {"phase": "Ready"}}), json!({"status": {"phase": "Failed"}}));
        for subresource in ["", "status"] {
            assert_eq!(is_sent(subresource, &ready, &failed), [true; 2]);
            assert_eq!(is_sent(subresource, &json!({}), &ready), [true; 2]);
            assert_eq!(is_sent(subresource, &ready, &json!({})), [true; 2]);
        }
        let create = json!({"operation": "CREATE"});
        assert_eq!(is_matched(&create, &Value::Null, &json!({})), [true; 2]);
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
