//! What a convention inherits: parts with a name are merged, null switches off, `without` leaves out.

use serde_json::Value;
use statusgate_core::documents::Disposition;
use statusgate_core::policy::{PolicySet, Source};

const HEAD: &str = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name:";

/// A convention without parents that has one of each part.
const BASE: &str = "{phase: {path: /status/phase, default: Unknown, transitionTime: {path: /status/since, inStep: false}, \
     reason: {path: /status/reason}, moves: {from: {Ready: [Down], Down: [Ready]}, anyTo: [Unknown]}, \
     values: [{phase: [Ready, Up], id: good, necessary: {condition: Ready, is: 'True'}, reasons: [Good]}, {phase: Down}, {phase: Unknown}]}, \
     conditions: [{path: /status/conditions, maxItems: 9, members: {reason: [{type: string}, {id: long, maxLength: 9}]}, \
     types: {Ready: {reasons: {'True': Good}}}, transitionTime: {member: time, mustMoveOn: [status], mayMoveOn: [status]}, \
     each: [{id: no-x, when: {member: x, set: true}, action: Warn, message: m}]}, \
     {path: /status/history, maxItems: 9, history: {distinct: [a]}}], \
     generation: {paths: [/status/observedGeneration]}, \
     fields: [{path: /status/a/unit, type: string}], \
     rules: [{id: rule, path: /status/a, when: {set: /status/a}, action: Warn, message: m}], \
     backfill: [{path: /status/b, value: 1}]}";

