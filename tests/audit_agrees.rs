//! `audit` gives for a stored object the verdict that the webhooks give when this very state is
//! written for the first time: one property over random objects of every built-in convention,
//! beside reviews through the whole server.
//!
//! The objects are the same at every run.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::{Map, Value, json};
use statusgate::cluster::Target;
use statusgate::cluster::audit::Judge;
use statusgate::engine::Action;
use statusgate::model::{Pointer, Webhook};
use statusgate::policy::{PolicySet, Source};
use statusgate::server::admit::admit;

const NOW: &str = "2024-06-01T12:00:00Z";

/// Objects a policy.
const OBJECTS: usize = 150;

/// Beside one policy for each built-in convention: what policies may add, several policies on one
/// kind, and a kind without the status subresource.
const POLICIES: [(&str, &str); 5] = [
    (
        "repair",
        "convention: appcat, disagreement: Repair, backfill: [{path: /status/billing, value: {unit: GiB}}]",
    ),
    (
        "warn",
        "convention: appcat, enforcement: Warn, fields: [{path: /status/billing/unit, enum: [GiB]}]",
    ),
    ("writers", "convention: appcat, writers: [{users: ['*'], disagreement: Repair}]"),
    (
        "owners",
        "convention: appcat, owners: [{path: /status/billing, users: [biller]}], preserve: [/status/billing]",
    ),
    ("twice", "convention: metav1"),
];

/// Every policy has a kind of its own with the subresource, and one without; `twice` speaks of the
/// kinds of `repair` too.
fn policies() -> PolicySet {
    let all = PolicySet::compile(&[]).unwrap();
    let mut specs: Vec<(String, String)> = all
        .conventions()
        .keys()
        .map(|name| (format!("of-{name}"), format!("convention: {name}")))
        .collect();
    let own = |(name, spec): &(&str, &str)| ((*name).to_owned(), (*spec).to_owned());
    specs.extend(POLICIES.iter().map(own));
    let text = |(name, spec): &(String, String)| {
        let also = if name == "twice" { ", repair-things" } else { "" };
        format!(
            "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: {name}}}, spec: {{{spec}, resources: [\
             {{apiGroups: [g.io], apiVersions: [v1], resources: [{name}-things{also}]}}, \
             {{apiGroups: [g.io], apiVersions: [v1], resources: [{name}-plains], statusSubresource: false}}]}}}}"
        )
    };
    let source = |spec| Source { name: "p.yaml".to_owned(), text: text(spec) };
    PolicySet::compile(&specs.iter().map(source).collect::<Vec<_>>()).unwrap()
}

/// The words that a policy's convention knows, and a few that it does not.
#[derive(Clone, Debug)]
struct Words {
    phase: Option<Pointer>,
    phases: Vec<String>,
    list: Option<Pointer>,
    types: Vec<String>,
}

fn words(policies: &PolicySet, index: usize) -> Words {
    let convention = &policies.policies()[index].convention;
    let odd = |words: &mut Vec<String>, odd: &[&str]| {
        words.extend(odd.iter().map(|word| (*word).to_owned()));
    };
    let rules = convention.phase.as_ref();
    let mut phases: Vec<String> = rules
        .map(|rules| rules.phases.iter().map(|phase| phase.name.clone()).collect())
        .unwrap_or_default();
    odd(&mut phases, &["", "ready"]);
    let list = convention.primary_conditions("v1");
    let mut types: Vec<String> = list
        .map(|list| list.types.known.iter().map(|kind| kind.name.replace('*', "Any")).collect())
        .unwrap_or_default();
    odd(&mut types, &["Ready", "two words"]);
    Words {
        phase: rules.map(|rules| rules.path.clone()),
        phases,
        list: list.map(|list| list.path.clone()),
        types,
    }
}

const TIMES: [&str; 4] =
    ["2024-06-01T10:00:00Z", "2024-06-01T11:00:00Z", "2999-01-01T00:00:00Z", "yesterday"];

fn status(words: &Words) -> impl Strategy<Value = Option<Value>> + use<> {
    let member = (
        select(words.types.clone()),
        select(vec!["True", "True", "False", "False", "Unknown", "Maybe"]),
        select(vec!["Available", "Creating", "two words"]),
        prop::option::weighted(0.9, select(TIMES.to_vec())),
        prop::option::weighted(0.3, 0..4_i64),
    );
    let condition = member.prop_map(|(kind, status, reason, time, generation)| {
        let mut item = json!({"type": kind, "status": status, "reason": reason, "message": "m"});
        if let Some(time) = time {
            item["lastTransitionTime"] = time.into();
        }
        if let Some(generation) = generation {
            item["observedGeneration"] = generation.into();
        }
        item
    });
    let words = words.clone();
    let parts = (
        prop::option::weighted(0.8, select(words.phases.clone()).prop_map(Value::from)),
        prop::option::weighted(0.9, prop::collection::vec(condition, 0..4)),
        prop::option::weighted(0.5, select(TIMES.to_vec())),
        prop::option::weighted(0.3, select(vec![json!({"unit": "gib"}), json!(null), json!(5)])),
        prop::option::weighted(0.05, select(vec![json!(5), json!([]), json!("x"), json!(null)])),
    );
    let whole = parts.prop_map(move |(phase, conditions, time, billing, odd)| {
        if let Some(odd) = odd {
            return odd;
        }
        let mut object = json!({"status": {"instanceNamespace": "n", "observedGeneration": 2}});
        if let (Some(path), Some(phase)) = (&words.phase, phase) {
            put(&mut object, path, phase);
        }
        if let (Some(path), Some(conditions)) = (&words.list, conditions) {
            put(&mut object, path, conditions.into());
        }
        if let Some(time) = time {
            object["status"]["lastTransitionTime"] = time.into();
        }
        if let Some(billing) = billing {
            object["status"]["billing"] = billing;
        }
        object["status"].take()
    });
    prop::option::weighted(0.95, whole)
}

