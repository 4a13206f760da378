//! The health of one kind as an ordered list of boolean questions. It is the same as
//! [`Health::of`](statusgate_core::engine::Health::of) for every object that is not being deleted.

use statusgate_core::engine::HealthStatus;
use statusgate_core::engine::health::{NO_RULE, STALE};
use statusgate_core::language::formula::{Formula, Layout, ListPlace, Question};
use statusgate_core::language::{
    AnyWord, Condition, ConditionOf, Observed, Phase, Polarity, Predicate,
};
use statusgate_core::model::{Pointer, Resource};
use statusgate_core::policy::FieldType;
use statusgate_core::policy::convention::{Convention, Health, HealthClass, HealthRule};
use statusgate_core::schema::Schema;

/// What a status of one kind means.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name of the convention.
    pub convention: String,
    /// The first clause that holds counts. The last one always holds.
    pub clauses: Vec<Clause>,
    /// The schema of the objects.
    pub schema: Schema,
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
    /// The rule is left out, because a language cannot ask this. The health is unknown.
    LeftOut(String),
    /// The text at this path, otherwise that of the first of these conditions that has one, otherwise the name of
    /// the rule.
    Conditions(Option<Pointer>, Vec<Evidence>),
    /// The text of Ready or of the newest condition in a list that is not good, otherwise this text.
    Complaint(Complaint, &'static str),
    /// The text at this path, otherwise the phase, which is the first text at the other paths.
    Phase(Option<Pointer>, Vec<Pointer>),
}

/// Where a condition may say why no rule applies.
#[derive(Clone, Debug, PartialEq)]
pub struct Complaint {
    /// The list of conditions.
    pub list: ListPlace,
    /// The member with the time.
    pub time: String,
    /// The types for which True is not good, or for which nothing is.
    pub polarities: Vec<(String, Polarity)>,
}

/// A condition that may explain a health.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// The message of this condition, otherwise its reason.
    Condition(ListPlace, String),
    /// That of the first alternative that holds. If the others do not hold, the last one does.
    First(Vec<(Formula, Vec<Self>)>),
}

impl Program {
    /// The program of a resource; `None` if its convention does not define health.
    pub fn of(convention: &Convention, resource: &Resource<'_>) -> Option<Self> {
        let health = convention.health.as_deref()?;
        let paths: Vec<Pointer> =
            convention.phase.iter().flat_map(|rules| rules.paths().cloned()).collect();
        let observed = health.observed_generation.as_ref();
        let mut fields = convention.fields.iter().filter(|field| Some(&*field.path) == observed);
        let generation_is_text = fields.any(|field| field.check.kind == Some(FieldType::String));
        let kind = Layout {
            plural: &resource.resource,
            phase: &paths,
            list: None,
            observed_generation: observed,
            generation_is_text,
        };
        let builder = Builder { convention, health, version: &resource.version, kind };
        let (early, late): (Vec<_>, Vec<_>) =
            health.rules.iter().partition(|rule| rule.even_if_stale);
        let first = early.into_iter().flat_map(|rule| builder.clauses(rule));
        let stale = observed.map(|path| builder.stale(path));
        let others = late.into_iter().flat_map(|rule| builder.clauses(rule));
        let clauses = first.chain(stale).chain(others).chain(builder.without_rule()).collect();
        Some(Self { convention: convention.name.clone(), clauses, schema: Schema::free() }.cut())
    }

    /// Without the clauses that never decide.
    fn cut(mut self) -> Self {
        self.clauses.retain(|clause| clause.when != Formula::NEVER);
        let last = self.clauses.iter().position(|clause| clause.when == Formula::ALWAYS);
        self.clauses.truncate(last.map_or(self.clauses.len(), |last| last + 1));
        self
    }

    /// The program in a language that cannot ask all questions. Where a rule that is left out may apply, the health is
    /// unknown.
    pub(super) fn asking(&self, can_ask: fn(&Question) -> bool) -> Self {
        let clause = |clause: &Clause| match clause.questions().iter().find(|ask| !can_ask(ask)) {
            None => clause.clone(),
            Some(question) => Clause {
                rule: clause.rule.clone(),
                when: clause.when.possible(&can_ask),
                health: UNKNOWN,
                reason: Reason::LeftOut(question.words()),
            },
        };
        let clauses = self.clauses.iter().map(clause).collect();
        Self { clauses, schema: self.schema.clone(), convention: self.convention.clone() }.cut()
    }

