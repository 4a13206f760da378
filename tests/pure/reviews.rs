//! Recorded reviews: the server's own code answers recorded bytes.
//!
//! A case is a folder `tests/fixtures/reviews/OUTCOME/NAME`: `review.json` is the body as the API
//! server sends it, `webhook` names the webhook, and an optional `policy.yaml` replaces the example
//! policies. The test compares the outcome with the folder's name, because a snapshot can be accepted
//! without being read.
//!
//! Code below makes the bodies that are too large or not text.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use statusgate_core::admit::{Reply, admit};
use statusgate_core::model::{MAX_ELEMENTS, Webhook};
use statusgate_core::policy::{PolicySet, Source};

const NOW: &str = "2024-06-01T12:00:00Z";

/// A complete answer, and whether any policy applied.
struct Answer {
    judged: bool,
    reply: Reply,
}

impl Answer {
    /// The response as the API server reads it; null if the answer is only a sentence.
    fn response(&self) -> Value {
        if self.reply.status != 200 {
            return Value::Null;
        }
        let review: Value = serde_json::from_slice(&self.reply.body).unwrap();
        review["response"].clone()
    }

    fn patch(&self) -> Option<Value> {
        let response = self.response();
        let patch = STANDARD.decode(response["patch"].as_str()?).unwrap();
        assert_eq!(response["patchType"], "JSONPatch");
        Some(serde_json::from_slice(&patch).unwrap())
    }

    /// The answer for a snapshot, with the patch decoded.
    fn picture(&self) -> String {
        let mut picture = format!("HTTP {}\n", self.reply.status);
        let body = String::from_utf8(self.reply.body.clone()).unwrap();
        match serde_json::from_str::<Value>(&body) {
            Ok(json) => write!(picture, "{json:#}").unwrap(),
            Err(_) => picture.push_str(&body),
        }
        if let Some(patch) = self.patch() {
            write!(picture, "\n\nthe patch, decoded:\n{patch:#}").unwrap();
        }
        picture
    }
}

fn examples() -> PolicySet {
    PolicySet::compile(&PolicySet::examples()).unwrap()
}

fn ask(policies: &PolicySet, webhook: Webhook, body: &[u8]) -> Answer {
    let mut judged = false;
    let reply = admit(policies, webhook, body, NOW.parse().unwrap(), |_, verdict| {
        judged = !verdict.policies.is_empty();
        assert!(!verdict.patch_failed, "a patch of ours applies");
    });
    Answer { judged, reply }
}

#[test]
fn recorded_reviews_get_their_recorded_answers() {
    let mut broken = Vec::new();
    insta::glob!("../fixtures/reviews", "*/*/review.json", |path| {
        let folder = path.parent().unwrap();
        let webhook = match fs::read_to_string(folder.join("webhook")).unwrap().trim() {
            "mutate" => Webhook::Mutate,
            "validate" => Webhook::Validate,
            other => panic!("{other} is not a webhook"),
        };
        let policies = match fs::read_to_string(folder.join("policy.yaml")) {
            Ok(text) => {
                let source = Source { name: "policy.yaml".into(), text };
                PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"))
            }
            Err(_) => examples(),
        };
        let body = fs::read(path).unwrap();
        let answer = ask(&policies, webhook, &body);
        let again = ask(&policies, webhook, &body);
        assert_eq!(answer.reply, again.reply, "the same bytes get the same bytes");
        broken.extend(broken_promise(folder, &answer));
        fits_the_api_server(&answer, &body, webhook);
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!(answer.picture());
        });
    });
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// Compares the outcome with the one in the folder's name.
fn broken_promise(case: &Path, answer: &Answer) -> Option<String> {
    let outcome = case.parent().and_then(Path::file_name).unwrap().to_str().unwrap();
    let response = answer.response();
    let allowed = response["allowed"] == true;
    let warned = response.get("warnings").is_some();
    let patched = answer.patch().is_some();
    let silent = allowed && !warned && !patched;
    let kept = match outcome {
        "allow" => answer.judged && silent,
        "patch" => allowed && patched && !warned,
        "repair" => allowed && patched && warned,
        "warn" => allowed && !patched && warned,
        "deny" => response["allowed"] == false && response["status"]["code"] == 422,
        "unjudged" => !answer.judged && silent && response.get("auditAnnotations").is_none(),
        "malformed" => answer.reply.status == 400,
        other => panic!("{other} is not an outcome"),
    };
    let name = case.file_name().unwrap().display();
    (!kept).then(|| format!("{outcome}/{name} is not {outcome}:\n{}", answer.picture()))
}

