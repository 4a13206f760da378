//! `condition` and `oldCondition`: one condition of the object, or of the stored one.

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};

use super::checker::{Checker, Issue, Segment};
use super::shapes::described;
use super::words::not;
use super::{
    Around, Facts, Layout, OneOrMany, Question, Reasons, Sides, Truth, Word, any_of, quoted,
};
use crate::model::{ConditionStatus, Conditions, Json};

/// A condition, and what must hold of it: all of the tests that are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The condition.
    #[serde(flatten)]
    pub of: ConditionOf,
    /// Its status is one of these.
    pub is: Option<OneOrMany<ConditionStatus>>,
    /// Its status is none of these.
    pub is_not: Option<OneOrMany<ConditionStatus>>,
    /// Its reason is one of these. The empty one includes no reason.
    pub reason: Option<OneOrMany<String>>,
    /// Its severity is one of these. The empty one includes no severity.
    // Cluster API (v1beta1) and Azure Service Operator rate a condition that is False.
    pub severity: Option<OneOrMany<String>>,
    /// Whether it is in the list. The only test that has an answer where the condition is absent.
    pub present: Option<bool>,
    /// Whether this write changed any of its members, also the time.
    pub changed: Option<bool>,
}

/// The type of a condition, and the object that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConditionOf {
    /// A condition of this write.
    Condition(String),
    /// A condition of the stored object.
    OldCondition(String),
}

impl Condition {
    /// A condition of this write, without tests.
    pub fn of(kind: impl Into<String>) -> Self {
        let of = ConditionOf::Condition(kind.into());
        Self {
            of,
            is: None,
            is_not: None,
            reason: None,
            severity: None,
            present: None,
            changed: None,
        }
    }

    /// The member of a test that lists texts.
    const fn listed_member(&self) -> Option<&'static str> {
        match self {
            Self { reason: Some(_), .. } => Some("reason"),
            Self { severity: Some(_), .. } => Some("severity"),
            _ => None,
        }
    }

    /// The list with the condition; `None` without a stored object.
    fn list<'s, 'a>(&self, facts: &Facts<'s, 'a>) -> Option<Conditions<'s, 'a>> {
        match self.of {
            ConditionOf::Condition(_) => Some(facts.conditions),
            ConditionOf::OldCondition(_) => facts.old_conditions,
        }
    }
}

impl ConditionOf {
    /// Its type.
    pub fn kind(&self) -> &str {
        match self {
            Self::Condition(kind) | Self::OldCondition(kind) => kind,
        }
    }
}

