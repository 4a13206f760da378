//! From predicates to the space of what they ask.

use serde_json::Value;

use super::sample::{self, Kind};
use super::{Answer, Fact, Question, Reason, Space, Stands};
use crate::model::{ConditionStatus, Pointer};
use crate::policy::convention::{ConditionList, Convention};
use crate::policy::{ConditionTest, Glob, Observed, Pattern, Place, Predicate, ValueTest};

/// Collects what predicates ask.
pub(crate) struct Asked<'c> {
    convention: &'c Convention,
    version: &'c str,
    facts: Vec<Fact>,
    /// The reasons that are asked of the conditions among the facts.
    reasons: Vec<Vec<String>>,
    values: Vec<AskedValue<'c>>,
    plurals: Vec<String>,
    lengths: Vec<(Pointer, Vec<usize>)>,
    /// The conditions that are asked whether they changed.
    changed: Vec<String>,
    /// The list whose elements the rules are about.
    element_of: Option<&'c ConditionList>,
}

/// What is asked of one value.
#[derive(Default)]
struct AskedValue<'c> {
    literals: Vec<Value>,
    patterns: Vec<&'c Pattern>,
    /// As many values that differ as there are places that are compared, and can be told by size.
    pair: bool,
    ordered: bool,
    future: bool,
    /// Places whose values are compared with this one.
    linked: Vec<usize>,
}

impl<'c> Asked<'c> {
    pub(crate) fn new(convention: &'c Convention, version: &'c str) -> Self {
        Self {
            convention,
            version,
            facts: Vec::new(),
            reasons: Vec::new(),
            values: Vec::new(),
            plurals: Vec::new(),
            lengths: Vec::new(),
            changed: Vec::new(),
            element_of: None,
        }
    }

    /// Adds what a predicate asks.
    pub(crate) fn add(&mut self, question: &Question<'c>) {
        if question.of_element {
            self.element_of = question.list;
            // Polarity, reasons and members are those of a type.
            self.fact(Fact::Member { old: false, name: "type".to_owned() });
        }
        self.walk(question.predicate, question.list);
    }

    /// Adds a fact that no predicate asks for but a table varies.
    pub(crate) fn fact(&mut self, fact: Fact) -> usize {
        if let Some(at) = self.facts.iter().position(|known| *known == fact) {
            return at;
        }
        self.facts.push(fact);
        self.reasons.push(Vec::new());
        self.values.push(AskedValue::default());
        self.facts.len() - 1
    }