fn compile(spec: &str) -> PolicySet {
    let text = format!("{HEAD} base}}\nspec: {BASE}\n---\n{HEAD} heir}}\nspec: {spec}\n");
    let set = PolicySet::compile(&[Source::new("a.yaml", text)]);
    set.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The rules of a heir of `BASE`, and their actions.
fn rules(own: &str) -> Vec<(String, Vec<Disposition>)> {
    let set = compile(&format!("{{extends: base, {own}}}"));
    let rules = set.conventions()["heir"].declared.iter();
    let own_name = |id: &str| id.strip_prefix("heir/").unwrap().to_owned();
    rules.map(|(id, rule)| (own_name(&id), rule.actions.clone())).collect()
}

fn ids(own: &str) -> Vec<String> {
    rules(own).into_iter().map(|(id, _)| id).collect()
}

/// The part of a resolved document at a JSON pointer.
fn resolved(own: &str, at: &str) -> Value {
    let text = format!(
        "{HEAD} base}}\nspec: {BASE}\n---\n{HEAD} heir}}\nspec: {{extends: base, {own}}}\n"
    );
    let document = PolicySet::whole_document(&[Source::new("a.yaml", text)], "heir").unwrap();
    let document = serde_json::to_value(document).unwrap();
    document.pointer(&format!("/spec/{at}")).cloned().unwrap_or_else(|| panic!("{document:#}"))
}

#[test]
fn parts_with_a_name_are_merged_with_the_inherited_part() {
    let list = |part: &str| format!("conditions: [{{path: /status/conditions, {part}}}]");
    for (own, at, expected) in [
        (
            list("members: {reason: [{id: long, action: Audit}]}"),
            "conditions/0/members/reason",
            r#"[{"type":"string"},{"id":"long","maxLength":9,"action":"Audit"}]"#,
        ),
        (
            list("members: {reason: {minLength: 1}}"),
            "conditions/0/members/reason",
            r#"[{"type":"string","minLength":1},{"id":"long","maxLength":9}]"#,
        ),
        (
            list("each: [{id: no-x, action: Deny}]"),
            "conditions/0/each",
            r#"[{"id":"no-x","when":{"member":"x","set":true},"action":"Deny","message":"m"}]"#,
        ),
        (
            list("types: {Ready: {reasons: {'False': Bad}}}"),
            "conditions/0/types/Ready/reasons",
            r#"{"True":"Good","False":"Bad","action":"Warn"}"#,
        ),
        (
            "conditions: [{path: /status/history, history: {repeated: Deny}}]".to_owned(),
            "conditions/1/history",
            r#"{"distinct":"a","rewritten":"Warn","repeated":"Deny"}"#,
        ),
        (
            "rules: [{id: rule, action: Deny}]".to_owned(),
            "rules",
            r#"[{"id":"rule","when":{"set":"/status/a"},"action":"Deny","message":"m","path":"/status/a"}]"#,
        ),
        (
            "fields: [{path: /status/a/unit, maxLength: 3}]".to_owned(),
            "fields",
            r#"[{"path":"/status/a/unit","type":"string","maxLength":3}]"#,
        ),
        (
            "phase: {values: [{phase: Up, final: true}, {phase: New}]}".to_owned(),
            "phase/values",
            r#"[{"phase":"Ready","id":"good","necessary":{"condition":"Ready","is":"True"},"reasons":"Good"},{"phase":"Up","id":"good","necessary":{"condition":"Ready","is":"True"},"final":true,"reasons":"Good"},{"phase":"Down"},{"phase":"Unknown"},{"phase":"New"}]"#,
        ),
        (
            "phase: {moves: {from: {Down: [Unknown]}}}".to_owned(),
            "phase/moves",
            r#"{"action":"Warn","anyTo":"Unknown","from":{"Ready":"Down","Down":"Unknown"}}"#,
        ),
    ] {
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(resolved(&own, at), expected, "{own}");
    }
}

#[test]
fn an_heir_that_closes_its_types_keeps_the_rules_about_others_and_a_type_of_its_own_must_be_declared()
 {
    let heir = |rest: &str| {
        let text = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: heir}}\nspec:\n  \
             extends: metav1\n  conditions: [{{path: /status/conditions, otherTypes: Deny, types: {{Ready: {{}}}}}}]\n{rest}"
        );
        PolicySet::compile(&[Source::new("heir.yaml", text)])
    };
    let set = heir("").unwrap();
    let rules = &set.conventions()["heir"].health.as_ref().unwrap().rules;
    assert!(rules.iter().any(|rule| rule.name.as_str() == "stalled"));
    let own = "  rules: [{id: r, when: {condition: Stalled, is: 'True'}, path: /status/x, message: m, action: Warn}]\n";
    let mistakes = heir(own).unwrap_err();
    assert_eq!(mistakes.list().len(), 1);
    assert_eq!(mistakes.list()[0].message, "unknown condition type \"Stalled\"");
}

#[test]
fn null_switches_off_a_check_that_has_a_default_action() {
    let all = ids("title: t");
    let list = |part: &str| format!("conditions: [{{path: /status/conditions, {part}}}]");
    let times = |part: &str| list(&format!("transitionTime: {{{part}}}"));
    let history =
        |part: &str| format!("conditions: [{{path: /status/history, history: {{{part}}}}}]");
    for (own, off) in [
        (list("duplicate: null"), "condition-duplicate"),
        (times("kept: null"), "transition-time-kept"),
        (times("moved: null"), "transition-time-moved"),
        (times("backwards: null"), "transition-time-backwards"),
        (times("future: null"), "transition-time-future"),
        (history("rewritten: null"), "history-rewritten"),
        (history("repeated: null"), "history-repeated"),
        ("generation: {ahead: null, aheadAtFirst: null}".to_owned(), "generation-ahead"),
        ("generation: {decreased: null}".to_owned(), "generation-decreased"),
        ("phase: {transitionTime: {moved: null, kept: null}}".to_owned(), "phase-transition-time"),
        ("phase: {reason: {action: null}}".to_owned(), "phase-reason"),
        ("phase: {moves: {action: null}}".to_owned(), "phase-move"),
        ("rules: [{id: rule, action: null}]".to_owned(), "rule"),
        (list("each: [{id: no-x, action: null}]"), "no-x"),
        (list("members: {reason: [{id: long, action: null}]}"), "long"),
        ("fields: [{path: /status/a/unit, action: null}]".to_owned(), "field-unit"),
    ] {
        let expected: Vec<&String> = all.iter().filter(|id| *id != off).collect();
        assert_eq!(ids(&own).iter().collect::<Vec<_>>(), expected, "{own}");
        assert!(all.iter().any(|id| id == off), "{off}");
    }
    let unchanged = |part: &str| {
        let rules = rules(&times(part));
        rules.into_iter().find(|(id, _)| id == "transition-time-backwards").unwrap().1
    };
    assert_eq!(unchanged("backwardsUnchanged: Deny"), [Disposition::Warn, Disposition::Deny]);
    assert_eq!(unchanged("backwardsUnchanged: null"), [Disposition::Warn]);
    assert_eq!(unchanged("backwards: null, backwardsUnchanged: Deny"), [Disposition::Deny]);
}

