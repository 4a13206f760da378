//! Collects the facts that predicates query into a space.

use std::collections::BTreeSet;

use indexmap::{IndexMap, IndexSet};
use serde_json::Value;

use super::sample;
use super::{Answer, Fact, Question, Represents, Space};
use crate::language::{self, Asks, Bound, Glob, MemberOf, Observed, Pattern, Reference, Span};
use crate::model::{ConditionStatus, Pointer};
use crate::policy::Check;
use crate::policy::convention::{ConditionList, Convention};

/// Collects the facts that predicates query.
pub(crate) struct Collector<'c> {
    convention: &'c Convention,
    version: &'c str,
    facts: IndexMap<Fact, Wanted<'c>>,
    /// The conditions with a query for a change.
    changed: BTreeSet<String>,
    /// The list with the elements that the rules judge.
    element_of: Option<&'c ConditionList>,
    /// The list of the current predicate; `None` for the first list.
    list: Option<&'c ConditionList>,
}

/// What predicates distinguish about one fact.
#[derive(Default)]
struct Wanted<'c> {
    /// The reasons of a condition.
    reasons: BTreeSet<String>,
    /// The plurals of a resource.
    plurals: BTreeSet<String>,
    /// The numbers of items in a list.
    counts: BTreeSet<usize>,
    literals: Vec<Value>,
    patterns: Vec<&'c Pattern>,
    /// Whether the value is compared with another one.
    pair: bool,
    /// Whether predicates compare the order of the two.
    ordered: bool,
    /// Whether it is compared as a number.
    number: bool,
    /// Whether predicates compare the time with now.
    future: bool,
    /// The facts that are compared with this one, by index.
    linked: Vec<usize>,
}

impl<'c> Collector<'c> {
    pub(crate) fn new(convention: &'c Convention, version: &'c str) -> Self {
        Self {
            convention,
            version,
            facts: IndexMap::new(),
            changed: BTreeSet::new(),
            element_of: None,
            list: None,
        }
    }

    /// Adds the facts of a predicate.
    pub(crate) fn add(&mut self, question: &Question<'c>) {
        if question.of_element {
            self.element_of = question.list;
            if !question.list.is_some_and(ConditionList::is_map) {
                // Polarity, reasons and members depend on the type.
                self.fact(Fact::Member { old: false, name: "type".to_owned() });
            }
        }
        self.list = question.list.filter(|list| !list.is_map());
        question.predicate.asks(self);
    }

    /// Adds a fact, and returns its index.
    pub(crate) fn fact(&mut self, fact: Fact) -> usize {
        let entry = self.facts.entry(fact);
        let at = entry.index();
        entry.or_default();
        at
    }

