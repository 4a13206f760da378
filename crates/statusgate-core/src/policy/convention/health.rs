//! Health: the rules in the order in which they are asked.

use std::fmt;

use serde::Serialize;

use super::super::compile::{Compiler, Purpose};
use super::HealthRule;
use crate::documents::{self, HealthStatus, PhaseHealth};
use crate::model::Pointer;
use crate::source::tree::At;

/// What a status means for its readers.
#[derive(Clone, Debug)]
pub struct Health {
    /// The health if no rule applies.
    pub default: HealthStatus,
    /// The field with the message of the phase.
    pub message: Option<Pointer>,
    /// Where the object's observedGeneration is, if it has one.
    pub observed_generation: Option<Pointer>,
    /// The first rule that definitely holds counts. Rules with `even_if_stale` come first. The one without
    /// a predicate stands for the health of the phase.
    pub rules: Vec<HealthRule>,
    /// The phases that have a health.
    pub phases: Vec<(String, HealthClass)>,
}

/// A health, and whether the controller tries again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HealthClass {
    /// The health.
    #[serde(rename = "health")]
    pub is: HealthStatus,
    /// The controller tries again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retried: bool,
}

/// The name of the rule that stands for the health of the phase.
pub(crate) const PHASE: &str = "phase";

impl From<&PhaseHealth> for HealthClass {
    fn from(document: &PhaseHealth) -> Self {
        match document {
            PhaseHealth::Is(is) => Self { is: *is, retried: false },
            PhaseHealth::Retried(class) => Self { is: class.is, retried: class.retried },
        }
    }
}

impl fmt::Display for HealthClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retried = if self.retried { " (retried)" } else { "" };
        write!(formatter, "{}{retried}", self.is.name())
    }
}

impl HealthClass {
    /// Whether waiting does not help: a failure that the controller does not retry.
    pub fn is_final_failure(self) -> bool {
        self.is == HealthStatus::Failed && !self.retried
    }

    fn check(self, at: At<'_>) {
        if self.retried && self.is != HealthStatus::Failed {
            let message = format!("only failed can be retried, not {}", self.is.name());
            at.key("retried").report(message);
        }
    }
}

impl HealthRule {
    /// What it means, unless that depends on the phase.
    pub fn class(&self) -> Option<HealthClass> {
        Some(HealthClass { is: self.is?, retried: self.retried })
    }
}

impl Compiler<'_> {
    pub(super) fn health(
        &self,
        spec: &documents::ConventionSpec,
        observed_generation: Option<&Pointer>,
        at: At<'_>,
    ) -> Option<Health> {
        let phases = self.health_of_phases(spec, at.key("phase"));
        if spec.health.is_none() && phases.is_empty() {
            return None;
        }
        let own = spec.health.clone().unwrap_or_default();
        let mut rules: Vec<HealthRule> = Vec::new();
        for (at, document) in at.key("health").key("rules").each(&own.rules) {
            if rules.iter().any(|known| known.name == document.name) {
                at.key("name").report(format!("rule {} is listed twice", *document.name));
            }
            if self.check_health_rule(document, !phases.is_empty(), at) {
                rules.push(document.clone());
            }
        }
        if !phases.is_empty() && rules.iter().all(|rule| *rule.name != *PHASE) {
            rules.push(HealthRule {
                name: PHASE.parse().ok()?,
                is: None,
                retried: false,
                even_if_stale: false,
                list: None,
                when: None,
                message: None,
                source: spec.phase.as_ref().map(|phase| phase.source.clone()).unwrap_or_default(),
            });
        }
        rules.sort_by_key(|rule| !rule.even_if_stale);
        let path = observed_generation.cloned();
        let path = path.or_else(|| "/status/observedGeneration".parse().ok());
        Some(Health {
            default: own.default.unwrap_or(HealthStatus::InProgress),
            message: own.message.map(|path| (*path).clone()),
            observed_generation: path.filter(|_| !matches!(spec.generation, Some(None))),
            rules,
            phases,
        })
    }

    fn health_of_phases(
        &self,
        spec: &documents::ConventionSpec,
        at: At<'_>,
    ) -> Vec<(String, HealthClass)> {
        let mut phases = Vec::new();
        let values = spec.phase.iter().flat_map(|phase| &phase.values);
        for (at, value) in at.key("values").each(values) {
            let Some(health) = &value.health else { continue };
            let class = HealthClass::from(health);
            class.check(at.key("health"));
            phases.extend(value.phase.iter().map(|name| (name.clone(), class)));
        }
        phases
    }

    /// Checks a rule. Returns whether it can be used.
    fn check_health_rule(&self, rule: &HealthRule, has_phases: bool, at: At<'_>) -> bool {
        let HealthRule { name, list, when, message, .. } = rule;
        match (rule.class(), when) {
            (None, None) if **name == *PHASE && message.is_none() => {
                if !has_phases && self.complete {
                    at.report_with_help(
                        "no phase has a health",
                        "add \"health\" to the values of the phase, or \"is\" and \"when\" to this rule",
                    );
                }
                true
            }
            (Some(class), Some(when)) if **name != *PHASE => {
                class.check(at);
                if let Some(list) = list {
                    self.names.check_any_list(at.key("in"), list);
                }
                self.report(when.check(), Purpose::Health, at.key("when"));
                true
            }
            _ if **name == *PHASE => {
                at.key("name").report_with_help(
                    "the rule phase stands for the health of the phase",
                    "remove its other keys, or give it another name",
                );
                false
            }
            (class, _) => {
                let key = if class.is_none() { "is" } else { "when" };
                at.report(format!("missing required key \"{key}\""));
                false
            }
        }
    }
}
