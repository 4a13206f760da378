//! From the desired and the stored registrations to the writes that make them agree.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use statusgate_cluster::manifests::conditions;
use statusgate_cluster::manifests::coverage::StoredWebhook;
use statusgate_cluster::manifests::registrations::{
    DOCUMENTS_WEBHOOK, FailurePolicy, HookKind, RAISE, REGISTRATIONS, UNINSTALL, webhook_name,
};
use statusgate_cluster::manifests::rules::{RuleWithOperations, are_equivalent};
use statusgate_core::model::Webhook;

/// What this server keeps up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Managed {
    /// The rules, match conditions and URLs. Missing registrations and webhooks are added.
    pub(super) rules: bool,
    /// The caBundles.
    pub(super) authorities: bool,
}

/// A write of one registration.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RegistrationWrite {
    Create(Value),
    /// A JSON patch that applies only to the stored state that it was made for.
    Patch(Value),
}

/// The writes that make the stored registrations agree with the desired ones, both in the order of
/// [`REGISTRATIONS`]. Everything that is not managed belongs to the user or to another tool: after
/// the creation, failure policies (except for documents), selectors, timeouts, annotations and other
/// webhooks are not changed.
///
/// Without a caBundle every call fails. So a new webhook ignores failures until another tool has set its
/// caBundle, and the annotation [`RAISE`] remembers the failure policy until then.
pub(super) fn writes(
    desired: &[Value; 3],
    stored: &[Option<Value>; 3],
    managed: Managed,
) -> Vec<((HookKind, &'static str), RegistrationWrite)> {
    let mut writes = Vec::new();
    for ((of, desired), stored) in REGISTRATIONS.into_iter().zip(desired).zip(stored) {
        match stored {
            None if managed.rules && webhooks(desired).all(|of| is_complete(of, managed)) => {
                let mut registration = desired.clone();
                if lower(registration["webhooks"].as_array_mut().into_iter().flatten()) {
                    registration["metadata"]["annotations"] = json!({RAISE: FAIL});
                }
                writes.push((of, RegistrationWrite::Create(registration)));
            }
            None => {}
            Some(stored) => {
                let mut operations = operations(desired, stored, managed);
                if !operations.is_empty() {
                    operations.insert(0, test_version(stored));
                    writes.push((of, RegistrationWrite::Patch(operations.into())));
                }
            }
        }
    }
    writes
}

/// The webhooks of a registration.
pub(super) fn webhooks(registration: &Value) -> impl Iterator<Item = &Value> {
    registration["webhooks"].as_array().into_iter().flatten()
}

/// The rules of a webhook.
pub(super) fn rules_of(webhook: &Value) -> Vec<RuleWithOperations> {
    let rules = webhook["rules"].as_array().into_iter().flatten();
    rules.filter_map(|rule| serde_json::from_value(rule.clone()).ok()).collect()
}

/// The patch that replaces the two validating webhooks of statusgate 0.1 in one step: this version does not
/// serve their paths. The one with the failure policy of the user becomes the webhook that judges by all
/// rules, and keeps its settings.
pub(super) fn replacement(stored: &Value) -> Option<Value> {
    let place = |name: &str| webhooks(stored).position(|webhook| webhook["name"] == name);
    let name = webhook_name(Webhook::Validate);
    let [mandatory, agreement] = REPLACED.map(|(name, _)| place(name));
    let kept = mandatory.or(agreement).filter(|_| place(&name).is_none());
    let mut operations = vec![test_version(stored)];
    if let Some(index) = kept {
        let mut client = stored["webhooks"][index]["clientConfig"].clone();
        for member in ["/service/path", "/url"] {
            let Some(Value::String(text)) = client.pointer_mut(member) else { continue };
            for (_, path) in REPLACED {
                *text = text.replace(path, Webhook::Validate.path());
            }
        }
        for (member, value) in [("name", json!(name)), ("clientConfig", client)] {
            let path = format!("/webhooks/{index}/{member}");
            operations.push(json!({"op": "replace", "path": path, "value": value}));
        }
    }
    let mut removed: Vec<usize> = [mandatory, agreement].into_iter().flatten().collect();
    removed.retain(|index| Some(*index) != kept);
    // The last one first: each removal moves those behind it.
    removed.sort_unstable_by(|a, b| b.cmp(a));
    let remove = |index| json!({"op": "remove", "path": format!("/webhooks/{index}")});
    operations.extend(removed.into_iter().map(remove));
    let is_needed = operations.len() > 1 && stored["metadata"]["annotations"][UNINSTALL].is_null();
    is_needed.then(|| operations.into())
}

/// The names and paths of those webhooks.
const REPLACED: [(&str, &str); 2] = [
    ("mandatory.statusgate.dev", "/validate/mandatory"),
    ("agreement.statusgate.dev", "/validate/agreement"),
];

/// A patch with this operation applies only to the stored state that it was made for.
fn test_version(stored: &Value) -> Value {
    let version = &stored["metadata"]["resourceVersion"];
    json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})
}

/// The webhook of a registration about objects, with the reason why it gets no call. `trusted`: whether a
/// caBundle is that of the served certificate.
pub(super) fn stored_webhook(
    of: Webhook,
    desired: &Value,
    stored: Option<&Value>,
    trusted: impl Fn(&Value) -> bool,
) -> StoredWebhook {
    let name = webhook_name(of);
    let named = |registration| webhooks(registration).find(|webhook| webhook["name"] == *name);
    let (Some(webhook), Some(twin)) = (stored.and_then(named), named(desired)) else {
        return StoredWebhook {
            fault: Some(format!("{name} is not registered")),
            ..StoredWebhook::default()
        };
    };
    let (client, wanted) = (&webhook["clientConfig"], &twin["clientConfig"]);
    let fault = if client["url"] != wanted["url"]
        || client["service"]["path"] != wanted["service"]["path"]
    {
        Some("calls another address")
    } else if !trusted(&client["caBundle"]) {
        Some("does not trust the certificate")
    } else if stored.is_some_and(|of| !of["metadata"]["annotations"][RAISE].is_null()) {
        Some("waits for the caBundles and ignores failures until then")
    } else {
        None
    };
    StoredWebhook {
        rules: rules_of(webhook),
        conditions: webhook["matchConditions"].as_array().cloned().unwrap_or_default(),
        fault: fault.map(|fault| format!("{name} {fault}")),
    }
}

