//! The bytes of an AdmissionReview on every path of the webhooks, with policies for every built-in
//! convention. The API group of the resource chooses the policy.

#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use json_patch::Patch;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::de::from_str;
use serde_json::value::RawValue;
use statusgate_core::admit::admit;
use statusgate_core::engine::Finding;
use statusgate_core::model::{Json, Object, Operation, Webhook, same_instant};
use statusgate_core::policy::{PolicySet, Source};
use statusgate_core::wire::{AdmissionRequest, ReviewError};

fuzz_target!(init: start(), |body: &[u8]| {
    statusgate_fuzz::run(body, || review(body));
});

fn start() {
    statusgate_fuzz::catch_panics();
    assert!(!POLICIES.policies().is_empty());
}

fn review(body: &[u8]) {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let value = from_str::<Value>(text);
    readers_agree(text);
    match AdmissionRequest::parse(body) {
        Ok(request) => {
            // serde_json rejects numbers and surrogates that no rule reads, and deep nesting.
            assert!(from_str::<serde::de::IgnoredAny>(text).is_ok());
            let object = value.as_ref().ok().and_then(|value| value["request"].get("object"));
            // A write of `/status` is judged with the metadata and the spec of the stored object.
            let keeps = request.subject.old.is_some() && request.subject.subresource == "status";
            match object.filter(|object| object.is_object()) {
                Some(_) if keeps => {}
                Some(object) => same_object(&request.subject.object, object),
                None => assert!(value.is_err() || !request.has_object),
            }
        }
        Err(ReviewError::NotJson(..) | ReviewError::Truncated | ReviewError::Empty) => {
            assert!(value.is_err());
        }
        Err(_) => {}
    }
    let mutated = answer(Webhook::Mutate, body, NOW);
    let validated = answer(Webhook::Validate, body, NOW);
    let (Some(mutated), Some(validated)) = (mutated, validated) else {
        return;
    };
    assert!(mutated.allowed, "the mutating webhook denies nothing");
    assert!(validated.patch.is_none(), "the validating webhook patches nothing");
    assert!(validated.allowed || !validated.deletes, "a deletion is always allowed");
    if let Ok(value) = value {
        a_second_run_changes_nothing(&value, mutated.patch);
        an_unchanged_status_has_no_findings(value);
    }
}

/// The answer of a webhook to a review.
struct Answer {
    allowed: bool,
    patch: Option<Patch>,
    /// Sorted texts.
    findings: Vec<String>,
    deletes: bool,
}

/// `None` if the bytes are no review.
fn answer(webhook: Webhook, body: &[u8], now: &str) -> Option<Answer> {
    let now = now.parse::<Timestamp>().expect("a time");
    let (mut findings, mut deletes, mut denied) = (Vec::new(), false, false);
    let mut uid = String::new();
    let reply = admit(&POLICIES, webhook, body, now, |request, verdict| {
        assert!(!verdict.patch_failed, "a patch always applies");
        findings = verdict.findings.iter().map(written).collect();
        findings.sort_unstable();
        denied = verdict.is_denied();
        uid = request.uid.to_string();
        deletes = request.subject.operation == Operation::Delete;
    });
    let again = admit(&POLICIES, webhook, body, now, |_, _| {});
    assert_eq!(reply, again, "equal reviews get equal bytes");
    if reply.status != 200 {
        assert_eq!(reply.status, 400);
        assert!(std::str::from_utf8(&reply.body).is_ok_and(|text| !text.is_empty()));
        return None;
    }
    let review: Value = serde_json::from_slice(&reply.body).expect("the answer is JSON");
    let response = &review["response"];
    let allowed = response["allowed"].as_bool().expect("allowed is a boolean");
    assert_eq!(allowed, !denied);
    assert_eq!(response["uid"], uid);
    let patch = response["patch"].as_str().map(|text| {
        assert_eq!(response["patchType"], "JSONPatch");
        let bytes = STANDARD.decode(text).expect("the patch is base64");
        serde_json::from_slice(&bytes).expect("the patch is a JSON patch")
    });
    Some(Answer { allowed, patch, findings, deletes })
}

fn written(found: &Finding<'_>) -> String {
    format!("{} {} {} {}", found.action.label(), found.rule, found.field, found.message)
}

/// The patch applies to the object as serde_json reads it.
fn a_second_run_changes_nothing(review: &Value, patch: Option<Patch>) {
    let Some(patch) = patch else { return };
    let mut patched = review.clone();
    let object = &mut patched["request"]["object"];
    json_patch::patch(object, &patch).unwrap_or_else(|error| panic!("{error}: {patch}"));
    // Of two changes of the phase in one second, the second looks like a change that kept the time. A later call sets it.
    let times = if contains_time(&review["request"]["oldObject"], NOW) {
        [NOW].as_slice()
    } else {
        &[NOW, LATER]
    };
    for now in times {
        let again = answer(Webhook::Mutate, patched.to_string().as_bytes(), now);
        let again = again.expect("the patched object is still one").patch;
        assert!(again.is_none(), "after {patch}: {}", again.unwrap_or_default());
    }
}

