//! `check` gives for an object the verdict that the webhooks give: one property over random objects,
//! from files through the whole command, beside reviews through the whole server.
//!
//! The objects are the same at every run. They are judged in a few runs of the command, for a
//! process an object would take minutes.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::{Map, Value, json};
use statusgate::model::Webhook;
use statusgate::policy::{PolicySet, Source};
use statusgate::server::admit::admit;

const T0: &str = "2024-06-01T11:00:00Z";
const NOW: &str = "2024-06-01T12:00:00Z";
const CROSSPLANE: &str = "system:serviceaccount:syn-crossplane:crossplane";

/// Objects a run: enough that every rule of the convention is met several times.
const OBJECTS: usize = 500;

/// Four groups, each with another policy; `Plain` has no status subresource.
const POLICIES: [&str; 4] = [
    "disagreement: Deny",
    "disagreement: Repair, backfill: [{path: /status/billing, value: {unit: GiB}}], preserve: [/status/billing]",
    "disagreement: Deny, writers: [{users: ['system:serviceaccount:*:crossplane'], disagreement: Repair}, {groups: ['system:authenticated'], disagreement: Warn}]",
    "disagreement: Audit, enforcement: Warn, owners: [{path: /status/billing, users: [biller]}], fields: [{path: /status/billing/unit, enum: [GiB, minutes]}]",
];

fn policies() -> String {
    let policy = |index: usize, kind: &str, spec: &str, subresource: bool| {
        format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p{index}-{kind}}}\n\
             spec: {{convention: appcat, {spec}, resources: [{{apiGroups: [g{index}.example.com], apiVersions: [v1], resources: [{kind}], statusSubresource: {subresource}}}]}}\n"
        )
    };
    let both = |(index, spec): (usize, &&str)| {
        [
            policy(index, "things", spec, true),
            policy(index, "xthings", spec, true),
            policy(index, "plains", spec, false),
        ]
    };
    POLICIES.iter().enumerate().flat_map(both).collect::<Vec<_>>().join("---\n")
}

#[derive(Clone, Debug)]
struct Write {
    group: usize,
    kind: &'static str,
    deleting: bool,
    old: Option<Option<Value>>,
    new: Option<Value>,
}

fn text(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    select(words).prop_map(Value::from)
}

/// Mostly `sane`; absent or of another type now and then.
fn mostly(sane: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Option<Value>> {
    let odd = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(-7)),
        Just(json!(1.5)),
        Just(json!("ä\u{0}\n\t'\" # : -")),
        Just(json!("")),
        Just(json!([])),
        Just(json!({"": [{"a/b": {}}]})),
    ];
    prop_oneof![16 => sane.prop_map(Some), 3 => Just(None), 1 => odd.prop_map(Some)]
}

fn object(members: Vec<(&str, Option<Value>)>) -> Value {
    let present = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    Value::Object(members.into_iter().filter_map(present).collect::<Map<_, _>>())
}

const TIMES: &[&str] = &["2024-06-01T10:00:00Z", T0, T0, "2999-01-01T00:00:00Z", "yesterday"];

fn condition() -> impl Strategy<Value = Value> {
    let members = (
        mostly(text(&["Ready", "Ready", "Synced", "PodReady", "no type"])),
        mostly(text(&["True", "True", "False", "False", "Unknown", "true"])),
        mostly(text(&["Available", "ReconcilePaused", "two words"])),
        mostly(text(TIMES)),
    );
    members.prop_map(|(kind, status, reason, time)| {
        object(vec![
            ("type", kind),
            ("status", status),
            ("reason", reason),
            ("lastTransitionTime", time),
        ])
    })
}

const PHASES: &[&str] = &[
    "Deleting",
    "Failed",
    "Provisioning",
    "Maintenance",
    "Degraded",
    "Ready",
    "Ready",
    "Unknown",
    "ready",
    "",
];

