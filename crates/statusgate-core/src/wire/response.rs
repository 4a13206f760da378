//! Writes a verdict as the response of an AdmissionReview.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::engine::{Action, Finding, Verdict};
use crate::model::{quote, shortened};
use crate::source::one_line;

use super::AdmissionRequest;

/// Causes in one denial. Ten thousand invalid conditions have one cause; events and terminals need
/// only some of them.
const MAX_CAUSES: usize = 32;

/// Warnings in one response. 16 warnings of 120 characters stay below the API server's limit of
/// 4096 characters in total.
const MAX_WARNINGS: usize = 16;

/// Characters in one warning. Kubernetes recommends 120; the API server truncates at 256.
const MAX_WARNING_LENGTH: usize = 120;

/// Characters in one audit annotation: enough for some findings.
const MAX_ANNOTATION_LENGTH: usize = 1024;

/// Writes the response to a request. The same verdict gives the same bytes: controllers copy denial
/// messages into conditions, so a changed text would cause a new write.
///
/// # Errors
/// Never in practice: the response consists of text and numbers.
pub fn respond(
    request: &AdmissionRequest<'_>,
    verdict: &Verdict<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let denied = verdict.is_denied();
    let patch = match &verdict.patch {
        Some(patch) if !denied => Some(STANDARD.encode(serde_json::to_vec(patch)?)),
        _ => None,
    };
    let body = Body {
        api_version: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: Response {
            uid: &request.uid,
            allowed: !denied,
            patch_type: patch.as_ref().map(|_| "JSONPatch"),
            patch,
            status: denied.then(|| status(request, verdict)),
            warnings: warnings(verdict),
            audit_annotations: annotations(verdict),
        },
    };
    // An allowed response has less than 200 bytes.
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, &body)?;
    Ok(bytes)
}

/// Writes the response to a review of a StatusPolicy or StatusConvention. `rejected` is the message of a
/// denial. The API server drops warnings with a line break.
///
/// # Errors
/// Never in practice, as for [`respond`].
pub fn respond_about_document(
    uid: &str,
    rejected: Option<String>,
    warnings: Vec<String>,
) -> Result<Vec<u8>, serde_json::Error> {
    // Without details, kubectl prints the message of an Invalid with all its lines.
    let status = rejected.map(|message| Status {
        status: "Failure",
        code: 422,
        reason: "Invalid",
        message,
        details: None,
    });
    serde_json::to_vec(&Body {
        api_version: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: Response {
            uid,
            allowed: status.is_none(),
            patch_type: None,
            patch: None,
            status,
            warnings,
            audit_annotations: BTreeMap::new(),
        },
    })
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

/// `metav1.Status`. The code is 422 Invalid: clients retry 409 and 429, and do not show the causes
/// of 403.
#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
}

#[derive(Serialize)]
struct Details<'a> {
    group: &'a str,
    kind: &'a str,
    name: &'a str,
    causes: Vec<StatusCause<'a>>,
}

#[derive(Serialize)]
struct StatusCause<'a> {
    reason: &'static str,
    message: String,
    field: &'a str,
}

fn status<'a>(request: &'a AdmissionRequest<'_>, verdict: &'a Verdict<'_>) -> Status<'a> {
    let denials = || with_action(verdict, Action::Deny).take(MAX_CAUSES);
    let causes: Vec<StatusCause<'_>> = denials()
        .map(|finding| StatusCause {
            reason: finding.cause.reason(),
            message: format!("{} [{}]", finding.message, finding.rule),
            field: &finding.field,
        })
        .collect();
    // kubectl shows only the causes of an Invalid; other clients show only the message.
    let sentences: Vec<String> = denials().map(sentence).collect();
    let is_cut = with_action(verdict, Action::Deny).nth(MAX_CAUSES).is_some();
    let more = if is_cut { "; and more" } else { "" };
    Status {
        status: "Failure",
        code: 422,
        reason: "Invalid",
        message: format!(
            "{} {} is invalid: {}{more}",
            request.kind,
            quote(&request.name, usize::MAX),
            sentences.join("; ")
        ),
        details: Some(Details {
            group: &request.kind_group,
            kind: &request.kind,
            name: &request.name,
            causes,
        }),
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
            // The API server drops a warning with a line break.
            let text = one_line(&format!("{}: {}", finding.field, finding.message));
            format!("{}{tail}", truncated(&text, room))
        })
        .collect()
}

/// One annotation per action. The API server prefixes the key with the webhook's name and a slash,
/// so the key itself must not contain a slash.
fn annotations(verdict: &Verdict<'_>) -> BTreeMap<&'static str, String> {
    let mut annotations = BTreeMap::new();
    let keys = [
        (Action::Deny, "denied"),
        (Action::Repair, "repaired"),
        (Action::Warn, "warned"),
        (Action::Audit, "audited"),
    ];
    for (action, key) in keys {
        let sentences: Vec<String> =
            with_action(verdict, action).take(MAX_CAUSES).map(sentence).collect();
        if !sentences.is_empty() {
            annotations
                .insert(key, truncated(&sentences.join("; "), MAX_ANNOTATION_LENGTH).into_owned());
        }
    }
    annotations
}

fn with_action<'v, 'p>(
    verdict: &'v Verdict<'p>,
    action: Action,
) -> impl Iterator<Item = &'v Finding<'p>> + 'v {
    verdict.findings.iter().filter(move |finding| finding.action == action)
}

/// `status.phase: … [appcat/phase-ready]`.
fn sentence(finding: &Finding<'_>) -> String {
    format!("{}: {} [{}]", finding.field, finding.message, finding.rule)
}

fn truncated(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(shortened(text, limit.saturating_sub(1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_truncated_between_characters() {
        assert_eq!(truncated("äöü", 3), "äöü");
        assert_eq!(truncated("äöüß", 3), "äö…");
        assert_eq!(truncated("x", 0), "…");
    }
}
