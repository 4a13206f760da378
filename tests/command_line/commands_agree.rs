//! For random objects of every built-in convention, `check` and `audit` find what the webhooks find.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use statusgate::cluster::Target;
use statusgate::cluster::audit::Judge;

use crate::statuses::pairs;
use crate::support::{CROSSPLANE, NOW, Outcome, Write, built_in, compile, policy};
use crate::wire::serve;

/// Random writes for each policy and user.
const WRITES: usize = 60;

/// Policies with additions, after one policy for each built-in convention.
const ADDITIONS: [(&str, &str); 5] = [
    (
        "appcat",
        "disagreement: Repair, backfill: [{path: /status/billing, value: {unit: GiB}}], preserve: [/status/billing]",
    ),
    (
        "appcat",
        "enforcement: Warn, disagreement: Audit, fields: [{path: /status/billing/unit, enum: [GiB, minutes]}]",
    ),
    ("appcat", "owners: [{path: /status/billing, users: [biller]}], preserve: [/status/billing]"),
    (
        "appcat",
        "writers: [{users: ['system:serviceaccount:*:crossplane'], disagreement: Repair}, {groups: ['system:authenticated'], disagreement: Warn}]",
    ),
    // This one selects the objects of the first addition too.
    ("metav1", ""),
];

/// The convention and the additions of each policy.
fn specs() -> Vec<(&'static str, &'static str)> {
    let built_in = built_in().conventions().keys().map(|name| (name.as_str(), ""));
    built_in.chain(ADDITIONS).collect()
}

/// Each policy selects an API group with three kinds. `Plain` has no status subresource.
fn documents() -> Vec<String> {
    let specs = specs();
    let shared = specs.len() - ADDITIONS.len();
    let document = |(index, (convention, additions)): (usize, &(&str, &str))| {
        let also = if index + 1 == specs.len() { format!(", g{shared}.io") } else { String::new() };
        let resources = |subresource: bool, names: &str| {
            format!(
                "{{apiGroups: [g{index}.io{also}], apiVersions: [v1], resources: [{names}], statusSubresource: {subresource}}}"
            )
        };
        let (things, plains) = (resources(true, "things, xthings"), resources(false, "plains"));
        policy(
            &format!("p{index}"),
            format!("convention: {convention}, resources: [{things}, {plains}], {additions}"),
        )
    };
    specs.iter().enumerate().map(document).collect()
}

/// A write of an object of the policy `index`.
#[derive(Clone, Debug)]
struct Case {
    index: usize,
    kind: &'static str,
    write: Write,
}

fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

fn cases(index: usize) -> impl Strategy<Value = Case> {
    let convention = &built_in().conventions()[specs()[index].0];
    let circumstances = (
        select(vec!["Thing", "XThing", "Plain"]),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.6),
        pairs(convention),
    );
    circumstances.prop_map(move |(kind, deleting, update, (old, new))| {
        let write = Write::to(&plural(kind))
            .group(&format!("g{index}.io"))
            .both("/kind", kind)
            .both("/metadata/namespace", "s")
            .both("/metadata/uid", "u")
            .both("/spec", json!({"a": [1, {"b": null}]}));
        let write = if kind == "Plain" { write.on_the_main_resource() } else { write };
        let write = if deleting { write.deleting() } else { write };
        let write = write.stored(old).sent(new);
        let write = if update { write } else { write.without_stored_object() };
        Case { index, kind, write }
    })
}

/// The same writes in every run meet enough rules, and others in each run with another seed.
fn runners() -> [TestRunner; 2] {
    [TestRunner::deterministic(), TestRunner::new(ProptestConfig::with_cases(1))]
}

fn all_cases(runners: &mut [TestRunner; 2]) -> Vec<Case> {
    let of_policy = |index| {
        let cases = cases(index);
        let writes = (0..WRITES).flat_map(|_| {
            runners.each_mut().map(|runner| cases.new_tree(runner).unwrap().current())
        });
        writes.collect::<Vec<Case>>()
    };
    (0..specs().len()).flat_map(of_policy).collect()
}

/// The findings of both webhooks.
fn found(outcome: &Outcome) -> BTreeSet<String> {
    outcome.findings.iter().map(|found| format!("{}: {found}", found.policy)).collect()
}

/// The actions and rules that the webhooks found. Without findings the comparisons prove nothing.
#[derive(Default)]
struct Met(BTreeSet<String>);

impl Met {
    fn add(&mut self, outcome: &Outcome) {
        let rules = outcome.rules().into_iter();
        self.0.extend(rules.map(|(action, rule)| format!("{} {rule}", action.label())));
    }