#[test]
fn a_resolved_document_has_the_rules_that_are_in_force() {
    let own = "conditions: [{path: /status/conditions, tooLong: null, transitionTime: {moved: null, backwardsUnchanged: null}}], \
         generation: {decreased: null}, without: [long, rule, Up]";
    let before = rules(own);
    let text = format!(
        "{HEAD} base}}\nspec: {BASE}\n---\n{HEAD} heir}}\nspec: {{extends: base, {own}}}\n"
    );
    let document = PolicySet::whole_document(&[Source::new("a.yaml", text)], "heir").unwrap();
    let text = serde_saphyr::to_string(&document).unwrap();
    let set = PolicySet::compile(&[Source::new("b.yaml", text)]).unwrap();
    let after: Vec<_> = set.conventions()["heir"].declared.iter().collect();
    assert_eq!(before.len(), after.len());
    for ((before, actions), (id, rule)) in before.iter().zip(after) {
        assert_eq!((&format!("heir/{before}"), actions), (&id.to_string(), &rule.actions));
    }
}

#[test]
fn without_leaves_out_inherited_parts_and_keeps_own_ones() {
    let all = ids("title: t");
    for name in ["long", "condition-reason", "no-x", "rule", "field-unit"] {
        let expected: Vec<&String> = all.iter().filter(|id| *id != name).collect();
        let ids = ids(&format!("without: [{name}]"));
        assert_eq!(ids.iter().collect::<Vec<_>>(), expected, "{name}");
    }
    let set = compile("{extends: base, without: [/status/b, Down], phase: {moves: null}}");
    let heir = &set.conventions()["heir"];
    assert!(heir.backfill.is_empty());
    assert!(heir.phase.as_ref().unwrap().find("Down").is_none());
    let own = "without: [rule], rules: [{id: rule, path: /status/c, when: {set: /status/c}, action: Deny, message: n}]";
    assert!(rules(own).contains(&("rule".to_owned(), vec![Disposition::Deny])), "{own}");
}

#[test]
fn phases_of_one_entry_share_its_rule_if_it_has_an_id() {
    let spec = |id: &str| {
        format!(
            "{{conditions: [{{path: /status/conditions}}], phase: {{path: /status/phase, \
             values: [{{phase: [A, B], {id} necessary: {{condition: Ready, is: 'True'}}}}]}}}}"
        )
    };
    let rules = |id: &str| {
        let set = compile(&spec(id));
        let phases = &set.conventions()["heir"].phase.as_ref().unwrap().phases;
        phases.iter().map(|phase| (phase.name.clone(), phase.rule.to_string())).collect::<Vec<_>>()
    };
    let pair = |a: &str, b: &str| [("A".to_owned(), a.to_owned()), ("B".to_owned(), b.to_owned())];
    assert_eq!(rules("id: up,"), pair("heir/up", "heir/up"));
    assert_eq!(rules(""), pair("heir/phase-a", "heir/phase-b"));
}
