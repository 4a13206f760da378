//! The mutating half: restores, the phase and its time, and defaults, each once.
//!
//! The order is fixed when policies are loaded (`policy/order.rs`): a step comes after those that could
//! give it something to do. So a second run finds nothing to do.

use std::cell::Cell;

use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::json;

use crate::model::{Json, Object, Pointer, Subject, in_status, same_instant};
use crate::policy::convention::{Backfill, Phase, PhaseRules, Since};
use crate::policy::{Action, Policy, Selected, Step};

use super::agreement;
use super::because::quoted;
use super::choice::{Choice, choose};
use super::defaults::{Defaults, is_idle};
use super::draft::Draft;
use super::evidence::{Facts, phase_path};
use super::{Cause, Finding};

/// What the mutating half makes of an object.
#[derive(Debug, Default)]
pub(super) struct Mutation<'p, 'a> {
    /// The status, where it is another one.
    pub(super) status: Option<Json<'a>>,
    /// The patch that leads there.
    pub(super) operations: Vec<PatchOperation>,
    pub(super) findings: Vec<Finding<'p>>,
    /// Defaults that were not set, by name: they would contradict the phase.
    pub(super) withheld: Vec<&'p str>,
}

/// Mutates an object: the subject's own, or the same with another status.
pub(super) fn mutate<'p, 'a>(
    selected: &Selected<'p>,
    subject: &Subject<'a>,
    object: &Object<'a>,
    now: i64,
) -> Mutation<'p, 'a> {
    // A list or a text in the place of a status is for the judge, not for a patch.
    if !matches!(object.status, None | Some(Json::Null | Json::Object(_))) {
        return Mutation::default();
    }
    let mutation = Mutation::default();
    let (changed, in_lists) = (None, Cell::new(0));
    let mut run = Run { selected, subject, now, base: object, changed, in_lists, mutation };
    run.restore();
    for (policy, step) in selected.steps() {
        match step {
            Step::Phase(rules) => PhaseStep { policy, rules, subject, now }.run(&mut run),
            Step::Default(default) => run.set_default(policy, default),
        }
    }
    Mutation { status: run.changed.and_then(|object| object.status), ..run.mutation }
}

/// Whether a patch applies to the object that it is for. The API server answers one that does not with a
/// 500 to the user, even with `failurePolicy: Ignore`.
pub(super) fn applies(object: &Object<'_>, operations: &[PatchOperation]) -> bool {
    let mut whole = json!({});
    if let (Some(status), Some(members)) = (&object.status, whole.as_object_mut()) {
        members.insert("status".to_owned(), status.to_value());
    }
    json_patch::patch(&mut whole, operations).is_ok()
}

/// One run over an object.
struct Run<'r, 'p, 'a> {
    selected: &'r Selected<'p>,
    subject: &'r Subject<'a>,
    now: i64,
    base: &'r Object<'a>,
    /// The object with the changes so far.
    changed: Option<Object<'a>>,
    /// Bytes of text that were put into lists.
    in_lists: Cell<usize>,
    mutation: Mutation<'p, 'a>,
}

impl<'p, 'a> Run<'_, 'p, 'a> {
    fn object(&self) -> &Object<'a> {
        self.changed.as_ref().unwrap_or(self.base)
    }

    fn facts<'s>(&'s self, policy: &'s Policy) -> Facts<'s, 'a> {
        let Subject { old, resource, .. } = self.subject;
        Facts::new(&policy.convention, self.object(), old.as_ref(), resource)
    }

    fn take(&mut self, finished: Option<(Json<'a>, Vec<PatchOperation>)>) {
        if let Some((status, operations)) = finished {
            self.changed = Some(self.object().with_status(Some(status)));
            self.mutation.operations.extend(operations);
        }
    }

    /// Puts back what this writer cannot remove.
    fn restore(&mut self) {
        let mut draft = Draft::new(self.base, &self.in_lists);
        for (_, policy) in self.selected.policies() {
            for path in &policy.preserve {
                restore(policy, path, self.subject, &mut draft);
            }
        }
        self.take(draft.finish());
    }

    /// Sets a default, unless it contradicts the phase: it says what is not known, and the writer, who has
    /// said more, may still say this too.
    fn set_default(&mut self, policy: &'p Policy, default: &'p Backfill) {
        if is_idle(default, self.object()) {
            return;
        }
        let facts = self.facts(policy);
        let mut draft = Draft::new(self.object(), &self.in_lists);
        let defaults = Defaults { facts: &facts, subject: self.subject, now: self.now };
        defaults.set(default, &mut draft);
        let Some(finished) = draft.finish() else { return };
        let next = self.object().with_status(Some(finished.0));
        if self.contradicts(&next) {
            self.mutation.withheld.push(&default.name);
        } else {
            self.mutation.operations.extend(finished.1);
            self.changed = Some(next);
        }
    }

    /// Whether the phase is contradicted, or refused by a rule, by what is new in an object.
    fn contradicts(&self, next: &Object<'a>) -> bool {
        let Subject { old, resource, .. } = self.subject;
        self.selected.policies().any(|(_, policy)| {
            let after = Facts::new(&policy.convention, next, old.as_ref(), resource);
            agreement::fell_out(&policy.convention, &self.facts(policy), &after)
        })
    }
}

/// Where the phase of a write comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Writer,
    Default,
    Imposed(Since),
    Repair,
}

/// The phase, and its time in step with it.
struct PhaseStep<'p, 's, 'a> {
    policy: &'p Policy,
    rules: &'p PhaseRules,
    subject: &'s Subject<'a>,
    now: i64,
}

