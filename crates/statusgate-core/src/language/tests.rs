//! Every word is read, written and described; errors are reported at their path.

use std::collections::BTreeSet;

use schemars::schema_for;
use serde_json::{Value as Json, json};

use super::*;
use crate::model::{Object, Resource};

/// A predicate with every word, each with all of its tests.
fn every_word() -> Vec<Json> {
    vec![
        json!({"all": [{"deleting": true}, {"set": "/spec/x"}]}),
        json!({"any": [{"deleting": true}, {"set": "/spec/x"}]}),
        json!({"not": {"deleting": false}}),
        json!({"condition": "Ready", "is": "True", "isNot": ["False", "Unknown"], "reason": ["", "A"], "severity": ["", "Error"], "present": true, "changed": false}),
        json!({"oldCondition": "Ready", "present": true}),
        json!({"set": "/status/a~1b/-1"}),
        json!({"field": "/status/x", "is": ["a", 1, 1.5, true], "isNot": 0, "set": true, "changed": false,
               "decreased": true, "future": false, "past": true, "matches": "^a$", "equals": "/status/y", "before": "/spec/z",
               "atLeast": 1, "atMost": "/spec/z"}),
        json!({"field": "/metadata/annotations/cnpg.io~1hibernation", "is": "on"}),
        json!({"field": "/status/x", "equals": {"condition": "Ready", "member": "message"}}),
        json!({"field": "/status/x", "atLeast": {"condition": "Ready", "member": "observedGeneration"}}),
        json!({"since": "/status/startTimestamp", "moreThan": "1h30m"}),
        json!({"since": "/status/x", "moreThan": "4h", "field": "/status/y", "is": "z", "deleting": false}),
        json!({"since": {"condition": "Ready", "member": "lastTransitionTime"}, "moreThan": "45s"}),
        json!({"oldField": "/status/x", "set": false}),
        json!({"phase": "Ready"}),
        json!({"oldPhase": ["Ready", "Failed"]}),
        json!({"deleting": true}),
        json!({"observed": ["behind", "ahead"]}),
        json!({"length": "/status/list", "atLeast": 1, "atMost": 3}),
        json!({"gates": "/spec/readinessGates"}),
        json!({"resource": ["x*", "machines"]}),
        json!({"deleting": true, "phase": "Ready", "condition": "A", "is": "True", "set": "/spec/x"}),
    ]
}

fn words_about_elements() -> Vec<Json> {
    vec![
        json!({"member": "severity", "is": "Error", "equals": "reason", "before": "/status/x"}),
        json!({"oldMember": "severity", "set": true}),
        json!({"member": "observedGeneration", "atMost": "generation"}),
        json!({"polarity": ["positive", "negative", "neutral"]}),
        json!({"not": {"polarity": "positive"}}),
    ]
}

