//! For random objects of every built-in convention and for recorded reviews, `check`, `test`, `review` and `audit` find what
//! the webhooks find.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use statusgate_cluster::Target;
use statusgate_cluster::audit::Judge;
use statusgate_core::engine::Action;
use statusgate_core::policy::PolicySet;

use crate::command::{Ended, folder_of, run_in};
use crate::statuses::pairs;
use crate::support::{CROSSPLANE, Found, NOW, Outcome, Write, built_in, compile, policy};
use crate::wire::{patch_of, serve};

/// Random writes for each policy and user.
const WRITES: usize = 60;

/// Policies with additions, after one policy for each built-in convention.
const ADDITIONS: [(&str, &str); 6] = [
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
    (
        "kstatus",
        "rules: [{name: kind, expression: \"self.kind in ['Thing', 'XThing', 'Plain'] && self.apiVersion.endsWith('/v1')\", message: another kind}]",
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
fn yaml(object: &Value, spelling: usize) -> String {
    let members = object.as_object().unwrap().iter();
    members.fold("---\n".to_owned(), |text, (key, value)| {
        format!("{text}{key}: {}\n", spelled(value, spelling))
    })
}

/// JSON with integers in another spelling, which an API server does not keep.
fn spelled(value: &Value, spelling: usize) -> String {
    match value {
        Value::Number(number)
            if number.as_i64().is_some_and(|number| number.unsigned_abs() < 1 << 53) =>
        {
            format!("{number}{}", ["", ".0", "e0"][spelling % 3])
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| spelled(item, spelling)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let member = |(name, value)| format!("{}:{}", json!(name), spelled(value, spelling));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// A value as an API server sends it.
fn sent(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "a small integer")]
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                (float as i64).into()
            }
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(sent).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, sent(value))).collect()
        }
        other => other,
    }
}

/// Writes, and the folder with `policies.yaml`.
struct Desk<'d> {
    folder: &'d Path,
    writes: &'d [Write],
    expected: Vec<Outcome>,
}

impl<'d> Desk<'d> {
    fn of(folder: &'d Path, policies: &PolicySet, writes: &'d [Write]) -> Self {
        let expected = writes.iter().map(|write| serve(write, policies)).collect();
        Self { folder, writes, expected }
    }

    /// The lines of a command that print JSON, one for each write.
    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let ended = run_in(self.folder, [arguments, &["--now", NOW, "-o", "json"]].concat());
        assert_eq!(ended.err, "");
        let lines = ended.objects();
        assert_eq!(lines.len(), self.writes.len());
        lines
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    /// All writes are by this user.
    fn check_agrees(&self, user: &str) {
        let (mut new, mut old) = (String::new(), String::new());
        for (at, write) in self.writes.iter().enumerate() {
            let mut object = write.new_object();
            match at % 4 {
                0 => writeln!(new, "---\n{}", spelled(&object, at)).unwrap(),
                // An item of a typed list has no kind of its own.
                1 => {
                    let members = object.as_object_mut().unwrap();
                    let [version, kind] =
                        ["apiVersion", "kind"].map(|name| members.remove(name).unwrap());
                    let kind = format!("{}List", kind.as_str().unwrap());
                    writeln!(
                        new,
                        "---\n{{\"apiVersion\":{version},\"kind\":\"{kind}\",\"items\":[{}]}}",
                        spelled(&object, at)
                    )
                    .unwrap();
                }
                _ => new.push_str(&yaml(&object, at)),
            }
            old.extend(write.old_object().map(|object| yaml(&object, at + 1)));
        }
        self.write("new.yaml", &new);
        self.write("old.yaml", &old);
        let arguments =
            ["check", "new.yaml", "--old", "old.yaml", "--policies", "policies.yaml", "--as", user];
        self.finds_the_same(&arguments);
    }