    fn list(&self) -> Option<&'c ConditionList> {
        self.list.or_else(|| self.convention.primary_conditions(self.version))
    }

    fn condition_fact(&mut self, old: bool, kind: &str) -> usize {
        let list = self.list().map(|list| (*list.path).clone());
        self.fact(Fact::Condition { old, list, kind: kind.to_owned() })
    }

    fn link(&mut self, one: usize, other: usize) {
        self.facts[one].linked.push(other);
        self.facts[other].linked.push(one);
    }

    /// The fact of a reference. The path of the phase is always [`Fact::Phase`].
    fn reference(&mut self, reference: &Reference) -> usize {
        let phase = self.convention.phase.as_ref();
        let field = |old, path: &Pointer| match phase {
            Some(phase) if phase.path == *path => Fact::Phase { old },
            _ => Fact::Field { old, path: path.clone() },
        };
        let fact = match reference {
            Reference::Field(path) => field(false, path),
            Reference::OldField(path) => field(true, path),
            Reference::Member(name) => Fact::Member { old: false, name: name.clone() },
            Reference::OldMember(name) => Fact::Member { old: true, name: name.clone() },
            Reference::OfCondition(of) => {
                let list = self.list().map(|list| (*list.path).clone());
                Fact::OfCondition { list, of: of.clone() }
            }
        };
        self.fact(fact)
    }

    /// The space of all facts. Tables show them in this order: the circumstances, the conditions, the rest.
    pub(crate) fn into_space(mut self) -> Space {
        self.share();
        self.match_patterns();
        let answers = |(fact, wanted): (&Fact, &_)| (fact.clone(), self.answers(fact, wanted));
        let mut facts: IndexMap<Fact, Vec<Answer>> = self.facts.iter().map(answers).collect();
        facts.sort_by_key(|fact, _| rank(fact));
        Space {
            facts,
            element_of: self.element_of.map(|list| (*list.path).clone()),
            changed: self.changed.len(),
            touched: false,
            open: self.facts.iter().any(|(fact, wanted)| self.is_open(fact, wanted)),
        }
    }

    /// Gives references that are compared the same values.
    fn share(&mut self) {
        for _ in 0..self.facts.len() {
            for at in 0..self.facts.len() {
                for other in self.facts[at].linked.clone() {
                    let Wanted { pair, ordered, number, .. } = self.facts[at];
                    let literals = self.facts[at].literals.clone();
                    let patterns = self.facts[at].patterns.clone();
                    let phase = matches!(self.facts.get_index(at), Some((Fact::Phase { .. }, _)));
                    let phases = if phase { self.phase_names() } else { Vec::new() };
                    let target = &mut self.facts[other];
                    target.pair |= pair && !phase;
                    target.ordered |= ordered;
                    target.number |= number;
                    target.literals.extend(literals);
                    target.literals.extend(phases);
                    for pattern in patterns {
                        if !target.patterns.iter().any(|known| known.as_str() == pattern.as_str()) {
                            target.patterns.push(pattern);
                        }
                    }
                    target.literals.sort_by_key(Value::to_string);
                    target.literals.dedup();
                }
            }
        }
    }

    /// Adds texts that match one pattern, or two of them.
    fn match_patterns(&mut self) {
        for value in self.facts.values_mut() {
            let texts: Vec<String> =
                value.patterns.iter().filter_map(|pattern| sample::matching(pattern, 0)).collect();
            let pairs = texts.iter().flat_map(|one| texts.iter().map(move |two| (one, two)));
            let pairs =
                pairs.filter(|(one, two)| one != two).map(|(one, two)| format!("{one}{two}"));
            let both: Vec<String> = pairs.collect();
            value.literals.extend(texts.into_iter().chain(both).map(Value::from));
        }
    }

    /// How many references are compared with one another, directly or through others. Zero for one that is
    /// compared with none.
    fn compared(&self, value: &Wanted<'_>) -> usize {
        let mut known: IndexSet<usize> = value.linked.iter().copied().collect();
        let mut next = 0;
        while let Some(at) = known.get_index(next).copied() {
            known.extend(&self.facts[at].linked);
            next += 1;
        }
        known.len()
    }

    /// Whether predicates distinguish more than the answers of a fact.
    fn is_open(&self, fact: &Fact, value: &Wanted<'_>) -> bool {
        let answers = match fact {
            Fact::Length(_) => {
                let too_long = |count: &usize| *count != usize::MAX && *count > sample::LONGEST;
                return value.counts.iter().any(too_long);
            }
            // Of several conditions, each can have changed alone.
            Fact::Condition { old: true, .. } => return self.changed.len() > 1,
            // The status and the reason belong to the condition, which has other answers.
            Fact::OfCondition { of, .. } if ["status", "reason"].contains(&&*of.member) => {
                return true;
            }
            _ if value.patterns.is_empty() && !value.ordered => return false,
            _ => self.answers(fact, value),
        };
        // The answers contain every order of two integers among the named integers, but not every order of
        // fractions, texts and times.
        if value.ordered && value.literals.iter().any(|literal| literal.as_i64().is_none()) {
            return true;
        }
        let matches = |text: &str| -> Vec<bool> {
            value.patterns.iter().map(|pattern| pattern.is_match(text)).collect()
        };
        let texts = answers.iter().filter_map(|answer| answer.value()?.as_str());
        let distinguished: BTreeSet<Vec<bool>> = texts.map(matches).collect();
        let all =
            u32::try_from(value.patterns.len()).ok().and_then(|count| 2_usize.checked_pow(count));
        !value.patterns.is_empty() && all.is_none_or(|all| distinguished.len() < all)
    }

    fn phase_names(&self) -> Vec<Value> {
        let phases = self.convention.phase.iter().flat_map(|rules| &rules.phases);
        phases.map(|phase| phase.name.as_str().into()).collect()
    }

    fn answers(&self, fact: &Fact, wanted: &Wanted<'_>) -> Vec<Answer> {
        match fact {
            Fact::Deleting => vec![Answer::Flag(false), Answer::Flag(true)],
            Fact::Phase { .. } => {
                let named = |value| Answer::Value { value, represents: Represents::Itself };
                let phases = self.phase_names().into_iter().map(named);
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
                    wanted.plurals.iter().map(|plural| (plural.clone(), Represents::Itself));
                let all = named.chain([(sample::PLURAL.to_owned(), Represents::Others)]);
                let answer = |(value, represents): (String, _)| Answer::Value {
                    value: value.into(),
                    represents,
                };
                all.map(answer).collect()
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
        let reasons: BTreeSet<&String> = twins.flat_map(|(_, wanted)| &wanted.reasons).collect();
        let reasons: Vec<String> = reasons.into_iter().cloned().collect();
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
            values.extend(sample::other(checks, &wanted.literals).map(|value| (value, rest)));
        }
        if wanted.future {
            values.push((sample::FUTURE.into(), Represents::Itself));
        }
        let mut answers = vec![Answer::Absent];
        for (value, represents) in values {
            let known = |answer: &Answer| matches!(answer, Answer::Value { value: known, .. } if *known == value);
            if !answers.iter().any(known) {
                answers.push(Answer::Value { value, represents });
            }
        }
        answers
    }
}

