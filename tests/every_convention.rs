//! What holds of every built-in convention, whatever is stored and whatever is written: the laws of
//! a verdict, over statuses in the convention's own words. `properties` asks the same of policies
//! and their settings, over AppCat's.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use serde_json::{Map, Value, json};
use statusgate::engine::{Action, Verdict, decide};
use statusgate::model::{Object, Operation, Pointer, Resource, Subject, Webhook, Writer};
use statusgate::policy::convention::{Backfill, ConditionList, Convention, Filling};
use statusgate::policy::{Disposition, PolicySet, Predicate, Source};

const EARLIER: &str = "2024-06-01T10:00:00Z";
const T0: &str = "2024-06-01T11:00:00Z";
const NOW: &str = "2024-06-01T12:00:00Z";
const LATER: &str = "2024-06-01T12:01:00Z";

/// The same cases at every run.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x6576_6572),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

// --- the policies -----------------------------------------------------------------------------

/// One policy, which speaks of the API group `gINDEX`.
#[derive(Clone, Debug)]
struct Settings {
    index: usize,
    convention: String,
    disagreement: &'static str,
    /// With every rule and default that is off by itself.
    everything: bool,
    subresource: bool,
    /// The convention of a second policy on the same resources, which repairs, too.
    beside: Option<String>,
}

fn all_settings() -> &'static [Settings] {
    static ALL: OnceLock<Vec<Settings>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for convention in built_in().conventions().keys() {
            for disagreement in ["Deny", "Repair", "Warn"] {
                for everything in [false, true] {
                    for subresource in [true, false] {
                        let (index, convention) = (all.len(), convention.clone());
                        all.push(Settings {
                            index,
                            convention,
                            disagreement,
                            everything,
                            subresource,
                            beside: None,
                        });
                    }
                }
            }
        }
        let with_phase = |(_, convention): &(&String, &Arc<Convention>)| convention.phase.is_some();
        for (convention, _) in built_in().conventions().iter().filter(with_phase) {
            for beside in built_in().conventions().keys() {
                all.push(Settings {
                    index: all.len(),
                    convention: convention.clone(),
                    disagreement: "Repair",
                    everything: true,
                    subresource: true,
                    beside: Some(beside.clone()),
                });
            }
        }
        all
    })
}

fn built_in() -> &'static PolicySet {
    static BUILT_IN: OnceLock<PolicySet> = OnceLock::new();
    BUILT_IN.get_or_init(|| PolicySet::compile(&[]).unwrap_or_else(|error| panic!("{error}")))
}

/// The policies that are alone, and those that are not: in one set each would be asked of every write.
fn policies_of(settings: &Settings) -> &'static PolicySet {
    static ALONE: OnceLock<PolicySet> = OnceLock::new();
    static BESIDE: OnceLock<PolicySet> = OnceLock::new();
    let beside = settings.beside.is_some();
    if beside { &BESIDE } else { &ALONE }.get_or_init(|| {
        let documents = all_settings().iter().filter(|other| other.beside.is_some() == beside);
        let documents: Vec<String> = documents.map(Settings::document).collect();
        let source = Source { name: "all.yaml".into(), text: documents.join("---\n") };
        PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"))
    })
}

impl Settings {
    fn document(&self) -> String {
        let Self { index, convention, disagreement, subresource, beside, .. } = self;
        let policy = |name: String, convention: &String| {
            let parts = built_in().conventions()[convention].optional_parts();
            let parts: Vec<&str> = parts.filter(|_| self.everything).collect();
            format!(
                "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\n\
                 spec: {{convention: {convention}, disagreement: {disagreement}, enable: [{}], \
                 resources: [{{apiGroups: [g{index}], apiVersions: ['*'], resources: ['*'], statusSubresource: {subresource}}}]}}\n",
                parts.join(", ")
            )
        };
        let first = policy(format!("p{index}"), convention);
        let second = beside.as_ref().map(|beside| policy(format!("p{index}-beside"), beside));
        std::iter::once(first).chain(second).collect::<Vec<_>>().join("---\n")
    }

