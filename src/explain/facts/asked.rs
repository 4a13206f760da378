//! From predicates to the space of what they ask.

use serde_json::Value;

use super::sample::{self, Kind};
use super::{Answer, Fact, Question, Reason, Space, Stands};
use crate::language::{self, Asks, Glob, Observed, Pattern, Place, Polarity};
use crate::model::{ConditionStatus, Pointer};
use crate::policy::convention::{ConditionList, ConditionType, Convention};

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
    /// The list with the elements that the rules judge.
    element_of: Option<&'c ConditionList>,
    /// The list that the predicate at hand speaks of; the first one, where it does not say.
    list: Option<&'c ConditionList>,
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
    /// Paths that are compared with this one.
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
            list: None,
        }
    }

    /// Adds what a predicate asks.
    pub(crate) fn add(&mut self, question: &Question<'c>) {
        if question.of_element {
            self.element_of = question.list;
            // Polarity, reasons and members are those of a type.
            self.fact(Fact::Member { old: false, name: "type".to_owned() });
        }
        self.list = question.list;
        question.predicate.asks(self);
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

    fn list(&self) -> Option<&'c ConditionList> {
        self.list.or_else(|| self.convention.primary_conditions(self.version))
    }

    fn condition_fact(&mut self, old: bool, kind: &str) -> usize {
        let list = self.list().map(|list| list.path.clone());
        self.fact(Fact::Condition { old, list, kind: kind.to_owned() })
    }

    fn link(&mut self, one: usize, other: usize) {
        self.values[one].linked.push(other);
        self.values[other].linked.push(one);
    }

    /// The fact of a place. The phase has one of its own, however it is asked for.
    fn place(&mut self, place: &Place) -> usize {
        let phase = self.convention.phase.as_ref();
        let field = |old, path: &Pointer| match phase {
            Some(phase) if phase.path == *path => Fact::Phase { old },
            _ => Fact::Field { old, path: path.clone() },
        };
        let fact = match place {
            Place::Field(path) => field(false, path),
            Place::OldField(path) => field(true, path),
            Place::Member(name) => Fact::Member { old: false, name: name.clone() },
            Place::OldMember(name) => Fact::Member { old: true, name: name.clone() },
        };
        self.fact(fact)
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
        let list = list.and_then(|path| self.convention.list_at(path, self.version));
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

impl<'c> Asks<'c> for Asked<'c> {
    fn deleting(&mut self) {
        self.fact(Fact::Deleting);
    }

    fn resource(&mut self, names: &'c [Glob]) {
        self.fact(Fact::Resource);
        self.plurals.extend(names.iter().map(Glob::sample));
    }

    fn phase(&mut self, old: bool) {
        self.fact(Fact::Phase { old });
    }

    fn condition(&mut self, old: bool, kind: &str, reasons: &'c [String]) {
        let at = self.condition_fact(old, kind);
        self.reasons[at].extend(reasons.iter().cloned());
    }

    fn changed_condition(&mut self, old: bool, kind: &str) {
        self.condition_fact(!old, kind);
        if !self.changed.iter().any(|known| known == kind) {
            self.changed.push(kind.to_owned());
        }
    }

    fn observed(&mut self) {
        self.fact(Fact::Observed);
    }

    fn length(&mut self, path: &Pointer, at_least: usize, at_most: usize) {
        self.fact(Fact::Length(path.clone()));
        let bounds = [0, at_least.saturating_sub(1), at_least, at_most, at_most.saturating_add(1)];
        match self.lengths.iter_mut().find(|(known, _)| known == path) {
            Some((_, counts)) => counts.extend(bounds),
            None => self.lengths.push((path.clone(), bounds.to_vec())),
        }
    }

    fn gates(&mut self, path: &Pointer) {
        self.fact(Fact::Gates(path.clone()));
    }

    fn set(&mut self, place: &Place) {
        self.place(place);
    }

    fn value(&mut self, value: &'c language::Value) {
        let at = self.place(&value.place);
        for wanted in value.is.iter().chain(&value.is_not).flat_map(|wanted| wanted.iter()) {
            self.values[at].literals.push(wanted.value().clone());
            // Of a boolean the other value is known.
            if let Value::Bool(flag) = wanted.value() {
                self.values[at].literals.push((!flag).into());
            }
        }
        if value.changed.is_some() || value.decreased.is_some() {
            let other = self.place(&counterpart(&value.place));
            self.values[at].pair = true;
            self.values[at].ordered |= value.decreased.is_some();
            self.link(at, other);
        }
        self.values[at].future |= value.future.is_some();
        self.values[at].patterns.extend(&value.matches);
        for (operand, ordered) in [(&value.equals, false), (&value.before, true)] {
            let Some(operand) = operand else { continue };
            let other = self.place(&operand.0);
            self.values[at].pair = true;
            self.values[at].ordered |= ordered;
            self.link(at, other);
        }
    }

    fn types_of(&self, polarity: Polarity) -> Vec<String> {
        let known = self.list().map(|list| list.types.known.as_slice()).unwrap_or_default();
        known.iter().filter(|kind| kind.polarity == polarity).map(ConditionType::sample).collect()
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
    match place.clone() {
        Place::Field(path) => Place::OldField(path),
        Place::OldField(path) => Place::Field(path),
        Place::Member(name) => Place::OldMember(name),
        Place::OldMember(name) => Place::Member(name),
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
