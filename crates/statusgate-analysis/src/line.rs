//! The list of everything that can be wrong with a status: the page of a convention, `explain RULE` and
//! lint read it. The engine judges without it.

use std::borrow::Cow;

use crate::facts::Question;
use crate::words;
use statusgate_core::language::{Condition, Predicate};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::{
    ConditionList, ConditionType, Convention, Generation, PhaseRules, Presence, Sanction,
    TransitionTime, Trigger,
};
use statusgate_core::policy::{Check, Disposition, Field, Policy};

/// One way to violate a rule.
#[derive(Clone, Debug)]
pub struct Line<'c> {
    /// The rule id.
    pub id: &'c str,
    /// What happens.
    pub action: Disposition,
    /// Where a page lists it.
    pub scope: Scope,
    /// A clause: `condition Ready is missing`.
    pub sentence: String,
    /// The condition type or phase that it is about, with its meaning.
    pub subject: Option<(&'c str, &'c str)>,
    /// The writes that the rule judges, if it declares them.
    pub judges: Option<&'c Trigger>,
    /// The violation as a predicate, if it is one.
    pub(crate) proof: Option<Clause<'c>>,
}

/// Where a page lists a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The list of conditions with this index.
    List(usize),
    /// The generations.
    Generation,
    /// The phase.
    Phase,
    /// A table with columns of its own, or none.
    Other,
}

/// A rule that is violated if a predicate definitely holds.
#[derive(Clone, Debug)]
pub struct Clause<'c> {
    /// The rule id.
    pub id: &'c str,
    /// The violation.
    pub(crate) when: Cow<'c, Predicate>,
    /// The list of its conditions, if it is not the first one.
    pub(crate) list: Option<&'c ConditionList>,
    /// Whether it judges each element of the list.
    pub(crate) of_element: bool,
    /// What happens.
    pub action: Disposition,
    /// The writes that it judges, if it declares them.
    pub(crate) trigger: Option<&'c Trigger>,
    /// The field that its message names, if it is a rule.
    pub(crate) path: Option<&'c Pointer>,
}

/// The clauses of a convention, in the order in which the engine judges them.
pub(crate) fn clauses(convention: &Convention) -> Vec<Clause<'_>> {
    lines(convention).into_iter().filter_map(|line| line.proof).collect()
}

/// The clauses that are rules.
pub fn rules(convention: &Convention) -> impl Iterator<Item = Clause<'_>> {
    convention.rules.iter().map(|rule| Clause {
        id: &rule.rule,
        when: Cow::Borrowed(&rule.when),
        list: rule.list.as_ref().and_then(|path| convention.list_of_any_version(path)),
        of_element: false,
        action: rule.action,
        trigger: rule.trigger.as_ref(),
        path: rule.path.as_deref(),
    })
}

impl<'c> Line<'c> {
    /// Sets the violation as a predicate.
    fn prove(&mut self, when: Cow<'c, Predicate>, list: &'c ConditionList, of_element: bool) {
        let (id, action, list) = (self.id, self.action, Some(list));
        self.proof = Some(Clause { id, when, list, of_element, action, trigger: None, path: None });
    }
}

impl Clause<'_> {
    /// What it asks of an object, or of an element.
    pub fn question(&self) -> Question<'_> {
        Question { predicate: &self.when, list: self.list, of_element: self.of_element }
    }

    /// Whether it can reject a write: always, or as a disagreement under a policy with `disagreement: Deny`.
    pub(crate) fn can_reject(&self) -> bool {
        self.action.can_deny()
    }
}