    /// The rules that are left out.
    pub(super) fn gaps(&self) -> impl Iterator<Item = String> {
        self.clauses.iter().filter_map(Clause::gap)
    }

    /// That the health is wanted, for objects of the schema, without some clauses.
    pub(super) fn gives(
        &self,
        wanted: impl Fn(HealthClass) -> bool,
        without: impl Fn(&Clause) -> bool,
    ) -> Formula {
        let clauses = self.clauses.iter().rev().filter(|clause| !without(clause));
        clauses.fold(Formula::NEVER, |rest, clause| {
            let when = clause.when.under(&self.schema);
            if wanted(clause.health) {
                Formula::any([when, rest])
            } else if when.excludes(&rest) {
                rest
            } else {
                Formula::all([!when, rest])
            }
        })
    }
}

impl Clause {
    fn questions(&self) -> Vec<&Question> {
        let mut questions = self.when.questions();
        if let Reason::Conditions(_, evidence) = &self.reason {
            evidence.iter().for_each(|evidence| evidence.collect(&mut questions));
        }
        questions
    }

    /// That its rule is left out, if it is.
    pub(super) fn gap(&self) -> Option<String> {
        let Reason::LeftOut(words) = &self.reason else { return None };
        let rule = self.rule.as_deref().unwrap_or_default();
        Some(format!("the rule {rule} is left out: {words}"))
    }
}

impl Evidence {
    fn collect<'e>(&'e self, found: &mut Vec<&'e Question>) {
        if let Self::First(alternatives) = self {
            for (holds, evidence) in alternatives {
                found.extend(holds.questions());
                evidence.iter().for_each(|evidence| evidence.collect(found));
            }
        }
    }
}

/// The health if a rule may apply.
const UNKNOWN: HealthClass = HealthClass { is: HealthStatus::Unknown, retried: false };

/// What all rules of a program share.
struct Builder<'c> {
    convention: &'c Convention,
    health: &'c Health,
    version: &'c str,
    /// With no list of conditions.
    kind: Layout<'c>,
}

impl Builder<'_> {
    fn stale(&self, path: &Pointer) -> Clause {
        let question = Question::Observed {
            path: path.clone(),
            among: vec![Observed::Behind],
            text: self.kind.generation_is_text,
        };
        let reason = Reason::Text(STALE.to_owned());
        fixed(question.into(), HealthStatus::InProgress, reason)
    }

    /// The clauses for objects to which no rule applies: some condition is old, and the default.
    fn without_rule(&self) -> Vec<Clause> {
        let default = self.health.default;
        let Some(list) = self.convention.primary_conditions(self.version) else {
            return vec![fixed(Formula::ALWAYS, default, Reason::Text(NO_RULE.to_owned()))];
        };
        let others = list.types.iter().filter_map(|(name, kind)| Some((name, kind.polarity?)));
        let others = others.filter(|(_, polarity)| *polarity != Polarity::Positive);
        let complaint = Complaint {
            list: ListPlace::At((*list.path).clone()),
            time: list.time_member().to_owned(),
            polarities: others.map(|(name, polarity)| (name.clone(), polarity)).collect(),
        };
        let stale = Question::Stale(complaint.list.clone()).into();
        let reason = |text| Reason::Complaint(complaint.clone(), text);
        vec![
            fixed(stale, HealthStatus::InProgress, reason(STALE)),
            fixed(Formula::ALWAYS, default, reason(NO_RULE)),
        ]
    }

    fn clauses(&self, rule: &HealthRule) -> Vec<Clause> {
        let (Some(when), Some(class)) = (&rule.when, rule.class()) else {
            return self.phase_clauses(rule);
        };
        let Some(clause) = self.clause(rule, when, class) else { return Vec::new() };
        clause.unsure().into_iter().chain([clause]).collect()
    }

    /// One clause for each health.
    fn phase_clauses(&self, rule: &HealthRule) -> Vec<Clause> {
        let mut classes: Vec<(HealthClass, Vec<String>)> = Vec::new();
        for (name, class) in &self.health.phases {
            match classes.iter_mut().find(|(known, _)| known == class) {
                Some((_, names)) => names.push(name.clone()),
                None => classes.push((*class, vec![name.clone()])),
            }
        }
        let clauses = classes.into_iter().map(|(health, names)| {
            let is_one = Predicate::from(Phase { phase: names.into_iter().collect() });
            Clause {
                rule: Some(rule.name.to_string()),
                when: is_one.sides(self.kind).yes,
                health,
                reason: Reason::Phase(self.health.message.clone(), self.kind.phase.to_vec()),
            }
        });
        clauses.collect()
    }

    /// The clause of a predicate; `None` if objects of this version do not have its list.
    fn clause(&self, rule: &HealthRule, when: &Predicate, health: HealthClass) -> Option<Clause> {
        let list = match rule.list.as_deref() {
            Some(path) => Some(self.convention.list_at(path, self.version)?),
            None => self.convention.primary_conditions(self.version),
        };
        let outer = list.and_then(|list| list.outer.as_ref());
        let place = list.map(|list| match outer {
            Some(_) => ListPlace::OfElement,
            None => ListPlace::At((*list.path).clone()),
        });
        let kind = Layout { list: place.as_ref(), ..self.kind };
        let mut formula = when.sides(kind).yes;
        if let Some(outer) = outer.filter(|_| formula != Formula::NEVER) {
            formula = if outer.key.is_empty() {
                Question::Foreign(format!("some value of the map {}", outer.path.field())).into()
            } else {
                let (outer, inner) = (outer.path.clone(), outer.inner.clone());
                Formula::Some { outer, inner, of: Box::new(formula) }
            };
        }
        Some(Clause {
            rule: Some(rule.name.to_string()),
            when: formula,
            health,
            reason: Reason::Conditions(
                rule.message.as_deref().cloned(),
                evidence(when, true, kind),
            ),
        })
    }
}

