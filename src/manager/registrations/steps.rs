//! From the desired and the stored registrations to the writes that make them agree.

use serde_json::{Value, json};

use crate::manifests::registrations::{Kind, REGISTRATIONS, STATUS_CHANGES};
use crate::manifests::rules::{Rule, are_equivalent};

/// What this server keeps up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Managed {
    /// The rules, match conditions and URLs. Missing registrations and webhooks are added.
    pub(super) rules: bool,
    /// The caBundles.
    pub(super) authorities: bool,
}

/// A write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Create {
        kind: Kind,
        name: &'static str,
        registration: Value,
    },
    /// A JSON patch that applies only to the stored state that it was made for.
    Patch {
        kind: Kind,
        name: &'static str,
        patch: Value,
    },
}

impl Step {
    /// What it writes.
    pub(super) const fn place(&self) -> (Kind, &'static str) {
        match self {
            Self::Create { kind, name, .. } | Self::Patch { kind, name, .. } => (*kind, *name),
        }
    }
}

/// The writes that make the stored registrations agree with the desired ones, both in the order of
/// [`REGISTRATIONS`]. Everything that is not managed belongs to the user or to another tool: failure
/// policies, selectors, timeouts, annotations and other webhooks are as at creation or as somebody set
/// them.
pub(super) fn steps(
    desired: &[Value; 3],
    stored: &[Option<Value>; 3],
    managed: Managed,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (((kind, name), desired), stored) in REGISTRATIONS.into_iter().zip(desired).zip(stored) {
        match stored {
            None if managed.rules && webhooks(desired).all(|of| is_complete(of, managed)) => {
                steps.push(Step::Create { kind, name, registration: desired.clone() });
            }
            None => {}
            Some(stored) => {
                let mut operations = operations(desired, stored, managed);
                if !operations.is_empty() {
                    let version = &stored["metadata"]["resourceVersion"];
                    let path = "/metadata/resourceVersion";
                    operations.insert(0, json!({"op": "test", "path": path, "value": version}));
                    steps.push(Step::Patch { kind, name, patch: operations.into() });
                }
            }
        }
    }
    steps
}

/// The webhooks of a registration.
pub(super) fn webhooks(registration: &Value) -> impl Iterator<Item = &Value> {
    registration["webhooks"].as_array().into_iter().flatten()
}

/// The rules of a webhook.
pub(super) fn rules_of(webhook: &Value) -> Vec<Rule> {
    let rules = webhook["rules"].as_array().into_iter().flatten();
    rules.filter_map(|rule| serde_json::from_value(rule.clone()).ok()).collect()
}

/// Whether a webhook belongs to statusgate.
pub(super) fn is_ours(webhook: &Value) -> bool {
    webhook["name"].as_str().is_some_and(|name| name.ends_with(".statusgate.dev"))
}

