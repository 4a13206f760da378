//! The mutating webhook: sets the phase and its time, and sets defaults.
//!
//! It sets defaults in the order of the documents, and repeats until nothing changes. So a second run
//! changes nothing.

use std::cell::Cell;
use std::collections::BTreeSet;

use jiff::Timestamp;
use json_patch::{Patch, PatchOperation};
use serde_json::{Value, json};

use crate::model::{Json, Object, Subject, same_instant};
use crate::policy::convention::{Backfill, PhaseRules, PhaseValue, Since};
use crate::policy::{Action, Id, Policy, Selected, Step};
use crate::schema::Refusal;

use super::agreement::{self, Choice, choose};
use super::because::quoted;
use super::defaults::{Defaults, is_idle};
use super::draft::Draft;
use super::evidence::{Facts, facts_of, phase_path};
use super::{Cause, Change, Finding, Verdict};

/// Mutates an object: the subject's own, or the same with another status. With `repairs_stored`, it also
/// repairs a disagreement that is already stored, under every policy.
pub(super) fn mutate<'p, 'a: 'p>(
    selected: &Selected<'p>,
    subject: &Subject<'a>,
    object: &Object<'a>,
    now: i64,
    repairs_stored: bool,
) -> Verdict<'p> {
    // The validating webhook rejects a status that is not an object.
    if !matches!(object.status, None | Some(Json::Null | Json::Object(_))) {
        return Verdict::default();
    }
    let (mut withheld, mut refused, mut rounds) = (Vec::new(), Vec::new(), 0);
    loop {
        let mut run = Run {
            selected,
            subject,
            now,
            repairs_stored,
            base: object,
            withheld: &withheld,
            changed: None,
            in_lists: Cell::new(0),
            operations: Vec::new(),
            origins: Vec::new(),
            verdict: Verdict::default(),
        };
        run.restore();
        let restored = run.operations.len();
        run.settle();
        // Together, changes may be valid that alone are not, so they are checked at the end. Each round withholds at
        // least one step.
        let refusals = run.refusals(restored);
        if !refusals.is_empty() {
            rounds += 1;
            for (policy, Refusal { place, cause, .. }) in refusals {
                if !refused.contains(&(policy, cause.clone())) {
                    refused.push((policy, cause));
                }
                withheld.push(place);
            }
            if rounds > selected.steps().count() {
                withheld.push(STATUS.to_owned());
            }
            continue;
        }
        let status = run.changed.and_then(|object| object.status);
        let patch = Some(Patch(run.operations)).filter(|patch| !patch.is_empty());
        return Verdict { status, patch, refused, ..run.verdict };
    }
}

/// The place of every change.
const STATUS: &str = "/status";

/// Whether a patch applies to its object. Otherwise the API server returns status 500 to the user, even
/// with `failurePolicy: Ignore`.
pub(super) fn applies(object: &Object<'_>, operations: &[PatchOperation]) -> bool {
    let mut whole = json!({});
    if let (Some(status), Some(members)) = (&object.status, whole.as_object_mut()) {
        members.insert("status".to_owned(), touched(status, operations));
    }
    json_patch::patch(&mut whole, operations).is_ok()
}

/// The members of a status that a patch reads or writes. A copy of all others could need a hundred times
/// the memory of the review.
fn touched(status: &Json<'_>, operations: &[PatchOperation]) -> Value {
    let Json::Object(members) = status else { return status.to_value() };
    let names = operations.iter().filter_map(|operation| operation.path().tokens().nth(1));
    let names: BTreeSet<_> = names.map(|name| name.decoded().into_owned()).collect();
    let touched = names.iter().filter_map(|name| members.get_key_value(name));
    touched.map(|(name, value)| (name.to_owned(), value.to_value())).collect()
}

/// One run over an object.
pub(super) struct Run<'r, 'p, 'a> {
    pub(super) selected: &'r Selected<'p>,
    pub(super) subject: &'r Subject<'a>,
    now: i64,
    repairs_stored: bool,
    pub(super) base: &'r Object<'a>,
    /// The places at and below which nothing is changed: the schema rejects that.
    withheld: &'r [String],
    /// The object with the changes so far.
    changed: Option<Object<'a>>,
    /// The bytes of text that were added to lists.
    pub(super) in_lists: Cell<usize>,
    /// The patch that results in the changed status.
    operations: Vec<PatchOperation>,
    /// The policies of these changes: each with the number of changes up to and with its own.
    origins: Vec<(usize, &'p Id)>,
    pub(super) verdict: Verdict<'p>,
}

