//! The health of one kind as an ordered list of boolean questions. It is the same as
//! [`Health::of`](crate::engine::Health::of) for every object that is not being deleted.

use crate::engine::HealthStatus;
use crate::engine::health::{NO_RULE, STALE};
use crate::language::formula::{Formula, Kind, List, NoFormula, Question};
use crate::language::{AnyWord, Condition, ConditionOf, Phase, Predicate};
use crate::model::{Pointer, Resource, Schema};
use crate::policy::FieldType;
use crate::policy::convention::{Convention, Health, HealthClass, HealthRule};

/// What a status of one kind means.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The name of the convention.
    pub convention: String,
    /// The first clause that holds counts. The last one always holds.
    pub clauses: Vec<Clause>,
    /// The schema of the objects.
    pub schema: Schema,
    /// What is left out: the rules without a formula.
    pub gaps: Vec<String>,
}

/// A health, and when an object has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// The rule; `None` for the stale clause and the default.
    pub rule: Option<String>,
    /// When it holds.
    pub when: Formula,
    /// The health.
    pub health: HealthClass,
    /// Its reason.
    pub reason: Reason,
}

/// How the reason of a health is found.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// This text.
    Text(String),
    /// The text of the first of these conditions that has one, otherwise the name of the rule.
    Conditions(Vec<Evidence>),
    /// The text at this path, otherwise the phase, which is the first text at the other paths.
    Phase(Option<Pointer>, Vec<Pointer>),
}

/// A condition that may explain a health.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// The message of this condition, otherwise its reason.
    Condition(List, String),
    /// That of the first alternative that holds. If the others do not hold, the last one does.
    First(Vec<(Formula, Vec<Self>)>),
}

impl Program {
    /// The program of a resource; `None` if its convention does not define health.
    pub fn of(convention: &Convention, resource: &Resource<'_>) -> Option<Self> {
        let health = convention.health.as_deref()?;
        let paths: Vec<Pointer> =
            convention.phase.iter().flat_map(|rules| rules.paths().cloned()).collect();
        let builder = Builder { convention, health, resource, paths: &paths };
        let mut program = Self {
            convention: convention.name.clone(),
            clauses: Vec::new(),
            schema: Schema::free(),
            gaps: Vec::new(),
        };
        let (early, late): (Vec<_>, Vec<_>) =
            health.rules.iter().partition(|rule| rule.even_if_stale);
        program.add(&builder, early);
        program.clauses.push(builder.stale());
        program.add(&builder, late);
        program.clauses.push(fixed(Formula::ALWAYS, health.default, NO_RULE));
        program.clauses.retain(|clause| clause.when != Formula::NEVER);
        let last = program.clauses.iter().position(|clause| clause.when == Formula::ALWAYS);
        program.clauses.truncate(last.map_or(program.clauses.len(), |last| last + 1));
        Some(program)
    }

    /// That the health is wanted, for objects of the schema, without some clauses.
    pub(super) fn gives(
        &self,
        wanted: impl Fn(HealthClass) -> bool,
        without: impl Fn(&Clause) -> bool,
    ) -> Formula {
        let clauses = self.clauses.iter().rev().filter(|clause| !without(clause));
        clauses.fold(Formula::NEVER, |rest, Clause { when, health, .. }| {
            let when = when.under(&self.schema);
            if wanted(*health) {
                Formula::any([when, rest])
            } else if when.excludes(&rest) {
                rest
            } else {
                Formula::all([!when, rest])
            }
        })
    }

    fn add(&mut self, builder: &Builder<'_>, rules: Vec<&HealthRule>) {
        for rule in rules {
            match builder.clauses(rule) {
                Ok(clauses) => self.clauses.extend(clauses),
                Err(NoFormula(word)) => {
                    self.gaps.push(format!("the rule {} is left out: {word}", rule.name));
                }
            }
        }
    }
}

/// What all rules of a program share.
struct Builder<'c> {
    convention: &'c Convention,
    health: &'c Health,
    resource: &'c Resource<'c>,
    paths: &'c [Pointer],
}