fn put(object: &mut Value, path: &Pointer, value: Value) {
    let mut place = object;
    let path = path.field().to_owned();
    for token in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[token];
    }
    *place = value;
}

/// What the server says to the two reviews of a first write.
fn reviewed(policies: &PolicySet, target: &Target, object: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut ask = |webhook: Webhook, object: &Value| -> Value {
        let operation = if target.status_subresource { "UPDATE" } else { "CREATE" };
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "name": "a", "namespace": "n", "operation": operation,
                "kind": {"group": target.group, "version": target.version, "kind": target.kind},
                "resource": {"group": target.group, "version": target.version,
                    "resource": target.plural},
                "subResource": target.subresource(), "userInfo": {"username": ""},
                "object": object}})
        .to_string();
        let now = NOW.parse().unwrap();
        let reply = admit(policies, webhook, review.as_bytes(), now, |_, verdict| {
            found.extend(verdict.findings.iter().map(|finding| {
                let (rule, action) = (finding.rule, finding.action);
                said(finding.policy, rule, action, &finding.field, &finding.message)
            }));
        });
        assert_eq!(reply.status, 200);
        serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].take()
    };
    let mut object = object.clone();
    let mutated = ask(Webhook::Mutate, &object);
    if let Some(encoded) = mutated["patch"].as_str() {
        let patch = STANDARD.decode(encoded).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    }
    let validated = ask(Webhook::Validate, &object);
    let denied = found.iter().any(|said| said.contains(" | deny | "));
    assert_eq!(validated["allowed"], !denied);
    found
}

fn said(policy: &str, rule: &str, action: Action, field: &str, message: &str) -> String {
    [policy, rule, action.label(), field, message].join(" | ")
}

#[test]
fn audit_says_what_the_webhooks_say_to_the_same_state() {
    let policies = policies();
    let judge = Judge::new(&policies, None);
    let mut runner = TestRunner::new(ProptestConfig {
        rng_seed: RngSeed::Fixed(0x6175_6469),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let now: Timestamp = NOW.parse().unwrap();
    let mut rules = BTreeSet::new();
    for index in 0..policies.policies().len() {
        let statuses = status(&words(&policies, index));
        for number in 0..OBJECTS {
            let status = statuses.new_tree(&mut runner).unwrap().current();
            let mut object = json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "generation": 2,
                "creationTimestamp": "2024-06-01T09:00:00Z"}, "spec": {"a": [1, {"b": null}]}});
            if number % 7 == 0 {
                object["metadata"]["deletionTimestamp"] = "2024-06-01T11:59:00Z".into();
            }
            if let Some(status) = status {
                object["status"] = status;
            }
            let name = &policies.policies()[index].name;
            let with_subresource = number % 5 != 0;
            let suffix = if with_subresource { "things" } else { "plains" };
            let mut selected = vec![u16::try_from(index).unwrap()];
            if name == "repair" && with_subresource {
                let twice = policies.names().position(|name| name == "twice").unwrap();
                selected.push(u16::try_from(twice).unwrap());
            }
            let target = Target {
                group: "g.io".into(),
                version: "v1".into(),
                plural: format!("{name}-{suffix}"),
                kind: "Thing".into(),
                namespaced: true,
                status_subresource: with_subresource,
                policies: selected,
            };
            let text = object.to_string();
            let judged = judge.object(&target, &text, now).unwrap();
            let audited = judged.states.iter().flat_map(|state| &state.findings);
            let audited: BTreeSet<String> = audited
                .map(|found| {
                    said(&found.policy, &found.rule, found.action, &found.field, &found.message)
                })
                .collect();
            let expected = reviewed(&policies, &target, &object);
            assert_eq!(audited, expected, "{name}: {object:#}");
            rules.extend(expected.iter().filter_map(|said| {
                let mut parts = said.split(" | ").skip(1);
                Some(format!("{} {}", parts.next()?, parts.next()?))
            }));
        }
    }
    // A property over verdicts that never come about would prove nothing.
    for met in ["appcat/phase-ready deny", "appcat/phase-ready repair", "appcat/phase-value deny"] {
        assert!(rules.contains(met), "{met}: {rules:#?}");
    }
    assert!(rules.len() > 40, "{}: {rules:#?}", rules.len());
}
