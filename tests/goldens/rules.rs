//! One clean write for each convention, and one change for each rule: every rule can be broken, no other
//! rule fires, and no rule is missing here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use statusgate::engine::Action;
use statusgate::policy::Disposition;
use statusgate::policy::convention::{
    ConditionList, ConditionType, Convention, Movers, PhaseRules, Sanction, TransitionTimes,
};

use super::judging::{Case, fixtures, read, rules};
use super::support::{built_in, following};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    convention: String,
    clean: Case,
    /// Rules that no write of this convention alone can break, and the test that proves them.
    #[serde(default)]
    elsewhere: BTreeMap<String, String>,
    /// Changes that resemble a violation and break no rule.
    #[serde(default)]
    harmless: BTreeMap<String, Pointers>,
    changes: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    /// The rule that it breaks, without the convention.
    rule: String,
    /// `deny` or `warn`: one rule may have several.
    action: String,
    /// Other rules that this change breaks.
    #[serde(default)]
    also: BTreeSet<String>,
    /// An optional rule.
    enable: Option<String>,
    with: Pointers,
}

/// Pointers into the write, and their new values; `absent` removes a value.
type Pointers = BTreeMap<String, Value>;

/// A rule and its action.
type Judged = (String, Action);

#[test]
fn each_rule_is_broken_by_its_change() {
    let mut faults = Vec::new();
    let mut conventions: BTreeSet<String> = built_in().conventions().keys().cloned().collect();
    for path in fixtures("rules") {
        let fixture: Fixture = read(&path);
        faults.extend(fixture.faults());
        conventions.remove(&fixture.convention);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(conventions.is_empty(), "no fixture for {conventions:?}");
}

/// A user looks up a denial by the id of its rule.
#[test]
fn each_rule_id_is_unique() {
    for (name, convention) in built_in().conventions() {
        let own = convention.rules.iter().map(|rule| &rule.id);
        let own = own.chain(convention.fields.iter().map(|field| &field.check.rule));
        let mut known = BTreeSet::new();
        for (_, Rule { id, .. }) in engine_rules(convention) {
            known.insert(id);
        }
        for id in own {
            assert!(known.insert(id.clone()), "{name}: {id} is not unique");
        }
    }
}

/// The name of the convention alone is not a source.
#[test]
fn each_rule_names_its_source() {
    for name in built_in().conventions().keys() {
        let policies = following(name, "");
        let policy = &policies.policies()[0];
        for (id, _) in judged_rules(&policy.convention) {
            let source = &policy.declared.get(&id).unwrap().source;
            let whole = id == policy.convention.status_rule;
            assert!(!source.is_empty(), "{id}");
            assert_eq!(*source == policy.convention.source, whole, "{id}: {source}");
        }
    }
    for (id, source) in [
        ("crossplane/condition-reason-form", "XP-S2"),
        ("crossplane/condition-status", "ValidateCondition"),
        ("crossplane/generation-ahead", "B-T6, B-T7"),
        ("crossplane/ready-reason", "XP-X1"),
        ("appcat/condition-reason-form", "XP-S2"),
        ("appcat/phase-value", "ADR 0051, phase table; AC-S4; AC-T1"),
        ("appcat/phase-reason", "AC-S5"),
        ("appcat/phase-ready", "AC-X3, AC-X4, AC-X5"),
        ("kstatus/condition-duplicate", "kstatus §1; KS-S3"),
        ("kstatus/observed-generation", "KS-S2"),
        ("capi-v1beta2/condition-status", "ValidateCondition; C1-S1"),
        ("stackable/condition-order", "ADR 027; operator-rs; ST-S1, ST-S4"),
    ] {
        let policies = following(id.split_once('/').unwrap().0, "");
        let declared = policies.policies()[0].declared.get(id).unwrap();
        assert_eq!(declared.source, source, "{id}");
    }
}

/// Objects of Cluster API have the lists of both versions.
#[test]
fn both_versions_of_cluster_api_have_the_same_rules_for_the_same_list() {
    let policies = built_in();
    let rules = |name: &str, path: &str| {
        let lists = &policies.conventions()[name].conditions;
        let mut list = lists.iter().find(|list| list.path.to_string() == path).unwrap().clone();
        list.path = "/status/conditions".parse().unwrap();
        list.source.clear();
        format!("{list:#?}").replace(&format!("\"{name}/"), "\"")
    };
    for (one, path, other) in [
        ("capi-v1beta1", "/status/v1beta2/conditions", "capi-v1beta2"),
        ("capi-v1beta2", "/status/deprecated/v1beta1/conditions", "capi-v1beta1"),
    ] {
        // `assert_eq` would print a thousand lines of both.
        assert!(rules(one, path) == rules(other, "/status/conditions"), "{path} of {one}");
    }
}

impl Fixture {
    fn faults(&self) -> Vec<String> {
        let name = &self.convention;
        let policies = following(name, "");
        let clean = self.clean.write().review(&policies);
        if clean.is_patched() || !clean.findings.is_empty() {
            return vec![format!("{name}: the clean write is not clean: {clean:?}")];
        }
        let mut faults = Vec::new();
        let mut broken: BTreeSet<Judged> = BTreeSet::new();
        for (name, with) in &self.harmless {
            let found = changed(&self.clean, with).write().validate(&policies);
            if !found.findings.is_empty() {
                faults.push(format!("{name}: {found:?}"));
            }
        }
        for change in &self.changes {
            let write = changed(&self.clean, &change.with).write();
            let outcome = match &change.enable {
                Some(rule) => write.validate(&following(name, &format!("enable: [{rule}]"))),
                None => write.validate(&policies),
            };
            let id = format!("{name}/{}", change.rule);
            let main = (id.clone(), change.action());
            let is_found = outcome.rules().contains(&(main.1, id.as_str()));
            let also: BTreeSet<String> =
                change.also.iter().map(|rule| format!("{name}/{rule}")).collect();
            let expected: BTreeSet<&str> =
                also.iter().map(String::as_str).chain([id.as_str()]).collect();
            if !is_found || rules(&outcome) != expected {
                faults.push(format!("{main:?} by {:?}: {:?}", change.with, outcome.lines()));
            }
            broken.insert(main);
        }
        let elsewhere: BTreeSet<String> =
            self.elsewhere.keys().map(|rule| format!("{name}/{rule}")).collect();
        for judged in judged_rules(&built_in().conventions()[name]) {
            if !broken.contains(&judged) && !elsewhere.contains(&judged.0) {
                faults.push(format!("{name}: no change breaks {judged:?}"));
            }
        }
        faults
    }
}

impl Change {
    fn action(&self) -> Action {
        match self.action.as_str() {
            "deny" => Action::Deny,
            "warn" => Action::Warn,
            other => panic!("{other} is not an action"),
        }
    }
}

fn changed(clean: &Case, with: &Pointers) -> Case {
    let mut write = serde_json::to_value(clean).unwrap();
    for (pointer, value) in with {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = write.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        if let Value::Array(items) = parent {
            match (name.parse::<usize>(), value == "absent") {
                (Ok(index), true) => drop(items.remove(index)),
                (Ok(index), false) => items[index] = value.clone(),
                (Err(_), _) => items.push(value.clone()),
            }
        } else if value == "absent" {
            parent.as_object_mut().unwrap().remove(name).unwrap();
        } else {
            parent[name] = value.clone();
        }
    }
    serde_json::from_value(write).unwrap()
}

/// A rule of a convention, and its action.
struct Rule {
    id: String,
    action: Disposition,
}

impl Rule {
    fn judged(self) -> Judged {
        let action = match self.action {
            Disposition::Fixed(action) => action,
            // The default of a policy.
            Disposition::Disagreement => Action::Deny,
        };
        (self.id, action)
    }
}

fn deny(id: &str) -> Rule {
    Rule { id: id.to_owned(), action: Action::Deny.into() }
}

fn rule_of(sanction: &Sanction) -> Rule {
    Rule { id: sanction.rule.clone(), action: sanction.action }
}

/// Every rule of a convention, with its action.
fn judged_rules(convention: &Convention) -> BTreeSet<Judged> {
    let rules =
        convention.rules.iter().map(|rule| Rule { id: rule.id.clone(), action: rule.action });
    let fields = convention
        .fields
        .iter()
        .map(|field| Rule { id: field.check.rule.clone(), action: field.check.action.into() });
    let engine = engine_rules(convention).into_iter().map(|(_, rule)| rule);
    engine.chain(rules).chain(fields).map(Rule::judged).collect()
}

/// The rules that the engine implements, with the part of the convention that configures each.
fn engine_rules(convention: &Convention) -> Vec<(&'static str, Rule)> {
    let mut found = vec![("status", deny(&convention.status_rule))];
    for list in &convention.conditions {
        found.extend(of_list(list).into_iter().map(|rule| ("conditions", rule)));
    }
    if let Some(phase) = &convention.phase {
        found.extend(of_phase(phase).into_iter().map(|rule| ("phase", rule)));
    }
    if let Some(rules) = &convention.generation {
        let minimum = rules.minimum.map(|_| rule_of(&rules.below_minimum));
        let mut generation = vec![rule_of(&rules.ahead), rule_of(&rules.ahead_at_first)];
        generation.extend([&rules.decreased].into_iter().chain(&rules.reset).map(rule_of));
        found.extend(generation.into_iter().chain(minimum).map(|rule| ("generation", rule)));
    }
    found
}

fn of_list(list: &ConditionList) -> Vec<Rule> {
    let mut found = vec![deny(&list.shape_rule)];
    if !list.key.is_empty() {
        found.push(rule_of(&list.duplicate));
    }
    found.extend(list.max_items.map(|_| rule_of(&list.too_long)));
    if let Some(history) = &list.history {
        found.extend([rule_of(&history.rewritten), rule_of(&history.repeated)]);
    }
    let checks = list.members.iter().flat_map(|(_, checks)| checks);
    found.extend(checks.map(|check| Rule { id: check.rule.clone(), action: check.action.into() }));
    let optional = [&list.other_members, &list.types.other, &list.types.order];
    found.extend(optional.into_iter().flatten().map(rule_of));
    found.extend(list.types.known.iter().flat_map(of_type));
    if let Some(times) = &list.times {
        found.extend(of_times(times).into_iter().map(rule_of));
    }
    found.extend(list.each.iter().map(|rule| Rule { id: rule.id.clone(), action: rule.action }));
    found
}

fn of_type(kind: &ConditionType) -> Vec<Rule> {
    let presence = [&kind.missing, &kind.present].into_iter().flatten();
    let presence = presence.map(|presence| &presence.sanction);
    let more = [&kind.not_true, &kind.removed, &kind.reverted, &kind.other_reasons];
    let rows = kind.reasons.iter().map(|row| &row.sanction);
    presence.chain(more.into_iter().flatten()).chain(rows).map(rule_of).collect()
}

/// If any change may move a time, no move is wrong.
fn of_times(times: &TransitionTimes) -> Vec<&Sanction> {
    let mut found = vec![&times.backwards, &times.future];
    if times.may_move_on != Movers::Anything {
        found.extend([&times.moved, &times.backwards_unchanged]);
    }
    if !times.must_move_on.is_empty() {
        found.push(&times.kept);
    }
    found
}

fn of_phase(rules: &PhaseRules) -> Vec<Rule> {
    let mut found = vec![deny(&rules.value_rule)];
    let evidence = rules.phases.iter().filter(|phase| phase.necessary.is_some());
    found.extend(
        evidence.map(|phase| Rule { id: phase.rule.clone(), action: Disposition::Disagreement }),
    );
    if let Some(time) = &rules.transition_time {
        found.push(rule_of(&time.moved));
        // The mutating webhook sets a time that is in step, so writers cannot forget it.
        found.extend((!time.in_step).then(|| rule_of(&time.kept)));
    }
    found.extend(rules.reason.as_ref().map(|reason| rule_of(&reason.sanction)));
    found.extend(rules.moves.as_ref().map(|moves| rule_of(&moves.sanction)));
    found
}
