//! A verdict as the API server wants to read it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::engine::{Action, Finding, Verdict};
use crate::model::quote;

use super::Review;

/// Causes in one denial. A list of ten thousand bad conditions is one mistake made ten thousand
/// times; etcd events and terminals need not carry it.
const MAX_CAUSES: usize = 32;

/// Warnings in one answer: 16 of 120 characters stay far below the 4096 that the API server
/// passes on in all.
const MAX_WARNINGS: usize = 16;

/// Characters in one warning. The API server cuts at 256; Kubernetes asks for 120.
const MAX_WARNING_LENGTH: usize = 120;

/// Characters in one audit annotation: enough for some findings, far from filling an audit log.
const MAX_ANNOTATION_LENGTH: usize = 1024;

/// Writes the answer to a review. The same verdict gives the same bytes: denial texts are copied
/// into conditions by controllers, and a text that changed would be a new write.
///
/// # Errors
/// None that can happen: everything written is text and numbers.
pub fn answer(review: &Review<'_>, verdict: &Verdict<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let denied = verdict.is_denied();
    let patch = match &verdict.patch {
        Some(patch) if !denied => Some(STANDARD.encode(serde_json::to_vec(patch)?)),
        _ => None,
    };
    let body = Body {
        api_version: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: Response {
            uid: &review.uid,
            allowed: !denied,
            patch_type: patch.as_ref().map(|_| "JSONPatch"),
            patch,
            status: denied.then(|| status(review, verdict)),
            warnings: warnings(verdict),
            audit_annotations: annotations(verdict),
        },
    };
    // An allowance is under 200 bytes.
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, &body)?;
    Ok(bytes)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<&'static str, String>,
}

/// `metav1.Status`. 422 Invalid: 409 and 429 would make clients try again, and of 403 the API
/// server's clients do not show causes.
#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    group: &'a str,
    kind: &'a str,
    name: &'a str,
    causes: Vec<CauseOnWire<'a>>,
}

#[derive(Serialize)]
struct CauseOnWire<'a> {
    reason: &'static str,
    message: String,
    field: &'a str,
}

fn status<'a>(review: &'a Review<'_>, verdict: &'a Verdict<'_>) -> Status<'a> {
    let denials = || of(verdict, Action::Deny).take(MAX_CAUSES);
    let causes: Vec<CauseOnWire<'_>> = denials()
        .map(|finding| CauseOnWire {
            reason: finding.cause.reason(),
            message: format!("{} [{}]", finding.message, finding.rule),
            field: &finding.field,
        })
        .collect();
    // kubectl shows the causes of an Invalid and drops this; other clients show only this.
    let sentences: Vec<String> = denials().map(sentence).collect();
    let more = if of(verdict, Action::Deny).nth(MAX_CAUSES).is_some() { "; and more" } else { "" };
    Status {
        status: "Failure",
        code: 422,
        reason: "Invalid",
        message: format!(
            "{} {} is invalid: {}{more}",
            review.kind,
            quote(&review.name, usize::MAX),
            sentences.join("; ")
        ),
        details: Details {
            group: &review.kind_group,
            kind: &review.kind,
            name: &review.name,
            causes,
        },
    }
}

fn warnings(verdict: &Verdict<'_>) -> Vec<String> {
    verdict
        .findings
        .iter()
        .filter(|finding| matches!(finding.action, Action::Warn | Action::Repair))
        .take(MAX_WARNINGS)
        .map(|finding| {
            let tail = format!(" [{}]", finding.rule);
            let room = MAX_WARNING_LENGTH.saturating_sub(tail.chars().count());
            let text = format!("{}: {}", finding.field, finding.message);
            // A newline would make the API server drop the warning.
            let text = text.replace(|letter: char| letter.is_control(), " ");
            format!("{}{tail}", shortened(&text, room))
        })
        .collect()
}

/// One annotation for each action that occurred. The API server puts the webhook's name and a slash
/// before the key; a key with a slash of its own would be refused.
fn annotations(verdict: &Verdict<'_>) -> BTreeMap<&'static str, String> {
    let mut annotations = BTreeMap::new();
    let keys = [
        (Action::Deny, "denied"),
        (Action::Repair, "repaired"),
        (Action::Warn, "warned"),
        (Action::Audit, "audited"),
    ];
    for (action, key) in keys {
        let sentences: Vec<String> = of(verdict, action).take(MAX_CAUSES).map(sentence).collect();
        if !sentences.is_empty() {
            annotations
                .insert(key, shortened(&sentences.join("; "), MAX_ANNOTATION_LENGTH).into_owned());
        }
    }
    annotations
}

fn of<'v, 'p>(
    verdict: &'v Verdict<'p>,
    action: Action,
) -> impl Iterator<Item = &'v Finding<'p>> + 'v {
    verdict.findings.iter().filter(move |finding| finding.action == action)
}

/// `status.phase: … [appcat/phase-ready]`: stands alone.
fn sentence(finding: &Finding<'_>) -> String {
    format!("{}: {} [{}]", finding.field, finding.message, finding.rule)
}

fn shortened(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let kept = text.char_indices().nth(limit.saturating_sub(1)).map_or(0, |(at, _)| at);
            Cow::Owned(format!("{}…", &text[..kept]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
        assert_eq!(shortened("x", 0), "…");
    }
}