/// Everything that can be wrong under a convention, in the order in which the engine judges it.
pub fn lines(convention: &Convention) -> Vec<Line<'_>> {
    let mut lines = Lines { lines: Vec::new(), scope: Scope::Other, subject: None };
    let shape = "the status is not an object".to_owned();
    lines.add(&convention.status_rule, Disposition::Deny, shape);
    // Two lists may have conditions of the same types.
    let several = convention.conditions.len() > 1;
    for (index, list) in convention.conditions.iter().enumerate() {
        lines.scope = Scope::List(index);
        lines.list(list, several);
    }
    if let Some(rules) = &convention.generation {
        lines.scope = Scope::Generation;
        lines.generation(rules);
    }
    if let Some(rules) = &convention.phase {
        lines.scope = Scope::Phase;
        lines.phase(rules);
    }
    lines.scope = Scope::Other;
    lines.fields(&convention.fields);
    for (rule, clause) in convention.rules.iter().zip(rules(convention)) {
        let line = lines.add(&rule.rule, rule.action, rule.when.in_words());
        (line.judges, line.proof) = (clause.trigger, Some(clause));
    }
    lines.lines
}

/// Everything that can be wrong under a policy in addition to its convention.
pub fn lines_of_policy(policy: &Policy) -> Vec<Line<'_>> {
    let mut lines = Lines { lines: Vec::new(), scope: Scope::Other, subject: None };
    lines.fields(&policy.fields);
    for owner in &policy.owners {
        let Some(rule) = &policy.owner_rule else { continue };
        let writers = owner.writers.users.iter().chain(&owner.writers.groups);
        let writers = words::any_of(writers.map(ToString::to_string));
        let field = owner.path.as_deref().map(|path| path.field().to_owned());
        let conditions = owner.conditions.iter().map(|kind| format!("condition {kind}"));
        for owned in field.into_iter().chain(conditions) {
            let what = format!("a writer other than {writers} changes {owned}");
            lines.add(rule, Disposition::Deny, what);
        }
    }
    for rule in &policy.rules {
        let what = format!("the CEL expression of {} is false", rule.name);
        lines.add(&rule.id, rule.action, what).judges = Some(&rule.trigger);
    }
    lines.lines
}

struct Lines<'c> {
    lines: Vec<Line<'c>>,
    /// Those of the next lines.
    scope: Scope,
    subject: Option<(&'c str, &'c str)>,
}

