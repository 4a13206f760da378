//! A webhook as it is registered: both kinds of registration in one shape.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::cluster::{Cluster, ClusterError, Patience};

/// The two kinds of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `ValidatingWebhookConfiguration`.
    Validating,
}

/// One webhook of a registration.
#[derive(Clone, Debug)]
pub struct Hook {
    /// Which kind of registration it is in.
    pub door: Door,
    /// The name of the registration.
    pub registration: String,
    /// The name of the webhook in it.
    pub name: String,
    /// What is called, where it is a service.
    pub service: Option<Service>,
    /// What is called, where it is a URL.
    pub url: Option<String>,
    /// The authorities that the API server trusts in this call, PEM.
    pub ca_bundle: Vec<u8>,
    /// Which requests it is asked about.
    pub rules: Vec<RuleWithOperations>,
    /// `Fail` or `Ignore`.
    pub failure_policy: String,
    /// `Equivalent` or `Exact`.
    pub match_policy: String,
    /// `Never` or `IfNeeded`.
    pub reinvocation_policy: String,
    /// `None` or `NoneOnDryRun`.
    pub side_effects: String,
    /// In seconds.
    pub timeout: i32,
    /// The versions of AdmissionReview that it understands.
    pub review_versions: Vec<String>,
    /// Whether it is asked only about some objects, namespaces or requests.
    pub narrowed: bool,
}

/// A service that is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// The path of the call.
    pub path: String,
}

impl Door {
    /// The kind of the registration.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// Its plural.
    #[must_use]
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    /// The path that answers such calls.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutating => "/mutate",
            Self::Validating => "/validate",
        }
    }
}

#[derive(Deserialize)]
struct Items<T> {
    items: Vec<T>,
}

impl Cluster {
    /// The webhooks of registrations with these names; without names those that look like
    /// statusgate's.
    ///
    /// # Errors
    /// When the registrations cannot be listed.
    pub async fn hooks(&self, door: Door, names: &[String]) -> Result<Vec<Hook>, ClusterError> {
        let resource = door.resource();
        let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}");
        let what = format!("list {resource}");
        let wanted = |metadata: &ObjectMeta, hook: &Hook| {
            if names.is_empty() {
                is_ours(metadata, hook)
            } else {
                names.contains(&hook.registration)
            }
        };
        let mut hooks = Vec::new();
        match door {
            Door::Mutating => {
                let list: Items<MutatingWebhookConfiguration> =
                    self.read_as(&what, &path, Patience::SHORT).await?;
                for item in list.items {
                    let all = item.webhooks.unwrap_or_default().into_iter();
                    let all = all.map(|hook| mutating(&item.metadata, hook));
                    hooks.extend(all.filter(|hook| wanted(&item.metadata, hook)));
                }
            }
            Door::Validating => {
                let list: Items<ValidatingWebhookConfiguration> =
                    self.read_as(&what, &path, Patience::SHORT).await?;
                for item in list.items {
                    let all = item.webhooks.unwrap_or_default().into_iter();
                    let all = all.map(|hook| validating(&item.metadata, hook));
                    hooks.extend(all.filter(|hook| wanted(&item.metadata, hook)));
                }
            }
        }
        Ok(hooks)
    }
}

impl Hook {
    /// What it is called in messages.
    #[must_use]
    pub fn subject(&self) -> String {
        let door = match self.door {
            Door::Mutating => "mutating",
            Door::Validating => "validating",
        };
        format!("{door} {}/{}", self.registration, self.name)
    }
}

/// The label of `deploy/base`, or the word in one of the names.
fn is_ours(metadata: &ObjectMeta, hook: &Hook) -> bool {
    let labels = metadata.labels.iter().flatten();
    let labelled = labels
        .filter(|(name, _)| *name == "app.kubernetes.io/name")
        .any(|(_, value)| value == "statusgate");
    let service = hook.service.as_ref().map_or("", |service| service.name.as_str());
    labelled
        || [hook.registration.as_str(), &hook.name, service]
            .iter()
            .any(|name| name.contains("statusgate"))
}

fn mutating(metadata: &ObjectMeta, hook: MutatingWebhook) -> Hook {
    let narrowed = is_narrow(hook.object_selector.as_ref())
        || is_narrow(hook.namespace_selector.as_ref())
        || hook.match_conditions.as_ref().is_some_and(|conditions| !conditions.is_empty());
    let (service, url, ca_bundle) = called(hook.client_config);
    Hook {
        door: Door::Mutating,
        registration: metadata.name.clone().unwrap_or_default(),
        name: hook.name,
        service,
        url,
        ca_bundle,
        rules: hook.rules.unwrap_or_default(),
        failure_policy: hook.failure_policy.unwrap_or_default(),
        match_policy: hook.match_policy.unwrap_or_default(),
        reinvocation_policy: hook.reinvocation_policy.unwrap_or_default(),
        side_effects: hook.side_effects,
        timeout: hook.timeout_seconds.unwrap_or_default(),
        review_versions: hook.admission_review_versions,
        narrowed,
    }
}

fn validating(metadata: &ObjectMeta, hook: ValidatingWebhook) -> Hook {
    let narrowed = is_narrow(hook.object_selector.as_ref())
        || is_narrow(hook.namespace_selector.as_ref())
        || hook.match_conditions.as_ref().is_some_and(|conditions| !conditions.is_empty());
    let (service, url, ca_bundle) = called(hook.client_config);
    Hook {
        door: Door::Validating,
        registration: metadata.name.clone().unwrap_or_default(),
        name: hook.name,
        service,
        url,
        ca_bundle,
        rules: hook.rules.unwrap_or_default(),
        failure_policy: hook.failure_policy.unwrap_or_default(),
        match_policy: hook.match_policy.unwrap_or_default(),
        reinvocation_policy: String::new(),
        side_effects: hook.side_effects,
        timeout: hook.timeout_seconds.unwrap_or_default(),
        review_versions: hook.admission_review_versions,
        narrowed,
    }
}

fn called(config: WebhookClientConfig) -> (Option<Service>, Option<String>, Vec<u8>) {
    let service = config.service.map(|service| Service {
        namespace: service.namespace,
        name: service.name,
        port: service.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
        path: service.path.unwrap_or_default(),
    });
    (service, config.url, config.ca_bundle.map(|bundle| bundle.0).unwrap_or_default())
}

fn is_narrow(
    selector: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector>,
) -> bool {
    // The API server fills in an empty one, which selects everything.
    selector.is_some_and(|selector| {
        selector.match_labels.as_ref().is_some_and(|labels| !labels.is_empty())
            || selector.match_expressions.as_ref().is_some_and(|list| !list.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_match_condition_narrows_as_a_selector_does() {
        let narrowed = |more: serde_json::Value| {
            let mut webhook = json!({"name": "a", "clientConfig": {}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"]});
            webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let one = serde_json::from_value(webhook.clone()).unwrap();
            let other = serde_json::from_value(webhook).unwrap();
            let metadata = ObjectMeta::default();
            let both = (mutating(&metadata, one).narrowed, validating(&metadata, other).narrowed);
            assert_eq!(both.0, both.1);
            both.0
        };
        assert!(!narrowed(json!({"objectSelector": {}, "matchConditions": []})));
        assert!(narrowed(json!({"objectSelector": {"matchLabels": {"a": "b"}}})));
        assert!(narrowed(json!({"matchConditions": [{"name": "a", "expression": "false"}]})));
    }
}
