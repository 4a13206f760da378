//! The mutating half: restores, the phase, its time, and defaults. Run on its own result it finds
//! nothing to do.

use jiff::Timestamp;

use crate::model::{Json, Object, Pointer, Subject, in_status, same_instant};
use crate::policy::convention::{Backfill, PhaseRules, Since};
use crate::policy::{Action, Policy};

use super::because::quoted;
use super::draft::Draft;
use super::evidence::{Facts, Truth, phase_path};
use super::fill::Filler;
use super::{Cause, Finding, agreement};

/// Puts back what this writer may not drop.
pub(crate) fn restore(policy: &Policy, subject: &Subject<'_>, draft: &mut Draft<'_, '_>) {
    if draft.is_workable() {
        for path in &policy.preserve {
            restore_one(policy, path, subject, draft);
        }
    }
}

/// What a policy may do with the phase of an object.
#[derive(Clone, Copy)]
pub(crate) enum Say<'v> {
    /// Everything. `refused` tells whether another policy takes the phase as written, if there is one,
    /// and would refuse another one there.
    All { refused: &'v dyn Fn(Option<&str>, &str) -> bool },
    /// Another one repairs it: a default where that one has none, and the time of its own convention.
    Beside { default: bool, refused: &'v dyn Fn(Option<&str>, &str) -> bool },
    /// Nothing: another one imposes it.
    Nothing,
}

/// Sets the phase and its time in the draft of `object`, which is the subject's own with what earlier
/// rounds changed. `facts` are those of `object`.
pub(crate) fn set_phase<'p>(
    policy: &'p Policy,
    subject: &Subject<'_>,
    object: &Object<'_>,
    now: i64,
    (facts, say): (&Facts<'_, '_>, Say<'_>),
    draft: &mut Draft<'_, '_>,
    findings: &mut Vec<Finding<'p>>,
) {
    let Some(rules) = policy.convention.phase.as_ref() else { return };
    let path = phase_path(rules, object);
    let current = draft.get(path);
    let (phase, source) = match (current.is_null(), current.as_str()) {
        (true, _) | (false, Some("")) => (None, Source::Default),
        // What another policy has put there in this round is not the writer's.
        (false, Some(text)) if facts.phase != Some(text) => (Some(text.to_owned()), Source::Repair),
        (false, Some(text)) => (Some(text.to_owned()), Source::Writer),
        // Not a text: the validating webhook says so.
        (false, None) => (None, Source::Nobody),
    };
    if source != Source::Nobody {
        let step = PhaseStep { policy, rules, path, subject, now, say };
        step.run(facts, phase.as_deref(), source, draft, findings);
    }
}

/// Fills in the defaults of one policy, but for those that are `barred`, and remembers which had an effect.
pub(crate) fn fill<'p>(
    policy: &'p Policy,
    filler: &Filler<'_, '_, '_>,
    barred: &[&'p Backfill],
    filled: &mut Vec<&'p Backfill>,
    draft: &mut Draft<'_, '_>,
) -> bool {
    let is_in = |list: &[&Backfill], default| list.iter().any(|one| std::ptr::eq(*one, default));
    let before = draft.len();
    for default in &policy.backfill {
        if is_in(barred, default) {
            continue;
        }
        let before = draft.len();
        filler.fill(default, draft);
        if draft.len() > before && !is_in(filled, default) {
            filled.push(default);
        }
    }
    draft.len() > before
}

/// Whether a policy imposes a phase on this object.
pub(crate) fn imposes(policy: &Policy, subject: &Subject<'_>, object: &Object<'_>) -> bool {
    let Some(rules) = &policy.convention.phase else { return false };
    let facts = Facts::new(&policy.convention, object, subject.old.as_ref(), &subject.resource);
    imposed(rules, &facts).is_some()
}

/// The phase that is set whatever the writer says.
fn imposed<'p>(rules: &'p PhaseRules, facts: &Facts<'_, '_>) -> Option<(&'p str, Since)> {
    rules.phases.iter().find_map(|phase| {
        let imposed = phase.imposed.as_ref()?;
        (facts.ask(&imposed.when) == Truth::True).then_some((phase.name.as_str(), imposed.since))
    })
}