impl<'p, 'a> Run<'_, 'p, 'a> {
    fn object(&self) -> &Object<'a> {
        self.changed.as_ref().unwrap_or(self.base)
    }

    fn facts<'s>(&'s self, policy: &'s Policy) -> Facts<'s, 'a> {
        let Subject { old, resource, .. } = self.subject;
        facts_of(&policy.convention, self.object(), old.as_ref(), resource)
    }

    pub(super) fn take(&mut self, finished: Option<(Json<'a>, Vec<PatchOperation>)>) {
        if let Some((status, operations)) = finished {
            self.changed = Some(self.object().with_status(Some(status)));
            self.operations.extend(operations);
        }
    }

    /// Sets the phase and all defaults, in turn, until each step has changed nothing since the last change.
    /// To remove a null is no change: no step can tell it from an absent field.
    fn settle(&mut self) {
        let selected = self.selected;
        let defaults = selected.policies().map(|(_, policy)| policy.backfill.len()).sum::<usize>();
        let mut last = None;
        for _ in 0..=defaults {
            for (at, (policy, step)) in selected.steps().enumerate() {
                if last == Some(at) {
                    return;
                }
                let changed = match step {
                    Step::Phase(rules) => self.set_phase(policy, rules),
                    Step::Default(default) => {
                        self.set_default(policy, default) && default.changes_more_than_a_null()
                    }
                };
                last = if changed { Some(at) } else { last };
            }
            if last.is_none() {
                return;
            }
        }
    }

    /// Sets a default, unless it contradicts the phase. The phase is then better information than the
    /// default, and the writer may still write the field. Returns whether it changed the object.
    fn set_default(&mut self, policy: &'p Policy, default: &'p Backfill) -> bool {
        let Some((next, changes)) = self.filled(policy, default) else { return false };
        self.verdict.withheld.retain(|name| *name != default.name);
        if self.contradicts(&next) {
            self.verdict.withheld.push(&default.name);
            return false;
        }
        self.operations.extend(changes);
        self.origins.push((self.operations.len(), &policy.name));
        self.verdict.changes.push((&policy.name, Change::Default));
        self.changed = Some(next);
        true
    }

    /// The object with a default, and the changes; `None` if it changes nothing.
    fn filled(
        &self,
        policy: &'p Policy,
        default: &'p Backfill,
    ) -> Option<(Object<'a>, Vec<PatchOperation>)> {
        if is_idle(default, self.object()) {
            return None;
        }
        let facts = self.facts(policy);
        let mut draft = Draft::new(self.object(), &self.in_lists);
        let (convention, subject, now) = (&policy.convention, self.subject, self.now);
        Defaults { convention, facts: &facts, subject, now }.set(default, &mut draft);
        let (status, changes) = draft.finish().filter(|(_, changes)| !self.withholds(changes))?;
        Some((self.object().with_status(Some(status)), changes))
    }

    /// Whether the evidence for the phase is only what a default sets: the writer left it out, and means the phase.
    fn is_filled(&self, of: &Policy, rules: &PhaseRules) -> bool {
        let added = self.in_lists.get();
        let is_filled = self.selected.steps().any(|(policy, step)| {
            let Step::Default(default) = step else { return false };
            self.filled(policy, default).is_some_and(|(next, _)| {
                let Subject { old, resource, .. } = self.subject;
                let facts = facts_of(&of.convention, &next, old.as_ref(), resource);
                agreement::contradicted(rules, &facts).is_none()
            })
        });
        self.in_lists.set(added);
        is_filled
    }

    /// Whether some of these changes are withheld.
    fn withholds(&self, changes: &[PatchOperation]) -> bool {
        changes.iter().any(|change| {
            let path = change.path().as_str();
            self.withheld.iter().any(|place| {
                path.strip_prefix(&**place)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        })
    }

    /// The changes, apart from restored fields, for which the API server would reject the write, with their policies. The
    /// writer would get an error about a value that it never sent.
    fn refusals(&self, restored: usize) -> Vec<(&'p Id, Refusal)> {
        let changes = self.operations.get(restored..).filter(|changes| !changes.is_empty());
        let defined = changes.and_then(|_| self.selected.defined(self.subject));
        let status = self.object().status.as_ref();
        let (Some(changes), Some(defined), Some(status)) = (changes, defined, status) else {
            return Vec::new();
        };
        let refusals = defined.schema.refuses(changes, status).into_iter();
        let of = refusals.filter_map(|refusal| {
            let mut origins = self.origins.iter();
            let (_, policy) = origins.find(|(end, _)| *end > restored + refusal.change)?;
            Some((*policy, refusal))
        });
        of.collect()
    }

    /// Whether the change to `next` contradicts the phase, or makes a rule reject it.
    fn contradicts(&self, next: &Object<'a>) -> bool {
        let Subject { old, resource, .. } = self.subject;
        self.selected.policies().any(|(_, policy)| {
            let after = facts_of(&policy.convention, next, old.as_ref(), resource);
            agreement::change_contradicts_phase(&policy.convention, &self.facts(policy), &after)
        })
    }

    /// Sets the phase and its time. Returns whether it changed the object.
    fn set_phase(&mut self, policy: &'p Policy, rules: &'p PhaseRules) -> bool {
        let facts = self.facts(policy);
        let path = phase_path(rules, self.object());
        let mut draft = Draft::new(self.object(), &self.in_lists);
        if draft.get(path).is_some_and(|value| !value.is_null() && value.as_str().is_none()) {
            return false; // The validating webhook rejects it.
        }
        let (phase, origin, finding) = match choose(rules, &facts) {
            Choice::Imposed(phase) => (Some(&*phase.name), Some(Change::Imposed), None),
            Choice::Default(default) => (default, Some(Change::Default), None),
            Choice::Contradicted(phase)
                if self.repairs(policy, rules, phase) && !self.is_filled(policy, rules) =>
            {
                match agreement::repaired(rules, &facts) {
                    Some(repaired) => {
                        let finding = Finding {
                            policy: &policy.name,
                            rule: &phase.rule,
                            field: path.field().to_owned(),
                            cause: Cause::Invalid,
                            message: format!(
                                "set to {}: {}",
                                quoted(repaired),
                                agreement::reason(phase, &facts)
                            ),
                            action: Action::Repair,
                            others: Vec::new(),
                        };
                        (Some(repaired), Some(Change::Repair), Some(finding))
                    }
                    None => (facts.phase, None, None),
                }
            }
            Choice::Contradicted(_) | Choice::Written => (facts.phase, None, None),
        };
        let Some(phase) = phase else { return false };
        let change = match origin {
            Some(origin) if facts.phase != Some(phase) => {
                draft.set(path, phase.into());
                origin
            }
            _ => Change::Time,
        };
        self.keep_time(rules, &facts, (phase, origin), &mut draft);
        let finished = draft.finish();
        if finished.as_ref().is_some_and(|(_, changes)| self.withholds(changes)) {
            return false;
        }
        self.verdict.findings.extend(finding);
        let changed = finished.is_some();
        self.verdict.changes.extend(changed.then_some((&policy.name, change)));
        self.take(finished);
        self.origins.push((self.operations.len(), &policy.name));
        changed
    }

    /// Whether a disagreement of this writer is repaired: the stored object does not contradict the same
    /// phase. If it does, this write did not introduce the disagreement, even if the evidence changed.
    fn repairs(&self, policy: &Policy, rules: &PhaseRules, phase: &PhaseValue) -> bool {
        let Subject { old, resource, writer, .. } = self.subject;
        self.repairs_stored
            || policy.disagreement_of(writer) == Action::Repair
                && (policy.repairs_stored
                    || old
                        .as_ref()
                        .map(|old| facts_of(&policy.convention, old, None, resource))
                        .and_then(|stored| agreement::contradicted(rules, &stored))
                        .is_none_or(|before| before.name != phase.name))
    }

    /// Sets the time of the phase's last change.
    ///
    /// An unchanged phase keeps its time even if the writer removes it. A changed phase gets a new time
    /// unless the writer gives one. Only a change in this request uses the clock. The next write restores
    /// the stored time, so the clock causes no further writes.
    ///
    /// `origin` is why the object has the phase; `None` if the writer chose it.
    fn keep_time(
        &self,
        rules: &PhaseRules,
        facts: &Facts<'_, '_>,
        (phase, origin): (&str, Option<Change>),
        draft: &mut Draft<'_, '_>,
    ) {
        let Some(time) = &rules.transition_time else { return };
        if !time.in_step() {
            return;
        }
        let path = &time.path;
        let seen = draft.get(path).filter(|seen| !seen.is_null());
        if seen.is_some_and(|seen| seen.as_str().is_none()) {
            return; // The validating webhook rejects it.
        }
        let written = seen.and_then(Json::as_str).filter(|time| !time.is_empty());
        let old = self.subject.old.as_ref();
        let stored =
            old.and_then(|old| old.at_status(path)?.as_str()).filter(|time| !time.is_empty());
        let time = if facts.old_phase == Some(phase) {
            let Some(stored) = stored else { return };
            // Otherwise the writer gave this time to another phase, which the webhook replaced.
            if written.is_some_and(|written| origin.is_none() || same_instant(written, stored)) {
                return;
            }
            stored.to_owned()
        } else {
            // The first phase is not a transition if it is the default, whether the writer or an earlier
            // call of this webhook set it.
            if facts.old_phase.is_none() && rules.default.as_deref() == Some(phase) {
                return;
            }
            // The writer gave this time to a phase that the imposed one replaced.
            let displaced = origin == Some(Change::Imposed) && facts.phase != Some(phase);
            let given = written
                .is_some_and(|written| stored.is_none_or(|stored| !same_instant(written, stored)));
            if given && !displaced {
                return;
            }
            let since = rules.find(phase).and_then(|phase| Some(phase.imposed.as_ref()?.since));
            match self.time_of_change(since.filter(|_| origin == Some(Change::Imposed))) {
                Some(time) => time,
                None => return,
            }
        };
        if written != Some(time.as_str()) {
            draft.set(path, time.into());
        }
    }

    /// The time since which a phase is imposed, or now.
    fn time_of_change(&self, imposed: Option<Since>) -> Option<String> {
        let metadata = &self.subject.object.metadata;
        let time = match imposed {
            Some(Since::DeletionTimestamp) => &metadata.deletion_timestamp,
            Some(Since::CreationTimestamp) => &metadata.creation_timestamp,
            None => return Timestamp::from_second(self.now).ok().map(|now| now.to_string()),
        };
        time.as_deref().map(str::to_owned)
    }
}
