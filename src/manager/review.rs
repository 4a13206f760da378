//! The webhook for StatusPolicies and StatusConventions.
//!
//! It rejects a document that does not compile with those in use, with the text of `statusgate lint`.
//! Everything else is allowed: deletions, and changes of metadata or status, also of documents with mistakes.
//!
//! Any peer may send a document, so the webhook only compiles, within limits. The proofs of lint search for
//! states and may take minutes: they are for the command line.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::conditions::last_boundary;
use super::documents::SharedRegistry;
use super::registry::{Document, DocumentId, MAX_TEXT};
use crate::manifests::crds::{GROUP, plural};
use crate::server::admit::Reply;
use crate::server::{DocumentReview, PolicyStore};
use statusgate_core::documents::DocumentKind;
use statusgate_core::model::{Operation, Subject};
use statusgate_core::policy::{Diagnostics, PolicySet, Source};
use statusgate_core::wire::{AdmissionRequest, depth_of, respond_about_document};

/// How long a document waits for others that were applied just before it.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it looks for them.
const STEP: Duration = Duration::from_millis(50);

/// Bytes of a message.
const MAX_MESSAGE: usize = 256 << 10;

/// Objects and lists in each other. Watches read with serde_json, which rejects one more.
const MAX_DEPTH: usize = 127;

/// Patterns in a document. A short pattern may need 256 KiB when it is compiled.
const MAX_PATTERNS: usize = 64;

/// The webhook for documents, for [`crate::server::Opening::start`].
pub fn reviewer(shared: SharedRegistry, store: PolicyStore) -> DocumentReview {
    Arc::new(move |body| {
        review(body, PATIENCE, |id| {
            let registry = shared.lock();
            let mut texts = store.files();
            texts.extend(registry.used_without(id));
            Others { texts, settled: registry.is_settled() }
        })
    })
}

/// The documents in use with which a document is compiled.
#[derive(Clone, Debug)]
struct Others {
    texts: Vec<Source>,
    /// Whether no other change is about to be in use.
    settled: bool,
}

/// Answers a review. `others` returns the documents in use without the reviewed one.
fn review(body: &[u8], patience: Duration, others: impl Fn(&DocumentId) -> Others) -> Reply {
    let request = match AdmissionRequest::parse(body) {
        Ok(request) => request,
        Err(error) => return Reply::bad_request(&error),
    };
    let judged = if depth_of(body) > MAX_DEPTH {
        // Also in metadata: a watch reads an object at the same depth as a review has it.
        Err(format!("the document is nested deeper than {MAX_DEPTH} levels"))
    } else if let Some((id, spec)) = spec_of(&request.subject) {
        judge(id, spec, patience, others)
    } else {
        Ok(())
    };
    Reply::of(respond_about_document(&request.uid, judged.err().map(cut), Vec::new()))
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

/// Returns why a document is rejected.
fn judge(
    id: DocumentId,
    spec: &str,
    patience: Duration,
    others: impl Fn(&DocumentId) -> Others,
) -> Result<(), String> {
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
    let compile = |Others { mut texts, .. }| {
        texts.push(document.source.clone());
        PolicySet::compile(&texts).map(drop)
    };
    // `kubectl apply` sends a convention and its policy within milliseconds.
    let is_early = |others: &Others| !others.settled || needs(&document, &others.texts);
    let (start, first) = (Instant::now(), others(&document.id));
    let waits = is_early(&first);
    let mut compiled = compile(first);
    if compiled.is_err() && waits {
        let mut next = others(&document.id);
        while is_early(&next) && start.elapsed() < patience {
            thread::sleep(STEP);
            next = others(&document.id);
        }
        compiled = compile(next);
    }
    compiled.map_err(|mistakes| message(&document, &mistakes))
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

/// Whether a document needs a convention that may be applied at the same time.
fn needs(document: &Document, texts: &[Source]) -> bool {
    document.convention.as_ref().is_some_and(|name| {
        let built_in = PolicySet::built_in_names().any(|known| known == name);
        let kind = DocumentKind::StatusConvention;
        let source = DocumentId { kind, name: name.clone() }.to_string();
        !built_in && !texts.iter().any(|text| text.name == source)
    })
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