fn read(document: &Json) -> Predicate {
    serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// The errors of a predicate, each with its path.
fn errors(issues: Issues) -> Vec<String> {
    let errors = issues.into_iter().filter_map(|(path, issue)| {
        let message = match issue {
            Issue::Error(message, _) => message,
            Issue::Clock => "this reads the clock".to_owned(),
            Issue::Phase(name) if name != "Ready" => format!("unknown phase {name}"),
            Issue::Write | Issue::Phase(_) | Issue::Condition(_) => return None,
        };
        let steps = path.iter().map(|step| match step {
            Segment::Key(key) => format!("{key} "),
            Segment::Item(index) => format!("{index} "),
        });
        Some(steps.chain([message]).collect())
    });
    errors.collect()
}

/// What a word forgets to split is never explained, linted or exported.
#[test]
fn each_key_occurs_in_these_tests_and_in_a_part_of_its_word() {
    let documents = [every_word(), words_about_elements()].concat();
    for entry in WORDS {
        for key in [entry.keys, entry.tests].concat() {
            let mut of_word = documents
                .iter()
                .filter(|document| entry.keys.iter().any(|of| document[*of] != Json::Null));
            assert!(
                of_word.any(|document| document[key] != Json::Null),
                "{key} of {:?}",
                entry.keys
            );
        }
    }
    let keys = |word: &AnyWord| -> BTreeSet<String> {
        let written = serde_json::to_value(word).unwrap();
        written.as_object().unwrap().keys().cloned().collect()
    };
    for document in documents {
        for word in read(&document).words() {
            let parts: BTreeSet<String> = word.split().iter().flat_map(keys).collect();
            assert_eq!(parts, keys(word), "{document}");
        }
    }
}

#[test]
fn every_word_is_written_as_it_was_read() {
    for document in every_word().into_iter().chain(words_about_elements()) {
        let predicate = read(&document);
        assert_eq!(serde_json::to_value(&predicate).unwrap(), document);
        assert_eq!(read(&document), predicate);
    }
}

#[test]
fn a_list_of_one_is_written_as_one_and_a_boolean_status_as_a_text() {
    for (document, written) in [
        (json!({"phase": ["Ready"]}), json!({"phase": "Ready"})),
        (json!({"condition": "A", "is": [true]}), json!({"condition": "A", "is": "True"})),
        (json!({"deleting": true, "phase": null}), json!({"deleting": true})),
    ] {
        assert_eq!(serde_json::to_value(read(&document)).unwrap(), written);
    }
    let condition = |kind: &str| Condition { present: Some(true), ..Condition::of(kind) }.into();
    let both: Predicate = [condition("A"), condition("B")].into_iter().collect();
    let written =
        json!({"all": [{"condition": "A", "present": true}, {"condition": "B", "present": true}]});
    assert_eq!(serde_json::to_value(both).unwrap(), written, "two words with the same keys");
}

/// The table of words agrees with the types: the keys of each are those of its schema.
#[test]
fn every_key_is_in_the_schema_of_its_word() {
    let mut generator = SchemaGenerator::default();
    for entry in WORDS {
        let schema = (entry.schema)(&mut generator, Scope::Element).to_value();
        let mut known: Vec<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut declared = [entry.keys, entry.tests].concat();
        known.sort_unstable();
        declared.sort_unstable();
        assert_eq!(known, declared);
    }
}

#[test]
fn the_schema_accepts_exactly_the_valid_predicates() {
    let object = jsonschema::validator_for(schema_for!(Predicate).as_value()).unwrap();
    let element = jsonschema::validator_for(schema_for!(ElementPredicate).as_value()).unwrap();
    for document in every_word() {
        assert!(object.is_valid(&document), "{document}");
        assert!(element.is_valid(&document), "{document}");
    }
    for document in words_about_elements() {
        assert!(!object.is_valid(&document), "{document}");
        assert!(element.is_valid(&document), "{document}");
    }
    for document in [
        json!({}),
        json!({"phse": "Ready"}),
        json!({"phase": "Ready", "atLeast": 3}),
        json!({"phase": []}),
        json!({"all": []}),
        json!({"all": [{"phse": 1}]}),
        json!({"set": true}),
        json!({"condition": "A", "is": "True", "set": true}),
        json!({"condition": "A", "is": "Yes"}),
        json!({"field": "/metadata/x", "set": true}),
        json!({"field": "/metadata/annotations/cnpg.io/hibernation", "set": true}),
        json!({"field": "/status/x", "atLeast": true}),
        json!({"field": "/status/x", "equals": {"condition": "Ready"}}),
        json!({"field": "/status/x", "equals": {"condition": "Ready", "member": "m", "is": 1}}),
        json!({"since": "/status/x"}),
        json!({"since": "/status/x", "moreThan": "4 hours"}),
        json!({"since": "/status/x", "moreThan": 4}),
        json!({"field": "/status/x", "is": {}}),
        json!({"observed": "later"}),
        json!({"length": "/status/x", "atLeast": -1}),
    ] {
        assert!(!element.is_valid(&document), "{document}");
        let read = serde_json::from_value::<ElementPredicate>(document.clone());
        let wrong = read.map_or_else(|_| true, |read| !errors(read.check()).is_empty());
        assert!(wrong, "{document}");
    }
    for document in [
        json!({"condition": "A", "oldCondition": "A", "is": "True"}),
        json!({"field": "/spec/a", "condition": "A", "is": "True"}),
    ] {
        let error = serde_json::from_value::<Predicate>(document).unwrap_err().to_string();
        assert!(error.ends_with("need a predicate each"), "{error}");
    }
}

#[test]
fn errors_have_a_path_inside_the_predicate() {
    for (document, expected) in [
        (json!({"condition": "A"}), "there is no test of condition A"),
        (json!({"field": "/status/x"}), "there is no test of status.x"),
        (json!({"not": {"phase": "Redy"}}), "not phase 0 unknown phase Redy"),
        (
            json!({"any": [{"deleting": true}, {"oldPhase": ["Ready", "Redy"]}]}),
            "any 1 oldPhase 1 unknown phase Redy",
        ),
        (json!({"length": "/status/x"}), "length a length needs \"atLeast\" or \"atMost\""),
        (
            json!({"length": "/status/x", "atLeast": 3, "atMost": 2}),
            "length no length is at least and at most this",
        ),
        (
            json!({"all": [{"polarity": "positive"}]}),
            "all 0 polarity only rules about the elements of a list know \"polarity\"",
        ),
        (
            json!({"oldMember": "x", "set": true}),
            "oldMember only rules about the elements of a list know \"oldMember\"",
        ),
        (
            json!({"field": "/status/x", "equals": "reason"}),
            "equals a JSON pointer starts with '/'",
        ),
        (
            json!({"field": "/status/x", "atMost": "replicas"}),
            "atMost a JSON pointer starts with '/'",
        ),
        (
            json!({"field": "/status/x", "atLeast": 3, "atMost": 2.5}),
            "no number is at least and at most this",
        ),
        (
            json!({"not": {"since": "/status/x", "moreThan": "4h"}}),
            "not since this reads the clock",
        ),
    ] {
        assert_eq!(errors(read(&document).check()), [expected]);
    }
    for document in words_about_elements() {
        assert_eq!(errors(ElementPredicate(read(&document)).check()), [""; 0]);
    }
}

#[test]
fn texts_are_checked_by_name() {
    let check = |name: &str, text: &str| {
        let (_, check) = shapes::CHECKS.iter().find(|(known, _)| *known == name).unwrap();
        check(text).err()
    };
    assert_eq!(check("any-pointer", "/status/x"), None);
    for label in ["/metadata/labels/a", "/metadata/annotations/cnpg.io~1hibernation"] {
        assert_eq!(check("any-pointer", label), None);
    }
    let elsewhere = "this must point below /status or /spec, or to a label or an annotation such as \
                     /metadata/annotations/example.com~1paused";
    for path in ["/x/y", "/metadata/name", "/metadata/labels", "/metadata/annotations/a/b"] {
        assert_eq!(check("any-pointer", path).as_deref(), Some(elsewhere));
    }
    assert_eq!(check("any-pointer", "x").unwrap(), "a JSON pointer starts with '/'");
    assert_eq!(check("operand", "reason"), None);
    assert_eq!(check("operand", "/status").as_deref(), Some(elsewhere));
    for (text, seconds) in [("4h", 14400), ("1h30m", 5400), ("90m", 5400), ("45s", 45)] {
        assert_eq!(text.parse::<Span>().map(Span::seconds), Ok(seconds));
    }
    for text in ["", "4", "h", "0s", "4d", "30m1h", "+4h", "1.5h", "4h ", "9999999999h"] {
        assert!(check("span", text).is_some(), "{text}");
    }
    assert!(check("pattern", "(").unwrap().starts_with("invalid pattern: "));
}

#[test]
fn predicates_read_as_sentences() {
    for (document, expected) in [
        (json!({"condition": "Ready", "is": "True"}), "Ready is True"),
        (
            json!({"all": [{"condition": "Ready", "is": "True"}, {"condition": "Synced", "isNot": "False"}]}),
            "Ready is True and Synced is not False",
        ),
        (
            json!({"all": [{"deleting": false}, {"any": [{"condition": "A", "present": false}, {"condition": "A", "reason": ["B", "C"]}]}]}),
            "the object is not being deleted and (A is absent or A has the reason B or C)",
        ),
        (
            json!({"not": {"all": [{"condition": "A", "is": "True"}, {"set": "/status/x"}]}}),
            "not all of: (A is True; status.x is set)",
        ),
        (
            json!({"not": {"any": [{"phase": "A"}, {"deleting": true}]}}),
            "none of: (the phase is A; the object is being deleted)",
        ),
        (
            json!({"not": {"phase": "A", "condition": "B", "changed": true}}),
            "not all of: (this write changed B; the phase is A)",
        ),
        (json!({"condition": "A", "reason": ""}), "A has no reason"),
        (json!({"condition": "A", "reason": ["B", ""]}), "A has the reason B or none"),
        (json!({"not": {"condition": "A", "reason": ["B", ""]}}), "A has a reason, another than B"),
        (json!({"field": "/spec/a", "isNot": [1, true]}), "spec.a is not 1 or true"),
        (json!({"field": "/status/a", "before": "/status/b"}), "status.a is before status.b"),
        (json!({"field": "/status/a", "atLeast": 2}), "status.a is at least 2"),
        (json!({"not": {"field": "/status/a", "atLeast": 2}}), "status.a is less than 2"),
        (json!({"field": "/status/a", "atMost": "/spec/b"}), "status.a is at most spec.b"),
        (json!({"not": {"field": "/status/a", "atMost": 2.5}}), "status.a is more than 2.5"),
        (
            json!({"field": "/status/a", "equals": {"condition": "B", "member": "c"}}),
            "status.a equals c of B",
        ),
        (json!({"since": "/status/a", "moreThan": "90m"}), "status.a is more than 1h30m ago"),
        (json!({"not": {"since": "/status/a", "moreThan": "5s"}}), "status.a is at most 5s ago"),
        (json!({"field": "/metadata/labels/a.b~1c", "set": true}), "metadata.labels[a.b/c] is set"),
        (
            json!({"length": "/status/list", "atLeast": 2, "atMost": 3}),
            "status.list has 2 to 3 items",
        ),
        (json!({"oldField": "/status/a", "set": true}), "the stored status.a is set"),
        (
            json!({"observed": ["behind", "current", "ahead"]}),
            "observedGeneration is behind, equal to or ahead of metadata.generation",
        ),
        (json!({"length": "/status/list", "atMost": 3}), "status.list has at most 3 items"),
        (
            json!({"not": {"length": "/status/list", "atMost": 3}}),
            "status.list has more than 3 items",
        ),
        (
            json!({"not": {"length": "/status/list", "atLeast": 2, "atMost": 3}}),
            "status.list does not have 2 to 3 items",
        ),
        (json!({"not": {"field": "/status/a", "changed": false}}), "status.a changed"),
    ] {
        assert_eq!(read(&document).in_words(), expected);
    }
}

#[test]
fn each_word_names_the_values_that_decided() {
    let object = json!({
        "metadata": {"generation": 3, "labels": {"a.b/c": "on"}, "annotations": {"d": "e"}},
        "spec": {"gates": [{"conditionType": "Ready"}]},
        "status": {
            "x": "a", "n": 5, "flag": true, "list": [1, 2], "map": {}, "observedGeneration": 2,
            "since": "2024-06-01T00:00:00Z", "until": "2024-07-01T00:00:00Z",
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "Broken", "since": "x"},
                {"type": "Odd", "status": "Yes"},
            ],
        },
    })
    .to_string();
    let old =
        json!({"status": {"x": "b", "n": 7, "conditions": [{"type": "Ready", "status": "True"}]}});
    let old = old.to_string();
    let (object, old) = (Object::parse(&object).unwrap(), Object::parse(&old).unwrap());
    let path = "/status/conditions".parse().unwrap();
    let observed = "/status/observedGeneration".parse().unwrap();
    let list = List { path: &path, polarity_from: &[] };
    let resource = Resource { resource: "things".into(), ..Resource::default() };
    let facts = Facts::new(&object, Some(&old), &resource).reading(list);
    let element = ElementFacts {
        item: &facts.conditions.items()[0],
        before: facts.old_conditions.and_then(|old| old.items().first()),
        polarity: Polarity::Negative,
    };
    let facts = Facts {
        phase: Some("Ready"),
        old_phase: Some("Failed"),
        observed_generation: Some(&observed),
        element: Some(element),
        now: Some(0),
        ..facts
    };
    for (document, truth, because) in [
        (json!({"condition": "Ready", "is": "True"}), Truth::False, "condition Ready is False"),
        (
            json!({"not": {"condition": "Ready", "is": "True"}}),
            Truth::True,
            "condition Ready is False",
        ),
        (
            json!({"oldCondition": "Ready", "is": "True"}),
            Truth::True,
            "stored condition Ready is True",
        ),
        (json!({"condition": "Ready", "changed": true}), Truth::True, "condition Ready did change"),
        (json!({"condition": "Odd", "changed": false}), Truth::False, "condition Odd did change"),
        (json!({"condition": "Gone", "present": true}), Truth::False, "condition Gone is absent"),
        (json!({"condition": "Odd", "present": true}), Truth::True, "condition Odd is present"),
        (
            json!({"condition": "Ready", "reason": "Fine"}),
            Truth::False,
            r#"condition Ready has the reason "Broken""#,
        ),
        (json!({"condition": "Odd", "reason": ""}), Truth::True, "condition Odd has no reason"),
        (
            json!({"condition": "Odd", "is": "True"}),
            Truth::NoEvidence,
            "condition Odd has no valid status",
        ),
        (json!({"field": "/status/x", "set": true}), Truth::True, "status.x is set"),
        (json!({"field": "/status/y", "set": true}), Truth::False, "status.y is empty"),
        (json!({"field": "/status/x", "changed": true}), Truth::True, "status.x did change"),
        (json!({"field": "/status/n", "decreased": true}), Truth::True, "status.n did decrease"),
        (
            json!({"field": "/status/since", "future": true}),
            Truth::True,
            "status.since lies in the future",
        ),
        (
            json!({"field": "/status/since", "before": "/status/until"}),
            Truth::True,
            "status.since is before status.until",
        ),
        (
            json!({"field": "/status/x", "equals": "/status/n"}),
            Truth::False,
            "status.x differs from status.n",
        ),
        (
            json!({"field": "/status/since", "equals": {"condition": "Ready", "member": "since"}}),
            Truth::False,
            "status.since differs from since of Ready",
        ),
        (
            json!({"field": "/status/since", "equals": {"condition": "Gone", "member": "since"}}),
            Truth::NoEvidence,
            "status.since equals since of Gone",
        ),
        (json!({"field": "/status/n", "atLeast": 5}), Truth::True, "status.n is at least 5"),
        (json!({"field": "/status/n", "atLeast": 5.5}), Truth::False, "status.n is less than 5.5"),
        (json!({"field": "/status/n", "atMost": 4}), Truth::False, "status.n is more than 4"),
        (
            json!({"field": "/status/n", "atMost": "/status/observedGeneration"}),
            Truth::False,
            "status.n is more than status.observedGeneration",
        ),
        (
            json!({"field": "/status/n", "atMost": "/status/x"}),
            Truth::NoEvidence,
            "status.n is at most status.x",
        ),
        (
            json!({"field": "/status/n", "before": "/status/observedGeneration"}),
            Truth::NoEvidence,
            "status.n is before status.observedGeneration",
        ),
        (
            json!({"field": "/metadata/labels/a.b~1c", "is": "on"}),
            Truth::True,
            r#"metadata.labels[a.b/c] is "on""#,
        ),
        (
            json!({"oldField": "/metadata/labels/a.b~1c", "set": true}),
            Truth::False,
            "the stored metadata.labels[a.b/c] is empty",
        ),
        (
            json!({"field": "/metadata/annotations/d", "changed": true}),
            Truth::True,
            "metadata.annotations.d did change",
        ),
        (json!({"field": "/status/x", "is": "a"}), Truth::True, r#"status.x is "a""#),
        (json!({"field": "/status/flag", "is": true}), Truth::True, "status.flag is true"),
        (json!({"field": "/status/n", "isNot": 4}), Truth::True, "status.n is 5"),
        (json!({"field": "/status/map", "is": 1}), Truth::False, "status.map is an object"),
        (json!({"field": "/status/y", "is": 1}), Truth::NoEvidence, "status.y is absent"),
        (json!({"oldField": "/status/x", "is": "b"}), Truth::True, r#"the stored status.x is "b""#),
        (json!({"set": "/status/x"}), Truth::True, "status.x is set"),
        (json!({"set": "/status/y"}), Truth::False, "status.y is empty"),
        (json!({"phase": "Ready"}), Truth::True, r#"the phase is "Ready""#),
        (json!({"oldPhase": "Ready"}), Truth::False, r#"the stored phase is "Failed""#),
        (json!({"deleting": true}), Truth::False, "metadata.deletionTimestamp is not set"),
        (
            json!({"observed": "behind"}),
            Truth::True,
            "observedGeneration is behind metadata.generation",
        ),
        (
            json!({"length": "/status/list", "atLeast": 3}),
            Truth::False,
            "status.list has fewer than 3 items",
        ),
        (
            json!({"length": "/status/list", "atMost": 3}),
            Truth::True,
            "status.list has at most 3 items",
        ),
        (json!({"resource": "machines"}), Truth::False, r#"the resource is "things""#),
        (
            json!({"gates": "/spec/gates"}),
            Truth::False,
            "condition \"Ready\" of spec.gates is False",
        ),
        (
            json!({"all": [{"phase": "Ready"}, {"condition": "Ready", "is": "True"}]}),
            Truth::False,
            "condition Ready is False",
        ),
        (
            json!({"any": [{"phase": "Ready"}, {"set": "/status/x"}]}),
            Truth::True,
            r#"the phase is "Ready" and status.x is set"#,
        ),
    ] {
        let predicate = read(&document);
        assert_eq!(facts.ask(&predicate), truth, "{document}");
        assert_eq!(facts.because(&predicate), because, "{document}");
    }
    for (document, because) in [
        (json!({"polarity": ["negative"]}), "its polarity is negative"),
        (json!({"member": "reason", "is": "Broken"}), r#"reason is "Broken""#),
        (json!({"oldMember": "status", "is": "True"}), r#"the stored status is "True""#),
    ] {
        let predicate: ElementPredicate = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(facts.ask(&predicate), Truth::True, "{document}");
        assert_eq!(facts.because(&predicate), because, "{document}");
    }
}

#[test]
fn a_time_is_longer_ago_than_a_span_only_after_its_last_second() {
    let status = r#"{"status": {"start": "2024-06-01T00:00:00Z", "text": "soon"}}"#;
    let (object, resource) = (Object::parse(status).unwrap(), Resource::default());
    let start = 1_717_200_000;
    let ask = |field: &str, now: Option<i64>| {
        let facts = Facts { now, ..Facts::new(&object, None, &resource) };
        facts.ask(&read(&json!({"since": format!("/status/{field}"), "moreThan": "4h"})))
    };
    assert_eq!(ask("start", Some(start + 4 * 3600)), Truth::False);
    assert_eq!(ask("start", Some(start + 4 * 3600 + 1)), Truth::True);
    assert_eq!(ask("start", Some(0)), Truth::False, "a time in the future");
    assert_eq!(ask("start", None), Truth::NoEvidence, "without a clock");
    assert_eq!(ask("text", Some(start)), Truth::NoEvidence);
    assert_eq!(ask("none", Some(start)), Truth::NoEvidence);
}