    fn convention(&self) -> &'static Arc<Convention> {
        &built_in().conventions()[&self.convention]
    }
}

// --- what is generated --------------------------------------------------------------------------

#[derive(Clone, Debug)]
struct Write {
    settings: &'static Settings,
    version: &'static str,
    plural: &'static str,
    deleting: bool,
    spec: Value,
    old: Option<Value>,
    new: Option<Value>,
}

fn writes() -> impl Strategy<Value = Write> {
    writes_under(all_settings().iter().filter(|settings| settings.beside.is_none()).collect())
}

fn writes_under(settings: Vec<&'static Settings>) -> impl Strategy<Value = Write> {
    select(settings).prop_flat_map(|settings| {
        let circumstances = (
            select(vec!["v1", "v1beta1", "v1beta2"]),
            select(vec!["things", "xthings", "machines", "clusters", "machinesets"]),
            prop_oneof![4 => Just(false), 1 => Just(true)],
            specs(),
            pairs(settings.convention()),
        );
        circumstances.prop_map(move |(version, plural, deleting, spec, (old, new))| Write {
            settings,
            version,
            plural,
            deleting,
            spec,
            old,
            new,
        })
    })
}

/// The parts of a spec that some convention looks at.
fn specs() -> impl Strategy<Value = Value> {
    select(vec![
        Value::Null,
        json!({"clusterOperation": {"stopped": true, "reconciliationPaused": false}}),
        json!({"clusterConfig": {"clusterOperation": {"reconciliationPaused": true}}}),
        json!({"readinessGates": [{"conditionType": "Custom", "polarity": "Negative"}, {}, 5]}),
        json!({"availabilityGates": [{"conditionType": "Ready"}]}),
    ])
}

/// JSON that no controller means to write.
fn hostile() -> impl Strategy<Value = Value> {
    select(vec![
        Value::Null,
        json!(true),
        json!(i64::MIN),
        json!(1.5),
        json!(""),
        json!("ä\u{0}\n"),
        json!([]),
        json!([[null], {}]),
        json!({}),
        json!({"a/b": {"m~n": []}}),
    ])
}

fn mostly(
    sane: impl Strategy<Value = Value> + 'static,
) -> impl Strategy<Value = Option<Value>> + Clone {
    let sane = sane.boxed();
    prop_oneof![16 => sane.prop_map(Some), 4 => Just(None), 1 => hostile().prop_map(Some)].boxed()
}

fn words<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> BoxedStrategy<Value> {
    let words: Vec<Value> = words.into_iter().map(|word| word.as_ref().into()).collect();
    select(words).boxed()
}

fn times() -> BoxedStrategy<Value> {
    words([EARLIER, T0, T0, T0, "2999-01-01T00:00:00Z", "soon", "2024-06-01T11:00:00.5Z"])
}

/// A stored status and the next one: unrelated, or the same with one thing of the other's.
fn pairs(convention: &'static Convention) -> impl Strategy<Value = (Option<Value>, Option<Value>)> {
    let whole = || mostly(statuses(convention));
    prop_oneof![
        1 => (whole(), whole()),
        4 => (statuses(convention), statuses(convention), any::<Index>()).prop_map(
            |(old, other, at)| {
                let mut new = old.clone();
                let names: BTreeSet<&String> = [&old, &other]
                    .into_iter()
                    .flat_map(|status| status.as_object().unwrap().keys())
                    .collect();
                if !names.is_empty() {
                    let name = *at.get(&names.iter().copied().collect::<Vec<_>>());
                    match other.get(name) {
                        Some(value) => new[name] = value.clone(),
                        None => drop(new.as_object_mut().unwrap().remove(name)),
                    }
                }
                (Some(old), Some(new))
            }
        ),
    ]
}