/// Whether a webhook belongs to statusgate.
pub(super) fn is_ours(webhook: &Value) -> bool {
    webhook["name"].as_str().is_some_and(|name| name.ends_with(".statusgate.dev"))
}

/// Managed certificates will soon give a new webhook its caBundle.
fn is_complete(webhook: &Value, managed: Managed) -> bool {
    !managed.authorities || has_bundle(webhook)
}

fn has_bundle(webhook: &Value) -> bool {
    webhook["clientConfig"]["caBundle"].as_str().is_some_and(|bundle| !bundle.is_empty())
}

/// Lets webhooks without a caBundle ignore failures. Returns whether one did not.
fn lower<'w>(webhooks: impl IntoIterator<Item = &'w mut Value>) -> bool {
    let mut lowered = false;
    for webhook in webhooks {
        if webhook["failurePolicy"] == FAIL && !has_bundle(webhook) {
            webhook["failurePolicy"] = json!(FailurePolicy::Ignore);
            lowered = true;
        }
    }
    lowered
}

fn operations(desired: &Value, stored: &Value, managed: Managed) -> Vec<Value> {
    let mut operations = Vec::new();
    let mut add = |path: String, value: Value| {
        operations.push(json!({"op": "add", "path": path, "value": value}));
    };
    let authorities = webhooks(desired)
        .next()
        .map(|webhook| &webhook["clientConfig"]["caBundle"])
        .filter(|bundle| managed.authorities && !bundle.is_null());
    let ours = || webhooks(stored).enumerate().filter(|(_, webhook)| is_ours(webhook));
    let annotations = &stored["metadata"]["annotations"];
    let raises = managed.rules
        && !annotations[RAISE].is_null()
        && ours().all(|(_, webhook)| has_bundle(webhook));
    for (index, webhook) in ours() {
        let (path, client) = (format!("/webhooks/{index}"), &webhook["clientConfig"]);
        let twin = webhooks(desired).find(|twin| twin["name"] == webhook["name"]);
        let twin = twin.filter(|_| managed.rules);
        if let Some(twin) = twin {
            let raises = raises && twin["failurePolicy"] == FAIL;
            // With `Fail`, a wrong policy could not be corrected while no replica answers.
            let is_owned = raises || webhook["name"] == DOCUMENTS_WEBHOOK;
            if is_owned && webhook["failurePolicy"] != twin["failurePolicy"] {
                add(format!("{path}/failurePolicy"), twin["failurePolicy"].clone());
            }
            if !are_equivalent(&rules_of(webhook), &rules_of(twin)) {
                add(format!("{path}/rules"), twin["rules"].clone());
            }
            if let Some(conditions) = match_conditions(twin, webhook) {
                add(format!("{path}/matchConditions"), conditions);
            }
        }
        // A Service may have been changed by the user, but a URL must be the address of this server.
        let wanted = twin.map(|twin| &twin["clientConfig"]);
        let moved = wanted.filter(|wanted| {
            wanted["url"] != client["url"]
                || wanted["service"].is_null() != client["service"].is_null()
        });
        if let Some(wanted) = moved {
            let mut wanted = wanted.clone();
            if let Some(bundle) = authorities.or_else(|| client.get("caBundle")) {
                wanted["caBundle"] = bundle.clone();
            }
            add(format!("{path}/clientConfig"), wanted);
        } else if let Some(bundle) = authorities.filter(|bundle| **bundle != client["caBundle"]) {
            add(format!("{path}/clientConfig/caBundle"), bundle.clone());
        }
    }
    let exists = |webhook: &Value| webhooks(stored).any(|of| of["name"] == webhook["name"]);
    let missing = webhooks(desired).filter(|webhook| managed.rules && !exists(webhook));
    let mut missing: Vec<Value> =
        missing.filter(|webhook| is_complete(webhook, managed)).cloned().collect();
    let lowered = lower(&mut missing);
    if !stored["webhooks"].is_null() {
        missing.into_iter().for_each(|webhook| add("/webhooks/-".to_owned(), webhook));
    } else if !missing.is_empty() {
        add("/webhooks".to_owned(), missing.into());
    }
    let path = format!("/metadata/annotations/{}", RAISE.replace('/', "~1"));
    if lowered && annotations.is_null() {
        add("/metadata/annotations".to_owned(), json!({RAISE: FAIL}));
    } else if lowered {
        add(path, FAIL.into());
    } else if raises {
        operations.push(json!({"op": "remove", "path": path}));
    }
    operations
}

/// The match conditions with ours, if those are different. Those of the user stay.
fn match_conditions(desired: &Value, stored: &Value) -> Option<Value> {
    let list = |webhook: &Value| webhook["matchConditions"].as_array().cloned().unwrap_or_default();
    let is_ours = |condition: &Value| condition["name"].as_str().is_some_and(conditions::is_ours);
    let (known, others): (Vec<Value>, Vec<Value>) = list(stored).into_iter().partition(is_ours);
    let ours = list(desired);
    (ours != known).then(|| others.into_iter().chain(ours).collect())
}

const FAIL: &str = "Fail";