impl Builder<'_> {
    fn stale(&self) -> Clause {
        let path = &self.health.observed_generation;
        let mut fields = self.convention.fields.iter().filter(|field| *field.path == *path);
        let is_text = fields.any(|field| field.check.kind == Some(FieldType::String));
        let question = if is_text { Question::BehindAsText } else { Question::Behind };
        fixed(question(path.clone()).into(), HealthStatus::InProgress, STALE)
    }

    fn clauses(&self, rule: &HealthRule) -> Result<Vec<Clause>, NoFormula> {
        match (&rule.when, rule.class()) {
            (Some(when), Some(class)) => Ok(self.clause(rule, when, class)?.into_iter().collect()),
            _ => self.phase_clauses(rule),
        }
    }

    /// One clause for each health.
    fn phase_clauses(&self, rule: &HealthRule) -> Result<Vec<Clause>, NoFormula> {
        let mut classes: Vec<(HealthClass, Vec<String>)> = Vec::new();
        for (name, class) in &self.health.phases {
            match classes.iter_mut().find(|(known, _)| known == class) {
                Some((_, names)) => names.push(name.clone()),
                None => classes.push((*class, vec![name.clone()])),
            }
        }
        let clause = |(health, names): (HealthClass, Vec<String>)| {
            let is_one = Predicate::from(Phase { phase: names.into_iter().collect() });
            Ok(Clause {
                rule: Some(rule.name.to_string()),
                when: is_one.sides(self.kind(None))?.yes,
                health,
                reason: Reason::Phase(self.health.message.clone(), self.paths.to_vec()),
            })
        };
        classes.into_iter().map(clause).collect()
    }

    /// The clause of a predicate; `None` if objects of this version do not have its list.
    fn clause(
        &self,
        rule: &HealthRule,
        when: &Predicate,
        health: HealthClass,
    ) -> Result<Option<Clause>, NoFormula> {
        let version = &self.resource.version;
        let list = match rule.list.as_deref() {
            Some(path) => match self.convention.list_at(path, version) {
                Some(list) => Some(list),
                None => return Ok(None),
            },
            None => self.convention.primary_conditions(version),
        };
        let outer = list.and_then(|list| list.outer.as_ref());
        let place = list.map(|list| match outer {
            Some(_) => List::OfElement,
            None => List::At((*list.path).clone()),
        });
        let kind = self.kind(place.as_ref());
        let mut formula = when.sides(kind)?.yes;
        if let Some(outer) = outer.filter(|_| formula != Formula::NEVER) {
            if outer.key.is_empty() {
                return Err(NoFormula(format!("some value of the map {}", outer.path.field())));
            }
            let (outer, inner) = (outer.path.clone(), outer.inner.clone());
            formula = Formula::Some { outer, inner, of: Box::new(formula) };
        }
        Ok(Some(Clause {
            rule: Some(rule.name.to_string()),
            when: formula,
            health,
            reason: Reason::Conditions(evidence(when, true, kind)?),
        }))
    }

    fn kind<'k>(&'k self, list: Option<&'k List>) -> Kind<'k> {
        Kind { plural: &self.resource.resource, phase: self.paths, list }
    }
}

fn fixed(when: Formula, is: HealthStatus, reason: &str) -> Clause {
    let health = HealthClass { is, retried: false };
    Clause { rule: None, when, health, reason: Reason::Text(reason.to_owned()) }
}

/// The conditions that decide a predicate whose answer is known, as in
/// [`Facts::deciding`](crate::language::Facts::deciding).
fn evidence(when: &Predicate, yes: bool, kind: Kind<'_>) -> Result<Vec<Evidence>, NoFormula> {
    let words = when.words().iter().map(|word| (Predicate::from(word.clone()), word));
    let each = words.map(|(whole, word)| (whole, of_word(word, yes, kind)));
    deciding(each.collect(), yes, yes, kind)
}

fn of_word(word: &AnyWord, yes: bool, kind: Kind<'_>) -> Result<Vec<Evidence>, NoFormula> {
    let each = |parts: &[Predicate]| {
        let each = parts.iter().map(|part| (part.clone(), evidence(part, yes, kind)));
        each.collect::<Vec<_>>()
    };
    match word {
        AnyWord::All(word) => deciding(each(&word.all), yes, yes, kind),
        AnyWord::Any(word) => deciding(each(&word.any), yes, !yes, kind),
        AnyWord::Not(word) => evidence(&word.not, !yes, kind),
        AnyWord::Condition(Condition { of: ConditionOf::Condition(name), .. }) => {
            let list = kind.list.cloned();
            Ok(list.map(|list| Evidence::Condition(list, name.clone())).into_iter().collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// The evidence of all parts, or of the first part that has the answer.
fn deciding(
    parts: Vec<(Predicate, Result<Vec<Evidence>, NoFormula>)>,
    yes: bool,
    all: bool,
    kind: Kind<'_>,
) -> Result<Vec<Evidence>, NoFormula> {
    let mut alternatives: Vec<(Formula, Vec<Evidence>)> = Vec::new();
    let mut found: Vec<Evidence> = Vec::new();
    for (part, evidence) in parts {
        let (sides, evidence) = (part.sides(kind)?, evidence?);
        if all {
            found.extend(
                evidence.into_iter().filter(|one| !found.contains(one)).collect::<Vec<_>>(),
            );
            continue;
        }
        let holds = if yes { sides.yes } else { sides.no };
        if holds != Formula::NEVER {
            alternatives.push((holds, evidence));
        }
        if alternatives.last().is_some_and(|(holds, _)| *holds == Formula::ALWAYS) {
            break;
        }
    }
    match alternatives.split_first() {
        Some(((_, first), others)) if others.iter().all(|(_, other)| other == first) => {
            Ok(first.clone())
        }
        Some(_) => Ok(vec![Evidence::First(alternatives)]),
        None => Ok(found),
    }
}
