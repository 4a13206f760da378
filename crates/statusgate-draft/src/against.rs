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
    let mut gaps = Vec::new();
    for list in base.lists() {
        let Some(found) = facts.lists.get(&list.path.to_string()) else { continue };
        let types = found.types_by_objects();
        let unknown = types.iter().filter(|(name, _)| list.find(name).is_none());
        let unknown = unknown
            .map(|(name, of)| format!("{} ({} objects)", shown(name), of.seen.objects))
            .collect();
        gaps.push(("types that it does not know".to_owned(), unknown));
        for (name, of) in types {
            let Some(known) = list.find(name).and_then(|of| of.reasons.as_ref()) else { continue };
            let reasons = of.reasons.iter().map(|(reason, _)| reason);
            let unknown = reasons.filter(|reason| known.statuses(reason).next().is_none());
            let what = format!("reasons of {} that it does not know", shown(name));
            gaps.push((what, unknown.map(shown).collect()));
        }
    }
    gaps.push(("rules that never fired".to_owned(), base.silent()));
    gaps.retain(|(_, names)| !names.is_empty());
    let questions =
        gaps.iter().map(|(what, names)| format!("{what}: {}", listed(names, MAX_NAMES)));
    draft.questions.splice(..0, questions);
}