fn status() -> impl Strategy<Value = Value> {
    let members = (
        mostly(text(PHASES)),
        mostly(prop::collection::vec(condition(), 0..4).prop_map(Value::from)),
        mostly(text(TIMES)),
        mostly(text(&["vshn-redis-x", ""])),
        mostly(select(vec!["GiB", "gib"]).prop_map(|unit| json!({"unit": unit}))),
    );
    members.prop_map(|(phase, conditions, time, namespace, billing)| {
        object(vec![
            ("phase", phase),
            ("conditions", conditions),
            ("lastTransitionTime", time),
            ("instanceNamespace", namespace),
            ("billing", billing),
        ])
    })
}

fn writes() -> impl Strategy<Value = Write> {
    let circumstances = (
        0..POLICIES.len(),
        select(vec!["Thing", "XThing", "Plain"]),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.6, mostly(status())),
        mostly(status()),
        // Most writes change one thing.
        prop::option::of(select(vec!["phase", "conditions", "billing", "nothing"])),
    );
    circumstances.prop_map(|(group, kind, deleting, old, new, only)| {
        let new = match (&old, only) {
            (Some(Some(Value::Object(old))), Some(name)) => {
                let mut changed = old.clone();
                match new.as_ref().and_then(|new| new.get(name)) {
                    Some(value) => drop(changed.insert(name.to_owned(), value.clone())),
                    None => drop(changed.remove(name)),
                }
                Some(Value::Object(changed))
            }
            _ => new,
        };
        Write { group, kind, deleting, old, new }
    })
}

impl Write {
    fn document(&self, index: usize, status: Option<&Value>) -> Value {
        let mut metadata = json!({"name": format!("n{index}"), "namespace": "s", "generation": 3,
            "creationTimestamp": "2024-06-01T09:00:00Z"});
        if self.deleting {
            metadata["deletionTimestamp"] = "2024-06-01T11:59:00Z".into();
        }
        let mut document = json!({"apiVersion": format!("g{}.example.com/v1", self.group),
            "kind": self.kind, "metadata": metadata, "spec": {"a": [1, {"b": null}]}});
        if let Some(status) = status {
            document["status"] = status.clone();
        }
        document
    }

    /// What the server says to the two reviews of this write: findings and patch.
    fn reviewed(&self, policies: &PolicySet, index: usize, user: &str) -> Said {
        let plain = self.kind == "Plain";
        let old = self.old.as_ref().map(|old| self.document(index, old.as_ref()));
        let mut groups = Vec::new();
        if user.starts_with("system:serviceaccount:") {
            groups.extend(["system:serviceaccounts", "system:serviceaccounts:syn-crossplane"]);
        }
        if !user.is_empty() {
            groups.push("system:authenticated");
        }
        let review = |object: &Value| {
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
                "uid": "u", "kind": {"group": format!("g{}.example.com", self.group), "version": "v1", "kind": self.kind},
                "resource": {"group": format!("g{}.example.com", self.group), "version": "v1",
                    "resource": format!("{}s", self.kind.to_lowercase())},
                "subResource": if plain { "" } else { "status" }, "name": format!("n{index}"), "namespace": "s",
                "operation": if plain && old.is_none() { "CREATE" } else { "UPDATE" },
                "userInfo": {"username": user, "groups": groups}, "object": object, "oldObject": old}})
            .to_string()
        };
        let mut said = Said::default();
        let mut ask = |webhook: Webhook, object: &Value| -> Value {
            let (body, now) = (review(object), NOW.parse().unwrap());
            let reply = admit(policies, webhook, body.as_bytes(), now, |_, verdict| {
                assert_eq!(verdict.policies.len(), 1, "one policy selects each object");
                said.findings.extend(verdict.findings.iter().map(|finding| {
                    [
                        finding.policy,
                        finding.rule,
                        finding.action.label(),
                        &finding.field,
                        finding.cause.reason(),
                        &finding.message,
                    ]
                    .join(" | ")
                }));
            });
            assert_eq!(reply.status, 200);
            serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].clone()
        };
        let mut object = self.document(index, self.new.as_ref());
        let mutated = ask(Webhook::Mutate, &object);
        let mut patch = json!([]);
        if let Some(encoded) = mutated["patch"].as_str() {
            patch = serde_json::from_slice(&STANDARD.decode(encoded).unwrap()).unwrap();
            let operations: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
            json_patch::patch(&mut object, &operations).unwrap();
        }
        let validated = ask(Webhook::Validate, &object);
        said.denied = validated["allowed"] == false;
        said.patch = patch.to_string();
        said
    }
}

