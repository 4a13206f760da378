//! Health: what a status means for its readers.

use serde::Serialize;

use super::evidence::{Facts, Truth, facts_of};
use super::guess;
use crate::documents::HealthStatus;
use crate::kstatus::{self, ComputeError, KStatus, Status};
use crate::language::{AnyWord, Condition, ConditionOf, Observed, Predicate, observed};
use crate::model::{Conditions, Json, Object, Pointer, Resource};
use crate::policy::convention::{self, Convention, HealthClass, HealthRule};

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
    pub fn decide<'c, 'a>(
        convention: &'c Convention,
        object: &Object<'a>,
        resource: &Resource<'a>,
    ) -> Option<(Option<&'c HealthRule>, Self)> {
        Some(match Ground::of(convention, object, resource)? {
            Ground::Given(is, reason) => (None, Self::new(is, reason)),
            Ground::NoRule(is, reason, facts) => {
                let complaint = complaint(convention, &facts);
                (None, Self::new(is, complaint.unwrap_or(reason)))
            }
            Ground::Rule(rule, class, facts) => {
                (Some(rule), Self { class, reason: reason_of(rule, convention, &facts) })
            }
        })
    }

    /// Whether the health is current: without the reason, which is a text of its own.
    pub(super) fn is_current<'a>(
        convention: &Convention,
        object: &Object<'a>,
        resource: &Resource<'a>,
    ) -> bool {
        Ground::of(convention, object, resource).is_some_and(|ground| match ground {
            Ground::Given(is, _) | Ground::NoRule(is, ..) => is == HealthStatus::Current,
            Ground::Rule(_, class, _) => class.is == HealthStatus::Current,
        })
    }

    /// The health of an object without a convention that defines it: it is unknown, for the reason `why` and with a
    /// [guess], unless kstatus knows the kind or finds that the object is not current.
    pub fn without_convention(
        object: &Json<'_>,
        result: &Result<KStatus, ComputeError>,
        why: &str,
    ) -> Self {
        let status = match result {
            Ok(KStatus { status, .. }) if *status != Status::Terminating => *status,
            _ => return Self::of_kstatus(result),
        };
        if let Some((reason, retried)) = kstatus::failure(object) {
            return Self { class: HealthClass { is: HealthStatus::Failed, retried }, reason };
        }
        if status != Status::Current || kstatus::is_of_kubernetes(object) {
            return Self::of_kstatus(result);
        }
        let Self { class, reason } = guess(object);
        let has_status = object.get("status").is_some_and(|status| !status.is_empty());
        let why = match class.is {
            HealthStatus::Unknown => why.to_owned(),
            _ if !has_status => why.to_owned(),
            is => format!("{why}; its status suggests {}: {reason}", is.name()),
        };
        Self::new(HealthStatus::Unknown, &why)
    }

    /// A kstatus result as a health.
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

    pub(super) fn new(is: HealthStatus, reason: &str) -> Self {
        Self { class: HealthClass { is, retried: false }, reason: reason.to_owned() }
    }
}

/// The reason of an object with an observedGeneration that is behind.
pub const STALE: &str = "the controller has not observed the newest generation";
/// The reason if no rule applies.
pub const NO_RULE: &str = "no rule about health applies";

/// What decides about the health of an object.
enum Ground<'c, 's, 'a> {
    /// No rule is asked; this is the reason.
    Given(HealthStatus, &'static str),
    /// No rule applies. A condition may say why, otherwise this is the reason.
    NoRule(HealthStatus, &'static str, Facts<'s, 'a>),
    /// A rule, with the facts for which it applies.
    Rule(&'c HealthRule, HealthClass, Facts<'s, 'a>),
}

impl<'c: 's, 's, 'a> Ground<'c, 's, 'a> {
    /// `None` if the convention does not define health.
    fn of(
        convention: &'c Convention,
        object: &'s Object<'a>,
        resource: &'s Resource<'a>,
    ) -> Option<Self> {
        let rules = convention.health.as_ref()?;
        let facts = Facts {
            observed_generation: rules.observed_generation.as_ref(),
            evidence_since: object.metadata.generation,
            ..facts_of(convention, object, None, resource)
        };
        if facts.deleting() {
            let reason = "metadata.deletionTimestamp is set";
            return Some(Self::Given(HealthStatus::Terminating, reason));
        }
        let is_stale = observed(&facts) == Some(Observed::Behind);
        let mut counted = rules.rules.iter().filter(|rule| rule.even_if_stale || !is_stale);
        let found = counted.find_map(|rule| {
            let (class, facts) = apply(rule, rules, convention, facts)?;
            Some(Self::Rule(rule, class, facts))
        });
        if found.is_some() || is_stale {
            return found.or(Some(Self::Given(HealthStatus::InProgress, STALE)));
        }
        // Some evidence is about an older generation, and none is definite about the newest one.
        let is_old = facts.conditions.items().iter().any(|item| !facts.is_evidence(item));
        Some(match is_old {
            true => Self::NoRule(HealthStatus::InProgress, STALE, facts),
            false => Self::NoRule(rules.default, NO_RULE, facts),
        })
    }
}

/// The health by one rule and the facts for which it applies, if it does.
fn apply<'s, 'a>(
    rule: &HealthRule,
    health: &convention::Health,
    convention: &'s Convention,
    facts: Facts<'s, 'a>,
) -> Option<(HealthClass, Facts<'s, 'a>)> {
    if let (Some(when), Some(class)) = (&rule.when, rule.class()) {
        return Some((class, applies(when, rule.list.as_deref(), convention, facts)?));
    }
    let phase = facts.phase?;
    Some((health.phases.iter().find(|(name, _)| name == phase)?.1, facts))
}

fn reason_of(rule: &HealthRule, convention: &Convention, facts: &Facts<'_, '_>) -> String {
    let written = |path: &Pointer| {
        let text = facts.object.at_status(path)?.as_str();
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if let Some(when) = &rule.when {
        let text = rule.message.as_deref().and_then(written);
        let text = text.or_else(|| message_of(when, facts));
        return text.unwrap_or_else(|| rule.name.to_string());
    }
    let message = convention.health.as_ref().and_then(|health| health.message.as_ref());
    message
        .and_then(written)
        .unwrap_or_else(|| format!("phase {}", facts.phase.unwrap_or_default()))
}

/// The text of Ready if it is not good, otherwise of the newest condition that is not good.
// Times are compared as texts, as the exports do: Kubernetes writes them in UTC.
fn complaint<'s>(convention: &Convention, facts: &Facts<'s, '_>) -> Option<&'s str> {
    let list = convention.primary_conditions(&facts.resource.version)?;
    let is_bad = |item: &&Json<'_>| facts.is_evidence(item) && list.is_bad(item);
    let ready = facts.conditions.find("Ready").filter(is_bad).and_then(text_of);
    ready.or_else(|| {
        let bad = facts.conditions.items().iter().filter(is_bad);
        let texts = bad.filter_map(|item| {
            let time = item.get(list.time_member()).and_then(Json::as_str);
            Some((time.unwrap_or_default(), text_of(item)?))
        });
        // Of several with the same time, the first one.
        texts.rev().max_by_key(|(time, _)| *time).map(|(_, text)| text)
    })
}

/// The message of a condition, otherwise its reason.
fn text_of<'j>(condition: &'j Json<'_>) -> Option<&'j str> {
    let text = |member| condition.get(member)?.as_str().filter(|text| !text.is_empty());
    text("message").or_else(|| text("reason"))
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
        facts.conditions.find(kind).and_then(text_of).map(str::to_owned)
    })
}