    /// What `check` finds.
    fn finds_the_same(&self, arguments: &[&str]) {
        for ((write, expected), object) in
            self.writes.iter().zip(&self.expected).zip(self.lines(arguments))
        {
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

    fn test_agrees(&self) {
        let case = |(at, (write, expected)): (usize, (&Write, &Outcome))| {
            let strongest = expected.findings.iter().map(|found| found.action).max();
            let verdict = match strongest {
                Some(Action::Deny) => "deny",
                Some(Action::Repair | Action::Warn) => "warn",
                Some(Action::Audit) | None => "allow",
            };
            let finding = |f: &Found| json!({"rule": f.rule, "field": f.field, "action": f.action, "message": f.message});
            let findings: Value = expected.findings.iter().map(finding).collect();
            let patch =
                if expected.patch.is_null() { json!("none") } else { expected.patch.clone() };
            let expect = json!({"verdict": verdict, "findings": findings, "patch": patch});
            let object = spelled(&write.new_object(), at);
            let old = write.old_object().map(|old| format!("\"old\": {},", spelled(&old, at + 2)));
            let old = old.unwrap_or_default();
            let writer = write.writer();
            format!(
                "  - {{\"name\": \"{at}\", \"object\": {object}, {old} \"writer\": {writer}, \"expect\": {expect}}}\n"
            )
        };
        let cases: String = self.writes.iter().zip(&self.expected).enumerate().map(case).collect();
        self.write("suite.yaml", &format!("policies: policies.yaml\nnow: {NOW}\ncases:\n{cases}"));
        let Ended { code, out, err } = run_in(self.folder, ["test", "suite.yaml"]);
        let others: Vec<&str> = out.lines().filter(|line| !line.starts_with("ok ")).collect();
        assert_eq!((code, err.as_str()), (Some(0), ""), "{others:#?}");
        assert!(
            out.ends_with(&format!(": {} passed, 0 failed\n", self.writes.len())),
            "{others:#?}"
        );
    }

    fn review_agrees(&self) {
        let requests = |after: bool| {
            let writes = self.writes.iter().zip(&self.expected);
            let write = |(write, expected): (&Write, &Outcome)| {
                if after {
                    write.after(&write.patched_by(expected.patch.clone()))
                } else {
                    write.clone()
                }
            };
            writes.map(|both| format!("{}\n", write(both).request())).collect::<String>()
        };
        self.write("mutate.json", &requests(false));
        self.write("validate.json", &requests(true));
        let of = |webhook, file| {
            ["review", "--webhook", webhook, "-f", file, "--policies", "policies.yaml"]
        };
        let mutated = self.lines(&of("mutate", "mutate.json"));
        let validated = self.lines(&of("validate", "validate.json"));
        for ((expected, mutated), validated) in self.expected.iter().zip(&mutated).zip(&validated) {
            assert_eq!(patch_of(&mutated["response"]), expected.patch);
            assert_eq!(validated["response"]["allowed"], !expected.is_denied());
        }
        self.finds_the_same(&["check", "mutate.json", "--policies", "policies.yaml"]);
    }
}

#[test]
fn check_test_review_and_the_server_give_one_verdict() {
    let policies = compile(&documents());
    let mut runners = runners();
    let folder = folder_of(&[("policies.yaml", &documents().join("---\n"))]);
    let mut met = Met::default();
    let service_account =
        ["system:serviceaccounts", "system:serviceaccounts:syn-crossplane", "system:authenticated"];
    for (user, groups) in [
        ("nobody", &["system:authenticated"][..]),
        ("biller", &["system:authenticated"]),
        (CROSSPLANE, &service_account),
    ] {
        // One run for all objects: a process for each would take minutes.
        let number = |(at, case): (usize, Case)| {
            let write = case.write.map_objects(sent);
            write.both("/metadata/name", format!("n{at}")).by(user).in_groups(groups)
        };
        let writes: Vec<Write> =
            all_cases(&mut runners).into_iter().enumerate().map(number).collect();
        let desk = Desk::of(folder.path(), &policies, &writes);
        desk.check_agrees(user);
        let some: Vec<Write> = writes.iter().step_by(4).cloned().collect();
        let other = Desk::of(folder.path(), &policies, &some);
        other.test_agrees();
        other.review_agrees();
        desk.expected.iter().for_each(|expected| met.add(expected));
    }
    met.assert_enough();
}

#[test]
fn check_test_review_and_the_server_give_one_verdict_for_recorded_reviews() {
    let mut writes: BTreeMap<String, Vec<Write>> = BTreeMap::new();
    let examples: Vec<String> =
        PolicySet::examples().into_iter().map(|source| source.text).collect();
    for entry in walkdir::WalkDir::new("tests/fixtures/reviews").min_depth(2).max_depth(2) {
        let entry = entry.unwrap().into_path();
        let text = std::fs::read_to_string(entry.join("review.json")).unwrap_or_default();
        let outcome = entry.parent().and_then(Path::file_name).unwrap();
        let Ok(review) = serde_json::from_str::<Value>(&text) else { continue };
        let request = &review["request"];
        let is_write = request["object"].is_object() && request["dryRun"] != true;
        if outcome == "malformed"
            || outcome == "unjudged"
            || !is_write
            || request["subResource"] != "status"
        {
            continue;
        }
        let name = |path: &str| {
            request.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let groups: Vec<String> =
            serde_json::from_value(request["userInfo"]["groups"].clone()).unwrap_or_default();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let old = Some(&request["oldObject"]).filter(|old| old.is_object());
        let write = Write::of_texts(old.map(Value::to_string), request["object"].to_string())
            .addressing(
                &name("/resource/group"),
                &name("/resource/version"),
                &name("/resource/resource"),
            )
            .by(&name("/userInfo/username"))
            .in_groups(&groups)
            .map_objects(sent);
        let policies = std::fs::read_to_string(entry.join("policy.yaml"));
        let policies = policies.unwrap_or_else(|_| examples.join("\n---\n"));
        writes.entry(policies).or_default().push(write);
    }
    assert!(writes.values().flatten().count() > 40);
    for (policies, writes) in writes {
        let folder = folder_of(&[("policies.yaml", &policies)]);
        let desk = Desk::of(folder.path(), &compile(&[policies]), &writes);
        desk.test_agrees();
        desk.review_agrees();
    }
}
