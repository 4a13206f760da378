//! One clean write a convention, and one change to it for each rule: no rule is dead, none fires
//! where it should not, and none is forgotten here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use statusgate::engine::Action;
use statusgate::policy::convention::{
    ConditionList, ConditionType, Convention, Movers, PhaseRules, Sanction, TransitionTimes,
};
use statusgate::policy::{Disposition, PolicySet};

use super::judging::{Write, fixtures, policy, read};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    convention: String,
    clean: Write,
    /// Rules that no write of this convention alone can break, and where they are proven.
    #[serde(default)]
    elsewhere: BTreeMap<String, String>,
    /// Changes that look like one that a rule is about, and break none.
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
    /// Rules that cannot but break as well.
    #[serde(default)]
    also: BTreeSet<String>,
    /// An optional rule.
    enable: Option<String>,
    with: Pointers,
}

/// Pointers into the write, and what to put there; `absent` takes it away.
type Pointers = BTreeMap<String, Value>;

/// A rule and what it leads to.
type Sentence = (String, Action);

#[test]
fn every_rule_has_a_change_that_breaks_it() {
    let mut faults = Vec::new();
    let mut conventions: BTreeSet<String> =
        PolicySet::compile(&[]).unwrap().conventions().keys().cloned().collect();
    for path in fixtures("rules") {
        let fixture: Fixture = read(&path);
        faults.extend(fixture.faults());
        conventions.remove(&fixture.convention);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(conventions.is_empty(), "no fixture for {conventions:?}");
}

/// A person who is refused looks for the rule by its id: it must be one rule.
#[test]
fn no_two_rules_have_one_id() {
    for (name, convention) in PolicySet::compile(&[]).unwrap().conventions() {
        let own = convention.rules.iter().map(|rule| &rule.id);
        let own = own.chain(convention.fields.iter().map(|field| &field.check.rule));
        let mut known = BTreeSet::new();
        for (_, Say { id, .. }) in engine_rules(convention) {
            known.insert(id);
        }
        for id in own {
            assert!(known.insert(id.clone()), "{name}: {id} is there twice");
        }
    }
}

/// A person who is warned asks where a rule comes from: "the convention" is no answer to that.
#[test]
fn every_rule_says_where_it_comes_from() {
    for name in PolicySet::compile(&[]).unwrap().conventions().keys() {
        let policies = policy(name, "", &[]);
        let policy = &policies.policies()[0];
        for (id, _) in sentences(&policy.convention) {
            let source = policy.declared(&id).source;
            let whole = id == policy.convention.status_rule;
            assert!(!source.is_empty(), "{id}");
            assert_eq!(source == policy.convention.source, whole, "{id}: {source}");
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
        let policies = policy(id.split_once('/').unwrap().0, "", &[]);
        assert_eq!(policies.policies()[0].declared(id).source, source, "{id}");
    }
}

/// Objects of Cluster API have the lists of both versions, whichever they are of: one list, one verdict.
#[test]
fn both_versions_of_cluster_api_judge_both_lists_alike() {
    let policies = PolicySet::compile(&[]).unwrap();
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
        // Not assert_eq: a thousand lines of both would hide which list it is.
        assert!(rules(one, path) == rules(other, "/status/conditions"), "{path} of {one}");
    }
}

impl Fixture {
    fn faults(&self) -> Vec<String> {
        let name = &self.convention;
        let policies = policy(name, "", &[]);
        let clean = self.clean.through_both(&policies);
        if clean.verdict() != "allow" || !clean.findings.is_empty() {
            return vec![format!("{name}: the clean write is not: {clean:?}")];
        }
        let mut faults = Vec::new();
        let mut broken: BTreeSet<Sentence> = BTreeSet::new();
        for (name, with) in &self.harmless {
            let found = changed(&self.clean, with).validated(&policies);
            if !found.findings.is_empty() {
                faults.push(format!("{name}: {found:?}"));
            }
        }
        for change in &self.changes {
            let enable = change.enable.as_ref().map(|rule| format!("  enable: [{rule}]\n"));
            let write = changed(&self.clean, &change.with);
            let found = match &enable {
                Some(enable) => write.validated(&policy(name, enable, &[])),
                None => write.validated(&policies),
            };
            let found: BTreeSet<Sentence> =
                found.findings.into_iter().map(|(action, rule, _)| (rule, action)).collect();
            let id = format!("{name}/{}", change.rule);
            let main = (id.clone(), change.action());
            let rules: BTreeSet<&str> = found.iter().map(|(rule, _)| rule.as_str()).collect();
            let also: BTreeSet<String> =
                change.also.iter().map(|rule| format!("{name}/{rule}")).collect();
            let expected: BTreeSet<&str> =
                also.iter().map(String::as_str).chain([id.as_str()]).collect();
            if !found.contains(&main) || rules != expected {
                faults.push(format!("{main:?} by {:?}: {found:?}", change.with));
            }
            broken.insert(main);
        }
        let all = PolicySet::compile(&[]).unwrap();
        let elsewhere: BTreeSet<String> =
            self.elsewhere.keys().map(|rule| format!("{name}/{rule}")).collect();
        for sentence in sentences(&all.conventions()[name]) {
            if !broken.contains(&sentence) && !elsewhere.contains(&sentence.0) {
                faults.push(format!("{name}: no change breaks {sentence:?}"));
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
            other => panic!("{other} is no action"),
        }
    }
}

fn changed(clean: &Write, with: &Pointers) -> Write {
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

/// Something that a convention can say, and whether what it says is another's to choose.
struct Say {
    id: String,
    action: Disposition,
}

impl Say {
    fn sentence(self) -> Sentence {
        let action = match self.action {
            Disposition::Fixed(action) => action,
            // The default of a policy.
            Disposition::Disagreement => Action::Deny,
        };
        (self.id, action)
    }
}

fn deny(id: &str) -> Say {
    Say { id: id.to_owned(), action: Action::Deny.into() }
}

fn say(sanction: &Sanction) -> Say {
    Say { id: sanction.rule.clone(), action: sanction.action }
}

/// Everything that a convention can say.
fn sentences(convention: &Convention) -> BTreeSet<Sentence> {
    let rules =
        convention.rules.iter().map(|rule| Say { id: rule.id.clone(), action: rule.action });
    let fields = convention
        .fields
        .iter()
        .map(|field| Say { id: field.check.rule.clone(), action: field.check.action.into() });
    let engine = engine_rules(convention).into_iter().map(|(_, say)| say);
    engine.chain(rules).chain(fields).map(Say::sentence).collect()
}

/// What the engine says in a convention's name, with the part of it that it says it of.
fn engine_rules(convention: &Convention) -> Vec<(&'static str, Say)> {
    let mut found = vec![("status", deny(&convention.status_rule))];
    for list in &convention.conditions {
        found.extend(of_list(list).into_iter().map(|say| ("conditions", say)));
    }
    if let Some(phase) = &convention.phase {
        found.extend(of_phase(phase).into_iter().map(|say| ("phase", say)));
    }
    if let Some(rules) = &convention.generation {
        let minimum = rules.minimum.map(|_| say(&rules.below_minimum));
        let mut generation = vec![say(&rules.ahead), say(&rules.ahead_at_first)];
        generation.extend([&rules.decreased].into_iter().chain(&rules.reset).map(say));
        found.extend(generation.into_iter().chain(minimum).map(|say| ("generation", say)));
    }
    found
}

fn of_list(list: &ConditionList) -> Vec<Say> {
    let mut found = vec![deny(&list.shape_rule)];
    if !list.key.is_empty() {
        found.push(say(&list.duplicate));
    }
    found.extend(list.max_items.map(|_| say(&list.too_long)));
    if let Some(history) = &list.history {
        found.extend([say(&history.rewritten), say(&history.repeated)]);
    }
    let checks = list.members.iter().flat_map(|(_, checks)| checks);
    found.extend(checks.map(|check| Say { id: check.rule.clone(), action: check.action.into() }));
    let optional = [&list.other_members, &list.types.other, &list.types.order];
    found.extend(optional.into_iter().flatten().map(say));
    found.extend(list.types.known.iter().flat_map(of_type));
    if let Some(times) = &list.times {
        found.extend(of_times(times).into_iter().map(say));
    }
    found.extend(list.each.iter().map(|rule| Say { id: rule.id.clone(), action: rule.action }));
    found
}

fn of_type(kind: &ConditionType) -> Vec<Say> {
    let presence = [&kind.missing, &kind.present].into_iter().flatten();
    let presence = presence.map(|presence| &presence.sanction);
    let more = [&kind.not_true, &kind.removed, &kind.reverted, &kind.other_reasons];
    let rows = kind.reasons.iter().map(|row| &row.sanction);
    presence.chain(more.into_iter().flatten()).chain(rows).map(say).collect()
}

/// Where anything may move a time, no move is one without a change.
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

fn of_phase(rules: &PhaseRules) -> Vec<Say> {
    let mut found = vec![deny(&rules.value_rule)];
    let evidence = rules.phases.iter().filter(|phase| phase.necessary.is_some());
    found.extend(
        evidence.map(|phase| Say { id: phase.rule.clone(), action: Disposition::Disagreement }),
    );
    if let Some(time) = &rules.transition_time {
        found.push(say(&time.moved));
        // A time that the mutating webhook keeps in step is nobody's to forget.
        found.extend((!time.in_step).then(|| say(&time.kept)));
    }
    found.extend(rules.reason.as_ref().map(|reason| say(&reason.sanction)));
    found.extend(rules.moves.as_ref().map(|moves| say(&moves.sanction)));
    found
}
