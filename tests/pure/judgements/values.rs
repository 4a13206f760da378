//! What the validating webhook accepts as a value.

use serde_json::{Value, json};

use super::{FAR, condition, with};
use crate::support::{DELETED, T0, WITHOUT_SUBRESOURCE, Write, following, under};

#[test]
fn an_observed_generation_is_an_integer_of_64_bits() {
    let written = |generation: &str| {
        let number: Value = serde_json::from_str(generation).unwrap();
        let ready = with(condition("Ready", "True"), "observedGeneration", number);
        let write = Write::of(json!({"x": 1}), json!({"conditions": [ready]}));
        write.validate(&following("metav1", "")).findings
    };
    assert_eq!(written("3"), []);
    for (generation, reason) in [
        // Go cannot decode this into an int64.
        ("3.0", "it has a decimal point or an exponent"),
        ("3.5", "it is a number"),
        ("9223372036854775808", "it does not fit in 64 bits"),
    ] {
        let found = written(generation);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].field, "status.conditions[0].observedGeneration");
        assert!(found[0].message.contains(reason), "{found:?}");
    }
}

#[test]
fn a_future_time_and_a_future_generation_are_invalid_values() {
    let condition =
        with(with(condition("A", "True"), "lastTransitionTime", FAR), "observedGeneration", 9);
    let new = json!({"phase": "Unknown", "conditions": [condition]});
    let outcome = Write::of(json!({"phase": "Unknown"}), new).validate(&following("appcat", ""));
    let reasons: Vec<&str> = outcome.findings.iter().map(|found| found.reason).collect();
    assert_eq!(reasons, ["FieldValueInvalid"; 2]);
}

/// Lengths count characters. Classes are those of ASCII, as in ECMA 262 and in Go.
#[test]
fn a_pattern_matches_characters() {
    for (pattern, text, matches) in [
        ("^.{3}$", "äöü", true),
        ("^.{3}$", "ä", false),
        ("^[a-zäöü]+$", "grün", true),
        (r"^[^/]{2}$", "äö", true),
        (r"^\w+\s\d\W$", "ab 1-", true),
        (r"^\w$", "ä", false),
        (r"^\W\D\S$", "äöü", true),
        (r"\bx\b", "a x b", true),
        (r"\bx\b", "axb", false),
        (r"^[\w.-]+$", "a_b.c-1", true),
        (r"^[^\s\d]$", "ä", true),
    ] {
        let fields = format!("fields: [{{path: /status/name, pattern: '{pattern}'}}]");
        let write = Write::of(json!({}), json!({"name": text}));
        let outcome = write.validate(&following("metav1", &fields));
        assert_eq!(!outcome.is_denied(), matches, "{pattern} {text}");
    }
}

#[test]
fn a_hostile_member_name_is_quoted_on_one_short_line() {
    let policies = under(
        "conditions: [{path: /status/conditions, otherMembers: Deny, members: {type: {}, status: {}}}]",
        "",
    );
    let with = |name: &str| {
        let ready = json!({"type": "Ready", "status": "True", name: 1});
        let write = Write::of(json!({"x": 1}), json!({"conditions": [ready]}));
        write.validate(&policies).lines().remove(0)
    };
    assert!(with("plain").starts_with("deny status.conditions[0].plain: "));
    let text = with("\u{1b}[31mRED\n\u{202e}");
    assert!(!text.contains(|letter: char| letter.is_control() || letter == '\u{202e}'), "{text:?}");
    assert!(with(&"ä".repeat(100_000)).len() < 400);
}

/// The API server calls the mutating webhook with metadata and spec of the request, and stores the old ones.
#[test]
fn a_status_write_is_judged_with_the_metadata_and_the_spec_of_the_stored_object() {
    let policies = following("appcat", "");
    let status = |message: &str| json!({"phase": "Ready", "lastTransitionTime": T0, "instanceNamespace": "n", "message": message});
    let write = |old: &[&str], new: &[&str]| {
        let object = |names: &[&str], status: Value| {
            let metadata: serde_json::Map<_, _> =
                names.iter().map(|name| ((*name).to_owned(), DELETED.into())).collect();
            json!({"metadata": metadata, "status": status}).to_string()
        };
        Write::of_texts(Some(object(old, status("old"))), object(new, status("new")))
    };
    let deleting = ["deletionTimestamp"];
    let kept = write(&deleting, &[]);
    assert_eq!(kept.review(&policies).status()["phase"], "Deleting");
    let main = kept.on_the_main_resource().mutate(&following("appcat", WITHOUT_SUBRESOURCE));
    assert_eq!(main.status()["phase"], "Ready");
    let invented = write(&[], &deleting);
    let outcome = invented.review(&policies);
    assert_eq!(outcome.status()["phase"], "Ready");
    outcome.is_clean();
}