impl<'c> Asks<'c> for Collector<'c> {
    fn deleting(&mut self) {
        self.fact(Fact::Deleting);
    }

    fn resource(&mut self, names: &'c [Glob]) {
        let at = self.fact(Fact::Resource);
        self.facts[at].plurals.extend(names.iter().map(Glob::sample));
    }

    fn phase(&mut self, old: bool, _names: &'c [String]) {
        self.fact(Fact::Phase { old });
    }

    fn condition(&mut self, old: bool, kind: &str, reasons: &'c [String]) {
        let at = self.condition_fact(old, kind);
        self.facts[at].reasons.extend(reasons.iter().cloned());
    }

    fn severity(&mut self, kind: &str, names: &'c [String]) {
        let (condition, member) = (kind.to_owned(), "severity".to_owned());
        let at = self.reference(&Reference::OfCondition(MemberOf { condition, member }));
        self.facts[at].literals.extend(names.iter().cloned().map(Value::from));
    }

    fn changed_condition(&mut self, old: bool, kind: &str) {
        self.condition_fact(!old, kind);
        self.changed.insert(kind.to_owned());
    }

    fn observed(&mut self) {
        self.fact(Fact::Observed);
    }

    fn length(&mut self, path: &Pointer, at_least: usize, at_most: usize) {
        let at = self.fact(Fact::Length(path.clone()));
        let bounds = [0, at_least.saturating_sub(1), at_least, at_most, at_most.saturating_add(1)];
        self.facts[at].counts.extend(bounds);
    }

    fn gates(&mut self, path: &Pointer) {
        self.fact(Fact::Gates(path.clone()));
    }

    fn set(&mut self, reference: &Reference) {
        self.reference(reference);
    }

    fn value(&mut self, value: &'c language::Value) {
        let at = self.reference(&value.reference);
        for wanted in value.is.iter().chain(&value.is_not).flat_map(|wanted| wanted.iter()) {
            self.facts[at].literals.push(wanted.value().clone());
            // A boolean has only one other value.
            if let Value::Bool(flag) = wanted.value() {
                self.facts[at].literals.push((!flag).into());
            }
        }
        if value.changed.is_some() || value.decreased.is_some() {
            let other = self.reference(&counterpart(&value.reference));
            self.facts[at].pair = true;
            self.facts[at].ordered |= value.decreased.is_some();
            self.link(at, other);
        }
        self.facts[at].future |= value.future.is_some() || value.past.is_some();
        self.facts[at].patterns.extend(&value.matches);
        self.facts[at].ordered |= value.before.is_some();
        for bound in value.bounds() {
            let wanted = &mut self.facts[at];
            (wanted.ordered, wanted.number) = (true, true);
            if let Bound::Number(number) = bound {
                wanted.literals.push(number.clone().into());
            }
        }
        for operand in value.operands() {
            let other = self.reference(&operand.0);
            self.facts[at].pair = true;
            self.link(at, other);
        }
    }

    fn elapsed(&mut self, of: &Reference, more_than: Span) {
        let at = self.reference(of);
        let seconds = more_than.seconds();
        self.facts[at].literals.extend([seconds, seconds + 1].into_iter().filter_map(sample::ago));
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

/// The same reference into the stored object, or into the new one.
fn counterpart(reference: &Reference) -> Reference {
    match reference.clone() {
        Reference::Field(path) => Reference::OldField(path),
        Reference::OldField(path) => Reference::Field(path),
        Reference::Member(name) => Reference::OldMember(name),
        Reference::OldMember(name) => Reference::Member(name),
        // An operand, for which nobody asks for a change.
        Reference::OfCondition(of) => Reference::OfCondition(of),
    }
}

fn rank(fact: &Fact) -> u8 {
    match fact {
        Fact::Deleting => 0,
        Fact::Resource => 1,
        Fact::Member { old: false, .. } => 2,
        Fact::Member { old: true, .. } => 3,
        Fact::Condition { old: false, .. } => 4,
        Fact::Condition { old: true, .. } => 5,
        Fact::OfCondition { .. } | Fact::Gates(_) => 6,
        Fact::Observed => 7,
        Fact::Field { .. } | Fact::Length(_) => 8,
        Fact::Phase { old: false } => 9,
        Fact::Phase { old: true } => 10,
    }
}
