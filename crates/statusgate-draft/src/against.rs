//! Compares a recording with an existing convention.

use super::base::Base;
use super::document::Draft;
use super::facts::Facts;
use super::text::{listed, shown};

/// The names in one question.
const MAX_NAMES: usize = 40;

/// Asks about the rules that never fired and the values that the convention does not know. The rules that it lacks are the rest
/// of the draft.
pub(crate) fn compare(draft: &mut Draft, facts: &Facts, base: &Base<'_>) {
    let mut questions = Vec::new();
    for list in base.lists() {
        let Some(found) = facts.lists.get(&list.path.to_string()) else { continue };
        let types = found.types_by_objects();
        let unknown = types.iter().filter(|(name, _)| list.find(name).is_none());
        let unknown: Vec<String> = unknown
            .map(|(name, of)| format!("{} ({} objects)", shown(name), of.seen.objects))
            .collect();
        questions.extend(some("types that it does not know", &unknown));
        for (name, of) in types {
            let Some(known) = list.find(name).and_then(|of| of.reasons.as_ref()) else { continue };
            let unknown =
                of.reasons.iter().filter(|(reason, _)| known.statuses(reason).next().is_none());
            let unknown: Vec<String> = unknown.map(|(reason, _)| shown(reason)).collect();
            questions.extend(some(
                &format!("reasons of {} that it does not know", shown(name)),
                &unknown,
            ));
        }
    }
    questions.extend(some("rules that never fired", &base.silent()));
    questions.append(&mut draft.questions);
    draft.questions = questions;
}

fn some(what: &str, names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("{what}: {}", listed(names, MAX_NAMES)))
}
