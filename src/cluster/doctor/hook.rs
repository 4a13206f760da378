//! A registered webhook, mutating or validating.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;

use crate::cluster::{Cluster, ClusterError, Patience};
use crate::model::Webhook;

/// One webhook of a registration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) webhook: Webhook,
    /// The name of the registration.
    pub(super) registration: String,
    /// Its settings. A validating webhook has the same fields, except for the reinvocation policy.
    pub(super) settings: MutatingWebhook,
}

/// The Service that a webhook calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) port: u16,
}

/// A registration of either kind.
#[derive(Deserialize)]
struct Registration {
    metadata: ObjectMeta,
    #[serde(default)]
    webhooks: Option<Vec<MutatingWebhook>>,
}

#[derive(Deserialize)]
struct Registrations {
    items: Vec<Registration>,
}

/// The kind of the registrations of a webhook.
pub(super) const fn kind(webhook: Webhook) -> &'static str {
    match webhook {
        Webhook::Mutate => "MutatingWebhookConfiguration",
        Webhook::Validate => "ValidatingWebhookConfiguration",
    }
}

/// The path that statusgate serves for a webhook.
pub(super) fn path(webhook: Webhook) -> String {
    format!("/{}", webhook.name())
}

impl Cluster {
    /// The webhooks of the registrations with these names; without names, those that look like
    /// statusgate's.
    pub(super) async fn hooks(
        &self,
        webhook: Webhook,
        names: &[String],
    ) -> Result<Vec<Hook>, ClusterError> {
        let resource = format!("{}s", kind(webhook).to_lowercase());
        let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}");
        let list: Registrations =
            self.read_as(&format!("list {resource}"), &path, Patience::SHORT).await?;
        let mut hooks = Vec::new();
        for Registration { metadata, webhooks } in list.items {
            let registration = metadata.name.clone().unwrap_or_default();
            let of = |settings| Hook { webhook, registration: registration.clone(), settings };
            hooks.extend(webhooks.into_iter().flatten().map(of).filter(|hook| match names {
                [] => is_ours(&metadata, hook),
                names => names.contains(&hook.registration),
            }));
        }
        Ok(hooks)
    }
}

impl Hook {
    /// Its name in messages.
    pub(super) fn subject(&self) -> String {
        let kind = match self.webhook {
            Webhook::Mutate => "mutating",
            Webhook::Validate => "validating",
        };
        format!("{kind} {}/{}", self.registration, self.settings.name)
    }

    /// The Service that it calls, if it does not call a URL.
    pub(super) fn service(&self) -> Option<Service> {
        let service = self.settings.client_config.service.as_ref()?;
        Some(Service {
            namespace: service.namespace.clone(),
            name: service.name.clone(),
            port: service.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
        })
    }

    /// The PEM certificates of the authorities that the API server trusts for this call.
    pub(super) fn ca_bundle(&self) -> &[u8] {
        self.settings.client_config.ca_bundle.as_ref().map_or(&[], |bundle| &bundle.0)
    }

    /// Whether it receives only some of the objects, namespaces or requests.
    pub(super) fn is_narrow(&self) -> bool {
        let hook = &self.settings;
        selects(hook.object_selector.as_ref())
            || selects(hook.namespace_selector.as_ref())
            || hook.match_conditions.as_ref().is_some_and(|conditions| !conditions.is_empty())
    }
}

/// The label of `deploy/base`, or `statusgate` in a name.
fn is_ours(metadata: &ObjectMeta, hook: &Hook) -> bool {
    let mut labels = metadata.labels.iter().flatten();
    let service = hook.service().map(|service| service.name).unwrap_or_default();
    labels.any(|(name, value)| name == "app.kubernetes.io/name" && value == "statusgate")
        || [&hook.registration, &hook.settings.name, &service]
            .iter()
            .any(|name| name.contains("statusgate"))
}

/// Whether a selector excludes objects. The default of the API server is an empty one.
fn selects(selector: Option<&LabelSelector>) -> bool {
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
    fn selectors_and_match_conditions_narrow() {
        let is_narrow = |more: serde_json::Value| {
            let mut webhook = json!({"name": "a", "clientConfig": {}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"]});
            webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let settings = serde_json::from_value(webhook).unwrap();
            let registration = String::new();
            Hook { webhook: Webhook::Validate, registration, settings }.is_narrow()
        };
        assert!(!is_narrow(json!({"objectSelector": {}, "matchConditions": []})));
        assert!(is_narrow(json!({"objectSelector": {"matchLabels": {"a": "b"}}})));
        assert!(is_narrow(json!({"matchConditions": [{"name": "a", "expression": "false"}]})));
    }
}
