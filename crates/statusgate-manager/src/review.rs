//! The webhook for StatusPolicies and StatusConventions.
//!
//! It rejects a document with mistakes of its own, with the text of `statusgate lint`. It only warns about what
//! depends on other documents: a GitOps tool tries all documents of a commit before it applies the first one, and
//! the server puts them into use when they fit together. Everything else is allowed: deletions, and changes of
//! metadata or status, also of documents with mistakes.
//!
//! Any peer may send a document, so the webhook only compiles, within limits. The proofs of lint search for
//! states and may take minutes: they are for the command line.

use std::sync::Arc;

use serde_json::Value;

use super::documents::SharedRegistry;
use super::registry::{Document, DocumentId, MAX_TEXT, conflict_message};
use statusgate_cluster::manifests::crds::{GROUP, plural};
use statusgate_core::admit::Reply;
use statusgate_core::documents::DocumentKind;
use statusgate_core::model::{Operation, Subject, shortened};
use statusgate_core::policy::{Diagnostics, PolicySet, Source};
use statusgate_core::source::one_line;
use statusgate_core::wire::{AdmissionRequest, depth_of, respond_about_document};
use statusgate_server::telemetry::lines::last_boundary;
use statusgate_server::{DocumentReview, PolicyStore};

/// Characters in one warning. The API server cuts at 256.
const MAX_WARNING: usize = 240;

/// Warnings in one response.
const MAX_WARNINGS: usize = 16;

/// Bytes of a message.
const MAX_MESSAGE: usize = 256 << 10;

/// Objects and lists in each other. Watches read with serde_json, which rejects one more.
const MAX_DEPTH: usize = 127;

/// Patterns in a document. A short pattern may need 256 KiB when it is compiled.
const MAX_PATTERNS: usize = 64;

/// The webhook for documents, for [`statusgate_server::Opening::start`].
pub fn reviewer(shared: SharedRegistry, store: PolicyStore) -> DocumentReview {
    Arc::new(move |body| {
        review(body, |document| (store.files(), shared.lock().used_with(document)))
    })
}

/// Answers a review. `in_use` returns the files, and the documents in use with the reviewed one.
fn review(body: &[u8], in_use: impl Fn(&Document) -> (Vec<Source>, Vec<Source>)) -> Reply {
    let request = match AdmissionRequest::parse(body) {
        Ok(request) => request,
        Err(error) => return Reply::bad_request(&error),
    };
    let judged = if depth_of(body) > MAX_DEPTH {
        // Also in metadata: a watch reads an object at the same depth as a review has it.
        Err(format!("the document is nested deeper than {MAX_DEPTH} levels"))
    } else if let Some((id, spec)) = spec_of(&request.subject) {
        judge(id, spec, in_use)
    } else {
        Ok(Vec::new())
    };
    let (rejected, warnings) = match judged {
        Ok(warnings) => (None, warnings),
        Err(message) => (Some(cut(message)), Vec::new()),
    };
    Reply::of(respond_about_document(&request.uid, rejected, warnings))
}

/// The document and the text of its spec, if the request changes the spec.
fn spec_of<'s>(subject: &Subject<'s>) -> Option<(DocumentId, &'s str)> {
    let Subject { resource, subresource, operation, object, old, .. } = subject;
    let kinds = [DocumentKind::StatusPolicy, DocumentKind::StatusConvention];
    let kind = kinds.into_iter().find(|kind| resource.resource == plural(*kind))?;
    let is_ours = resource.group == GROUP && subresource.is_empty();
    let writes = matches!(operation, Operation::Create | Operation::Update);
    // The API server writes the same value as the same text.
    let is_unchanged = old.as_ref().is_some_and(|old| old.spec.text() == object.spec.text());
    if !is_ours || !writes || object.is_deleting() || is_unchanged {
        return None;
    }
    // A validating webhook is called when a generated name is known.
    let name = object.metadata.name.to_string();
    Some((DocumentId { kind, name }, object.spec.text().unwrap_or("null")))
}

/// The warnings about a document, or why it is rejected.
fn judge(
    id: DocumentId,
    spec: &str,
    in_use: impl Fn(&Document) -> (Vec<Source>, Vec<Source>),
) -> Result<Vec<String>, String> {
    let too_large = || format!("the document is larger than {} KiB", MAX_TEXT >> 10);
    if spec.len() > MAX_TEXT {
        return Err(too_large());
    }
    let spec = serde_json::from_str(spec).unwrap_or_default();
    if patterns_in(&spec) > MAX_PATTERNS {
        return Err(format!("the document has more than {MAX_PATTERNS} patterns"));
    }
    let document = Document::new(id, &spec);
    drop(spec);
    if document.source.text.len() > MAX_TEXT {
        return Err(too_large());
    }
    if let Some(mistakes) = PolicySet::mistakes_of(&document.source) {
        return Err(message(&document, &mistakes));
    }
    // The rest depends on other documents, which may follow in the same commit. The API server asks about each
    // before it stores one.
    let (files, documents) = in_use(&document);
    let mut warnings = match PolicySet::compile_with_cluster(&files, &documents) {
        Ok(set) => conflicts(&set, &document.id, &files),
        Err(mistakes) => unresolved(&mistakes),
    };
    if warnings.len() > MAX_WARNINGS {
        let more = warnings.len() - MAX_WARNINGS + 1;
        warnings.truncate(MAX_WARNINGS - 1);
        warnings.push(format!("{more} more: see the condition Accepted"));
    }
    Ok(warnings)
}

/// The conflicts of a policy about phases.
fn conflicts(set: &PolicySet, id: &DocumentId, files: &[Source]) -> Vec<String> {
    if id.kind != DocumentKind::StatusPolicy {
        return Vec::new();
    }
    let own = set.conflicts(Some(&id.name)).into_iter();
    let compiled = PolicySet::compile(files).ok();
    let in_files: Vec<&str> = compiled.iter().flat_map(PolicySet::names).collect();
    let messages = own.map(|of| conflict_message(&of, !in_files.contains(&of.owner.name.as_str())));
    messages.map(|message| warning(&message)).collect()
}

/// What keeps a document out of use until other documents change.
fn unresolved(mistakes: &Diagnostics) -> Vec<String> {
    let warnings = mistakes.list().iter().map(|mistake| {
        let (document, line, _) = mistakes.place(mistake);
        warning(&format!("not in use yet: {} ({document}:{line})", mistake.message))
    });
    warnings.collect()
}

fn warning(text: &str) -> String {
    shortened(&one_line(text), MAX_WARNING)
}

fn patterns_in(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(patterns_in).sum(),
        Value::Object(members) => {
            let own = usize::from(members.get("pattern").is_some_and(Value::is_string));
            own + members.values().map(patterns_in).sum::<usize>()
        }
        _ => 0,
    }
}

fn message(document: &Document, mistakes: &Diagnostics) -> String {
    let DocumentId { kind, name } = &document.id;
    format!("{} \"{name}\" is invalid:\n\n{mistakes}\n", kind.name())
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(last_boundary(&message, MAX_MESSAGE));
        message.push_str("\n… and more: see statusgate lint\n");
    }
    message
}

#[cfg(test)]
mod tests;
