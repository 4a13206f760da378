//! Who changes an owned field: every small configuration of `owners` and `preserve`, and every small write.
//!
//! After a write by another, an owned field is the owner's or the write is denied, whatever its parents
//! became. A restored value is exact, the owner may remove its field, and a repeated write settles.

use serde_json::{Map, Value, json};
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

use crate::support::{Write, compile, convention, policy};

/// The names of a child: a number may also be the index of a list.
const NAMES: [&str; 2] = ["a", "0"];

/// A field, its child, the child of that, and a sibling.
fn paths(name: &str) -> [Vec<&str>; 4] {
    [vec!["own"], vec!["own", name], vec!["own", name, "x"], vec!["own", "b"]]
}

/// The values of the field, also of types without this child.
fn values(name: &str) -> Vec<Option<Value>> {
    let with = |value: Value| Some(json!({name: value}));
    vec![
        None,
        Some(Value::Null),
        Some(json!("text")),
        Some(json!({})),
        with(Value::Null),
        with(json!(1)),
        with(json!(2)),
        with(json!({"x": 1})),
        with(json!({"x": 1, "y": 2})),
        Some(json!({name: 1, "b": 2})),
        Some(json!({"b": 1})),
        Some(json!([])),
        Some(json!([null])),
        Some(json!([2, 1])),
        Some(json!([{"x": 1}])),
    ]
}

/// The lists of at most `most` different paths, in each order.
fn lists(name: &str, most: usize) -> Vec<Vec<Vec<&str>>> {
    let mut all = vec![Vec::new()];
    for length in 0..most {
        let shorter: Vec<_> = all.iter().filter(|list| list.len() == length).cloned().collect();
        for list in shorter {
            let others = paths(name).into_iter().filter(|path| !list.contains(path));
            all.extend(others.map(|path| [list.clone(), vec![path]].concat()));
        }
    }
    all
}

/// A configuration: the owned paths, `u0` owns the first, and the preserved paths.
struct Case<'n> {
    owned: Vec<Vec<&'n str>>,
    preserved: Vec<Vec<&'n str>>,
    policies: PolicySet,
}

impl<'n> Case<'n> {
    fn new(owned: Vec<Vec<&'n str>>, preserved: Vec<Vec<&'n str>>, in_two: bool) -> Self {
        let text = |path: &[&str]| format!("/status/{}", path.join("/"));
        let owner =
            |(at, path): (usize, &Vec<&str>)| format!("{{path: {}, users: [u{at}]}}", text(path));
        let owners: Vec<String> = owned.iter().enumerate().map(owner).collect();
        let owners = format!("owners: [{}]", owners.join(", "));
        let kept: Vec<String> = preserved.iter().map(|path| text(path)).collect();
        let kept = format!("preserve: [{}]", kept.join(", "));
        let mut documents = vec![convention("c", "fields: [{path: /status/n, type: integer}]")];
        match in_two {
            false => documents.push(policy("p", format!("convention: c, {owners}, {kept}"))),
            true => documents.extend([
                policy("p", format!("convention: c, {owners}")),
                policy("q", format!("convention: c, {kept}")),
            ]),
        }
        Self { owned, preserved, policies: compile(&documents) }
    }

    /// Whether the write is denied, and the status after the mutating webhook.
    fn write(&self, stored: &Value, written: &Value, user: &str) -> (bool, Value) {
        let write = Write::of(stored.clone(), written.clone()).by(user);
        let mutated = write.mutate(&self.policies);
        let after = write.after(&mutated);
        if mutated.is_patched() {
            assert!(!after.mutate(&self.policies).is_patched(), "a second run of {after:?}");
        }
        let denied = after.ask(&self.policies, Webhook::Validate, |verdict| verdict.is_denied());
        (denied, mutated.status())
    }
}

/// The value at a path; null counts as absent.
fn at<'v>(status: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let found = path.iter().try_fold(status, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    });
    found.filter(|value| !value.is_null())
}

/// Whether all parents of a path are objects, or with `missing` absent.
fn is_in_maps(status: &Value, path: &[&str], missing: bool) -> bool {
    (0..path.len()).all(|depth| at(status, &path[..depth]).map_or(missing, Value::is_object))
}

/// Whether a write leaves the place of a preserved field free: it is restored.
fn is_restorable(stored: &Value, written: &Value, path: &[&str]) -> bool {
    at(stored, path).is_some()
        && is_in_maps(stored, path, false)
        && at(written, path).is_none()
        && is_in_maps(written, path, true)
}

fn check_another(case: &Case<'_>, stored: &Value, written: &Value) {
    let (denied, after) = case.write(stored, written, "operator");
    let is_changed = |status: &Value, path: &Vec<&str>| at(status, path) != at(stored, path);
    let changes = case.owned.iter().any(|path| is_changed(&after, path));
    assert_eq!(denied, changes, "an owned field changed, or a write was denied without a change");
    for path in case.preserved.iter().filter(|path| is_restorable(stored, written, path)) {
        assert!(!is_changed(&after, path), "{path:?} is restored as it was");
    }
    let untouched = case.preserved.iter().all(|path| !is_restorable(stored, written, path));
    assert!(!untouched || after == *written, "nothing else changes");
    if !denied {
        assert_eq!(case.write(&after, written, "operator"), (false, after.clone()), "it settles");
    }
}

/// The first owner leaves its field as written, also removed, if no other owner has a part of it.
fn check_owner(case: &Case<'_>, stored: &Value, written: &Value) {
    let (denied, after) = case.write(stored, written, "u0");
    let own = &case.owned[0];
    let changed = |path: &Vec<&str>| at(&after, path) != at(stored, path);
    assert_eq!(denied, case.owned[1..].iter().any(changed), "only another's field is denied");
    if at(written, own).is_none() {
        assert_eq!(at(&after, own), None, "the owner removes its field");
    }
}

fn check(case: &Case<'_>, name: &str, judged: &mut usize) {
    let status = |value: &Option<Value>| {
        let own = value.iter().map(|value| ("own".to_owned(), value.clone()));
        Value::Object(own.chain([("n".to_owned(), json!(1))]).collect::<Map<_, _>>())
    };
    for stored in values(name).iter().map(status) {
        for written in values(name).iter().map(status) {
            let (owned, preserved) = (&case.owned, &case.preserved);
            let context =
                || format!("owned {owned:?}, preserved {preserved:?}: {stored} -> {written}");
            for check in [check_another, check_owner] {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    check(case, &stored, &written);
                }));
                assert!(result.is_ok(), "{}", context());
                *judged += 1;
            }
        }
    }
}

#[test]
fn an_owned_field_is_the_owners_after_every_write_of_another() {
    let mut judged = 0;
    for name in NAMES {
        for owned in lists(name, 2).into_iter().filter(|owned| !owned.is_empty()) {
            // Pairs of owners with single preserved fields, and the reverse.
            for preserved in lists(name, 3 - owned.len()) {
                for in_two in [false, true] {
                    let case = Case::new(owned.clone(), preserved.clone(), in_two);
                    check(&case, name, &mut judged);
                }
            }
        }
    }
    assert!(judged > 100_000, "{judged}");
}
