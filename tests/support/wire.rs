//! A write as the bytes that the API server sends, through the server's own code.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use statusgate_core::admit::{Reply, admit};
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

use crate::support::{Found, Outcome, Write};

/// Sends a write through both webhooks of the server, from bytes to bytes: the findings of both.
pub(crate) fn serve(write: &Write, policies: &PolicySet) -> Outcome {
    let mut findings = Vec::new();
    let mut call = |write: &Write, webhook| {
        let (body, now) = (write.request().to_string(), write.now().parse().unwrap());
        let reply = admit(policies, webhook, body.as_bytes(), now, |_, verdict| {
            assert!(!verdict.policies.is_empty(), "no policy selects {write:?}");
            findings.extend(verdict.findings.iter().map(Found::of));
        });
        response(&reply)
    };
    let mutated = write.patched_by(patch_of(&call(write, Webhook::Mutate)));
    let validated = call(&write.after(&mutated), Webhook::Validate);
    let mut outcome = mutated;
    outcome.findings = findings;
    assert_eq!(validated["allowed"], !outcome.is_denied(), "{outcome:?}");
    outcome
}

/// The response of a reply with status 200.
#[track_caller]
pub(crate) fn response(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].take()
}

/// The patch of a response; null without one.
pub(crate) fn patch_of(response: &Value) -> Value {
    let decode = |text| serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap();
    response["patch"].as_str().map_or(Value::Null, decode)
}
