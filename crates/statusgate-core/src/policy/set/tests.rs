//! Mistakes that only a schema shows.

use serde_json::json;

use crate::language::{Value, Word};
use crate::policy::{Defined, Diagnostic, PolicySet, Source};
use crate::schema::{NEWEST, Schema};

/// The mistakes of a convention about one kind, without help.
fn mistakes(convention: &str) -> Vec<String> {
    let kind =
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: c}\nspec:\n";
    mistakes_in(format!("{kind}{convention}"))
}

fn mistakes_in(text: String) -> Vec<String> {
    diagnostics(text).into_iter().map(|mistake| mistake.message).collect()
}

fn diagnostics(text: String) -> Vec<Diagnostic> {
    diagnostics_without("", text)
}

/// Of a schema without a member of the status.
fn diagnostics_without(member: &str, text: String) -> Vec<Diagnostic> {
    let condition = json!({"type": "object", "properties": {
        "type": {"type": "string", "enum": ["Ready", "Synced"]}, "status": {"type": "string"},
        "reason": {"type": "string", "maxLength": 9}, "lastTransitionTime": {"type": "string", "format": "date-time"}}});
    let mut verdict = condition.clone();
    verdict["properties"]["type"]["enum"] = json!(["Accepted"]);
    let mut status = json!({"type": "object", "properties": {
        "phase": {"type": "string", "enum": ["Ready", "Failed", "Unknown"]},
        "code": {"type": "integer", "enum": [0, 1, 2]}, "ready": {"type": "boolean"},
        "tier": {"type": "string", "maxLength": 3}, "count": {"type": "integer", "maximum": 5},
        "when": {"type": "string", "format": "date-time"}, "started": {"type": "string"}, "zones": {"type": "array", "maxItems": 3, "items": {"type": "string", "enum": ["a", "b"]}},
        "size": {"x-kubernetes-int-or-string": true},
        "box": {"type": "object", "properties": {"size": {"type": "string"}}},
        "parents": {"type": "array", "items": {"type": "object", "required": ["name", "code"], "properties": {"name": {"type": "string"}, "type": {"type": "string"}, "status": {"type": "string"}, "code": {"type": "integer"}, "conditions": {"type": "array", "items": verdict}}}},
        "nodes": {"type": "object", "additionalProperties": {"type": "object", "properties": {"state": {"type": "string"}}}},
        "conditions": {"type": "array", "items": condition}}});
    status["properties"].as_object_mut().unwrap().remove(member);
    let spec = json!({"type": "object", "properties": {"plan": {"type": "string", "enum": ["Small", "Large"]}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let defined = Defined {
        name: "things.l.io v1".to_owned(),
        group: "l.io".to_owned(),
        version: "v1".to_owned(),
        plural: "things".to_owned(),
        schema: Schema::compile(&schema, NEWEST),
    };
    let sources = [Source::new("c.yaml", text)];
    let policies = PolicySet::compile(&sources).unwrap_or_else(|error| panic!("{error}"));
    let defined = [defined];
    let found = policies.mistakes_in_pointers(&sources, &defined).into_iter();
    found.chain(policies.mistakes_in_settings(&sources, &defined)).collect()
}

#[test]
fn what_a_schema_accepts_is_no_mistake() {
    let sound = "  phase: {path: /status/phase, default: Unknown, values: [{phase: Ready}, {phase: Failed}, {phase: Unknown}]}
  conditions: [{path: /status/conditions, members: {reason: {type: string, enum: [A]}}, each: [{id: e, when: {member: reason, is: A}, action: Deny, message: m}]}, {path: /status/nodes/*, members: {state: {pattern: a}}}]
  fields: [{path: /status/code, type: number, enum: [0, 1]}, {path: /status/size, type: string, pattern: a}, {path: /status/count, format: quantity}]
  backfill: [{path: /status/tier, value: a}, {path: /status/ready, value: null}, {path: /status/count, value: null, nullable: false}, {list: /status/conditions, member: reason, value: A}]
  rules: [{id: r, path: /status/phase, when: {all: [{field: /status/ready, is: true}, {condition: Ready, present: true}]}, action: Warn, message: m}]
";
    assert_eq!(mistakes(sound), [""; 0]);
}

fn policy(expression: &str) -> String {
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec: \
         {{convention: metav1, resources: [{{apiGroups: [l.io], apiVersions: [v1], resources: [things]}}], \
         rules: [{{name: r, path: /status/phase, expression: \"{expression}\", action: Warn, message: m}}]}}\n"
    )
}

#[test]
fn the_caret_is_at_the_wrong_word_of_an_expression() {
    for (expression, wrong) in [
        (
            "has(self.status.x) && self.status.phase != 'Ready' && self.status.phose == 'Up'",
            ["x", "phose"],
        ),
        ("self.status.conditions.all(c, c.type == 'Reday' || c.typo == 'a')", ["Reday", "typo"]),
        ("self.spec.plan == 'Up' || self.status.count.startsWith('Up')", ["Up", "count"]),
    ] {
        let text = policy(expression);
        let found = diagnostics(text.clone());
        let words: Vec<&str> =
            found.iter().map(|mistake| &text[mistake.span.bytes.clone()]).collect();
        assert_eq!(words, wrong, "{expression}");
    }
}

#[test]
fn texts_in_cel_and_the_messages_of_health_are_compared_with_the_schema() {
    let guard = "!has(self.status.phase) || ";
    for (expression, wrong) in [
        ("self.status.phase == 'Ready'", None),
        ("self.status.phase != ''", None),
        ("self.status.phase in ['Failed', 'ready']", Some("\"ready\"")),
        ("'Up' != oldSelf.status['phase']", Some("\"Up\"")),
        (
            "self.metadata.name == 'Up' || self.status.tier == 'abcd'",
            Some("may not be more than 3"),
        ),
        ("['Up'].all(self, self == 'Up')", None),
        ("self.status.conditions.exists(c, c.type == 'Ready')", None),
        ("self.status.conditions.exists(c, c.type == 'Reday')", Some("\"Reday\"")),
        (
            "self.status.conditions.all(c, ['x'].exists(d, c.type == 'Up' || d == 'Up'))",
            Some("\"Up\""),
        ),
        ("self.status.nodes.exists(n, n == 'Up')", None),
        ("self.status.count == 5 && self.status.ready == true", None),
        ("self.status.?conditions.orValue([]).exists(c, c.type == 'Reday')", Some("\"Reday\"")),
        ("self.status.?phase.orValue('') == 'ready'", Some("\"ready\"")),
        ("self.status.phase == 5", Some("must be of type string")),
        ("size(self.status.tier) > 2 && size(self.status.nodes) > 0", None),
        ("self.status.tier.startsWith('a') && self.status.count < 7", None),
        ("timestamp(self.status.started) > timestamp(self.status.when)", None),
        ("self.status.nodes.all(k, self.status.nodes[k].state != 'Up')", None),
        ("!('a' in self.status.zones) && self.status.zones.all(z, z != 'b')", None),
        ("'c' in self.status.zones", Some("\"c\"")),
        ("self.status.zones.all(z, z != 'c')", Some("\"c\"")),
        ("self.status.tier > 3", Some("status.tier is read as a number")),
        ("size(self.status.count) > 3", Some("status.count is read as a text, list or map")),
        ("self.status.count.startsWith('1')", Some("status.count is read as a text")),
        ("timestamp(self.status.tier) > timestamp(self.status.when)", Some("rejects every time")),
        (
            "self.status.conditions.all(c, self.status.conditions[c].type == 'Ready')",
            Some("status.conditions is read as a map"),
        ),
        ("self.status.nodes.all(n, n.state == 'Up')", Some("status.nodes is read as a list")),
        (
            "self.status.nodes.all(k, self.status.nodes[k].sate == 'Up')",
            Some("/status/nodes/0/sate is not in"),
        ),
        ("self.spec.plan != 'Huge'", Some("\"Huge\"")),
        ("self.status.count == self.status.code || self.spec.plan == self.status.tier", None),
        ("self.status.size == self.status.count", None),
        (
            "self.spec.plan == self.status.ready",
            Some("in the schema is boolean, and that of spec.plan is string"),
        ),
        ("self.status.conditions.all(c, has(c.reason))", None),
        (
            "self.status.conditions.all(c, has(c.raeson))",
            Some("/status/conditions/0/raeson is not in"),
        ),
        ("self.status.nodes.exists(type, self.status.nodes[type].state == 'Up')", None),
    ] {
        let found = mistakes_in(policy(&format!("{guard}{expression}")));
        let expected: Vec<&str> = wrong.into_iter().collect();
        assert_eq!(found.len(), expected.len(), "{expression}: {found:#?}");
        assert!(expected.iter().all(|text| found[0].contains(text)), "{expression}: {found:#?}");
    }
    let health = |field: &str| {
        format!(
            "  phase: {{path: /status/phase, values: [{{phase: Ready, health: current}}]}}\n  \
             health: {{rules: [{{name: h, when: {{phase: Ready}}, is: failed, message: /status/{field}}}]}}\n"
        )
    };
    assert_eq!(mistakes(&health("tier")), [""; 0]);
    let found = mistakes(&health("teir"));
    assert!(found.len() == 1 && found[0].contains("/status/teir is not in"), "{found:#?}");
}

/// What belongs to the list in the same document is left out, and nothing else.
#[test]
fn conditions_that_the_schema_lacks_are_one_mistake_of_each_place_that_reads_them() {
    let head = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: c}\nspec:\n  extends: metav1\n";
    let list = "  conditions: [{path: /status/conditions, members: {reason: {required: true}}}]\n";
    let rule = "  rules: [{id: r, path: /status/phase, when: {condition: Ready, reason: Up}, action: Warn, message: m}]\n";
    for (spec, words) in [
        (list.to_owned(), &["/status/conditions"][..]),
        (rule.to_owned(), &["Up"]),
        (list.to_owned() + rule, &["/status/conditions", "Up"]),
    ] {
        let text = head.to_owned() + &spec;
        let found = diagnostics_without("conditions", text.clone());
        for mistake in &found {
            assert!(mistake.message.contains("is not in the schema"), "{found:#?}");
        }
        let found = found.iter().map(|mistake| &text[mistake.span.bytes.clone()]);
        assert_eq!(found.collect::<Vec<_>>(), words, "{spec}");
    }
}

/// The webhook sets the values of a built-in convention, too.
#[test]
fn the_defaults_of_the_convention_are_compared_for_each_policy() {
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: {convention: appcat, \
                  resources: [{apiGroups: [l.io], apiVersions: [v1], resources: [things]}]}\n";
    let found = mistakes_in(policy.to_owned());
    let imposed =
        "things.l.io v1: the API server rejects status.phase: Unsupported value: \"Deleting\"";
    assert!(found.iter().any(|message| message.starts_with(imposed)), "{found:#?}");
    assert_eq!(mistakes_in(policy.replace("l.io", "m.io")), [""; 0], "another group");
}

#[test]
fn each_kind_of_value_is_compared_with_the_schema() {
    for (spec, expected) in [
        (
            "  phase: {path: /status/phase, default: Unknown, values: [{phase: Unknown}, {phase: Up}]}\n",
            "Unsupported value: \"Up\"",
        ),
        (
            "  phase: {path: /status/ready, default: Up, values: [{phase: Up}, {phase: Down}]}\n",
            "a phase is a string, but its type in the schema is boolean",
        ),
        // The path of the list is the only mistake.
        (
            "  conditions: [{path: /status/conditoins, members: {reason: {required: true}}, key: [reason]}]\n",
            "/status/conditoins is not in the schema",
        ),
        (
            "  phase: {path: /status/tier, default: Good, values: [{phase: Good}]}\n",
            "may not be more than 3",
        ),
        ("  fields: [{path: /status/phase, enum: [Ready, down]}]\n", "Unsupported value: \"down\""),
        ("  fields: [{path: /status/code, enum: [0, 3]}]\n", "Unsupported value: 3"),
        ("  fields: [{path: /status/ready, type: string}]\n", "the type in the schema is boolean"),
        (
            "  fields: [{path: /status/ready, maximum: 3}]\n",
            "this is a test of numbers, but the type in the schema is boolean",
        ),
        (
            "  fields: [{path: /status/count, minLength: 3}]\n",
            "this is a test of strings, but the type in the schema is integer",
        ),
        (
            "  rules: [{id: r, path: /status/phase, when: {field: /status/count, is: five}, action: Warn, message: m}]\n",
            "must be of type integer",
        ),
        (
            "  rules: [{id: r, path: /status/phase, when: {field: /status/phase, isNot: [Ready, failed]}, action: Warn, message: m}]\n",
            "Unsupported value: \"failed\"",
        ),
        (
            "  rules: [{id: r, path: /status/phase, when: {field: /status/ready, matches: ^a}, action: Warn, message: m}]\n",
            "this is a test of strings",
        ),
        (
            "  conditions: [{path: /status/tier}]\n",
            "this must be a list, but its type in the schema is string",
        ),
        (
            "  conditions: [{path: /status/nodes}]\n",
            "this must be a list, but its type in the schema is object",
        ),
        (
            "  conditions: [{path: /status/conditions, members: {resaon: {required: true}}}]\n",
            "status.conditions[0].resaon is not in the schema",
        ),
        (
            "  conditions: [{path: /status/conditions, members: {reason: {type: integer}}}]\n",
            "the type in the schema is string",
        ),
        (
            "  conditions: [{path: /status/conditions, key: [typ]}]\n",
            "status.conditions[0].typ is not in the schema",
        ),
        (
            "  conditions: [{path: /status/conditions, transitionTime: {member: lastTransition}}]\n",
            "lastTransition is not in the schema",
        ),
        (
            "  conditions: [{path: /status/conditions, each: [{id: e, when: {member: raeson, is: A}, action: Deny, message: m}]}]\n",
            "raeson is not in the schema",
        ),
        (
            "  conditions: [{path: /status/nodes/*, members: {stat: {type: string}}}]\n",
            "stat is not in the schema",
        ),
        // Every write of such a list would be rejected.
        (
            "  conditions: [{path: /status/conditions/*, members: {reason: {type: string}}}]\n",
            "this is a list, and `/*` reads maps",
        ),
        (
            "  conditions: [{path: /status/conditions, types: {Ready: {reasons: {'True': Up, 'False': [Down, NobodyKnows], action: Warn}}}}]\n",
            "may not be more than 9",
        ),
        (
            "  phase: {path: /status/phase, reason: {path: /status/tier, always: [Odd], action: Warn}, values: [{phase: Ready, reasons: [Up]}, {phase: Failed, reasons: [Down, No]}]}\n",
            "may not be more than 3",
        ),
        (
            "  conditions: [{path: /status/conditions, types: {Raedy: {polarity: positive}}}]\n",
            "Unsupported value: \"Raedy\"",
        ),
        (
            "  conditions: [{path: /status/parents/*/conditions, parentKey: [nmae]}]\n",
            "status.parents[0].nmae is not in the schema",
        ),
        (
            "  phase: {path: /status/phase, transitionTime: /status/tier, values: [{phase: Ready}]}\n",
            "rejects every time",
        ),
        ("  fields: [{path: /status/tier, format: date-time}]\n", "rejects every time"),
        ("  generation: {paths: [/status/ready]}\n", "rejects every generation"),
        ("  fields: [{path: /status/tier, minLength: 4}]\n", "allows at most 3"),
        ("  fields: [{path: /status/count, minimum: 6}]\n", "allows at most 5"),
        (
            "  backfill: [{path: /status/box, value: {size: a, kind: b}}]\n",
            "status.box.kind is not in the schema",
        ),
        (
            "  backfill: [{path: /status/count, copyOf: [/status/tier]}]\n",
            "the type of this in the schema is string, and that of status.count is integer",
        ),
        (
            "  backfill: [{path: /status/tier, copyOf: [/metadata/generation]}]\n",
            "this is a number, but the type of status.tier in the schema is string",
        ),
        (
            "  backfill: [{path: /status/tier, copyOf: [/metadata/creationTimestamp]}]\n",
            "rejects every time",
        ),
        (
            "  conditions: [{path: /status/parents, element: parent, key: [name]}]\n  backfill: [{name: p, list: /status/parents, element: {type: a, status: 'True', name: a}}]\n",
            "requires \"code\" of each element",
        ),
        // One mistake for all that is below it.
        (
            "  backfill: [{path: /status/box, value: {kind: {a: 1, b: {c: 2}}}}]\n",
            "status.box.kind is not in the schema",
        ),
        ("  backfill: [{path: /status/bix, value: {a: 1}}]\n", "/status/bix is not in the schema"),
        ("  backfill: [{path: /status/phase, value: New}]\n", "Unsupported value: \"New\""),
        (
            "  backfill: [{path: /status/phase, value: Old, when: {deleting: true}}]\n",
            "Unsupported value: \"Old\"",
        ),
        ("  backfill: [{path: /status/ready, value: yes}]\n", "must be of type boolean"),
        ("  backfill: [{path: /status/count, value: 9}]\n", "should be less than or equal to 5"),
        ("  backfill: [{path: /status/when, value: now}]\n", "date-time"),
        (
            "  backfill: [{path: /status/ready, value: null, nullable: true}]\n",
            "must be of type boolean",
        ),
        (
            "  conditions: [{path: /status/conditions}]\n  backfill: [{list: /status/conditions, member: reason, value: 5}]\n",
            "must be of type string",
        ),
    ] {
        let found = mistakes(spec);
        assert!(found.len() == 1 && found[0].contains(expected), "{spec}{found:#?}");
    }
}

#[test]
fn each_word_of_a_predicate_is_compared_with_the_schema() {
    let cases = [
        ("condition: Ready, reason: [Down, '']", ""),
        // It also holds without the member.
        ("condition: Ready, severity: [Error, '']", ""),
        ("length: /status/conditions, atLeast: 1", ""),
        ("field: /status/count, atMost: 3", ""),
        ("field: /status/when, before: /status/started", ""),
        ("since: /status/started, moreThan: 4h", ""),
        ("length: /status/conditions, atMost: 4", ""),
        ("field: /status/count, atMost: /status/code", ""),
        ("field: /spec/plan, is: Large", ""),
        ("condition: Raedy, present: true", "Unsupported value: \"Raedy\""),
        ("condition: Ready, reason: NobodyKnows", "may not be more than 9"),
        ("condition: Ready, severity: Error", "severity is not in the schema"),
        (
            "field: /status/when, equals: {condition: Ready, member: time}",
            "status.conditions[0].time is not in the schema",
        ),
        ("length: /status/count, atLeast: 1", "this must be a list"),
        ("field: /status/tier, atMost: 3", "this is a test of numbers"),
        ("field: /status/ready, before: /status/when", "rejects every time"),
        ("field: /status/ready, decreased: true", "rejects every time"),
        ("field: /status/tier, decreased: true", "rejects every time"),
        ("field: /status/when, before: /status/tier", "rejects every time"),
        ("since: /status/tier, moreThan: 4h", "rejects every time"),
        ("length: /status/zones, atLeast: 4", "allows at most 3"),
        ("field: /status/count, atLeast: 6", "allows at most 5"),
        ("field: /status/count, atMost: /status/tier", "this must be a number"),
        (
            "field: /status/count, equals: /status/tier",
            "the type of this in the schema is string, and that of status.count is integer",
        ),
        ("field: /spec/plan, is: Huge", "Unsupported value: \"Huge\""),
        ("oldField: /status/phase, is: Huge", "Unsupported value: \"Huge\""),
        ("field: /status/phase, isNot: [Ready, failed]", "Unsupported value: \"failed\""),
        ("field: /status/ready, matches: ^a", "this is a test of strings"),
        ("field: /status/tier, future: true", "rejects every time"),
        ("field: /status/tier, past: true", "rejects every time"),
        ("field: /status/tier, set: true", ""),
        ("field: /status/tier, changed: true", ""),
    ];
    for key in Value::TESTS {
        let word = format!(", {key}: ");
        let mut whens = cases.iter().map(|(when, _)| when);
        assert!(whens.any(|when| when.contains(&word)), "what does the schema say of {key}?");
    }
    for (when, expected) in cases {
        let lists = "  conditions: [{path: /status/conditions}]\n";
        let rule = format!(
            "{lists}  rules: [{{id: r, path: /status/phase, when: {{{when}}}, action: Warn, message: m}}]\n"
        );
        let found = mistakes(&rule);
        let is_expected = match expected {
            "" => found.is_empty(),
            _ => found.len() == 1 && found[0].contains(expected),
        };
        assert!(is_expected, "{when}: {found:#?}");
    }
    // The conditions of an element have types of their own, also where `element` names it.
    let inner = |kind: &str| {
        mistakes(&format!(
            "  conditions: [{{path: /status/conditions}}, {{path: /status/parents/*/conditions, parentKey: [name], element: verdict, \
             each: [{{id: e, when: {{condition: {kind}, is: 'True'}}, action: Warn, message: m}}]}}]\n"
        ))
    };
    assert_eq!(inner("Accepted"), [""; 0]);
    assert_eq!(inner("Ready").len(), 1);
    // Without a list of conditions, nothing is known of them.
    let none = "  conditions: [{path: /status/parents, element: parent, key: [name], each: [{id: e, action: Warn, message: m, \
                when: {member: name, equals: {condition: Ready, member: message}}}]}]\n";
    assert_eq!(mistakes(none).len(), 1, "{:?}", mistakes(none));
    let each = |when: &str| {
        mistakes(&format!(
            "  conditions: [{{path: /status/conditions, each: [{{id: e, when: {{{when}}}, action: Deny, message: m}}]}}]\n"
        ))
    };
    assert_eq!(each("member: reason, equals: type"), [""; 0]);
    for when in ["member: reason, equals: typ", "oldMember: typ, is: Ready"] {
        let found = each(when);
        assert!(found.len() == 1 && found[0].contains("typ is not in"), "{when}: {found:#?}");
    }
}
