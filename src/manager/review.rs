//! The webhook for StatusPolicies and StatusConventions.
//!
//! It rejects a document that does not compile with those in use, with the text of `statusgate lint`, and
//! returns what lint finds as warnings. Everything else is allowed: deletions, and changes of metadata or
//! status, also of documents with mistakes.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Mutex;

use super::conditions::last_boundary;
use super::documents::SharedRegistry;
use super::registry::{Document, DocumentId};
use crate::manifests::crds::{GROUP, plural};
use crate::server::admit::Reply;
use crate::server::{DocumentReview, PolicyStore};
use statusgate_core::documents::DocumentKind;
use statusgate_core::lint::{self, Remark};
use statusgate_core::model::{Object, Operation, Subject, shortened};
use statusgate_core::policy::{Diagnostics, PolicySet, Source};
use statusgate_core::wire::{AdmissionRequest, depth_of, respond_about_document};

/// How long a document waits for others that were applied just before it.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it looks for them.
const STEP: Duration = Duration::from_millis(50);

/// How long lint may take. The API server waits 10 s at most.
const LINT_LIMIT: Duration = Duration::from_secs(3);

/// Characters in one warning. The API server cuts at 256.
const MAX_WARNING: usize = 240;

/// Warnings in one response: 4096 characters in all.
const MAX_WARNINGS: usize = 16;

/// Bytes of a message.
const MAX_MESSAGE: usize = 256 << 10;

/// Objects and lists in each other. Watches read with serde_json, which rejects one more.
const MAX_DEPTH: usize = 127;

/// The webhook for documents, for [`crate::server::Opening::start`].
pub fn reviewer(shared: SharedRegistry, store: PolicyStore) -> DocumentReview {
    let linting = Linting::default();
    Arc::new(move |body| {
        review(body, &linting, PATIENCE, |id| {
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

/// Held while lint runs: it cannot be stopped, so only one run may exist at a time.
type Linting = Arc<Mutex<()>>;

/// Answers a review. `others` returns the documents in use without the reviewed one.
fn review(
    body: &[u8],
    linting: &Linting,
    patience: Duration,
    others: impl Fn(&DocumentId) -> Others,
) -> Reply {
    let request = match AdmissionRequest::parse(body) {
        Ok(request) => request,
        Err(error) => return Reply::bad_request(&error),
    };
    let judged = if depth_of(body) > MAX_DEPTH {
        // Also in metadata: a watch reads an object at the same depth as a review has it.
        Err(format!("the document is nested deeper than {MAX_DEPTH} levels"))
    } else if let Some(document) = document_of(&request) {
        judge(&document, linting, patience, others)
    } else {
        Ok(Vec::new())
    };
    let (rejected, warnings) = match judged {
        Ok(warnings) => (None, warnings),
        Err(message) => (Some(cut(message)), Vec::new()),
    };
    Reply::of(respond_about_document(&request.uid, rejected, warnings))
}

/// The document, if the request changes its content.
fn document_of(request: &AdmissionRequest<'_>) -> Option<Document> {
    let Subject { resource, subresource, operation, object, old, .. } = &request.subject;
    let kinds = [DocumentKind::StatusPolicy, DocumentKind::StatusConvention];
    let kind = kinds.into_iter().find(|kind| resource.resource == plural(*kind))?;
    let is_ours = resource.group == GROUP && subresource.is_empty();
    let writes = matches!(operation, Operation::Create | Operation::Update);
    let (spec, old) = (spec_of(object), old.as_ref().map(spec_of));
    if !is_ours || !writes || object.is_deleting() || old.is_some_and(|old| old == spec) {
        return None;
    }
    // A validating webhook is called when a generated name is known.
    let name = object.metadata.name.to_string();
    Some(Document::new(DocumentId { kind, name }, &spec))
}

/// Null if there is none.
fn spec_of(object: &Object<'_>) -> Value {
    let spec = object.spec.text().map(serde_json::from_str);
    spec.and_then(Result::ok).unwrap_or_default()
}

/// The warnings about a document, or why it is rejected.
fn judge(
    document: &Document,
    linting: &Linting,
    patience: Duration,
    others: impl Fn(&DocumentId) -> Others,
) -> Result<Vec<String>, String> {
    let start = Instant::now();
    loop {
        let Others { mut texts, settled } = others(&document.id);
        texts.push(document.source.clone());
        match PolicySet::compile(&texts) {
            Ok(set) => return Ok(warnings(linting, set, document)),
            // `kubectl apply` sends a convention and its policy within milliseconds.
            Err(_) if start.elapsed() < patience && (!settled || needs(document, &texts)) => {
                thread::sleep(STEP);
            }
            Err(mistakes) => return Err(message(document, &mistakes)),
        }
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

/// What lint finds in a document that compiles, in the time that the API server waits.
fn warnings(linting: &Linting, set: PolicySet, document: &Document) -> Vec<String> {
    let Ok(running) = Arc::clone(linting).try_lock_owned() else {
        return vec![not_linted("statusgate is linting another document")];
    };
    let id = document.id.clone();
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        let remarks = remarks(&set, &id);
        // Before the answer: the next document may follow at once.
        drop(running);
        // The other side may have stopped waiting.
        let _ = sender.send(remarks);
    };
    if thread::Builder::new().name("lint".to_owned()).spawn(run).is_err() {
        return vec![not_linted("no thread can be started")];
    }
    match receiver.recv_timeout(LINT_LIMIT) {
        Ok(remarks) => listed(&remarks),
        Err(_) => {
            let limit = LINT_LIMIT.as_secs();
            vec![not_linted(&format!("it takes longer than {limit} seconds"))]
        }
    }
}

fn not_linted(reason: &str) -> String {
    format!("not linted: {reason}; run statusgate lint")
}

fn remarks(set: &PolicySet, id: &DocumentId) -> Vec<Remark> {
    match id.kind {
        DocumentKind::StatusConvention => {
            lint::lint(set, &id.name).map(|report| report.remarks).unwrap_or_default()
        }
        DocumentKind::StatusPolicy => {
            let policy = set.policies().iter().find(|policy| *policy.name == *id.name);
            policy.map(|policy| lint::lint_policy(set, policy).remarks).unwrap_or_default()
        }
    }
}

fn listed(remarks: &[Remark]) -> Vec<String> {
    let shown = if remarks.len() > MAX_WARNINGS { MAX_WARNINGS - 1 } else { remarks.len() };
    let warning = |remark: &Remark| {
        let text = remark.to_string().replace(|letter: char| letter.is_control(), " ");
        shortened(&text, MAX_WARNING)
    };
    let mut warnings: Vec<String> = remarks[..shown].iter().map(warning).collect();
    if shown < remarks.len() {
        warnings.push(format!("{} more: run statusgate lint", remarks.len() - shown));
    }
    warnings
}

#[cfg(test)]
mod tests;
