//! Each write, from a desired and a stored state.

use super::*;
use statusgate_cluster::manifests::registrations::{
    Address, Calls, RegistrationSettings, registrations,
};

const ALL: Managed = Managed { rules: true, authorities: true };
const RULES: Managed = Managed { rules: true, authorities: false };
const AUTHORITIES: Managed = Managed { rules: false, authorities: true };

fn rule(plural: &str) -> RuleWithOperations {
    let rule = json!({"apiGroups": ["a.io"], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": [plural]});
    serde_json::from_value(rule).unwrap()
}

fn calls(resource: &str) -> Calls {
    Calls { rules: vec![rule(resource)], ..Calls::default() }
}

fn settings(authorities: &str) -> RegistrationSettings {
    RegistrationSettings {
        namespace: "n".into(),
        address: Address::Service("statusgate".into()),
        authorities: authorities.into(),
        failure_policy: FailurePolicy::Ignore,
    }
}

fn desired(authorities: &str) -> [Value; 3] {
    registrations(&calls("foos/status"), &settings(authorities))
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
fn patches(writes: &[((HookKind, &str), RegistrationWrite)]) -> Vec<Value> {
    let patch = |(_, write): &(_, RegistrationWrite)| {
        let RegistrationWrite::Patch(patch) = write else { panic!("{write:?}") };
        let version = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
        assert_eq!(patch[0], version);
        patch.as_array().unwrap()[1..].iter().cloned().collect()
    };
    writes.iter().map(patch).collect()
}

#[test]
fn missing_registrations_are_created_when_the_authority_is_known() {
    let none = [None, None, None];
    assert_eq!(writes(&desired(""), &none, ALL), []);
    assert_eq!(writes(&desired("CA"), &none, AUTHORITIES), []);
    assert_eq!(writes(&desired("CA"), &none, ALL).len(), 3);
    assert_eq!(writes(&desired(""), &none, RULES).len(), 3);
}

#[test]
fn registrations_that_agree_are_not_written() {
    for managed in [ALL, RULES, AUTHORITIES] {
        assert_eq!(writes(&desired("CA"), &stored(&desired("CA")), managed), []);
    }
}

#[test]
fn only_rules_and_authorities_are_changed_and_only_if_they_are_managed() {
    let mut stored = stored(&registrations(&calls("bars/status"), &settings("OLD")));
    let user = json!({"name": "user.example.org", "clientConfig": {"caBundle": "x"}});
    let validating = stored[1].as_mut().unwrap()["webhooks"].as_array_mut().unwrap();
    validating.insert(0, user);
    validating[1]["failurePolicy"] = "Fail".into();
    validating[1]["timeoutSeconds"] = 9.into();
    let desired = desired("NEW");
    let bundle = &desired[0]["webhooks"][0]["clientConfig"]["caBundle"];
    let rules = &desired[0]["webhooks"][0]["rules"];
    let of_rules =
        |index| json!({"op": "add", "path": format!("/webhooks/{index}/rules"), "value": rules});
    let of_bundle = |index| {
        let path = format!("/webhooks/{index}/clientConfig/caBundle");
        json!({"op": "add", "path": path, "value": bundle})
    };
    assert_eq!(
        patches(&writes(&desired, &stored, ALL)),
        [
            json!([of_rules(0), of_bundle(0)]),
            json!([of_rules(1), of_bundle(1)]),
            json!([of_bundle(0)]),
        ]
    );
    let only_rules = [json!([of_rules(0)]), json!([of_rules(1)])];
    assert_eq!(patches(&writes(&desired, &stored, RULES)), only_rules);
    let only_bundles = [json!([of_bundle(0)]), json!([of_bundle(1)]), json!([of_bundle(0)])];
    assert_eq!(patches(&writes(&desired, &stored, AUTHORITIES)), only_bundles);
}

#[test]
fn a_missing_webhook_is_added_also_to_a_registration_without_any() {
    let desired = desired("CA");
    let mut stored = stored(&desired);
    stored[0].as_mut().unwrap().as_object_mut().unwrap().remove("webhooks");
    stored[1].as_mut().unwrap()["webhooks"][0]["name"] = "user.example.org".into();
    let validate = &desired[1]["webhooks"][0];
    assert_eq!(
        patches(&writes(&desired, &stored, ALL)),
        [
            json!([{"op": "add", "path": "/webhooks", "value": desired[0]["webhooks"]}]),
            json!([{"op": "add", "path": "/webhooks/-", "value": validate}]),
        ]
    );
    assert_eq!(writes(&desired, &stored, AUTHORITIES), []);
}

#[test]
fn a_webhook_without_a_ca_bundle_fails_no_write_until_another_tool_has_set_it() {
    let settings = RegistrationSettings { failure_policy: FailurePolicy::Fail, ..settings("") };
    let desired = registrations(&calls("foos/status"), &settings);
    let created = writes(&desired, &[None, None, None], RULES);
    let created = created.into_iter().map(|(_, write)| {
        let RegistrationWrite::Create(registration) = write else { panic!("{write:?}") };
        registration
    });
    let created: [Value; 3] = created.collect::<Vec<_>>().try_into().unwrap();
    let marks = created.each_ref().map(|of| &of["metadata"]["annotations"][RAISE]);
    assert_eq!(marks, [&json!("Fail"), &json!("Fail"), &Value::Null]);
    for webhook in created.iter().flat_map(webhooks) {
        assert_eq!(webhook["failurePolicy"], "Ignore");
    }
    // The tool sets them one after the other.
    let mut stored = stored(&created);
    assert_eq!(writes(&desired, &stored, RULES), []);
    let of = |stored: &mut [Option<Value>; 3], index: usize, webhook: usize| {
        let client = &mut stored[index].as_mut().unwrap()["webhooks"][webhook]["clientConfig"];
        client["caBundle"] = "Q0E=".into();
    };
    of(&mut stored, 1, 0);
    of(&mut stored, 0, 0);
    let path = "/metadata/annotations/statusgate.dev~1failure-policy";
    let raised = json!([
        {"op": "add", "path": "/webhooks/0/failurePolicy", "value": "Fail"},
        {"op": "remove", "path": path},
    ]);
    assert_eq!(patches(&writes(&desired, &stored, RULES)), [raised.clone(), raised]);
    // Later, the failure policy belongs to the user.
    for registration in stored.iter_mut().flatten() {
        registration["metadata"]["annotations"] = json!({});
    }
    assert_eq!(writes(&desired, &stored, RULES), []);
}

#[test]
fn a_webhook_without_a_ca_bundle_in_an_existing_registration_fails_no_write() {
    let settings = RegistrationSettings { failure_policy: FailurePolicy::Fail, ..settings("") };
    let desired = registrations(&calls("foos/status"), &settings);
    let mut stored = stored(&desired);
    let [first, second, third] = &mut stored;
    *third = None;
    for registration in [first.as_mut().unwrap(), second.as_mut().unwrap()] {
        registration.as_object_mut().unwrap().remove("webhooks");
    }
    let annotations = json!({"cert-manager.io/inject-ca-from": "n/statusgate"});
    first.as_mut().unwrap()["metadata"]["annotations"] = annotations;
    let writes = writes(&desired, &stored, RULES);
    let patches = patches(&writes[..2]);
    for patch in &patches {
        assert_eq!(patch[0]["path"], "/webhooks");
        let policies = patch[0]["value"].as_array().unwrap().iter();
        assert!(policies.map(|of| &of["failurePolicy"]).all(|policy| policy == "Ignore"));
    }
    let path = "/metadata/annotations/statusgate.dev~1failure-policy";
    assert_eq!(patches[0][1], json!({"op": "add", "path": path, "value": "Fail"}));
    let added = json!({"op": "add", "path": "/metadata/annotations", "value": {RAISE: "Fail"}});
    assert_eq!(patches[1][1], added);
}

#[test]
fn documents_can_be_corrected_without_replicas_whatever_a_user_sets() {
    let settings = RegistrationSettings { failure_policy: FailurePolicy::Fail, ..settings("CA") };
    let desired = registrations(&calls("foos/status"), &settings);
    let mut stored = stored(&desired);
    for webhook in stored.iter_mut().flatten().flat_map(|of| of["webhooks"].as_array_mut().unwrap())
    {
        webhook["failurePolicy"] = "Fail".into();
    }
    let path = "/webhooks/0/failurePolicy";
    let operation = json!({"op": "add", "path": path, "value": "Ignore"});
    assert_eq!(patches(&writes(&desired, &stored, ALL)), [json!([operation])]);
    assert_eq!(writes(&desired, &stored, AUTHORITIES), []);
}

#[test]
fn another_url_replaces_the_address_and_a_changed_service_stays() {
    let mut service = stored(&desired("CA"));
    service[2].as_mut().unwrap()["webhooks"][0]["clientConfig"]["service"]["port"] = 8443.into();
    assert_eq!(writes(&desired("CA"), &service, ALL), []);
    let address = Address::Url("https://127.0.0.1:1".into());
    let url =
        registrations(&calls("foos/status"), &RegistrationSettings { address, ..settings("") });
    let patches = patches(&writes(&url, &service, RULES));
    assert_eq!(patches.len(), 3);
    let bundle = &desired("CA")[0]["webhooks"][0]["clientConfig"]["caBundle"];
    let client = json!({"url": "https://127.0.0.1:1/mutate", "caBundle": bundle});
    let operation = json!({"op": "add", "path": "/webhooks/0/clientConfig", "value": client});
    assert_eq!(patches[0], json!([operation]));
}

#[test]
fn our_match_conditions_replace_older_ones_and_leave_those_of_the_user() {
    let mut stored = stored(&desired("CA"));
    let own = json!({"name": "own", "expression": "true"});
    let old = json!({"name": "relevant-changes-2", "expression": "true"});
    stored[1].as_mut().unwrap()["webhooks"][0]["matchConditions"] = json!([old, own]);
    let condition = |name: &str| json!({"name": name, "expression": "false"});
    let of = |name| vec![condition(name)];
    let conditions = [of("status-changes"), of("relevant-changes-1")];
    let calls = Calls { conditions, ..calls("foos/status") };
    let desired = registrations(&calls, &settings("CA"));
    let patches = patches(&writes(&desired, &stored, ALL));
    let [of_mutating, ours] =
        [0, 1].map(|index| &desired[index]["webhooks"][0]["matchConditions"][0]);
    let path = |index| format!("/webhooks/{index}/matchConditions");
    assert_eq!(
        patches,
        [
            json!([{"op": "add", "path": path(0), "value": [of_mutating]}]),
            json!([{"op": "add", "path": path(0), "value": [own, ours]}])
        ]
    );
}

/// The webhooks that statusgate 0.1 registered with `--failure-policy Fail`.
fn old_webhooks(client: impl Fn(&str) -> Value) -> Value {
    let webhook = |part: &str, policy: FailurePolicy| {
        json!({"name": format!("{part}.statusgate.dev"), "failurePolicy": policy, "rules": [rule("a")],
            "clientConfig": client(&format!("/validate/{part}")), "timeoutSeconds": 9})
    };
    json!([webhook("agreement", FailurePolicy::Ignore), webhook("mandatory", FailurePolicy::Fail)])
}

#[test]
fn two_validating_webhooks_of_an_old_version_become_one_with_its_settings() {
    let service = |path: &str| json!({"caBundle": "Q0E=", "service": {"name": "s", "path": path}});
    let url = |path: &str| json!({"caBundle": "Q0E=", "url": format!("https://192.0.2.7:1{path}")});
    let webhooks = [old_webhooks(service), old_webhooks(url)];
    for (webhooks, client) in webhooks.into_iter().zip([service("/validate"), url("/validate")]) {
        let mut stored = json!({"metadata": {"resourceVersion": "7"}, "webhooks": webhooks});
        let user = json!({"name": "user.example.org"});
        stored["webhooks"].as_array_mut().unwrap().insert(1, user.clone());
        let patch: json_patch::Patch =
            serde_json::from_value(replacement(&stored).unwrap()).unwrap();
        json_patch::patch(&mut stored, &patch).unwrap();
        let validate = json!({"name": "validate.statusgate.dev", "failurePolicy": "Fail",
            "rules": [rule("a")], "clientConfig": client, "timeoutSeconds": 9});
        assert_eq!(stored["webhooks"], json!([user, validate]));
        assert_eq!(replacement(&stored), None);
        stored["webhooks"]
            .as_array_mut()
            .unwrap()
            .extend(old_webhooks(service).as_array().unwrap().clone());
        let patch: json_patch::Patch =
            serde_json::from_value(replacement(&stored).unwrap()).unwrap();
        json_patch::patch(&mut stored, &patch).unwrap();
        assert_eq!(stored["webhooks"], json!([user, validate]), "the new one exists");
    }
    let mut removed = json!({"metadata": {"annotations": {UNINSTALL: "true"}}});
    removed["webhooks"] = old_webhooks(service);
    assert_eq!(replacement(&removed), None);
}