/// What the API server requires of every answer (platform.md §3).
fn fits_the_api_server(answer: &Answer, body: &[u8], webhook: Webhook) {
    if answer.reply.status != 200 {
        let sentence = String::from_utf8(answer.reply.body.clone()).unwrap();
        assert!(!sentence.contains('\n') && sentence.len() < 200, "one plain sentence: {sentence}");
        return;
    }
    let review: Value = serde_json::from_slice(&answer.reply.body).unwrap();
    assert_eq!(
        (&review["apiVersion"], &review["kind"]),
        (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
    );
    let response = &review["response"];
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(uid) = request["request"].get("uid") {
        assert_eq!(&response["uid"], uid);
    }
    assert_eq!(response.get("patch").is_some(), response.get("patchType").is_some());
    let (allowed, status) = (&response["allowed"], &response["status"]);
    match webhook {
        Webhook::Mutate => assert_eq!(allowed, true, "the mutating webhook denies nothing"),
        _ => {
            assert!(response.get("patch").is_none(), "the validating webhook patches nothing")
        }
    }
    if allowed == false {
        assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
        let causes = status["details"]["causes"].as_array().unwrap();
        assert!((1..=32).contains(&causes.len()));
        for cause in causes {
            let text = |member| cause[member].as_str().unwrap();
            assert!(text("reason").starts_with("FieldValue"), "{cause}");
            assert!(text("field").starts_with("status"), "{cause}");
            assert!(text("message").ends_with(']') && text("message").contains(" ["), "{cause}");
            assert!(!text("message").contains(char::is_control), "{cause}");
        }
    }
    let warnings = response["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(warnings.len() <= 16);
    for warning in warnings {
        let text = warning.as_str().unwrap();
        assert!(text.chars().count() <= 120 && !text.contains(char::is_control), "{text:?}");
    }
    for (key, _) in response["auditAnnotations"].as_object().into_iter().flatten() {
        assert!(!key.contains('/'), "the API server puts the webhook's name before it");
    }
    assert!(answer.reply.body.len() < 64 << 10);
}

// --- made in code ---------------------------------------------------------------------------------

/// A review of a status write, from texts that need not be JSON.
fn review_of(status: &str, old: &str) -> Vec<u8> {
    let object = |status: &str| {
        format!(
            r#"{{"apiVersion":"vshn.appcat.vshn.io/v1","kind":"XVSHNRedis","metadata":{{"name":"cache","generation":3}},"status":{status}}}"#
        )
    };
    let (object, old) = (object(status), object(old));
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"u","kind":{{"group":"vshn.appcat.vshn.io","version":"v1","kind":"XVSHNRedis"}},"resource":{{"group":"vshn.appcat.vshn.io","version":"v1","resource":"xvshnredis"}},"subResource":"status","name":"cache","operation":"UPDATE","userInfo":{{"username":"operator"}},"object":{object},"oldObject":{old}}}}}"#
    )
    .into_bytes()
}

fn both(body: &[u8]) -> [Answer; 2] {
    let policies = examples();
    [Webhook::Mutate, Webhook::Validate].map(|webhook| {
        let answer = ask(&policies, webhook, body);
        fits_the_api_server(&answer, body, webhook);
        answer
    })
}

#[test]
fn a_body_that_is_not_utf8_is_malformed() {
    for (bytes, place) in [
        (&b"\xff\xfe{\x00}\x00"[..], 0),
        (b"{\"kind\":\"\xc3\x28\"}", 9),
        // A surrogate in UTF-8, and an overlong slash.
        (b"{\"\xed\xa0\x80\":1}", 2),
        (b"{\"\xc0\xaf\":1}", 2),
    ] {
        for answer in both(bytes) {
            let sentence = format!("the body is not UTF-8 from byte {place} on");
            assert_eq!(answer.reply.status, 400);
            assert_eq!(answer.reply.body, sentence.into_bytes());
        }
    }
}