impl Word for Condition {
    const KEYS: &'static [&'static str] = &["condition", "oldCondition"];
    const TESTS: &'static [&'static str] =
        &["is", "isNot", "reason", "severity", "present", "changed"];

    fn check(&self, checker: &mut Checker) {
        if *self == (Self { of: self.of.clone(), ..Self::of("") }) {
            let message = format!("there is no test of condition {}", self.of.kind());
            let tests = any_of(Self::TESTS.iter().map(ToString::to_string));
            checker.error(&message, Some(&format!("add {tests}")));
        }
        let (key, is_old) = match self.of {
            ConditionOf::Condition(_) => ("condition", false),
            ConditionOf::OldCondition(_) => ("oldCondition", true),
        };
        if is_old && self.severity.is_some() {
            checker.error("the severity of a stored condition cannot be asked", None);
        }
        if is_old || self.changed.is_some() {
            checker.add(Issue::Write);
        }
        checker.at(Segment::Key(key), |here| {
            here.add(Issue::Condition(self.of.kind().to_owned()));
        });
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        let kind = self.of.kind();
        let Some(list) = self.list(facts) else { return Truth::NoEvidence };
        let found = list.find(kind);
        let evidence = found.filter(|found| facts.is_evidence(found));
        let status = || Conditions::status_of(evidence?);
        let is_listed = |member, wanted: &[String]| {
            let listed = |text: &str| wanted.iter().any(|known| known == text);
            match evidence?.get(member) {
                // An absent text has an answer only if the predicate names "".
                None | Some(Json::Null) => listed("").then_some(true),
                Some(text) => text.as_str().map(listed),
            }
        };
        Truth::True
            .and(self.is.as_ref(), |wanted| Some(wanted.contains(&status()?)))
            .and(self.is_not.as_ref(), |unwanted| Some(!unwanted.contains(&status()?)))
            .and(self.reason.as_ref(), |wanted| is_listed("reason", wanted))
            .and(self.severity.as_ref(), |wanted| is_listed("severity", wanted))
            .and(self.present.as_ref(), |present| Some(found.is_some() == *present))
            .and(self.changed.as_ref(), |changed| {
                Some((found != facts.old_conditions?.find(kind)) == *changed)
            })
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        let (kind, found) =
            (self.of.kind(), self.list(facts).and_then(|list| list.find(self.of.kind())));
        let condition = match self.of {
            ConditionOf::Condition(_) => "condition",
            ConditionOf::OldCondition(_) => "stored condition",
        };
        if let Some(changed) = self.changed {
            let did = self.ask(facts) == Truth::of(Some(changed));
            let did = if did { "did" } else { "did not" };
            reasons.say(format_args!("{condition} {kind} {did} change"));
        } else if found.is_none() {
            reasons.say(format_args!("{condition} {kind} is absent"));
        } else if self.present.is_some() {
            reasons.say(format_args!("{condition} {kind} is present"));
        } else if let Some(member) = self.listed_member() {
            let text = found.and_then(|item| item.get(member)).and_then(Json::as_str);
            match text.filter(|text| !text.is_empty()) {
                None => reasons.say(format_args!("{condition} {kind} has no {member}")),
                Some(text) => {
                    let text = quoted(text);
                    reasons.say(format_args!("{condition} {kind} has the {member} {text}"));
                }
            }
        } else {
            match found.and_then(Conditions::status_of) {
                None => reasons.say(format_args!("{condition} {kind} has no valid status")),
                Some(status) => {
                    reasons.say(format_args!("{condition} {kind} is {}", status.name()));
                }
            }
        }
    }

    fn is_open(&self, answer: Truth) -> bool {
        const STATUSES: usize = 3;
        let is_true = answer == Truth::True;
        let several = |names: usize, listed| {
            if listed { names > 1 } else { STATUSES.saturating_sub(names) > 1 }
        };
        match self {
            Self { is: Some(wanted), .. } => several(wanted.len(), is_true),
            Self { is_not: Some(unwanted), .. } => several(unwanted.len(), !is_true),
            Self { reason: Some(names), .. } | Self { severity: Some(names), .. } => {
                !is_true || names.len() > 1
            }
            _ => false,
        }
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let name = match &self.of {
            ConditionOf::Condition(kind) => kind.clone(),
            ConditionOf::OldCondition(kind) => format!("the stored {kind}"),
        };
        let is = |wanted: &[ConditionStatus], negated| {
            let statuses = any_of(wanted.iter().map(|status| status.name().to_owned()));
            format!("{name} is {}{statuses}", not(negated))
        };
        match self {
            Self { is: Some(wanted), .. } => is(wanted, negated),
            Self { is_not: Some(unwanted), .. } => is(unwanted, !negated),
            Self { reason: Some(names), .. } => has_one_of(&name, "reason", names, negated),
            Self { severity: Some(names), .. } => has_one_of(&name, "severity", names, negated),
            Self { present: Some(present), .. } => {
                format!("{name} is {}", if *present == negated { "absent" } else { "present" })
            }
            Self { changed, .. } => {
                let did = *changed == Some(negated);
                format!("this write {} {name}", if did { "did not change" } else { "changed" })
            }
        }
    }

    fn sides(&self, of: Layout<'_>) -> Sides {
        let kind = || self.of.kind().to_owned();
        let Some(list) = of.list else {
            return self.present.map_or(Sides::UNKNOWN, |present| Sides::known(!present));
        };
        let is = |wanted: &[ConditionStatus]| {
            let question = |listed: bool| {
                let statuses =
                    [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown];
                let among = statuses.iter().filter(|status| wanted.contains(status) == listed);
                Question::Condition {
                    list: list.clone(),
                    kind: kind(),
                    member: "status",
                    among: among.map(|status| status.name().to_owned()).collect(),
                    negated: false,
                }
                .into()
            };
            Sides { yes: question(true), no: question(false) }
        };
        let listed = |member, names: &[String]| {
            let question = |negated| {
                let among = names.to_vec();
                Question::Condition { list: list.clone(), kind: kind(), member, among, negated }
                    .into()
            };
            Sides { yes: question(false), no: question(true) }
        };
        match self {
            Self { of: ConditionOf::OldCondition(_), .. } => self.foreign(),
            Self { is: Some(wanted), .. } => is(wanted),
            Self { is_not: Some(unwanted), .. } => !is(unwanted),
            Self { reason: Some(names), .. } => listed("reason", names),
            Self { severity: Some(names), .. } => listed("severity", names),
            Self { present: Some(present), .. } => {
                let sides = Sides::of(Question::Present(list.clone(), kind()).into());
                if *present { sides } else { !sides }
            }
            _ => self.foreign(),
        }
    }

    fn split(&self) -> Vec<Self> {
        let none = || Self { of: self.of.clone(), ..Self::of("") };
        let tests = [
            Self { is: self.is.clone(), ..none() },
            Self { is_not: self.is_not.clone(), ..none() },
            Self { reason: self.reason.clone(), ..none() },
            Self { severity: self.severity.clone(), ..none() },
            Self { present: self.present, ..none() },
            Self { changed: self.changed, ..none() },
        ];
        let none = none();
        tests.into_iter().filter(|test| *test != none).collect()
    }
}

/// A clause about reasons or severities. The empty name is an absent one.
fn has_one_of(condition: &str, member: &str, names: &[String], negated: bool) -> String {
    let named: Vec<String> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
    let (only, none) = (named.is_empty(), named.len() < names.len());
    let named = any_of(named.into_iter());
    match (none, negated) {
        (true, false) if only => format!("{condition} has no {member}"),
        (true, true) if only => format!("{condition} has a {member}"),
        (true, false) => format!("{condition} has the {member} {named} or none"),
        (true, true) => format!("{condition} has a {member}, another than {named}"),
        (false, false) => format!("{condition} has the {member} {named}"),
        (false, true) => format!("{condition} has another {member} than {named}"),
    }
}

described!(ConditionOf, inline: false, |_| {
    json_schema!({"type": "object", "properties": {
        "condition": {
            "description": "A condition of this write; ask is, isNot, reason, severity, present or changed.",
            "type": "string",
        },
        "oldCondition": {"description": "A condition of the stored object.", "type": "string"},
    }})
});