/// A status in the words of a convention.
fn statuses(convention: &'static Convention) -> BoxedStrategy<Value> {
    let mut parts: Vec<(Vec<String>, BoxedStrategy<Option<Value>>)> = Vec::new();
    let mut part = |path: &Pointer, value| parts.push((path.tokens()[1..].to_vec(), value));
    for list in &convention.conditions {
        let element = prop_oneof![20 => elements(list, convention), 1 => hostile()];
        let elements = prop::collection::vec(element, 0..7).prop_map(Value::from);
        part(&list.path, mostly(elements).boxed());
    }
    if let Some(phase) = &convention.phase {
        part(&phase.path, mostly(words(phases(convention))).boxed());
        for other in &phase.other_paths {
            let value = prop_oneof![4 => Just(None), 1 => words(phases(convention)).prop_map(Some)];
            part(other, value.boxed());
        }
        if let Some(time) = &phase.transition_time {
            part(&time.path, mostly(times()).boxed());
        }
        if let Some(reason) = &phase.reason {
            part(&reason.path, mostly(reasons(convention)).boxed());
        }
    }
    for path in convention.generation.iter().flat_map(|rules| &rules.paths) {
        part(path, mostly(select(vec![-1, 1, 2, 3, 9]).prop_map(Value::from)).boxed());
    }
    for (path, value) in [
        ("/status/lastUpdateTime", times()),
        ("/status/version/version", words(["1.0.0", "2.0.0"])),
        ("/status/instanceNamespace", words(["vshn-x"])),
        ("/status/initialization/provisioned", any::<bool>().prop_map(Value::from).boxed()),
    ] {
        let value = prop_oneof![Just(None), value.prop_map(Some)];
        part(&path.parse().unwrap(), value.boxed());
    }
    let (paths, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    values
        .prop_map(move |values| {
            let mut status = json!({});
            for (path, value) in paths.iter().zip(values) {
                if let Some(value) = value {
                    put(&mut status, path, value);
                }
            }
            status
        })
        .boxed()
}

/// Makes the parents too; what is in the way of them gives way.
fn put(status: &mut Value, path: &[String], value: Value) {
    match path {
        [] => *status = value,
        [name, rest @ ..] => {
            if !status.is_object() {
                *status = Map::new().into();
            }
            put(&mut status[name.as_str()], rest, value);
        }
    }
}

fn phases(convention: &Convention) -> Vec<&str> {
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    phases.map(|phase| phase.name.as_str()).chain(["", "ready"]).collect()
}

fn reasons(convention: &Convention) -> BoxedStrategy<Value> {
    let types = convention.conditions.iter().flat_map(|list| &list.types.known);
    let rows = types.flat_map(|kind| &kind.reasons).map(|row| row.reason.as_str());
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    let phases = phases.flat_map(|phase| &phase.reasons).map(String::as_str);
    words(rows.chain(phases).chain(["Because", "Because", "", "two words", "ACK.Terminal"]))
}

/// An element with the members that the list knows.
fn elements(list: &'static ConditionList, convention: &Convention) -> BoxedStrategy<Value> {
    let types = list.types.known.iter().map(|kind| kind.name.replace('*', "Node"));
    // Those that other rules speak of, more often: two of thirty meet in few lists.
    let spoken_of = conditions_in_rules(convention);
    let types = types.chain(spoken_of.iter().cycle().take(4 * spoken_of.len()).cloned());
    let aliases = list.types.known.iter().flat_map(|kind| kind.aliases.clone());
    let types = types.chain(aliases).chain(["Custom".to_owned()]);
    let types: Vec<String> = types.collect();
    let value = |member: &str| match member {
        "type" => words(&types),
        "status" => words(["True", "True", "True", "False", "False", "Unknown", "true"]),
        "severity" => words(["", "Info", "Warning", "Error", "Fatal"]),
        "reason" => reasons(convention),
        "phase" => words(phases(convention)),
        "observedGeneration" => select(vec![0, 1, 2, 3, 9]).prop_map(Value::from).boxed(),
        time if time.ends_with("Time") => times(),
        _ => words(["", "m", "n"]),
    };
    let often = |member: &str| matches!(member, "type" | "status" | "reason" | "phase");
    let members = list.members.iter().map(|(member, _)| {
        let value = if often(member) {
            mostly(value(member)).boxed()
        } else {
            prop_oneof![1 => Just(None), 1 => mostly(value(member))].boxed()
        };
        value.prop_map(|value| (member.clone(), value)).boxed()
    });
    let members: Vec<_> = members.collect();
    members
        .prop_map(|members| {
            let members = members.into_iter();
            members.filter_map(|(name, value)| Some((name, value?))).collect::<Map<_, _>>().into()
        })
        .boxed()
}

fn conditions_in_rules(convention: &Convention) -> Vec<String> {
    fn collect(predicate: &Predicate, kinds: &mut Vec<String>) {
        match predicate {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().for_each(|part| collect(part, kinds));
            }
            Predicate::Not(part) => collect(part, kinds),
            Predicate::Condition { kind, .. } => kinds.push(kind.clone()),
            _ => {}
        }
    }
    let mut kinds = Vec::new();
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    let evidence = phases.filter_map(|phase| phase.necessary.as_ref());
    let rules = convention.rules.iter().filter(|rule| rule.action == Disposition::Disagreement);
    evidence.chain(rules.map(|rule| &rule.when)).for_each(|when| collect(when, &mut kinds));
    kinds
}

