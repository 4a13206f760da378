//! The JSON interface: it answers what the commands and the webhooks answer, and mistakes have a place.

use std::fs;

use serde_json::{Value, json};
use statusgate_core::model::Webhook;
use statusgate_core::wire::{AdmissionRequest, respond};
use statusgate_pages::calls;

use crate::support::{built_in, compile, convention, examples, policy};

fn call(name: &str, request: &Value) -> Value {
    serde_json::from_slice(&calls::call(name, request.to_string().as_bytes())).unwrap()
}

fn judge(mut request: Value) -> Value {
    // After the times in the engine's examples.
    request["now"] = "2026-01-10T00:00:00Z".into();
    call("judge", &request)
}

/// Ready over Ready=False, in YAML.
const CONTRADICTED: &str = "\
apiVersion: vshn.appcat.vshn.io/v1
kind: VSHNRedis
metadata: {name: cache}
status:
  instanceNamespace: n
  phase: Ready
  conditions:
    - {type: Ready, status: \"False\", reason: Creating, message: \"ä\", lastTransitionTime: \"2024-01-01T00:00:00Z\"}
";

#[test]
fn a_text_without_an_object_to_judge_is_a_mistake() {
    let dry = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","dryRun":true,
        "operation":"UPDATE","subResource":"status","object":{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"}}}}"#;
    for text in ["", "# a comment", dry] {
        let mistakes = &judge(json!({"object": text}))["mistakes"];
        assert_eq!(mistakes[0]["line"], 1, "{text}: {mistakes}");
        let message = mistakes[0]["message"].as_str().unwrap();
        assert!(message.starts_with("there is no object to judge"), "{text}: {message}");
    }
}

#[test]
fn pasted_recordings_become_a_draft_that_judges_their_last_write() {
    let writes = fs::read_to_string("examples/write-a-convention/writes.jsonl").unwrap();
    let answer = call("draft", &json!({"writes": writes}));
    let draft = &answer["drafts"][0];
    assert_eq!(
        (&draft["resource"], &draft["base"]),
        (&"qdrantclusters.qdrant.io".into(), &"metav1".into())
    );
    let played = call(
        "judge",
        &json!({
            "documents": draft["document"],
            "object": draft["object"],
            "old": draft["old"],
            "now": "2027-01-01T00:00:00Z",
        }),
    );
    assert_eq!(played["judged"]["policies"], json!(["qdrantclusters-qdrant-io"]), "{played:#}");
    assert_eq!(played["judged"]["findings"], json!([]));
    let empty = call("draft", &json!({"writes": ""}));
    assert_eq!(empty["error"], "no write has a status: nothing to draft from");
    let broken = call("draft", &json!({"writes": "a: ["}));
    assert_eq!(broken["mistakes"][0]["line"], 1, "{broken:#}");
}

#[test]
fn a_denied_write_has_places_and_what_kubectl_prints() {
    let judged = &judge(json!({"object": CONTRADICTED}))["judged"];
    assert_eq!(judged["policies"], json!(["appcat"]));
    assert_eq!(
        (&judged["mutate"]["allowed"], &judged["validate"]["allowed"]),
        (&true.into(), &false.into())
    );
    let denied: Vec<&Value> = judged["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|found| found["finding"]["action"] == "deny")
        .collect();
    let [denied] = denied.as_slice() else { panic!("{judged:#}") };
    assert_eq!(denied["place"], json!({"line": 6, "column": 10, "endColumn": 15}));
    assert_eq!(denied["builtIn"], true);
    assert_eq!(
        denied["text"],
        "deny: status.phase: phase Ready disagrees: condition Ready is False [appcat/phase-ready]"
    );
    assert_eq!(
        judged["kubectl"].as_str().unwrap().lines().last().unwrap(),
        "The VSHNRedis \"cache\" is invalid: status.phase: phase Ready disagrees: condition Ready is \
         False [appcat/phase-ready]"
    );
}

#[test]
fn the_rule_of_an_own_convention_is_not_built_in() {
    let own = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: own}\nspec: {extends: appcat}\n";
    let write = json!({"object": CONTRADICTED, "documents": own, "convention": "own"});
    let found = judge(write)["judged"]["findings"][0].take();
    assert_eq!(
        (&found["finding"]["rule"], &found["builtIn"]),
        (&json!("own/phase-ready"), &false.into())
    );
}

#[test]
fn a_patched_write_shows_both_statuses_and_what_readers_see_of_the_new_one() {
    let object = CONTRADICTED.replace("  phase: Ready\n", "");
    let judged = &judge(json!({"object": object}))["judged"];
    assert_eq!(judged["validate"]["allowed"], true);
    assert!(judged["patch"].to_string().contains("/status/phase"), "{judged:#}");
    let (before, after) = (judged["before"].as_str().unwrap(), judged["after"].as_str().unwrap());
    assert!(!before.contains("phase:") && after.contains("phase: Unknown"), "{before}\n{after}");
    let readers = &judged["readers"];
    assert_eq!((&readers["phase"], &readers["status"]), (&"Unknown".into(), &"InProgress".into()));
    assert_eq!(
        (&readers["health"], &readers["argocd"]),
        (&"inProgress".into(), &"Progressing".into())
    );
    let kubectl = judged["kubectl"].as_str().unwrap();
    assert!(kubectl.ends_with("vshnredis.vshn.appcat.vshn.io/cache patched"), "{kubectl}");
}

#[test]
fn without_a_convention_there_is_nothing_to_export_for_argo_cd() {
    let object = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}";
    let readers = &judge(json!({"object": object}))["judged"]["readers"];
    assert_eq!((&readers["health"], &readers["exported"]), (&json!("unknown"), &json!(false)));
    assert_eq!((&readers["argocd"], &readers["flux"]), (&Value::Null, &json!("Current")));
}

/// Each review of the fixtures that is a write: the interface gives the response of the server.
#[test]
fn recorded_reviews_get_the_responses_of_the_server() {
    let mut compared = 0;
    insta::glob!("../fixtures/reviews", "*/*/review.json", |path| {
        let text = fs::read(path).unwrap();
        let Ok(request) = AdmissionRequest::parse(&text) else { return };
        let documents = fs::read_to_string(path.with_file_name("policy.yaml")).unwrap_or_default();
        let answer = judge(
            json!({"object": String::from_utf8(text.clone()).unwrap(), "documents": documents}),
        );
        let judged = &answer["judged"];
        if judged.is_null() {
            return;
        }
        let given;
        let policies = match documents.as_str() {
            "" => examples(),
            text => {
                given = compile(&[text.to_owned()]);
                &given
            }
        };
        let now = "2026-01-10T00:00:00Z".parse().unwrap();
        let verdict =
            statusgate_core::engine::decide(policies, &request.subject, Webhook::Mutate, now);
        let bytes = respond(&request, &verdict).unwrap();
        let mut expected: Value = serde_json::from_slice(&bytes).unwrap();
        expected["response"]["uid"] = "".into();
        assert_eq!(judged["mutate"], expected["response"], "{}", path.display());
        compared += 1;
    });
    assert!(compared > 10, "{compared}");
}

#[test]
fn mistakes_in_each_text_have_their_place() {
    let places = |answer: &Value| -> Vec<String> {
        let mistakes = answer["mistakes"].as_array().unwrap().iter();
        mistakes
            .map(|found| {
                format!("{}:{}:{}", found["file"].as_str().unwrap(), found["line"], found["column"])
            })
            .collect()
    };
    let policy = policy("p", "convention: appcat, enforcment: Deny");
    for (request, expected) in [
        (json!({"object": "a: [\n"}), "object:"),
        (json!({"object": "kind: A\n"}), "object:1:1"),
        (json!({"object": CONTRADICTED, "old": "{}\n---\n- 1\n"}), "old:"),
        (json!({"object": format!("{CONTRADICTED}---\n{CONTRADICTED}")}), "object:10:1"),
        (json!({"object": CONTRADICTED, "documents": policy}), "documents:"),
        (json!({"object": CONTRADICTED, "documents": "# nothing\n"}), "documents:1:1"),
        (
            json!({"object": "{apiVersion: v1, kind: A, metadata: 5}", "convention": "metav1"}),
            "object:1:",
        ),
    ] {
        let answer = judge(request);
        assert_eq!(answer["judged"], Value::Null, "{answer:#}");
        assert!(
            places(&answer).iter().any(|place| place.starts_with(expected)),
            "{expected}: {answer:#}"
        );
    }
}

#[test]
fn documents_without_a_policy_judge_by_their_convention() {
    let documents = convention("own", "phase: {path: /status/phase, values: [{phase: A}]}");
    let object = "{apiVersion: g.io/v1, kind: Thing, metadata: {name: a}, status: {phase: B}}";
    let judged = &judge(json!({"object": object, "documents": documents}))["judged"];
    assert_eq!(
        (&judged["policies"], &judged["validate"]["allowed"]),
        (&json!(["all"]), &false.into()),
        "{judged:#}"
    );
}

/// Each state of the page is an object, and the object has the health that the page shows.
#[test]
fn states_are_judged_like_their_objects() {
    let mut states = 0;
    for name in built_in().conventions().keys() {
        let first = call("state", &json!({"convention": name}));
        for turn in 0..6 {
            let answer = |(at, fact): (usize, &Value)| {
                (at * 7 + turn) % fact["answers"].as_array().unwrap().len()
            };
            let facts = first["facts"].as_array().unwrap().iter().enumerate();
            let answers = match turn {
                0 => first["answers"].clone(),
                _ => facts.map(answer).collect(),
            };
            let state = &call("state", &json!({"convention": name, "answers": answers}))["state"];
            let (Some(object), true) = (state["object"].as_str(), state["plural"] == "") else {
                continue;
            };
            let judged = judge(json!({"object": object, "convention": name, "plural": "others"}));
            let readers = &judged["judged"]["readers"];
            // The mutating webhook may have changed the status.
            if judged["judged"]["patch"] == json!([]) && state.get("health").is_some() {
                assert_eq!(readers["health"], state["health"], "{name}: {object}");
                states += 1;
            }
        }
    }
    assert!(states > 10, "{states}");
}

#[test]
fn a_state_names_the_rule_that_decides() {
    let first = call("state", &json!({"convention": "appcat"}));
    let mut answers = first["answers"].clone();
    let facts = first["facts"].as_array().unwrap();
    let at = facts.iter().position(|fact| fact["label"] == "Ready").unwrap();
    let answer = facts[at]["answers"].as_array().unwrap().iter().position(|is| is == "False");
    answers[at] = answer.unwrap().into();
    let state = &call("state", &json!({"convention": "appcat", "answers": answers}))["state"];
    let phases = state["phases"].as_array().unwrap();
    let ready = phases.iter().find(|phase| phase["phase"] == "Ready").unwrap();
    assert_eq!(
        *ready,
        json!({"phase": "Ready", "contradiction": "phase Ready disagrees: condition Ready is False",
               "rule": "appcat/phase-ready", "repair": "Provisioning"})
    );
}

#[test]
fn the_examples_of_a_rule_are_judged_as_they_say() {
    for rule in ["appcat/phase-ready", "metav1/condition-type", "capi-v1beta1/phase-value"] {
        let (name, _) = rule.split_once('/').unwrap();
        let examples = call("rule", &json!({"rule": rule}));
        assert!(examples["page"].as_array().unwrap().len() > 2, "{examples:#}");
        let findings = |of: &Value| {
            let old = of["old"].as_str().unwrap_or_default();
            let answer = judge(
                json!({"object": of["object"], "old": old, "plural": of["plural"], "convention": name}),
            );
            answer["judged"]["findings"].to_string()
        };
        assert!(findings(&examples["violating"]).contains(rule), "{rule}");
        assert!(!findings(&examples["satisfying"]).contains(rule), "{rule}");
    }
}

#[test]
fn lint_reports_the_faults_of_documents() {
    let documents = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: own}\nspec:\n  phase:\n    path: /status/phase\n    values:\n    - {phase: A, necessary: {all: [{condition: Ready, is: 'True'}, {condition: Ready, is: 'False'}]}}\n";
    let answer = call("lint", &json!({"documents": documents}));
    let report = &answer["conventions"][0];
    assert!(!report["faults"].as_array().unwrap().is_empty(), "{answer:#}");
}

#[test]
fn invalid_requests_are_errors() {
    for (name, request, expected) in [
        ("nothing", "{}", "unknown call \"nothing\""),
        ("judge", "", "invalid request"),
        ("judge", "{}", "missing field `object`"),
        ("judge", r#"{"object": "", "now": "today"}"#, "now is not a time"),
        (
            "judge",
            r#"{"object": "", "now": "2024-06-01T12:00:00Z", "convention": "appcta"}"#,
            "did you mean \"appcat\"?",
        ),
        ("explain", r#"{"convention": "x"}"#, "unknown convention \"x\""),
        ("rule", r#"{"rule": "appcat/x"}"#, "unknown rule \"appcat/x\""),
        ("state", r#"{"convention": "appcat", "answers": []}"#, ""),
        ("schema", r#"{"kind": "Pod"}"#, "unknown variant"),
    ] {
        let answer = calls::call(name, request.as_bytes());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        if expected.is_empty() {
            assert!(answer.get("error").is_none(), "{answer}");
        } else {
            assert!(answer["error"].as_str().unwrap().contains(expected), "{name}: {answer}");
        }
    }
}