    fn assert_enough(&self) {
        // The same writes miss some rules, so these are groups of rules.
        for start in ["deny appcat/phase-", "repair appcat/phase-", "audit ", "warn "] {
            assert!(self.0.iter().any(|met| met.starts_with(start)), "{start}: {:#?}", self.0);
        }
        assert!(self.0.len() > 200, "{}: {:#?}", self.0.len(), self.0);
    }
}

#[test]
fn audit_finds_what_the_webhooks_find_in_a_first_write() {
    let policies = compile(&documents());
    let judge = Judge::new(&policies, None);
    let mut runners = runners();
    let mut met = Met::default();
    for Case { index, kind, write } in all_cases(&mut runners) {
        let group = format!("g{index}.io");
        let selects = |at: usize| at == index || documents()[at].contains(&format!(", {group}]"));
        let target = Target {
            group: group.clone(),
            version: "v1".into(),
            plural: plural(kind),
            kind: kind.into(),
            namespaced: true,
            status_subresource: kind != "Plain",
            policies: (0..specs().len())
                .filter(|at| selects(*at))
                .map(|at| u16::try_from(at).unwrap())
                .collect(),
        };
        let object = write.new_object();
        let text = object.to_string();
        let judged = judge.object(&target, &text, NOW.parse().unwrap()).unwrap();
        let audited = judged.states.iter().flat_map(|state| &state.findings);
        let audited: BTreeSet<String> = audited
            .map(|f| {
                let action = f.action.label();
                format!("{}: {action} {}: {} [{}]", f.policy, f.field, f.message, f.rule)
            })
            .collect();
        let expected = serve(&write.without_stored_object().by(""), &policies);
        assert_eq!(audited, found(&expected), "{object:#}");
        met.add(&expected);
    }
    met.assert_enough();
}

/// A YAML document in block style, which the command does not read as JSON.
fn yaml(object: &Value) -> String {
    let members = object.as_object().unwrap().iter();
    members.fold("---\n".to_owned(), |text, (key, value)| format!("{text}{key}: {value}\n"))
}

#[test]
fn check_finds_what_the_webhooks_find() {
    let policies = compile(&documents());
    let mut runners = runners();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("policies.yaml"), documents().join("---\n")).unwrap();
    let mut met = Met::default();
    let service_account =
        ["system:serviceaccounts", "system:serviceaccounts:syn-crossplane", "system:authenticated"];
    for (user, groups) in
        [("", &[][..]), ("biller", &["system:authenticated"]), (CROSSPLANE, &service_account)]
    {
        // One run for all objects: a process for each would take minutes.
        let number = |(at, case): (usize, Case)| {
            case.write.both("/metadata/name", format!("n{at}")).by(user).in_groups(groups)
        };
        let writes: Vec<Write> =
            all_cases(&mut runners).into_iter().enumerate().map(number).collect();
        let (mut new, mut old) = (String::new(), String::new());
        for (at, write) in writes.iter().enumerate() {
            match at % 2 {
                0 => new.push_str(&yaml(&write.new_object())),
                _ => writeln!(new, "---\n{}", write.new_object()).unwrap(),
            }
            old.extend(write.old_object().map(|object| yaml(&object)));
        }
        std::fs::write(path("new.yaml"), new).unwrap();
        std::fs::write(path("old.yaml"), old).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_statusgate"))
            .current_dir(folder.path())
            .args(["check", "new.yaml", "--old", "old.yaml", "--policies", "policies.yaml"])
            .args(["--as", user, "--now", NOW, "-o", "json"])
            .output()
            .unwrap();
        assert_eq!(output.stderr, b"", "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let objects: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects.len(), writes.len());
        for (write, object) in writes.iter().zip(&objects) {
            let expected = serve(write, &policies);
            met.add(&expected);
            let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
            let findings = object["findings"].as_array().unwrap();
            let checked: BTreeSet<String> = findings
                .iter()
                .map(|finding| {
                    let [policy, action, field, message, rule, cause] =
                        ["policy", "action", "field", "message", "rule", "cause"]
                            .map(|key| text(finding, key));
                    format!("{policy}: {action} {field}: {message} [{rule}] {cause}")
                })
                .collect();
            let wanted = expected.findings.iter();
            let wanted: BTreeSet<String> =
                wanted.map(|f| format!("{}: {f} {}", f.policy, f.reason)).collect();
            assert_eq!(checked, wanted, "{write:#?}");
            let patch = Some(&expected.patch).filter(|patch| !patch.is_null());
            assert_eq!(&object["patch"], patch.unwrap_or(&json!([])), "{write:#?}");
        }
    }
    met.assert_enough();
}