/// A verdict in a form that can be compared, whoever gave it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    denied: bool,
    findings: BTreeSet<String>,
    patch: String,
}

impl Said {
    fn of(object: &Value) -> Self {
        let findings = object["findings"].as_array().unwrap().iter();
        let text = |finding: &Value| {
            ["policy", "rule", "action", "field", "cause", "message"]
                .map(|key| finding[key].as_str().unwrap().to_owned())
                .join(" | ")
        };
        Self {
            denied: findings.clone().any(|finding| finding["action"] == "deny"),
            findings: findings.map(text).collect(),
            patch: object["patch"].to_string(),
        }
    }
}

/// As YAML whose first level is a block, so that it is not read as JSON.
fn yaml(document: &Value) -> String {
    let mut text = "---\n".to_owned();
    for (key, value) in document.as_object().unwrap() {
        writeln!(text, "{key}: {value}").unwrap();
    }
    text
}

#[test]
fn check_says_what_the_webhooks_say() {
    let policies = policies();
    let source = Source { name: "policies.yaml".to_owned(), text: policies.clone() };
    let compiled = PolicySet::compile(&[source]).unwrap();
    let mut runner = TestRunner::new(ProptestConfig {
        rng_seed: RngSeed::Fixed(0x6368_6563),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("policies.yaml"), policies).unwrap();
    let mut seen = BTreeSet::new();
    for user in ["", "biller", CROSSPLANE] {
        let strategy = writes();
        let writes: Vec<Write> =
            (0..OBJECTS).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
        // Half as YAML, half as JSON lines; in the order of the writes.
        let (mut new, mut old) = (String::new(), String::new());
        for (index, write) in writes.iter().enumerate() {
            let document = write.document(index, write.new.as_ref());
            match index % 2 {
                0 => new.push_str(&yaml(&document)),
                _ => writeln!(new, "---\n{document}").unwrap(),
            }
            if let Some(stored) = &write.old {
                old.push_str(&yaml(&write.document(index, stored.as_ref())));
            }
        }
        std::fs::write(path("new.yaml"), new).unwrap();
        std::fs::write(path("old.yaml"), old).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_statusgate"));
        command.current_dir(folder.path());
        command.args(["check", "new.yaml", "--old", "old.yaml", "--policies", "policies.yaml"]);
        command.args(["--as", user, "--now", NOW, "-o", "json"]);
        let output = command.output().unwrap();
        assert_eq!(output.stderr, b"", "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let objects = report["objects"].as_array().unwrap();
        assert_eq!(objects.len(), writes.len());
        for (index, (write, object)) in writes.iter().zip(objects).enumerate() {
            let expected = write.reviewed(&compiled, index, user);
            seen.extend(expected.findings.iter().filter_map(|finding| {
                let mut parts = finding.split(" | ").skip(1);
                Some(format!("{} {}", parts.next()?, parts.next()?))
            }));
            assert_eq!(Said::of(object), expected, "{user}: {write:#?}");
        }
    }
    // A property over verdicts that never come about would prove nothing.
    for met in ["appcat/phase-value deny", "appcat/phase-ready repair", "appcat/phase-ready deny"] {
        assert!(seen.contains(met), "{met}: {seen:#?}");
    }
    assert!(seen.len() > 20, "{seen:#?}");
}
