//! Tests of CEL rules: the values they read, their cost, and evaluation errors.

use super::*;
use crate::policy::cel::compile;

/// Whether an expression holds for a status, with a stored `{"n": 1}`.
fn ask(expression: &str, status: &str) -> Result<bool, String> {
    let expression = compile(expression).unwrap_or_else(|error| panic!("{error:?}"));
    let text = format!(
        r#"{{"apiVersion": "g/v1", "kind": "Thing", "metadata": {{"name": "n", "generation": 3, "labels": {{"app": "db"}},
            "annotations": {{"cnpg.io/hibernation": "on"}}}},
            "spec": {{"replicas": 2}}, "status": {status}}}"#
    );
    let object = Object::parse(&text).unwrap();
    let old = Object::parse(r#"{"status": {"n": 1}}"#).unwrap();
    let writer = Writer { user: "operator".into(), groups: vec!["system:masters".into()] };
    let answer = holds(&expression, &object, Some(&old), &writer, &Budget::default());
    answer.map_err(|unknown| unknown.to_string())
}

#[test]
fn all_documented_members_are_readable() {
    for expression in [
        "self.apiVersion == 'g/v1' && self.kind == 'Thing'",
        "self.metadata.name == 'n' && self.metadata.generation == 3",
        "!has(self.metadata.namespace) && !has(self.metadata.deletionTimestamp)",
        "self.metadata.annotations['cnpg.io/hibernation'] == 'on' && self.metadata.labels.app == 'db'",
        "self.metadata.labels == {'app': 'db'} && size(self.metadata) == 4",
        "!has(oldSelf.metadata.labels) || !('app' in oldSelf.metadata.labels)",
        "self.spec.replicas == 2 && !has(self.spec.other)",
        "oldSelf.status.n + 1 == self.status.n",
        "writer.user == 'operator' && 'system:masters' in writer.groups",
        "self.status.list == [1, 2.5, 'three', null, true, {'four': 4}]",
    ] {
        let status = r#"{"n": 2, "list": [1, 2.5, "three", null, true, {"four": 4}]}"#;
        assert_eq!(ask(expression, status), Ok(true), "{expression}");
    }
}

#[test]
fn evaluation_follows_kubernetes_semantics() {
    let status = r#"{"n": 2, "f": 2.0, "text": "Ready", "list": ["b", "a"], "map": {"z": 1, "y": 2},
        "start": "2024-06-01T12:00:00Z", "end": "2024-06-01T15:30:00+02:00", "window": "30m",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]}"#;
    for (expression, answer) in [
        ("self.status.n == self.status.f", true),
        ("has(self.status.none)", false),
        ("has(self.status.none) && self.status.none.x == 1", false),
        ("self.status.conditions.exists(c, c.type == 'Synced' && c.status == 'False')", true),
        ("self.status.conditions.all(c, c.status == 'True')", false),
        ("self.status.conditions.exists_one(c, c.status == 'True')", true),
        ("self.status.conditions.filter(c, c.status == 'True').map(c, c.type) == ['Ready']", true),
        ("self.status.list.map(x, x != 'b', x + x) == ['aa']", true),
        ("self.status.text.matches('^[A-Z][a-z]+$')", true),
        ("matches(self.status.text, 'y$') && !self.status.text.matches('^y')", true),
        ("self.status.text.startsWith('Re') && self.status.text.size() == 5", true),
        ("self.status.text > 'Re' ? true : false", true),
        ("'z' in self.status.map && self.status.map.all(k, self.status.map[k] > 0)", true),
        ("self.status.?none.?x.orValue(3) == 3 && self.status.?text.orValue('') == 'Ready'", true),
        (
            "self.status.?none.hasValue() || self.status.?none.or(self.status.?n).value() != 2",
            false,
        ),
        ("self.status.list[?0].orValue('') == 'b' && !self.status.list[?9].hasValue()", true),
        ("timestamp(self.status.end) - timestamp(self.status.start) == duration('1h30m')", true),
        ("timestamp(self.status.end) > timestamp(self.status.start) + duration('2h')", false),
        ("duration(self.status.window) < duration('1h')", true),
        // An error is ignored if another operand decides.
        ("self.status.none.x == 1 || true", true),
        ("self.status.list.exists(x, x == 'a' || x.none == 1)", true),
    ] {
        assert_eq!(ask(expression, status), Ok(answer), "{expression}");
    }
}