impl<'c> Lines<'c> {
    /// Adds a line, and returns it.
    fn add(&mut self, id: &'c str, action: Disposition, sentence: String) -> &mut Line<'c> {
        let (at, scope, subject) = (self.lines.len(), self.scope, self.subject);
        self.lines.push(Line { id, action, scope, sentence, subject, judges: None, proof: None });
        &mut self.lines[at]
    }

    /// Adds a line, if there is such a rule.
    fn given(&mut self, sanction: Option<&'c Sanction>, sentence: impl FnOnce() -> String) {
        if let Some(Sanction { rule, action }) = sanction {
            self.add(rule, *action, sentence());
        }
    }

    /// Adds lines that a page shows elsewhere.
    fn elsewhere(&mut self, add: impl FnOnce(&mut Self)) {
        let scope = std::mem::replace(&mut self.scope, Scope::Other);
        add(self);
        self.scope = scope;
    }

    fn fields(&mut self, fields: &'c [Field]) {
        for Field { path, check } in fields {
            self.value(path.field(), check);
        }
    }

    fn value(&mut self, field: &str, check: &'c Check) {
        let what = format!("{field} is not as required: {}", words::check(check));
        self.add(&check.rule, check.action(), what);
    }

    fn list(&mut self, list: &'c ConditionList, several: bool) {
        let path = if list.is_map() { list.root().field() } else { list.path.field() };
        let shape = if list.is_map() { "an object" } else { "a list" };
        let shape = format!("{path} is not {shape}, or an element is not an object");
        self.add(&list.shape_rule, Disposition::Deny, shape);
        self.given(list.duplicate.as_ref(), || {
            format!("two elements of {path} have the same {}", list.key().join(" and "))
        });
        let most = list.max_items.unwrap_or_default();
        self.given(list.too_long.as_ref(), || format!("{path} has more than {most} elements"));
        if let Some(history) = &list.history {
            self.given(history.rewritten.as_ref(), || {
                format!("a stored element of {path} changes")
            });
            self.given(history.repeated.as_ref(), || {
                let distinct = history.distinct.iter().flat_map(|names| names.to_vec());
                let distinct = words::any_of(distinct);
                format!("a new element of {path} does not differ from the last one in {distinct}")
            });
        }
        self.elsewhere(|lines| {
            list.keys.iter().for_each(|check| lines.value(&format!("a key of {path}"), check));
            for (member, checks) in list.members.iter() {
                checks.iter().for_each(|check| lines.value(&format!("{path}[].{member}"), check));
            }
        });
        self.given(list.other_members.as_ref(), || {
            let names = words::any_of(list.members.iter().map(|(name, _)| name.clone()));
            format!("an element of {path} has a member other than {names}")
        });
        let types = || list.types.values().map(|kind| kind.name.clone());
        self.given(list.other_types.as_ref(), || {
            format!("an element of {path} has a type other than {}", words::any_of(types()))
        });
        self.given(list.misspelled.as_ref(), || {
            format!("a new type or reason in {path} differs in one letter from a known one")
        });
        self.given(list.reason_kept.as_ref(), || {
            format!("a status in {path} changes, but neither its reason nor its message")
        });
        self.given(list.order.as_ref(), || {
            let names = types().collect::<Vec<_>>().join(", ");
            format!("the types in {path} are not in the order {names}")
        });
        for kind in list.types.values() {
            self.subject = Some((&kind.name, &kind.meaning));
            let of_list = if several { format!(" in {path}") } else { String::new() };
            self.condition(list, kind, &format!("{} {}{of_list}", list.noun(), kind.name));
        }
        self.subject = None;
        if let Some(times) = &list.transition_time {
            self.times(&format!("of {} in {path}", list.a_noun()), times);
        }
        self.elsewhere(|lines| {
            for rule in &list.each {
                let what = format!("an element of {path}: {}", rule.when.0.in_words());
                let line = lines.add(&rule.rule, rule.action, what);
                line.prove(Cow::Borrowed(&rule.when.0), list, true);
            }
        });
    }

    fn condition(&mut self, list: &'c ConditionList, kind: &'c ConditionType, name: &str) {
        for (what, presence, present) in
            [("missing", &kind.missing, false), ("present", &kind.present, true)]
        {
            let Some((when, sanction)) = presence.as_ref().map(Presence::parts) else { continue };
            let also = when.map(|when| format!(" and {}", when.in_words()));
            let what = format!("{name} is {what}{}", also.unwrap_or_default());
            let condition = Condition { present: Some(present), ..Condition::of(kind.sample()) };
            let parts = std::iter::once(condition.into()).chain(when.cloned());
            let line = self.add(&sanction.rule, sanction.action, what);
            line.prove(Cow::Owned(Predicate::all(parts)), list, false);
        }
        self.given(kind.not_true.as_ref(), || format!("{name} is present but not True"));
        self.given(kind.reverted.as_ref(), || format!("{name} was True and is no longer"));
        if let Some(summary) = &kind.summary {
            self.given(summary.better.as_ref(), || {
                format!("{name} is better than another one that it summarizes")
            });
            self.given(summary.worse.as_ref(), || format!("{name} is worse than all others"));
            self.given(summary.other_reason.as_ref(), || {
                format!("{name} has reason and message of none that is as bad")
            });
        }
        self.elsewhere(|lines| {
            if let Some((when, sanction)) = kind.removed.as_ref().map(Presence::parts) {
                let also = when.map(|when| format!(" and {}", when.in_words()));
                let what = format!("{name} was removed by the write{}", also.unwrap_or_default());
                lines.add(&sanction.rule, sanction.action, what);
            }
            let Some(reasons) = &kind.reasons else { return };
            lines.given(reasons.action.as_ref(), || {
                let lists = reasons.lists().filter(|(_, names)| !names.is_empty());
                let lists = lists.map(|(status, names)| {
                    format!("{} with {}", words::any_of(names.iter().cloned()), status.name())
                });
                let lists = lists.collect::<Vec<_>>().join("; ");
                format!("{name} has a reason of another status: {lists}")
            });
            lines.given(reasons.other.as_ref(), || {
                let all = words::any_of(reasons.all().map(str::to_owned));
                format!("{name} has another reason than {all}")
            });
        });
    }

    fn times(&mut self, of_element: &str, times: &'c TransitionTime) {
        let member = &times.member;
        let of = |what: String| format!("{of_element}: {what}");
        self.given(times.kept.as_ref(), || {
            let on = words::any_of(times.must_move_on.iter().cloned());
            of(format!("{on} changed and {member} did not move"))
        });
        self.given(times.moved.as_ref(), || match times.may_move_on.join(", ") {
            // No member may move it, so every move is a violation.
            on if on.is_empty() => of(format!("{member} moved")),
            on => of(format!("{member} moved and nothing of {on} changed")),
        });
        let differ = times.backwards.as_ref() != times.unchanged();
        let with_a_change = if differ { " with a change" } else { "" };
        self.given(times.backwards.as_ref(), || of(format!("{member} went back{with_a_change}")));
        let unchanged = times.unchanged().filter(|_| differ);
        self.given(unchanged, || of(format!("{member} went back without a change")));
        self.given(times.future.as_ref(), || {
            of(format!("{member} lies more than {} s in the future", times.skew()))
        });
    }

    fn generation(&mut self, rules: &'c Generation) {
        const AHEAD: &str = "a generation that does not exist yet";
        let action = |sanction: &Option<Sanction>| sanction.as_ref().map(|found| found.action);
        let differ = action(&rules.ahead) != action(&rules.ahead_at_first);
        let at_first = rules.ahead_at_first.as_ref().filter(|_| differ);
        self.given(rules.ahead.as_ref(), || AHEAD.to_owned());
        self.given(at_first, || format!("{AHEAD}, if no generation was stored"));
        self.given(rules.decreased.as_ref(), || {
            "a lower generation than the stored one".to_owned()
        });
        self.given(rules.reset.as_ref(), || "the object's own generation reset to 0".to_owned());
        let least = rules.minimum.unwrap_or_default();
        self.given(rules.below.as_ref(), || format!("below {least}"));
    }

    fn phase(&mut self, rules: &'c PhaseRules) {
        let path = rules.path.field();
        let names = words::any_of(rules.phases.iter().map(|phase| phase.name.clone()));
        self.add(&rules.value_rule, Disposition::Deny, format!("{path} is not {names}"));
        self.elsewhere(|lines| {
            for phase in &rules.phases {
                let Some(necessary) = &phase.necessary else { continue };
                let (name, necessary) = (&phase.name, necessary.in_words());
                lines.subject = Some((name, &phase.meaning));
                let what = format!("{path} is {name}, but this is false: {necessary}");
                lines.add(&phase.rule, Disposition::Disagreement, what);
            }
            lines.subject = None;
        });
        let moves = rules.moves.as_ref().and_then(|moves| moves.action.as_ref());
        self.given(moves, || {
            format!("{path} changes to a phase that may not follow the stored one")
        });
        if let Some(time) = &rules.transition_time {
            let field = time.path.field();
            self.given(time.moved.as_ref(), || format!("{field} changes, but {path} does not"));
            let kept = time.kept.as_ref().filter(|_| !time.in_step());
            self.given(kept, || format!("{path} changes, but {field} does not"));
        }
        if let Some(reason) = &rules.reason {
            let field = reason.path.field();
            self.given(reason.action.as_ref(), || format!("{field} is not a reason of the phase"));
        }
    }
}