impl Clause {
    /// The clause for objects with two values that a language cannot compare.
    fn unsure(&self) -> Option<Self> {
        let unsure = self.when.questions().into_iter().filter_map(|question| match question {
            Question::Same(one, other, _) => {
                Some(Question::Unsure(one.clone(), other.clone()).into())
            }
            _ => None,
        });
        let pairs = Formula::any(unsure);
        let possible = self.when.possible(&|question| !matches!(question, Question::Same(..)));
        let when = match possible {
            Formula::Some { outer, inner, of } => {
                Formula::Some { outer, inner, of: Box::new(Formula::all([pairs.clone(), *of])) }
            }
            possible => Formula::all([pairs.clone(), possible]),
        };
        let reason = Reason::Text("two values may be equal in two forms".to_owned());
        let clause = Self { rule: self.rule.clone(), when, health: UNKNOWN, reason };
        (pairs != Formula::NEVER).then_some(clause)
    }
}

fn fixed(when: Formula, is: HealthStatus, reason: Reason) -> Clause {
    Clause { rule: None, when, health: HealthClass { is, retried: false }, reason }
}

/// The conditions that decide a predicate whose answer is known, as in
/// [`Facts::deciding`](statusgate_core::language::Facts::deciding).
fn evidence(when: &Predicate, yes: bool, kind: Layout<'_>) -> Vec<Evidence> {
    let words = when.words().iter().map(|word| (Predicate::from(word.clone()), word));
    let each = words.map(|(whole, word)| (whole, of_word(word, yes, kind)));
    deciding(each.collect(), yes, yes, kind)
}

fn of_word(word: &AnyWord, yes: bool, kind: Layout<'_>) -> Vec<Evidence> {
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
            list.map(|list| Evidence::Condition(list, name.clone())).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The evidence of all parts, or of the first part that has the answer.
fn deciding(
    parts: Vec<(Predicate, Vec<Evidence>)>,
    yes: bool,
    all: bool,
    kind: Layout<'_>,
) -> Vec<Evidence> {
    let mut alternatives: Vec<(Formula, Vec<Evidence>)> = Vec::new();
    let mut found: Vec<Evidence> = Vec::new();
    for (part, evidence) in parts {
        let sides = part.sides(kind);
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
            first.clone()
        }
        Some(_) => vec![Evidence::First(alternatives)],
        None => found,
    }
}