#[test]
fn maps_are_iterated_in_key_order() {
    let members: Vec<String> = (0..50).map(|n| format!(r#""k{n:02}": {n}"#)).collect();
    let status = format!(r#"{{"map": {{{}}}}}"#, members.join(", "));
    for expression in [
        "self.status.map.map(k, k)[0] == 'k00' && self.status.map.map(k, k)[49] == 'k49'",
        "{'b': 1, 'a': 2, 'c': 3}.map(k, k) == ['a', 'b', 'c']",
    ] {
        assert_eq!(ask(expression, &status), Ok(true), "{expression}");
    }
}

#[test]
fn evaluation_errors_have_stable_texts() {
    let status = r#"{"n": 2, "text": "x", "list": [1], "map": {"a": {"b": 1}, "c": {"d": 2}}}"#;
    for (expression, reason) in [
        ("self.status.phase == 'Ready'", r#"there is no "phase""#),
        ("self.status.map[self.status.text] == 1", r#"there is no "x""#),
        ("self.status.n / 0 == 1", "it divides by zero"),
        ("self.status.n % (self.status.n - 2) == 1", "it divides by zero"),
        ("self.status.n * 9223372036854775807 > 0", "a number is too large"),
        ("self.status.list[7] == 1", "a list is shorter than an index"),
        ("self.status.n > self.status.text", r#"">" does not work on int and string"#),
        ("self.status.n + self.status.text == 'x'", r#""+" does not work on int and string"#),
        ("self.status.map && true", r#""map" is used where "bool" is needed"#),
        ("[1].all(x, self.status.text)", r#""string" is used where "bool" is needed"#),
        ("[1].exists(x, self.status.text)", r#""string" is used where "bool" is needed"#),
        ("self.status.n.matches('x')", r#""matches" does not work on int"#),
        ("self.status.n.startsWith('x')", r#""startsWith" does not work on int and string"#),
        ("int(self.status.text) == 1", r#""int" does not accept this value"#),
        (
            "timestamp(self.status.text) == timestamp(self.status.text)",
            r#""timestamp" does not accept this value"#,
        ),
        (
            "duration(self.status.text) == duration('4h')",
            r#""duration" does not accept this value"#,
        ),
        ("self.status.?none.value() == 1", r#""value" does not accept this value"#),
        ("self.status.text", "its result is string, not true or false"),
        ("self.status.n.all(x, true)", r#""int" is used where "iterable" is needed"#),
        ("self.status.map.all(k, self.status.map[k].b == 1)", r#"there is no "b""#),
    ] {
        for _ in 0..3 {
            assert_eq!(ask(expression, status), Err(reason.to_owned()), "{expression}");
        }
    }
}

fn list(length: usize) -> String {
    format!(r#"{{"n": 2, "list": [0{}]}}"#, ",0".repeat(length - 1))
}

#[test]
fn the_number_of_values_is_limited() {
    let limit = usize::try_from(MAX_VALUES).unwrap();
    let size = "size(self.status.list) > 0";
    // The list and the status count too.
    assert_eq!(ask(size, &list(limit - 2)), Ok(true));
    let reason = Err("it reads more than 10000 values".to_owned());
    assert_eq!(ask(size, &list(limit - 1)), reason);
    // Values that the rule does not read do not count.
    assert_eq!(ask("has(self.status.list) && self.status.n == 2", &list(limit)), Ok(true));
}

#[test]
fn the_number_of_steps_is_limited() {
    let reason = Err("the rules of a review take more than 100000 steps".to_owned());
    for expression in [
        "self.status.list.all(x, self.status.list.all(y, x >= y && y >= x || true))",
        "!self.status.list.exists(x, self.status.list.exists(y, y == 1))",
        "self.status.list.map(x, self.status.list.filter(y, y == 0)).size() > 0",
        "self.status.list.exists_one(x, self.status.list.exists_one(y, y == 0)) || true",
        "self.status.list.all(x, x in self.status.list && !(1 in self.status.list))",
        "self.status.list.all(x, self.status.list == self.status.list)",
        "self.status.list.map(x, self.status.list).size() > 0",
    ] {
        assert_eq!(ask(expression, &list(100)), Ok(true), "{expression}");
        assert_eq!(ask(expression, &list(5000)), reason, "{expression}");
    }
    assert_eq!(ask("self.status.list.all(x, x == 0)", &list(5000)), Ok(true));
}

#[test]
fn each_read_of_a_long_string_costs_steps() {
    let status = |length: usize| {
        format!(r#"{{"text": "{}", "list": [{}1]}}"#, "x".repeat(length), "1,".repeat(999))
    };
    for expression in [
        "self.status.list.all(x, self.status.text.matches('^(x|y)*$'))",
        "self.status.list.all(x, !self.status.text.contains('y'))",
        "self.status.list.all(x, (self.status.text + 'x').size() > 0)",
    ] {
        assert_eq!(ask(expression, &status(1000)), Ok(true), "{expression}");
        let reason = Err("the rules of a review take more than 100000 steps".to_owned());
        assert_eq!(ask(expression, &status(1 << 20)), reason, "{expression}");
    }
}

#[test]
fn the_last_duplicate_member_counts_as_in_go() {
    let status = r#"{"a": 1, "a": 2, "b": {"c": 1, "c": 2}}"#;
    for expression in ["self.status.a == 2", "self.status.b == {'c': 2}", "size(self.status) == 2"]
    {
        assert_eq!(ask(expression, status), Ok(true), "{expression}");
    }
}
