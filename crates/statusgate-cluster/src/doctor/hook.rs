//! A registered webhook, mutating or validating.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use serde::Deserialize;

use crate::manifests::conditions;
use crate::manifests::registrations::{self, HookKind};
use crate::manifests::rules::RuleWithOperations;
use crate::{Cluster, ClusterError, Patience};
use statusgate_core::model::Webhook;

/// One webhook of a registration.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) kind: HookKind,
    /// The name of the registration.
    pub(super) registration: String,
    /// Its settings. A validating webhook has the same fields, except for the reinvocation policy.
    pub(super) settings: MutatingWebhook,
    pub(super) rules: Vec<RuleWithOperations>,
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

impl Cluster {
    /// The webhooks of the registrations with these names; without names, those that look like
    /// statusgate's.
    pub(super) async fn hooks(
        &self,
        kind: HookKind,
        names: &[String],
    ) -> Result<Vec<Hook>, ClusterError> {
        let resource = kind.plural();
        let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}");
        let list: Registrations =
            self.read_as(&format!("list {resource}"), &path, Patience::SHORT).await?;
        let mut hooks = Vec::new();
        for Registration { metadata, webhooks } in list.items {
            let registration = metadata.name.clone().unwrap_or_default();
            let all = webhooks.into_iter().flatten().map(|mut settings| {
                // Both types of a rule have one form as JSON.
                let rules = serde_json::to_value(settings.rules.take());
                let rules = rules.and_then(serde_json::from_value).unwrap_or_default();
                Hook { kind, registration: registration.clone(), settings, rules }
            });
            hooks.extend(all.filter(|hook| match names {
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
        let kind = match self.kind {
            HookKind::Mutating => "mutating",
            HookKind::Validating => "validating",
        };
        format!("{kind} {}/{}", self.registration, self.settings.name)
    }

    /// The webhook about objects that a registration of this kind calls.
    pub(super) const fn webhook(&self) -> Webhook {
        match self.kind {
            HookKind::Mutating => Webhook::Mutate,
            HookKind::Validating => Webhook::Validate,
        }
    }

    /// Whether it judges policies and conventions rather than the objects that they select.
    pub(super) fn is_about_documents(&self) -> bool {
        self.kind == HookKind::Validating
            && self.path().as_deref() == Some(registrations::DOCUMENTS)
    }

    /// The path that it calls.
    pub(super) fn path(&self) -> Option<String> {
        let config = &self.settings.client_config;
        match (&config.service, &config.url) {
            (Some(service), _) => Some(service.path.clone().unwrap_or_default()),
            (None, Some(url)) => url.parse::<http::Uri>().ok().map(|url| url.path().to_owned()),
            (None, None) => None,
        }
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

    /// Whether it receives only some of the objects, namespaces or requests. The restrictions of the
    /// generated registrations exclude nothing that matters.
    pub(super) fn is_narrow(&self) -> bool {
        let hook = &self.settings;
        let mut match_conditions = hook.match_conditions.iter().flatten();
        selects(hook.object_selector.as_ref(), |_| false)
            || selects(hook.namespace_selector.as_ref(), |of| {
                of.key == registrations::NAMESPACE_LABEL && of.operator == "NotIn"
            })
            || match_conditions.any(|condition| !conditions::is_ours(&condition.name))
    }
}

/// The label of our registrations, or `statusgate` in a name.
fn is_ours(metadata: &ObjectMeta, hook: &Hook) -> bool {
    let mut labels = metadata.labels.iter().flatten();
    let service = hook.service().map(|service| service.name).unwrap_or_default();
    labels.any(|(name, value)| name == "app.kubernetes.io/name" && value == "statusgate")
        || [&hook.registration, &hook.settings.name, &service]
            .iter()
            .any(|name| name.contains("statusgate"))
}

/// Whether a selector excludes objects by other requirements than the `known` ones. The default of the API
/// server is an empty one.
fn selects(
    selector: Option<&LabelSelector>,
    known: impl Fn(&LabelSelectorRequirement) -> bool,
) -> bool {
    selector.is_some_and(|selector| {
        selector.match_labels.as_ref().is_some_and(|labels| !labels.is_empty())
            || !selector.match_expressions.iter().flatten().all(known)
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
            let rules = Vec::new();
            Hook { kind: HookKind::Validating, registration, settings, rules }.is_narrow()
        };
        assert!(!is_narrow(json!({"objectSelector": {}, "matchConditions": []})));
        assert!(is_narrow(json!({"objectSelector": {"matchLabels": {"a": "b"}}})));
        assert!(is_narrow(json!({"matchConditions": [{"name": "a", "expression": "false"}]})));
        let own =
            json!([{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["n"]}]);
        assert!(!is_narrow(json!({"namespaceSelector": {"matchExpressions": own},
            "matchConditions": [{"name": "status-changes", "expression": "false"}]})));
        let one =
            json!([{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["n"]}]);
        assert!(is_narrow(json!({"namespaceSelector": {"matchExpressions": one}})));
    }
}