#[test]
fn a_body_with_sixty_thousand_levels_is_malformed() {
    let levels = 60_000;
    let list = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let object = format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let bodies = [
        list.clone().into_bytes(),
        "[".repeat(levels).into_bytes(),
        r#"{"a":"#.repeat(levels).into_bytes(),
        review_of(&list, "{}"),
        review_of("{}", &object),
        review_of(&format!(r#"{{"conditions":{list}}}"#), "{}"),
        review_of(&format!(r#"{{"phase":"Ready","x":{object}}}"#), "{}"),
    ];
    for body in bodies {
        for answer in both(&body) {
            assert_eq!(answer.reply.status, 400);
            let sentence = String::from_utf8(answer.reply.body).unwrap();
            assert_eq!(sentence, "the body is nested deeper than 10000 levels");
        }
    }
}

#[test]
fn nesting_that_go_can_read_is_judged() {
    let levels = 9_000;
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let [mutated, validated] = both(&review_of(&format!(r#"{{"x":{deep}}}"#), "{}"));
    assert_eq!(
        mutated.patch(),
        Some(json!([{"op": "add", "path": "/status/phase", "value": "Unknown"}]))
    );
    assert_eq!(validated.response()["allowed"], true);
    let [_, refused] = both(&review_of(&format!(r#"{{"phase":{deep}}}"#), "{}"));
    assert_eq!(
        refused.response()["status"]["details"]["causes"][0]["reason"],
        "FieldValueTypeInvalid"
    );
}

/// An answer has at most 32 causes, 16 warnings and 64 KiB.
#[test]
fn a_thousand_bad_conditions_get_a_short_answer() {
    let many = |condition: &dyn Fn(usize) -> Value| {
        json!({"phase": "Unknown", "conditions": (0..MAX_ELEMENTS).map(condition).collect::<Vec<_>>()})
            .to_string()
    };
    // Every fault that is denied, and the characters that grow most when they are quoted.
    let worst = "\u{10fffd}".repeat(65);
    let broken =
        many(&|n| json!({"type": worst, "status": n, "reason": "", "lastTransitionTime": "soon"}));
    let alike = many(
        &|_| json!({"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": NOW}),
    );
    let untyped = many(&|n| if n % 2 == 0 { Value::Null } else { json!({}) });
    let odd = many(
        &|n| json!({"type": worst.get(..4 * (n % 64)), "status": "True", "reason": "R", "lastTransitionTime": NOW}),
    );
    for status in [&broken, &alike, &untyped, &odd] {
        let [_, answer] = both(&review_of(status, r#"{"phase":"Unknown"}"#));
        let status = &answer.response()["status"];
        assert_eq!(status["details"]["causes"].as_array().map(Vec::len), Some(32));
        assert!(status["message"].as_str().unwrap().ends_with("; and more"));
    }
    // The same faults in the stored status are tolerated, and the answer is quick.
    for status in [&untyped, &odd] {
        let changed = status.replacen(r#""Unknown""#, r#""Provisioning""#, 1);
        let [_, answer] = both(&review_of(&changed, status));
        assert_eq!(answer.response()["allowed"], true, "{}", answer.picture());
    }
    // Faults that only warn.
    let times = many(
        &|n| json!({"type": format!("T{n}"), "status": "True", "reason": worst, "lastTransitionTime": NOW}),
    );
    let [_, answer] = both(&review_of(&times, "{}"));
    assert_eq!(answer.response()["allowed"], true);
    assert_eq!(answer.response()["warnings"].as_array().map(Vec::len), Some(16));
}

/// The answers stay below 64 KiB, which `both` checks.
#[test]
fn an_answer_does_not_repeat_a_long_text() {
    let long = "x".repeat(1 << 20);
    for status in [
        json!({"phase": long}),
        json!({"conditions": [{"type": long, "status": long, "reason": long, "lastTransitionTime": long}]}),
        json!({"conditions": long}),
        json!({"lastTransitionTime": long, "reason": long}),
    ] {
        both(&review_of(&status.to_string(), "{}"));
    }
}
