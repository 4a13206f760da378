//! The answers that predicates distinguish for one fact.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::sample;
use super::super::{Answer, Fact, Represents};
use super::{Collector, Wanted};
use statusgate_core::language::Observed;
use statusgate_core::model::{ConditionStatus, Pointer};
use statusgate_core::policy::Check;

impl Collector<'_> {
    pub(super) fn answers(&self, fact: &Fact, wanted: &Wanted<'_>) -> Vec<Answer> {
        match fact {
            Fact::Deleting => vec![Answer::Flag(false), Answer::Flag(true)],
            Fact::Phase { .. } => {
                let phases = self.phase_names().into_iter().map(Answer::named);
                std::iter::once(Answer::Absent).chain(phases).collect()
            }
            Fact::Condition { list, kind, .. } => self.condition_answers(list.as_ref(), kind),
            Fact::Observed => {
                let observed = [Observed::Behind, Observed::Current, Observed::Ahead];
                let known = observed.into_iter().map(Answer::Observed);
                std::iter::once(Answer::Absent).chain(known).collect()
            }
            Fact::Length(_) => {
                // No list of a scene is longer.
                let counts = wanted.counts.iter().filter(|count| **count <= sample::LONGEST);
                counts.copied().map(Answer::Count).collect()
            }
            Fact::Gates(_) => {
                // No requirement has the same result as a good condition.
                let answers = [None, Some(true), Some(false)].map(Answer::Gate);
                std::iter::once(Answer::NotAsked).chain(answers).collect()
            }
            Fact::Resource => {
                let named =
                    wanted.plurals.iter().map(|plural| Answer::named(plural.as_str().into()));
                let (value, represents) = (sample::PLURAL.into(), Represents::Others);
                named.chain([Answer::Value { value, represents }]).collect()
            }
            Fact::Member { name, .. } if name == "type" => self.type_answers(wanted),
            Fact::Field { path, .. } => {
                self.value_answers(wanted, &sample::checks_of(self.convention, path))
            }
            Fact::Member { name, .. } => {
                let checks = self.element_of.map(|list| sample::checks_of_member(list, name));
                self.value_answers(wanted, &checks.unwrap_or_default())
            }
            Fact::OfCondition { list, of } => {
                let list =
                    list.as_ref().and_then(|path| self.convention.list_at(path, self.version));
                let checks = list.map(|list| sample::checks_of_member(list, &of.member));
                self.value_answers(wanted, &checks.unwrap_or_default())
            }
        }
    }

    fn condition_answers(&self, list: Option<&Pointer>, kind: &str) -> Vec<Answer> {
        use ConditionStatus::{False, True, Unknown};
        let list = list.and_then(|path| self.convention.list_at(path, self.version));
        // The stored condition has the same reasons as the new one, so that both can be equal.
        let twins = self.facts.iter().filter(
            |(fact, _)| matches!(fact, Fact::Condition { kind: other, .. } if other == kind),
        );
        let mut reasons: BTreeSet<String> =
            twins.flat_map(|(_, wanted)| wanted.reasons.iter().cloned()).collect();
        if !reasons.is_empty() {
            reasons.insert(String::new());
        }
        let reasons: Vec<String> = reasons.into_iter().collect();
        let mut answers = vec![Answer::Absent];
        for status in [True, False, Unknown] {
            let named = reasons.iter().map(|reason| (reason.clone(), Represents::Itself));
            let rest = if reasons.is_empty() { Represents::Anything } else { Represents::Others };
            let other = (sample::reason(list, kind, status, &reasons), rest);
            for (reason, represents) in named.chain([other]) {
                answers.push(Answer::Condition { status, reason, represents });
            }
        }
        answers
    }

    /// The types of the element: those that the list declares, those that predicates name, and another.
    fn type_answers(&self, wanted: &Wanted<'_>) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::new();
        let mut push = |name: String, represents: Represents| {
            let answer = Answer::Value { value: name.into(), represents };
            if !answers.contains(&answer) {
                answers.push(answer);
            }
        };
        let known = self.element_of.iter().flat_map(|list| list.types.values());
        known.for_each(|kind| push(kind.sample(), Represents::Itself));
        if self.element_of.is_some_and(|list| !list.polarity_from.is_empty()) {
            sample::GATES.iter().for_each(|(name, _)| push((*name).to_owned(), Represents::Itself));
        }
        for value in &wanted.literals {
            value.as_str().into_iter().for_each(|name| push(name.to_owned(), Represents::Itself));
        }
        push(sample::TYPE.to_owned(), Represents::Others);
        answers
    }

    fn value_answers(&self, wanted: &Wanted<'_>, checks: &[&Check]) -> Vec<Answer> {
        let named = wanted.literals.iter().map(|value| (value.clone(), Represents::Itself));
        let mut values: Vec<(Value, Represents)> = named.collect();
        let rest =
            if wanted.literals.is_empty() { Represents::Anything } else { Represents::Others };
        if wanted.pair || wanted.ordered {
            let count = self.compared(wanted).max(2);
            let number = wanted.number || sample::is_number(checks, &wanted.literals);
            let more = if wanted.ordered && number {
                around(&wanted.literals, count)
            } else {
                sample::several(checks, count, wanted.ordered)
            };
            values.extend(more.into_iter().map(|value| (value, Represents::Itself)));
        } else if wanted.future {
            values.push((sample::PAST.into(), Represents::Itself));
        } else {
            let other = sample::other(checks, &wanted.literals, &wanted.patterns);
            values.extend(other.map(|value| (value, rest)));
        }
        if wanted.future {
            values.push((sample::FUTURE.into(), Represents::Itself));
        }
        let mut answers = vec![Answer::Absent];
        for (value, represents) in values {
            if !answers.iter().any(|known| known.value() == Some(&value)) {
                answers.push(Answer::Value { value, represents });
            }
        }
        answers
    }
}

/// Up to `count` numbers below, between and above the named ones.
fn around(named: &[Value], count: usize) -> Vec<Value> {
    let mut ends: Vec<i64> = named.iter().filter_map(Value::as_i64).collect();
    ends.sort_unstable();
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let (Some(least), Some(most)) = (ends.first(), ends.last()) else {
        return (1..=count).map(Value::from).collect();
    };
    let above = |end: i64| (1..=count).map(move |step| end.saturating_add(step));
    let below = (1..=count).map(|step| least.saturating_sub(step));
    let between = ends.windows(2).flat_map(|ends| {
        let (from, to) = (ends[0], ends[1]);
        above(from).filter(move |number| *number < to)
    });
    between.chain(below).chain(above(*most)).map(Value::from).collect()
}
