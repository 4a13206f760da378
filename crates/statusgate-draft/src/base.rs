//! The convention that a draft extends.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::{self, Action, Found};
use statusgate_core::policy::convention::{ConditionList, Convention};
use statusgate_core::policy::{Diagnostics, PolicySet, Source};
use statusgate_core::request::Served;

use super::document::Draft;
use super::facts::Facts;
use super::recording::Recording;
use super::tally::Seen;
use super::text::{about, shown};
use super::{Against, CONDITIONS};

/// A convention with the documents that define it. None, if /status/conditions is no list of conditions.
#[derive(Default)]
pub(crate) struct Base<'a> {
    convention: Option<Arc<Convention>>,
    pub(crate) sources: &'a [Source],
    /// The rules that fire for the recording, and how many of them warn or deny.
    fired: BTreeMap<String, Seen>,
    warned: usize,
}

/// The built-in conventions that describe conditions of any resource, the one with the fewest rules of its own first.
const GENERAL: [&str; 2] = ["metav1", "knative"];

/// The names in one question.
const MAX_NAMES: usize = 40;

impl<'a> Base<'a> {
    /// # Errors
    /// Mistakes in the documents, or an unknown name.
    pub(crate) fn named(
        against: Against<'a>,
        recording: &Recording<'_>,
    ) -> Result<Self, Diagnostics> {
        let Against { convention: name, sources } = against;
        let mut spec = PolicySpec::for_everything(name);
        for selected in &mut spec.resources {
            selected.status_subresource = recording.has_subresource;
        }
        let policies = PolicySet::compile(sources)?;
        let convention = policies.conventions().get(name).map(Arc::clone);
        let policies = policies.with_policy("all", &spec)?;
        let fired = judge(recording, &policies, |_| true);
        let warned = fired.values().filter(|seen| seen.writes > 0).count();
        Ok(Self { convention, sources, fired, warned })
    }

    /// The general convention of which the fewest rules warn about the recording, if it has one of its types.
    pub(crate) fn best(recording: &Recording<'_>, facts: &Facts) -> Result<Self, Diagnostics> {
        let mut best = Self::default();
        if facts.histories.get(CONDITIONS).is_some() {
            return Ok(best);
        }
        for convention in GENERAL {
            let base = Self::named(Against { convention, sources: &[] }, recording)?;
            let mut seen = facts.lists.iter().flat_map(|(_, list)| list.types.iter());
            let fits = seen.any(|(name, _)| base.lists().any(|list| list.types.contains_key(name)));
            let fewer = base.warned < best.warned;
            if best.convention.is_none() || (fewer && fits) {
                best = base;
            }
        }
        Ok(best)
    }

    /// Asks about the rules that never fired and the values that the convention does not know. The rules that it lacks are the rest
    /// of the draft.
    pub(crate) fn compare(&self, draft: &mut Draft, facts: &Facts) {
        let mut unknown = Vec::new();
        for list in self.lists() {
            let Some(found) = facts.lists.get(&list.path.to_string()) else { continue };
            for (name, of) in found.types_by_objects() {
                match list.find(name).map(|kind| kind.reasons.as_ref()) {
                    None => unknown.push(format!("{} ({} objects)", shown(name), of.seen.objects)),
                    Some(None) => {}
                    Some(Some(known)) => {
                        let reasons = of.reasons.iter().map(|(reason, _)| reason);
                        let reasons = reasons.filter(|text| known.statuses(text).next().is_none());
                        unknown.extend(
                            reasons.map(|text| format!("{} with {}", shown(name), shown(text))),
                        );
                    }
                }
            }
        }
        let unknown = about(&unknown, MAX_NAMES, "types and reasons that it does not know");
        let declared = self.convention.iter().flat_map(|convention| convention.declared.iter());
        let ids = declared.map(|(id, _)| id.to_string());
        let silent: Vec<String> = ids.filter(|id| !self.fired.contains_key(id)).collect();
        let silent = about(&silent, MAX_NAMES, "rules that never fired");
        draft.questions.splice(..0, unknown.into_iter().chain(silent));
    }

    /// Empty without a convention.
    pub(crate) fn name(&self) -> &str {
        self.convention.as_ref().map_or("", |convention| &convention.name)
    }

    pub(crate) fn has_phase(&self) -> bool {
        self.convention.as_ref().is_some_and(|convention| convention.phase.is_some())
    }

    /// Its lists.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &ConditionList> + Clone {
        let lists = self.convention.iter().flat_map(|convention| &convention.conditions);
        lists.map(AsRef::as_ref)
    }

    /// Its list at a path.
    pub(crate) fn list(&self, path: &str) -> Option<&ConditionList> {
        self.lists().find(|list| list.path.to_string() == path)
    }
}

/// The rules that fire for the recording, as the validating webhook alone reports them, with the writes that they do not only
/// audit. Without a time of the write, no stored time lies before it.
pub(crate) fn judge(
    recording: &Recording<'_>,
    policies: &PolicySet,
    is_of_interest: impl Fn(&Found) -> bool,
) -> BTreeMap<String, Seen> {
    let mut fired: BTreeMap<String, Seen> = BTreeMap::new();
    for write in &recording.writes {
        let time = write.request.time().unwrap_or(Timestamp::MAX);
        let has_status = Some(recording.has_subresource);
        let served = Served { plural: recording.plural.clone(), has_status };
        let Ok(subject) = write.request.clone().subject(policies, served) else { continue };
        let Ok(review) = engine::review(policies, subject, false, time) else { continue };
        for found in review.findings.into_iter().filter(&is_of_interest) {
            let seen = fired.entry(found.rule).or_default();
            if found.action != Action::Audit {
                seen.see(write.object);
            }
        }
    }
    fired
}