    fn walk(&mut self, predicate: &'c Predicate, list: Option<&'c ConditionList>) {
        match predicate {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().for_each(|part| self.walk(part, list));
            }
            Predicate::Not(part) => self.walk(part, list),
            Predicate::Condition { old, kind, test } => {
                let at = self.condition(*old, kind, list);
                match test {
                    ConditionTest::Reason(reasons) => {
                        self.reasons[at].extend(reasons.iter().cloned());
                    }
                    ConditionTest::Changed => {
                        self.condition(!old, kind, list);
                        if !self.changed.contains(kind) {
                            self.changed.push(kind.clone());
                        }
                    }
                    ConditionTest::Is(_) | ConditionTest::Present => {}
                }
            }
            Predicate::Phase(_) => drop(self.fact(Fact::Phase { old: false })),
            Predicate::OldPhase(_) => drop(self.fact(Fact::Phase { old: true })),
            Predicate::Deleting => drop(self.fact(Fact::Deleting)),
            Predicate::Observed(_) => drop(self.fact(Fact::Observed)),
            Predicate::Value(place, test) => self.value(place, test),
            Predicate::Length { path, at_least, at_most } => {
                self.fact(Fact::Length(path.clone()));
                let bounds =
                    [0, at_least.saturating_sub(1), *at_least, *at_most, at_most.saturating_add(1)];
                match self.lengths.iter_mut().find(|(known, _)| known == path) {
                    Some((_, counts)) => counts.extend(bounds),
                    None => self.lengths.push((path.clone(), bounds.to_vec())),
                }
            }
            Predicate::Gates(path) => drop(self.fact(Fact::Gates(path.clone()))),
            Predicate::Polarity(_) => {}
            Predicate::Resource(globs) => {
                self.fact(Fact::Resource);
                self.plurals.extend(globs.iter().map(Glob::sample));
            }
        }
    }

    fn condition(&mut self, old: bool, kind: &str, list: Option<&ConditionList>) -> usize {
        let primary = || self.convention.primary_conditions(self.version);
        let list = list.or_else(primary).map(|list| list.path.clone());
        self.fact(Fact::Condition { old, list, kind: kind.to_owned() })
    }

    fn value(&mut self, place: &Place, test: &'c ValueTest) {
        let at = self.place(place);
        let both = |asked: &mut Self| {
            let other = asked.place(&counterpart(place));
            asked.values[at].pair = true;
            asked.link(at, other);
        };
        match test {
            ValueTest::Is(wanted) => {
                for value in wanted {
                    self.values[at].literals.push(value.clone());
                    // Of a boolean the other value is known.
                    if let Value::Bool(flag) = value {
                        self.values[at].literals.push((!flag).into());
                    }
                }
            }
            ValueTest::Set => {}
            ValueTest::Changed => both(self),
            ValueTest::Decreased => {
                self.values[at].ordered = true;
                both(self);
            }
            ValueTest::Future => self.values[at].future = true,
            ValueTest::Matches(pattern) => {
                self.values[at].patterns.push(pattern);
            }
            ValueTest::Equals(other) => {
                let other = self.place(other);
                self.values[at].pair = true;
                self.link(at, other);
            }
            ValueTest::Before(other) => {
                let other = self.place(other);
                (self.values[at].pair, self.values[at].ordered) = (true, true);
                self.link(at, other);
            }
        }
    }

    fn link(&mut self, one: usize, other: usize) {
        self.values[one].linked.push(other);
        self.values[other].linked.push(one);
    }

    /// The fact of a place. The phase has one of its own, however it is asked for.
    fn place(&mut self, place: &Place) -> usize {
        let phase = self.convention.phase.as_ref();
        self.fact(match place {
            Place::Field { old, path } if phase.is_some_and(|phase| phase.path == *path) => {
                Fact::Phase { old: *old }
            }
            Place::Field { old, path } => Fact::Field { old: *old, path: path.clone() },
            Place::Member { old, name } => Fact::Member { old: *old, name: name.clone() },
        })
    }

    /// The space of all that was asked. The facts stand in the order of what people look at first:
    /// the circumstances, the conditions, the rest.
    pub(crate) fn into_space(mut self) -> Space {
        self.share();
        self.match_patterns();
        let mut order: Vec<usize> = (0..self.facts.len()).collect();
        order.sort_by_key(|at| rank(&self.facts[*at]));
        Space {
            element_of: self.element_of.map(|list| list.path.clone()),
            changed: self.changed.len(),
            touched: false,
            open: (0..self.facts.len()).any(|at| self.is_open(at)),
            answers: order.iter().map(|at| self.answers(*at)).collect(),
            facts: order.iter().map(|at| self.facts[*at].clone()).collect(),
        }
    }

    /// Places that are compared can have the same values.
    fn share(&mut self) {
        for _ in 0..self.values.len() {
            for at in 0..self.values.len() {
                for other in self.values[at].linked.clone() {
                    let (pair, ordered) = (self.values[at].pair, self.values[at].ordered);
                    let literals = self.values[at].literals.clone();
                    let patterns = self.values[at].patterns.clone();
                    let phase = matches!(self.facts[at], Fact::Phase { .. });
                    let phases = if phase { self.phase_names() } else { Vec::new() };
                    let target = &mut self.values[other];
                    target.pair |= pair && !phase;
                    target.ordered |= ordered;
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

    /// Texts that match one pattern, or two of them.
    fn match_patterns(&mut self) {
        for value in &mut self.values {
            let texts: Vec<String> =
                value.patterns.iter().filter_map(|pattern| sample::matching(pattern, 0)).collect();
            let pairs = texts.iter().flat_map(|one| texts.iter().map(move |two| (one, two)));
            let pairs =
                pairs.filter(|(one, two)| one != two).map(|(one, two)| format!("{one}{two}"));
            let both: Vec<String> = pairs.collect();
            value.literals.extend(texts.into_iter().chain(both).map(Value::from));
        }
    }

    /// How many places are compared with one another, this one among them.
    fn compared(&self, at: usize) -> usize {
        let mut known = vec![at];
        let mut next = 0;
        while let Some(linked) = known.get(next).map(|at| &self.values[*at].linked) {
            let more: Vec<usize> =
                linked.iter().copied().filter(|other| !known.contains(other)).collect();
            for other in more {
                if !known.contains(&other) {
                    known.push(other);
                }
            }
            next += 1;
        }
        known.len()
    }

    /// Whether the answers to a fact leave out something that predicates can tell apart.
    fn is_open(&self, at: usize) -> bool {
        let value = &self.values[at];
        let texts: Vec<Value> = match &self.facts[at] {
            Fact::Length(path) => {
                let mut counts = self.lengths.iter().filter(|(known, _)| known == path);
                let too_long = |count: &usize| *count != usize::MAX && *count > sample::LONGEST;
                return counts.any(|(_, counts)| counts.iter().any(too_long));
            }
            // Each of several can have changed by itself.
            Fact::Condition { old: true, .. } => return self.changed.len() > 1,
            _ if value.patterns.is_empty() && !value.ordered => return false,
            _ => self.answers(at).into_iter().filter_map(Answer::into_value).collect(),
        };
        // Two lie in the same order among themselves and to the named ones in ways that are all there;
        // texts among times are not.
        if value.ordered && value.literals.iter().any(|literal| !literal.is_number()) {
            return true;
        }
        let mut told: Vec<Vec<bool>> = Vec::new();
        for text in texts.iter().filter_map(Value::as_str) {
            let matches: Vec<bool> =
                value.patterns.iter().map(|pattern| pattern.is_match(text)).collect();
            if !told.contains(&matches) {
                told.push(matches);
            }
        }
        let all =
            u32::try_from(value.patterns.len()).ok().and_then(|count| 2_usize.checked_pow(count));
        !value.patterns.is_empty() && all.is_none_or(|all| told.len() < all)
    }

    fn phase_names(&self) -> Vec<Value> {
        let phases = self.convention.phase.iter().flat_map(|rules| &rules.phases);
        phases.map(|phase| phase.name.as_str().into()).collect()
    }

    fn answers(&self, at: usize) -> Vec<Answer> {
        match &self.facts[at] {
            Fact::Deleting => vec![Answer::Flag(false), Answer::Flag(true)],
            Fact::Phase { .. } => {
                let named = |value| Answer::Value { value, stands: Stands::Itself };
                let phases = self.phase_names().into_iter().map(named);
                std::iter::once(Answer::Absent).chain(phases).collect()
            }
            Fact::Condition { list, kind, .. } => self.condition_answers(list.as_ref(), kind),
            Fact::Observed => {
                let observed = [Observed::Behind, Observed::Current, Observed::Ahead];
                let known = observed.into_iter().map(Answer::Observed);
                std::iter::once(Answer::Absent).chain(known).collect()
            }
            Fact::Length(path) => {
                let counts = self.lengths.iter().find(|(known, _)| known == path);
                let mut counts = counts.map(|(_, counts)| counts.clone()).unwrap_or_default();
                // What no list has is no bound.
                counts.retain(|count| *count <= sample::LONGEST);
                counts.sort_unstable();
                counts.dedup();
                counts.into_iter().map(Answer::Count).collect()
            }
            Fact::Gates(_) => {
                // Nothing asked for is as good as good.
                let answers = [None, Some(true), Some(false)].map(Answer::Gate);
                std::iter::once(Answer::NotAsked).chain(answers).collect()
            }
            Fact::Resource => {
                let mut plurals = self.plurals.clone();
                plurals.sort();
                plurals.dedup();
                let named = plurals.into_iter().map(|plural| (plural, Stands::Itself));
                let all = named.chain([(sample::PLURAL.to_owned(), Stands::Others)]);
                let answer =
                    |(value, stands): (String, _)| Answer::Value { value: value.into(), stands };
                all.map(answer).collect()
            }
            Fact::Member { name, .. } if name == "type" => self.type_answers(at),
            Fact::Field { path, .. } => {
                self.value_answers(at, &sample::kind_of(self.convention, path))
            }
            Fact::Member { name, .. } => {
                let kind = self.element_of.map(|list| sample::kind_of_member(list, name));
                self.value_answers(at, &kind.unwrap_or_default())
            }
        }
    }

    fn condition_answers(&self, list: Option<&Pointer>, kind: &str) -> Vec<Answer> {
        use ConditionStatus::{False, True, Unknown};
        let mut lists = self.convention.conditions.iter();
        let list = lists.find(|known| Some(&known.path) == list && known.applies_to(self.version));
        // The stored condition has the reasons of the new one, so that both can be the same.
        let twin = self.facts.iter().zip(&self.reasons).filter_map(|(fact, reasons)| match fact {
            Fact::Condition { kind: other, .. } if other == kind => Some(reasons),
            _ => None,
        });
        let mut reasons: Vec<String> = twin.flatten().cloned().collect();
        let asked = !reasons.is_empty();
        reasons.sort();
        reasons.dedup();
        let mut answers = vec![Answer::Absent];
        for status in [True, False, Unknown] {
            let named = reasons.iter().map(|reason| (reason.clone(), Reason::Named));
            let rest = if asked { Reason::Other } else { Reason::NotAsked };
            let other = (sample::reason(list, kind, status, &reasons), rest);
            for (reason, asked) in named.chain([other]) {
                answers.push(Answer::Condition { status, reason, asked });
            }
        }
        answers
    }

    /// The types of the element: those that are known, those that are asked for, and another.
    fn type_answers(&self, at: usize) -> Vec<Answer> {
        let mut answers: Vec<Answer> = Vec::new();
        let mut push = |name: String, stands: Stands| {
            let answer = Answer::Value { value: name.into(), stands };
            if !answers.contains(&answer) {
                answers.push(answer);
            }
        };
        let known = self.element_of.map(|list| list.types.known.as_slice()).unwrap_or_default();
        known.iter().for_each(|kind| push(kind.sample(), Stands::Itself));
        if self.element_of.is_some_and(|list| !list.types.polarity_from.is_empty()) {
            sample::GATES.iter().for_each(|(name, _)| push((*name).to_owned(), Stands::Itself));
        }
        for value in &self.values[at].literals {
            value.as_str().into_iter().for_each(|name| push(name.to_owned(), Stands::Itself));
        }
        push(sample::TYPE.to_owned(), Stands::Others);
        answers
    }

    fn value_answers(&self, at: usize, kind: &Kind) -> Vec<Answer> {
        let asked = &self.values[at];
        let named = asked.literals.iter().map(|value| (value.clone(), Stands::Itself));
        let mut values: Vec<(Value, Stands)> = named.collect();
        let rest = if asked.literals.is_empty() { Stands::Anything } else { Stands::Others };
        if asked.pair || asked.ordered {
            let count = self.compared(at).max(2);
            let more = if asked.ordered && kind.is_number(&asked.literals) {
                around(&asked.literals, count)
            } else {
                kind.several(count, asked.ordered)
            };
            values.extend(more.into_iter().map(|value| (value, Stands::Itself)));
        } else if asked.future {
            values.push((sample::PAST.into(), Stands::Itself));
        } else {
            values.extend(kind.other(&asked.literals).map(|value| (value, rest)));
        }
        if asked.future {
            values.push((sample::FUTURE.into(), Stands::Itself));
        }
        let mut answers = vec![Answer::Absent];
        for (value, stands) in values {
            let known = |answer: &Answer| matches!(answer, Answer::Value { value: known, .. } if *known == value);
            if !answers.iter().any(known) {
                answers.push(Answer::Value { value, stands });
            }
        }
        answers
    }
}

/// Numbers below, above and between those that are named: `count` of each, where there are as many.
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

/// The same place in the stored object, or in the new one.
fn counterpart(place: &Place) -> Place {
    match place {
        Place::Field { old, path } => Place::Field { old: !old, path: path.clone() },
        Place::Member { old, name } => Place::Member { old: !old, name: name.clone() },
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
        Fact::Gates(_) => 6,
        Fact::Observed => 7,
        Fact::Field { .. } | Fact::Length(_) => 8,
        Fact::Phase { old: false } => 9,
        Fact::Phase { old: true } => 10,
    }
}