fn contains_time(value: &Value, time: &str) -> bool {
    match value {
        Value::String(text) => same_instant(text, time),
        Value::Array(items) => items.iter().any(|value| contains_time(value, time)),
        Value::Object(members) => members.values().any(|value| contains_time(value, time)),
        _ => false,
    }
}

/// Registrations may omit writes that leave the status as it is.
fn an_unchanged_status_has_no_findings(mut review: Value) {
    let request = &mut review["request"];
    let updates = request["operation"] == "UPDATE" && request["subResource"] == "status";
    if updates && request["object"].is_object() {
        request["oldObject"] = request["object"].clone();
        let answer = answer(Webhook::Validate, review.to_string().as_bytes(), NOW);
        let findings = answer.map(|answer| answer.findings).unwrap_or_default();
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// The reader of this crate and serde_json accept the same texts, with the same values.
fn readers_agree(text: &str) {
    match (Json::parse(text), from_str::<Value>(text)) {
        (Ok(own), Ok(theirs)) if own.is_whole() => {
            assert_eq!(format!("{own:?}"), format!("{:?}", Json::from(&theirs)));
        }
        // A value that Go cannot decode, in a long list that a later member with the same name replaces.
        (Ok(own), Err(_)) if own.is_whole() => {
            let value = last_members(text).expect("all other values are decoded");
            assert_eq!(format!("{own:?}"), format!("{:?}", Json::from(&value)));
        }
        // A tree has a limit of depth, and serde_json another one.
        (Ok(own), _) => assert!(!own.is_whole()),
        (Err(_), Ok(_)) => {
            assert!(matches!(Json::parse_any_size(text), Ok(Json::Large(_))), "too many values");
        }
        (Err(_), Err(_)) => {}
    }
}

/// What serde_json reads if it decodes only the last of several members with the same name.
fn last_members(text: &str) -> serde_json::Result<Value> {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => from_str::<BTreeMap<String, &RawValue>>(text)?
            .into_iter()
            .map(|(name, value)| Ok((name, last_members(value.get())?)))
            .collect(),
        Some(b'[') => from_str::<Vec<&RawValue>>(text)?
            .into_iter()
            .map(|value| last_members(value.get()))
            .collect(),
        _ => from_str(text),
    }
}

/// The object of a review, compared with its value.
fn same_object(own: &Object<'_>, value: &Value) {
    let json = |value: Option<&Value>| value.map(Json::from);
    if !own.has_large_status() {
        assert_eq!(own.status, json(value.get("status")));
    }
    let spec = own.spec.text().map(|text| from_str::<Value>(text).expect("spec is JSON"));
    assert_eq!(spec.as_ref(), value.get("spec"));
    let metadata = &value["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    assert_eq!(own.kind, text(&value["kind"]));
    assert_eq!(own.api_version, text(&value["apiVersion"]));
    assert_eq!(own.metadata.name, text(&metadata["name"]));
    assert_eq!(own.metadata.namespace, text(&metadata["namespace"]));
    assert_eq!(own.is_deleting(), !text(&metadata["deletionTimestamp"]).is_empty());
}

const NOW: &str = "2024-06-01T12:00:00Z";
const LATER: &str = "2024-06-01T12:01:00Z";

/// The example policies; for each convention the groups `NAME` (repairs, everything enabled), `NAME.deny`
/// and `NAME.main` (without a status subresource); and policies with additions.
static POLICIES: LazyLock<PolicySet> = LazyLock::new(|| {
    let built_in = PolicySet::compile(&[]).expect("the built-in conventions");
    let mut sources = PolicySet::examples();
    for name in PolicySet::built_in_names() {
        let enabled: Vec<&str> = built_in.conventions()[name].optional_parts().collect();
        let enabled = enabled.join(", ");
        for (group, settings) in [
            (name.to_owned(), format!("disagreement: Repair, enable: [{enabled}]")),
            (format!("{name}.deny"), "disagreement: Deny".to_owned()),
            (format!("{name}.main"), format!("disagreement: Repair, enable: [{enabled}]")),
        ] {
            let subresource = !group.ends_with(".main");
            sources.push(Source::new(
                &*group,
                format!(
                    "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: fuzz-{group}}}\n\
                     spec: {{convention: {name}, {settings}, resources: [{{apiGroups: [{group}], \
                     apiVersions: ['*'], resources: ['*'], statusSubresource: {subresource}}}]}}\n"
                ),
            ));
        }
    }
    sources.push(Source::new("policies.yaml", include_str!("../../policies.yaml")));
    PolicySet::compile(&sources).unwrap_or_else(|mistakes| panic!("{mistakes}"))
});
