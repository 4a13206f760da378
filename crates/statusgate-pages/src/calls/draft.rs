//! Drafts from recorded writes, as `statusgate draft` makes them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::CallResult;
use statusgate_core::policy::PolicySet;
use statusgate_core::request::Served;
use statusgate_core::schema::Schema;
use statusgate_core::source::{Manifests, Source};
use statusgate_draft::Recording;

/// Recorded writes.
#[derive(Debug, Deserialize)]
pub(super) struct Recorded {
    /// What `check` reads: lines of `record`, an audit log, a watch, lists.
    writes: String,
    /// Whether each object is the stored object of the next one of its name.
    #[serde(default)]
    sequence: bool,
}

pub(super) fn answer(recorded: &Recorded) -> CallResult {
    let files = [Source::new("writes", recorded.writes.as_str())];
    let manifests = Manifests::read(&files);
    let built_in = PolicySet::compile(&[])?;
    let recordings = Recording::all(&manifests, recorded.sequence, |identity| {
        Served::guessed(identity, &built_in)
    });
    if recordings.is_empty() && manifests.mistakes().is_empty() {
        return Err("no write has a status: nothing to draft from".to_owned().into());
    }
    if recordings.is_empty() {
        return Err(manifests.mistakes().to_vec().into());
    }
    let drafts = recordings.iter().map(|recording| -> CallResult {
        let draft = statusgate_draft::draft(recording, &Schema::free(), None)?;
        let (object, old) = recording.last().unwrap_or_default();
        Ok(json!({
            "resource": recording.name(),
            "base": draft.base,
            "document": draft.to_yaml(),
            "object": object,
            "old": old,
        }))
    });
    Ok(json!({"mistakes": [], "drafts": drafts.collect::<Result<Value, _>>()?}))
}