impl<'p, 'a> PhaseStep<'p, '_, 'a> {
    fn run(&self, run: &mut Run<'_, 'p, 'a>) {
        let facts = run.facts(self.policy);
        let path = phase_path(self.rules, run.object());
        let mut draft = Draft::new(run.object(), &run.in_lists);
        let other_type = |value: &Json<'_>| !value.is_null() && value.as_str().is_none();
        if draft.get(path).is_some_and(other_type) {
            return; // The validating webhook rejects it.
        }
        let (phase, source, finding) = match choose(self.rules, &facts) {
            Choice::Imposed(phase) => {
                let since = phase.imposed.as_ref().map(|imposed| imposed.since);
                (Some(&*phase.name), since.map_or(Source::Default, Source::Imposed), None)
            }
            Choice::Default(default) => (default, Source::Default, None),
            Choice::Contradicted(phase) if self.repairs(phase) => {
                match agreement::repaired(self.rules, &facts) {
                    Some(repaired) => {
                        let finding = self.finding(phase, repaired, path, &facts);
                        (Some(repaired), Source::Repair, Some(finding))
                    }
                    None => (facts.phase, Source::Writer, None),
                }
            }
            Choice::Contradicted(_) | Choice::Written => (facts.phase, Source::Writer, None),
        };
        let Some(phase) = phase else { return };
        if facts.phase != Some(phase) {
            draft.set(path, phase.into());
        }
        self.keep_time(&facts, phase, source, &mut draft);
        let finished = draft.finish();
        run.mutation.findings.extend(finding);
        run.take(finished);
    }

    /// Whether a disagreement of this writer is repaired, and this write introduces it.
    fn repairs(&self, phase: &Phase) -> bool {
        let Subject { old, resource, writer, .. } = self.subject;
        let stored = agreement::stored_facts(self.policy, old.as_ref(), resource);
        let stood_before = |stored| agreement::stood_before(phase, self.rules, &stored);
        self.policy.disagreement_of(writer) == Action::Repair && !stored.is_some_and(stood_before)
    }

    fn finding(
        &self,
        phase: &'p Phase,
        repaired: &str,
        path: &Pointer,
        facts: &Facts<'_, '_>,
    ) -> Finding<'p> {
        Finding {
            policy: &self.policy.name,
            rule: &phase.rule,
            field: path.field().to_owned(),
            cause: Cause::Invalid,
            message: format!("set to {}: {}", quoted(repaired), agreement::reason(phase, facts)),
            action: Action::Repair,
            others: Vec::new(),
        }
    }

    /// The time of the phase's last change.
    ///
    /// A phase that stayed keeps its time even when the writer drops it; one that changed gets a
    /// new time unless the writer gave one. The clock is used only for a change in this very request:
    /// stored, it is restored at the writer's next write, so that no write follows from it.
    fn keep_time(
        &self,
        facts: &Facts<'_, '_>,
        phase: &str,
        source: Source,
        draft: &mut Draft<'_, '_>,
    ) {
        let Some(time) = &self.rules.transition_time else { return };
        if !time.in_step {
            return;
        }
        let path = &time.path;
        let seen = draft.get(path).filter(|seen| !seen.is_null());
        if seen.is_some_and(|seen| seen.as_str().is_none()) {
            return; // The validating webhook rejects it.
        }
        let written = seen.and_then(Json::as_str).filter(|time| !time.is_empty());
        let old = self.subject.old.as_ref();
        let stored = old
            .and_then(|old| in_status(old.status.as_ref(), path))
            .and_then(Json::as_str)
            .filter(|time| !time.is_empty());
        let time = if facts.old_phase == Some(phase) {
            // A time that came with another phase, which did not stay, is not this one's.
            let misplaced =
                |written, stored: &str| source != Source::Writer && !same_instant(written, stored);
            match (written, stored) {
                (None, Some(stored)) => stored.to_owned(),
                (Some(written), Some(stored)) if misplaced(written, stored) => stored.to_owned(),
                _ => return,
            }
        } else {
            // An object that never had a phase and now has the default one has made no transition,
            // whether the writer or an earlier call of this webhook put it there.
            if facts.old_phase.is_none() && self.rules.default.as_deref() == Some(phase) {
                return;
            }
            // With a phase that another one was imposed over, it is that one's.
            let displaced = matches!(source, Source::Imposed(_)) && facts.phase != Some(phase);
            let given = written
                .is_some_and(|written| stored.is_none_or(|stored| !same_instant(written, stored)));
            if given && !displaced {
                return;
            }
            match self.time_of_change(source) {
                Some(time) => time,
                None => return,
            }
        };
        if written != Some(time.as_str()) {
            draft.set(path, time.into());
        }
    }

    fn time_of_change(&self, source: Source) -> Option<String> {
        let metadata = &self.subject.object.metadata;
        match source {
            Source::Imposed(Since::DeletionTimestamp) => {
                metadata.deletion_timestamp.as_deref().map(str::to_owned)
            }
            Source::Imposed(Since::CreationTimestamp) => {
                metadata.creation_timestamp.as_deref().map(str::to_owned)
            }
            _ => Timestamp::from_second(self.now).ok().map(|now| now.to_string()),
        }
    }
}

/// Puts back what a writer who is not its owner left out. Not where the writer gave another value:
/// that is for the validating webhook.
fn restore(policy: &Policy, path: &Pointer, subject: &Subject<'_>, draft: &mut Draft<'_, '_>) {
    let stored = subject.old.as_ref().and_then(|old| in_status(old.status.as_ref(), path));
    let Some(stored) = stored.filter(|stored| !stored.is_null() && stored.is_whole()) else {
        return;
    };
    let mut owners = policy.owners.iter().filter(|owner| owner.path.contains(path));
    let missing = draft.get(path).is_none_or(Json::is_null);
    if missing && !owners.any(|owner| owner.writers.include(&subject.writer)) {
        draft.set(path, stored.to_value());
    }
}