/// Where the phase of a write comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Writer,
    Default,
    Imposed(Since),
    Repair,
    Nobody,
}

/// Setting the phase, and keeping its time in step.
struct PhaseStep<'p, 's, 'a> {
    policy: &'p Policy,
    rules: &'p PhaseRules,
    /// Where this object has its phase.
    path: &'p Pointer,
    subject: &'s Subject<'a>,
    now: i64,
    say: Say<'s>,
}

impl<'p> PhaseStep<'p, '_, '_> {
    fn run(
        &self,
        facts: &Facts<'_, '_>,
        written: Option<&str>,
        source: Source,
        draft: &mut Draft<'_, '_>,
        findings: &mut Vec<Finding<'p>>,
    ) {
        let rules = self.rules;
        if matches!(self.say, Say::Nothing) {
            return;
        }
        let free = |phase: &str| match self.say {
            Say::All { refused } => written == Some(phase) || !refused(written, phase),
            Say::Beside { default, refused } => default && !refused(written, phase),
            Say::Nothing => false,
        };
        let is_holder = matches!(self.say, Say::All { .. });
        let imposed = if is_holder { imposed(rules, facts) } else { None };
        let chosen = match (imposed.filter(|(phase, _)| free(phase)), written) {
            (Some((phase, since)), _) => (phase, Source::Imposed(since)),
            (None, None) => match rules.default.as_deref().filter(|default| free(default)) {
                Some(default) => (default, Source::Default),
                None => return,
            },
            (None, Some(written)) => {
                let repair = || self.repair(facts, written, &free, findings);
                match is_holder.then(repair).flatten() {
                    Some(repaired) => (repaired, Source::Repair),
                    None => return self.keep_time(facts, written, source, draft),
                }
            }
        };
        let (phase, source) = chosen;
        if written != Some(phase) {
            draft.set(self.path, phase.into());
        }
        self.keep_time(facts, phase, source, draft);
    }

    /// The phase to put in the place of the written one, where this write brings in a disagreement
    /// and this writer's disagreements are repaired.
    fn repair(
        &self,
        facts: &Facts<'_, '_>,
        written: &str,
        free: &dyn Fn(&str) -> bool,
        findings: &mut Vec<Finding<'p>>,
    ) -> Option<&'p str> {
        let facts = facts.supposing(Some(written));
        let phase = agreement::contradicted(self.rules, &facts)?;
        if self.policy.disagreement_of(&self.subject.writer) != Action::Repair {
            return None;
        }
        let resource = &self.subject.resource;
        let stored = agreement::stored_facts(self.policy, self.subject.old.as_ref(), resource);
        if stored.is_some_and(|stored| agreement::stood_before(phase, self.rules, &stored)) {
            return None;
        }
        let repaired = agreement::repaired(self.rules, &facts).filter(|phase| free(phase))?;
        let reason = agreement::reason(phase, &facts);
        findings.push(Finding {
            policy: &self.policy.name,
            rule: &phase.rule,
            field: self.path.field().to_owned(),
            cause: Cause::Invalid,
            message: format!("set to {}: {reason}", quoted(repaired)),
            action: Action::Repair,
            others: Vec::new(),
        });
        Some(repaired)
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
        let seen = draft.get(path);
        let written = seen.as_str().filter(|time| !time.is_empty());
        if written.is_none() && !seen.is_null() && seen.as_str().is_none() {
            return; // Of another type: the validating webhook says so.
        }
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
fn restore_one(policy: &Policy, path: &Pointer, subject: &Subject<'_>, draft: &mut Draft<'_, '_>) {
    let stored = subject.old.as_ref().and_then(|old| in_status(old.status.as_ref(), path));
    let Some(stored) = stored.filter(|stored| !stored.is_null() && stored.is_whole()) else {
        return;
    };
    let mut owners = policy.owners.iter().filter(|owner| owner.path.contains(path));
    if draft.get(path).is_null() && !owners.any(|owner| owner.writers.include(&subject.writer)) {
        draft.set(path, stored.to_value());
    }
}