/// Without a caBundle, no call of a new webhook would succeed.
fn is_complete(webhook: &Value, managed: Managed) -> bool {
    !managed.authorities || !webhook["clientConfig"]["caBundle"].is_null()
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
    for (index, webhook) in webhooks(stored).enumerate().filter(|(_, webhook)| is_ours(webhook)) {
        let (path, client) = (format!("/webhooks/{index}"), &webhook["clientConfig"]);
        let twin = webhooks(desired).find(|twin| twin["name"] == webhook["name"]);
        let twin = twin.filter(|_| managed.rules);
        if let Some(twin) = twin {
            if !are_equivalent(&rules_of(webhook), &rules_of(twin)) {
                add(format!("{path}/rules"), twin["rules"].clone());
            }
            if let Some(conditions) = conditions(twin, webhook) {
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
    let missing: Vec<&Value> = missing.filter(|webhook| is_complete(webhook, managed)).collect();
    if stored["webhooks"].is_null() {
        if !missing.is_empty() {
            add("/webhooks".to_owned(), json!(missing));
        }
    } else {
        missing.into_iter().for_each(|webhook| add("/webhooks/-".to_owned(), webhook.clone()));
    }
    operations
}

/// The match conditions with ours in addition, if it is missing or different. Those of the user stay.
fn conditions(desired: &Value, stored: &Value) -> Option<Value> {
    let list = |webhook: &Value| webhook["matchConditions"].as_array().cloned().unwrap_or_default();
    let ours = list(desired);
    let known = list(stored);
    if ours.iter().all(|condition| known.contains(condition)) {
        return None;
    }
    let others = known.into_iter().filter(|condition| condition["name"] != STATUS_CHANGES);
    Some(others.chain(ours).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::registrations::{Address, FailurePolicy, Settings, registrations};

    const ALL: Managed = Managed { rules: true, authorities: true };
    const RULES: Managed = Managed { rules: true, authorities: false };
    const AUTHORITIES: Managed = Managed { rules: false, authorities: true };

    fn rule(plural: &str) -> Rule {
        let rule = json!({"apiGroups": ["a.io"], "apiVersions": ["v1"], "operations": ["UPDATE"],
            "resources": [plural]});
        serde_json::from_value(rule).unwrap()
    }

    fn settings(authorities: &str) -> Settings {
        Settings {
            namespace: "n".into(),
            address: Address::Service("statusgate".into()),
            authorities: authorities.into(),
            failure_policy: FailurePolicy::Ignore,
            match_conditions: false,
        }
    }

    fn desired(authorities: &str) -> [Value; 3] {
        registrations(&[rule("foos/status")], &settings(authorities))
    }

    /// As the API server stores it.
    fn stored(desired: &[Value; 3]) -> [Option<Value>; 3] {
        let mut stored = desired.clone();
        for registration in &mut stored {
            registration["metadata"]["resourceVersion"] = "7".into();
            for webhook in registration["webhooks"].as_array_mut().unwrap() {
                webhook["objectSelector"] = json!({});
            }
        }
        stored.map(Some)
    }

    /// The patches without their test, by registration.
    fn patches(steps: &[Step]) -> Vec<Value> {
        let patch = |step: &Step| {
            let Step::Patch { patch, .. } = step else { panic!("{step:?}") };
            let version = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
            assert_eq!(patch[0], version);
            patch.as_array().unwrap()[1..].iter().cloned().collect()
        };
        steps.iter().map(patch).collect()
    }

    #[test]
    fn missing_registrations_are_created_when_the_authority_is_known() {
        let none = [None, None, None];
        assert_eq!(steps(&desired(""), &none, ALL), []);
        assert_eq!(steps(&desired("CA"), &none, AUTHORITIES), []);
        assert_eq!(steps(&desired("CA"), &none, ALL).len(), 3);
        assert_eq!(steps(&desired(""), &none, RULES).len(), 3);
    }

    #[test]
    fn registrations_that_agree_are_not_written() {
        for managed in [ALL, RULES, AUTHORITIES] {
            assert_eq!(steps(&desired("CA"), &stored(&desired("CA")), managed), []);
        }
    }

    #[test]
    fn only_rules_and_authorities_are_changed_and_only_if_they_are_managed() {
        let mut stored = stored(&registrations(&[rule("bars/status")], &settings("OLD")));
        let user = json!({"name": "user.example.org", "clientConfig": {"caBundle": "x"}});
        let validating = stored[1].as_mut().unwrap()["webhooks"].as_array_mut().unwrap();
        validating.insert(0, user);
        validating[1]["failurePolicy"] = "Fail".into();
        validating[2]["timeoutSeconds"] = 9.into();
        let desired = desired("NEW");
        let bundle = &desired[0]["webhooks"][0]["clientConfig"]["caBundle"];
        let rules = &desired[0]["webhooks"][0]["rules"];
        let of_rules = |index| json!({"op": "add", "path": format!("/webhooks/{index}/rules"), "value": rules});
        let of_bundle = |index| {
            let path = format!("/webhooks/{index}/clientConfig/caBundle");
            json!({"op": "add", "path": path, "value": bundle})
        };
        assert_eq!(
            patches(&steps(&desired, &stored, ALL)),
            [
                json!([of_rules(0), of_bundle(0)]),
                json!([of_rules(1), of_bundle(1), of_rules(2), of_bundle(2)]),
                json!([of_bundle(0)]),
            ]
        );
        let only_rules = [json!([of_rules(0)]), json!([of_rules(1), of_rules(2)])];
        assert_eq!(patches(&steps(&desired, &stored, RULES)), only_rules);
        let only_bundles =
            [json!([of_bundle(0)]), json!([of_bundle(1), of_bundle(2)]), json!([of_bundle(0)])];
        assert_eq!(patches(&steps(&desired, &stored, AUTHORITIES)), only_bundles);
    }

    #[test]
    fn a_missing_webhook_is_added_also_to_a_registration_without_any() {
        let desired = desired("CA");
        let mut stored = stored(&desired);
        stored[0].as_mut().unwrap().as_object_mut().unwrap().remove("webhooks");
        stored[1].as_mut().unwrap()["webhooks"].as_array_mut().unwrap().remove(0);
        let mandatory = &desired[1]["webhooks"][0];
        assert_eq!(
            patches(&steps(&desired, &stored, ALL)),
            [
                json!([{"op": "add", "path": "/webhooks", "value": desired[0]["webhooks"]}]),
                json!([{"op": "add", "path": "/webhooks/-", "value": mandatory}]),
            ]
        );
        assert_eq!(steps(&desired, &stored, AUTHORITIES), []);
    }

    #[test]
    fn another_url_replaces_the_address_and_a_changed_service_stays() {
        let mut service = stored(&desired("CA"));
        service[2].as_mut().unwrap()["webhooks"][0]["clientConfig"]["service"]["port"] =
            8443.into();
        assert_eq!(steps(&desired("CA"), &service, ALL), []);
        let address = Address::Url("https://127.0.0.1:1".into());
        let url = registrations(&[rule("foos/status")], &Settings { address, ..settings("") });
        let patches = patches(&steps(&url, &service, RULES));
        assert_eq!(patches.len(), 3);
        let bundle = &desired("CA")[0]["webhooks"][0]["clientConfig"]["caBundle"];
        let client = json!({"url": "https://127.0.0.1:1/mutate", "caBundle": bundle});
        let operation = json!({"op": "add", "path": "/webhooks/0/clientConfig", "value": client});
        assert_eq!(patches[0], json!([operation]));
    }

    #[test]
    fn our_match_condition_is_added_to_those_of_the_user() {
        let mut stored = stored(&desired("CA"));
        let own = json!({"name": "own", "expression": "true"});
        stored[1].as_mut().unwrap()["webhooks"][0]["matchConditions"] = json!([own]);
        let supported = Settings { match_conditions: true, ..settings("CA") };
        let desired = registrations(&[rule("foos/status")], &supported);
        let patches = patches(&steps(&desired, &stored, ALL));
        let ours = &desired[1]["webhooks"][0]["matchConditions"][0];
        let path = |index| format!("/webhooks/{index}/matchConditions");
        assert_eq!(
            patches,
            [json!([
                {"op": "add", "path": path(0), "value": [own, ours]},
                {"op": "add", "path": path(1), "value": [ours]},
            ])]
        );
    }
}