// --- judging ------------------------------------------------------------------------------------

impl Write {
    fn document(&self, status: Option<&Value>) -> Value {
        let version = self.version;
        let mut object = json!({"apiVersion": format!("g/{version}"), "kind": "Thing",
            "metadata": {"name": "n", "generation": 3, "creationTimestamp": EARLIER}});
        if self.deleting {
            object["metadata"]["deletionTimestamp"] = "2024-06-01T11:59:00Z".into();
        }
        if !self.spec.is_null() {
            object["spec"] = self.spec.clone();
        }
        if let Some(status) = status {
            object["status"] = status.clone();
        }
        object
    }

    fn ask<T>(
        &self,
        new: Option<&Value>,
        webhook: Webhook,
        now: &str,
        question: impl FnOnce(&Verdict<'_>) -> T,
    ) -> T {
        let (new, old) = (self.document(new), self.document(self.old.as_ref()));
        let (new, old) = (new.to_string(), old.to_string());
        let subject = Subject {
            resource: Resource {
                group: format!("g{}", self.settings.index).into(),
                version: self.version.into(),
                resource: self.plural.into(),
            },
            subresource: if self.settings.subresource { "status" } else { "" }.into(),
            operation: Operation::Update,
            writer: Writer { user: "operator".into(), groups: Vec::new() },
            object: Object::parse(&new).unwrap(),
            old: Some(Object::parse(&old).unwrap()),
        };
        let verdict = decide(policies_of(self.settings), &subject, webhook, now.parse().unwrap());
        assert!(!verdict.patch_failed, "a patch always applies");
        let policies = 1 + usize::from(self.settings.beside.is_some());
        assert_eq!(verdict.policies.len(), policies, "the policies apply");
        question(&verdict)
    }

    /// The status after the mutating webhook, and whether there was a patch.
    fn mutated(&self, new: Option<&Value>, now: &str) -> (Option<Value>, bool) {
        self.ask(new, Webhook::Mutate, now, |verdict| {
            assert!(!verdict.is_denied(), "mutate never denies");
            let mut document = self.document(new);
            if let Some(patch) = &verdict.patch {
                json_patch::patch(&mut document, patch).unwrap();
            }
            (document.get("status").cloned(), verdict.patch.is_some())
        })
    }

    /// What the validating webhook says, and does.
    fn findings(&self, new: Option<&Value>, now: &str) -> Vec<(Action, String)> {
        self.ask(new, Webhook::Validate, now, |verdict| {
            assert!(verdict.patch.is_none(), "validate never patches");
            let found = verdict.findings.iter();
            found.map(|f| (f.action, format!("{}: {} [{}]", f.field, f.message, f.rule))).collect()
        })
    }

    fn denials(&self, new: Option<&Value>) -> Vec<String> {
        let found = self.findings(new, NOW).into_iter();
        found.filter(|(action, _)| *action == Action::Deny).map(|(_, text)| text).collect()
    }

    /// What is refused by either webhook registered alone, and by both.
    fn denials_either_way(&self, new: Option<&Value>) -> Vec<String> {
        let mut denials = self.denials(new);
        let (mutated, _) = self.mutated(new, NOW);
        denials.extend(self.denials(mutated.as_ref()));
        denials
    }

    /// Whether a refusal is about parts of a status that tell different stories.
    fn is_agreement(&self, denial: &str) -> bool {
        agreement_rules(self.settings.convention())
            .iter()
            .any(|rule| denial.ends_with(&format!("[{rule}]")))
    }
}

fn agreement_rules(convention: &Convention) -> Vec<&str> {
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    let phases = phases.filter(|phase| phase.necessary.is_some()).map(|phase| phase.rule.as_str());
    let rules = convention.rules.iter().map(|rule| (rule.id.as_str(), rule.action));
    let lists = convention.conditions.iter().flat_map(|list| &list.each);
    let rules = rules.chain(lists.map(|rule| (rule.id.as_str(), rule.action)));
    let rules = rules.filter(|(_, action)| *action == Disposition::Disagreement);
    phases.chain(rules.map(|(id, _)| id)).collect()
}

proptest! {
    #![proptest_config(config(1000))]

    /// Nothing panics, patches apply, mutate refuses nothing, validate patches nothing (asserted on
    /// the way), and a second run finds nothing to do, a minute later neither.
    #[test]
    fn mutate_is_done_after_one_run(write in writes()) {
        let (once, _) = write.mutated(write.new.as_ref(), NOW);
        for now in [NOW, LATER] {
            let (twice, patched) = write.mutated(once.as_ref(), now);
            prop_assert!(!patched, "first {:?}, then {:?}", once, twice);
        }
    }

    /// The same of two policies that repair side by side; and no phase is set twice.
    #[test]
    fn two_policies_do_not_undo_each_other(write in writes_under(side_by_side())) {
        let (once, _) = write.mutated(write.new.as_ref(), NOW);
        let (twice, patched) = write.mutated(once.as_ref(), LATER);
        prop_assert!(!patched, "first {:?}, then {:?}", once, twice);
        let set = write.ask(write.new.as_ref(), Webhook::Mutate, NOW, |verdict| {
            let operations = verdict.patch.iter().flat_map(|patch| &patch.0);
            operations.filter(|operation| operation.path().as_str() == "/status/phase").count()
        });
        prop_assert!(set <= 1, "{} times", set);
        prop_assert_eq!(write.denials_either_way(write.old.as_ref()), Vec::<String>::new());
    }

    /// Nothing is left of what the convention says is absent, and no rule refuses what was taken out:
    /// AS-X1 and AS-X2 have nothing to say where the cleanup is on.
    #[test]
    fn what_may_not_be_there_is_taken_out(write in writes_under(taking_out())) {
        let (new, _) = write.mutated(write.new.as_ref(), NOW);
        let refused = write.denials(new.as_ref());
        prop_assert!(!refused.iter().any(|text| text.contains("severity-when-")), "{refused:?}");
    }

    /// Controllers copy refusals into conditions: a text that tells the time would make a loop.
    #[test]
    fn the_same_write_gets_the_same_words(write in writes()) {
        let new = write.new.as_ref();
        prop_assert_eq!(write.mutated(new, NOW), write.mutated(new, NOW));
        prop_assert_eq!(write.findings(new, NOW), write.findings(new, LATER));
    }

    #[test]
    fn a_status_that_is_not_touched_is_never_refused(write in writes()) {
        prop_assert_eq!(write.denials_either_way(write.old.as_ref()), Vec::<String>::new());
    }

    /// A change of a field that no rule speaks of: what was wrong before stays allowed.
    #[test]
    fn old_faults_are_no_reason_to_refuse(write in writes()) {
        if let Some(Value::Object(mut members)) = write.old.clone() {
            members.insert("unrelated".into(), "7.2.5".into());
            let new = Value::Object(members);
            prop_assert_eq!(write.denials_either_way(Some(&new)), Vec::<String>::new());
        }
    }

    #[test]
    fn the_default_phase_is_a_way_out_of_every_state(write in writes()) {
        let convention = write.settings.convention();
        let rules = convention.phase.as_ref().and_then(|rules| Some((&rules.path, rules.default.as_ref()?)));
        if let (Some((path, default)), Some(Value::Object(_))) = (rules, &write.old) {
            let mut new = write.old.clone().unwrap();
            put(&mut new, &path.tokens()[1..], default.as_str().into());
            prop_assert_eq!(write.denials_either_way(Some(&new)), Vec::<String>::new());
        }
    }

    /// Agreement refuses only where the policy says Deny and the object stays; and where status
    /// travels with the finalizers of an object on its way out, nothing refuses.
    #[test]
    fn what_is_on_its_way_out_is_not_held_up(write in writes()) {
        let denials = write.denials(write.new.as_ref());
        if write.deleting || write.settings.disagreement != "Deny" {
            prop_assert!(!denials.iter().any(|denial| write.is_agreement(denial)), "{denials:?}");
        }
        if write.deleting && !write.settings.subresource {
            prop_assert_eq!(denials, Vec::<String>::new());
        }
    }
}

fn side_by_side() -> Vec<&'static Settings> {
    all_settings().iter().filter(|settings| settings.beside.is_some()).collect()
}

