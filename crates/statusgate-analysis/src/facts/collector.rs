//! Collects the facts that predicates query into a space.

mod answers;

use std::collections::BTreeSet;

use indexmap::{IndexMap, IndexSet};
use serde_json::Value;

use super::sample;
use super::{Answer, Fact, Question, Space};
use statusgate_core::language::{
    self, AnyWord, Bound, Condition, ConditionOf, Glob, MemberOf, Operand, Pattern, Reference,
};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::{ConditionList, Convention};

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
#[derive(Clone, Default)]
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
            if question.list.is_none_or(sample::has_types) {
                // Polarity, reasons and members depend on the type.
                self.fact(Fact::Member { old: false, name: "type".to_owned() });
            }
        }
        self.list = question.list.filter(|list| !list.is_map());
        question.predicate.questions().into_iter().for_each(|word| self.word(word));
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
        let all = self.facts.iter().map(|(fact, of)| (fact.clone(), self.answers(fact, of)));
        let mut facts: IndexMap<Fact, Vec<Answer>> = all.collect();
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
                if self.facts[at].linked.is_empty() {
                    continue;
                }
                let mut source = self.facts[at].clone();
                if matches!(self.facts.get_index(at), Some((Fact::Phase { .. }, _))) {
                    source.pair = false;
                    source.literals.extend(self.phase_names());
                }
                for other in source.linked {
                    let target = &mut self.facts[other];
                    target.pair |= source.pair;
                    target.ordered |= source.ordered;
                    target.number |= source.number;
                    target.literals.extend(source.literals.iter().cloned());
                    for pattern in &source.patterns {
                        if !target.patterns.iter().any(|known| known.as_str() == pattern.as_str()) {
                            target.patterns.push(*pattern);
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
            let different = pairs.filter(|(one, two)| one != two);
            let both: Vec<String> = different.map(|(one, two)| format!("{one}{two}")).collect();
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
                let mut counts = value.counts.iter().filter(|count| **count != usize::MAX);
                return counts.any(|count| *count > sample::LONGEST);
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
        let texts = answers.iter().filter_map(|answer| answer.value()?.as_str());
        let distinguished: BTreeSet<Vec<bool>> = texts
            .map(|text| value.patterns.iter().map(|pattern| pattern.is_match(text)).collect())
            .collect();
        let all =
            u32::try_from(value.patterns.len()).ok().and_then(|count| 2_usize.checked_pow(count));
        !value.patterns.is_empty() && all.is_none_or(|all| distinguished.len() < all)
    }

    fn phase_names(&self) -> Vec<Value> {
        let phases = self.convention.phase.iter().flat_map(|rules| &rules.phases);
        phases.map(|phase| phase.name.as_str().into()).collect()
    }
}

impl<'c> Collector<'c> {
    /// Adds the facts of a word without predicates in it.
    fn word(&mut self, word: &'c AnyWord) {
        match word {
            AnyWord::Condition(word) => self.condition(word),
            AnyWord::Set(word) => _ = self.reference(&Reference::Field(word.set.clone())),
            AnyWord::Value(value) => self.value(value),
            AnyWord::Phase(_) => _ = self.fact(Fact::Phase { old: false }),
            AnyWord::OldPhase(_) => _ = self.fact(Fact::Phase { old: true }),
            AnyWord::Deleting(_) => _ = self.fact(Fact::Deleting),
            AnyWord::ObservedGeneration(_) => _ = self.fact(Fact::Observed),
            AnyWord::Elapsed(word) => {
                self.operand(&word.since);
                let at = self.reference(&word.since.0);
                let seconds = word.more_than.seconds();
                let ago = [seconds, seconds + 1].into_iter().filter_map(sample::ago);
                self.facts[at].literals.extend(ago);
            }
            AnyWord::Length(word) => {
                let at = self.fact(Fact::Length((*word.length).clone()));
                let (least, most) = word.bounds().into_inner();
                let counts = [0, least.saturating_sub(1), least, most, most.saturating_add(1)];
                self.facts[at].counts.extend(counts);
            }
            AnyWord::Gates(word) => _ = self.fact(Fact::Gates((*word.gates).clone())),
            AnyWord::ResourceName(word) => {
                let at = self.fact(Fact::Resource);
                self.facts[at].plurals.extend(word.resource.iter().map(Glob::sample));
            }
            // The type of the element determines its polarity.
            AnyWord::ElementPolarity(_) | AnyWord::All(_) | AnyWord::Any(_) | AnyWord::Not(_) => {}
        }
    }

    fn condition(&mut self, word: &'c Condition) {
        let (old, kind) = (matches!(word.of, ConditionOf::OldCondition(_)), word.of.kind());
        let at = self.condition_fact(old, kind);
        self.facts[at].reasons.extend(word.reason.iter().flat_map(|names| names.iter().cloned()));
        if let Some(names) = &word.severity {
            let (condition, member) = (kind.to_owned(), "severity".to_owned());
            let at = self.reference(&Reference::OfCondition(MemberOf { condition, member }));
            self.facts[at].literals.extend(names.iter().cloned().map(Value::from));
        }
        if word.changed.is_some() {
            self.condition_fact(!old, kind);
            self.changed.insert(kind.to_owned());
        }
    }

    /// Adds the condition that an operand is a member of.
    fn operand(&mut self, operand: &Operand) {
        if let Some(kind) = operand.condition() {
            self.condition_fact(false, kind);
        }
    }

    fn value(&mut self, value: &'c language::Value) {
        value.operands().for_each(|operand| self.operand(operand));
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
