//! Health: what a status means for its readers.

use serde::Serialize;

use super::evidence::{Facts, Truth, facts_of};
use crate::documents::HealthStatus;
use crate::kstatus::{ComputeError, KStatus, Status};
use crate::language::{AnyWord, Condition, ConditionOf, Observed, Predicate, observed};
use crate::model::{Conditions, Object, Pointer, Resource};
use crate::policy::convention::{self, Convention, HealthClass, HealthOf, HealthRule};

/// The health of an object under a convention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The health.
    #[serde(flatten)]
    pub class: HealthClass,
    /// Why: the message of a condition or of the phase, or the name of the rule.
    #[serde(rename = "healthReason")]
    pub reason: String,
}

impl Health {
    /// The health of an object; `None` if the convention does not define it.
    pub fn of<'a>(
        convention: &Convention,
        object: &Object<'a>,
        resource: &Resource<'a>,
    ) -> Option<Self> {
        Some(Self::decide(convention, object, resource)?.1)
    }

    /// The health, and the rule that decides it, if any.
    pub(crate) fn decide<'c, 'a>(
        convention: &'c Convention,
        object: &Object<'a>,
        resource: &Resource<'a>,
    ) -> Option<(Option<&'c HealthRule>, Self)> {
        let rules = convention.health.as_ref()?;
        let facts = Facts {
            observed_generation: Some(&rules.observed_generation),
            evidence_since: object.metadata.generation,
            ..facts_of(convention, object, None, resource)
        };
        if facts.deleting() {
            let reason = "metadata.deletionTimestamp is set";
            return Some((None, Self::new(HealthStatus::Terminating, reason)));
        }
        let is_stale = observed(&facts) == Some(Observed::Behind);
        let counted = rules.rules.iter().filter(|rule| rule.even_if_stale || !is_stale);
        let mut found =
            counted.filter_map(|rule| Some((Some(rule), apply(rule, rules, convention, facts)?)));
        Some(found.next().unwrap_or_else(|| match is_stale {
            true => (None, Self::new(HealthStatus::InProgress, STALE)),
            false => (None, Self::new(rules.default, NO_RULE)),
        }))
    }

    /// The health of an object without a convention that defines it: its kstatus result.
    pub fn of_kstatus(result: &Result<KStatus, ComputeError>) -> Self {
        match result {
            Ok(KStatus { status, message, .. }) => Self::new(
                match status {
                    Status::Current => HealthStatus::Current,
                    Status::InProgress => HealthStatus::InProgress,
                    Status::Failed => HealthStatus::Failed,
                    Status::Terminating => HealthStatus::Terminating,
                },
                message,
            ),
            Err(error) => Self::new(HealthStatus::Unknown, &error.to_string()),
        }
    }

    fn new(is: HealthStatus, reason: &str) -> Self {
        Self { class: HealthClass { is, retried: false }, reason: reason.to_owned() }
    }
}

/// The reason of an object with an observedGeneration that is behind.
pub(crate) const STALE: &str = "the controller has not observed the newest generation";
/// The reason if no rule applies.
pub(crate) const NO_RULE: &str = "no rule about health applies";

/// The health by one rule, if it applies.
fn apply(
    rule: &HealthRule,
    health: &convention::Health,
    convention: &Convention,
    facts: Facts<'_, '_>,
) -> Option<Health> {
    let (class, reason) = match &rule.of {
        HealthOf::Phase(phases) => {
            let phase = facts.phase?;
            let (_, class) = phases.iter().find(|(name, _)| name == phase)?;
            (
                class,
                text_at(&facts, health.message.as_ref())
                    .unwrap_or_else(|| format!("phase {phase}")),
            )
        }
        HealthOf::Predicate { when, list, class } => {
            let facts = applies(when, list.as_ref(), convention, facts)?;
            (class, message_of(when, &facts).unwrap_or_else(|| rule.name.clone()))
        }
    };
    Some(Health { class: *class, reason })
}

/// The facts with the list of conditions for which a predicate holds.
fn applies<'s, 'a>(
    when: &Predicate,
    path: Option<&Pointer>,
    convention: &'s Convention,
    facts: Facts<'s, 'a>,
) -> Option<Facts<'s, 'a>> {
    let holds = |facts: &Facts<'_, '_>| facts.ask(when) == Truth::True;
    let Some(path) = path else { return Some(facts).filter(holds) };
    let list = convention.list_at(path, &facts.resource.version)?;
    let Some(outer) = &list.outer else {
        return Some(facts.reading(list.for_predicates())).filter(holds);
    };
    let elements = outer.elements(facts.object.at_status(&outer.path)?)?;
    let inner = elements.map(|(_, element)| Conditions::of(element.at(&outer.inner)));
    inner.map(|inner| facts.with_list(list.for_predicates(), inner, None)).find(holds)
}

/// The message of the first condition that made a predicate true, otherwise its reason.
fn message_of(when: &Predicate, facts: &Facts<'_, '_>) -> Option<String> {
    facts.deciding(when).into_iter().find_map(|word| {
        let AnyWord::Condition(Condition { of: ConditionOf::Condition(kind), .. }) = word else {
            return None;
        };
        let found = facts.conditions.find(kind)?;
        let text = |member| found.get(member)?.as_str().filter(|text| !text.is_empty());
        text("message").or_else(|| text("reason")).map(str::to_owned)
    })
}

fn text_at(facts: &Facts<'_, '_>, path: Option<&Pointer>) -> Option<String> {
    let text = facts.object.at_status(path?)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}