/// The settings under which something is taken out of elements.
fn taking_out() -> Vec<&'static Settings> {
    let takes = |fill: &Backfill| matches!(fill.filling, Filling::AbsentMember { .. });
    let takes = |settings: &&Settings| {
        let alone = settings.everything && settings.beside.is_none();
        alone && settings.convention().backfill.iter().any(takes)
    };
    all_settings().iter().filter(takes).collect()
}

/// The laws about refusals would hold by themselves, were there none: each convention refuses, and
/// where it speaks of agreement it refuses for that.
#[test]
fn the_statuses_are_worth_judging() {
    let strict = |settings: &&Settings| settings.disagreement == "Deny" && !settings.everything;
    let strict: Vec<&'static Settings> = all_settings().iter().filter(strict).collect();
    let agrees = |settings: &&Settings| !agreement_rules(settings.convention()).is_empty();
    let mut denied = rules_met(strict.clone(), 3000);
    denied.extend(rules_met(strict.into_iter().filter(agrees).collect(), 6000));
    for (name, convention) in built_in().conventions() {
        let own = denied.iter().filter(|rule| rule.split('/').next() == Some(name));
        assert!(own.count() >= 5, "{name}: {denied:?}");
        let rules = agreement_rules(convention);
        let met = rules.iter().any(|rule| denied.contains(*rule));
        assert!(met || rules.is_empty(), "{name}: none of {rules:?}");
    }
}

fn rules_met(settings: Vec<&'static Settings>, samples: usize) -> BTreeSet<String> {
    let mut runner = TestRunner::new(config(1));
    let writes = writes_under(settings);
    let mut met = BTreeSet::new();
    for _ in 0..samples {
        // Of a status that is new everything is introduced.
        let write = Write { old: None, ..writes.new_tree(&mut runner).unwrap().current() };
        write.ask(write.new.as_ref(), Webhook::Validate, NOW, |verdict| {
            let denied = verdict.findings.iter().filter(|found| found.action == Action::Deny);
            met.extend(denied.map(|found| found.rule.to_owned()));
        });
    }
    met
}
