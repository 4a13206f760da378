//! What the words of a status mean, for portals and dashboards: `export dictionary`.

use indexmap::IndexMap;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;

use statusgate_core::engine::HealthStatus;
use statusgate_core::language::Polarity;
use statusgate_core::policy::PolicySet;
use statusgate_core::policy::convention::{ConditionList, Convention, PhaseRules, Reasons};

/// What the conditions and phases of custom resources mean. Later versions of statusgate may add members and values; they
/// do not change those that are here.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Dictionary")]
pub struct Dictionary<'p> {
    /// Which convention a resource follows. The first entry that matches counts; other resources follow none.
    pub resources: Vec<Resources<'p>>,
    /// The conventions by their names.
    pub conventions: IndexMap<&'p str, Words<'p>>,
}

/// The resources of one convention. Each name may have `*` for any text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources<'p> {
    /// API groups; empty for the core group.
    pub api_groups: Vec<String>,
    /// API versions.
    pub api_versions: Vec<String>,
    /// Plurals, as in the paths of the API.
    pub resources: Vec<String>,
    /// The name of the convention.
    pub convention: &'p str,
}

/// The words of one convention.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Words<'p> {
    /// What the convention is about.
    pub title: &'p str,
    /// The lists of conditions with known types.
    pub conditions: Vec<Conditions<'p>>,
    /// The phase, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase<'p>>,
}

/// A list of conditions.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conditions<'p> {
    /// Where the list is in the object. `*` stands for each element of a list, or each value of a map.
    pub path: String,
    /// The API versions with this list; none stands for all.
    pub api_versions: Vec<String>,
    /// The types. The first one that matches counts.
    pub types: Vec<Condition<'p>>,
}

/// A type of condition.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition<'p> {
    /// The type. It may have `*` for any text.
    #[serde(rename = "type")]
    pub kind: &'p str,
    /// Which status is good: with `positive` True, with `negative` False, with `neutral` both. Without it, that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Polarity>")]
    pub polarity: Option<&'static str>,
    /// What the condition says when it is True.
    pub meaning: &'p str,
    /// The reasons with a known status. There may be others.
    pub reasons: Vec<Reason<'p>>,
}

/// A reason of a condition.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reason<'p> {
    /// The reason.
    pub reason: &'p str,
    /// The statuses that a condition with this reason may have.
    pub status: Vec<&'p str>,
}

/// The phase.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Phase<'p> {
    /// Where the phase is in the object. The first path with a text counts.
    pub paths: Vec<String>,
    /// Its values.
    pub values: Vec<Value<'p>>,
}

/// A value of the phase.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Value<'p> {
    /// The value.
    pub phase: &'p str,
    /// What it means.
    pub meaning: &'p str,
    /// The health of an object in this phase. Conditions may say more: `statusgate status` knows the health of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthStatus>,
    /// Whether the controller tries again after a failure.
    pub retried: bool,
    /// Whether no other phase follows.
    #[serde(rename = "final")]
    pub is_final: bool,
}

impl<'p> Dictionary<'p> {
    /// The words of the conventions that policies follow.
    pub fn of(policies: &'p PolicySet) -> Self {
        let (mut resources, mut conventions) = (Vec::new(), IndexMap::new());
        for policy in policies.policies() {
            let convention = &*policy.convention;
            conventions.entry(&*convention.name).or_insert_with(|| Words::of(convention));
            resources.extend(policy.resources.iter().map(|rule| Resources {
                api_groups: texts(&rule.api_groups),
                api_versions: texts(&rule.api_versions),
                resources: texts(&rule.resources),
                convention: &convention.name,
            }));
        }
        Self { resources, conventions }
    }

    /// The JSON Schema of a dictionary.
    pub fn schema() -> serde_json::Value {
        schema_for!(Dictionary<'_>).to_value()
    }
}

impl<'p> Words<'p> {
    fn of(convention: &'p Convention) -> Self {
        let lists = convention.conditions.iter().filter(|list| !list.types.is_empty());
        Self {
            title: &convention.title,
            conditions: lists.map(|list| Conditions::of(list)).collect(),
            phase: convention.phase.as_deref().map(|rules| Phase::of(rules, convention)),
        }
    }
}

impl<'p> Conditions<'p> {
    fn of(list: &'p ConditionList) -> Self {
        let types = list.types.iter().map(|(name, kind)| Condition {
            kind: name,
            polarity: kind.polarity.map(Polarity::name),
            meaning: &kind.meaning,
            reasons: kind.reasons.as_ref().map(Reason::all).unwrap_or_default(),
        });
        Self {
            path: list.path.to_string(),
            api_versions: texts(&list.api_versions),
            types: types.collect(),
        }
    }
}

impl<'p> Reason<'p> {
    /// Each reason once, with the statuses of the lists that have it.
    fn all(reasons: &'p Reasons) -> Vec<Self> {
        let mut statuses: IndexMap<&str, Vec<&str>> = IndexMap::new();
        for (status, list) in reasons.lists() {
            for reason in list {
                statuses.entry(reason).or_default().push(status.name());
            }
        }
        statuses.into_iter().map(|(reason, status)| Self { reason, status }).collect()
    }
}

impl<'p> Phase<'p> {
    fn of(rules: &'p PhaseRules, convention: &Convention) -> Self {
        let classes = convention.health.as_deref().map(|health| &*health.phases);
        let values = rules.phases.iter().map(|value| {
            let mut classes = classes.unwrap_or_default().iter();
            let class = classes.find(|(name, _)| *name == value.name).map(|(_, class)| *class);
            Value {
                phase: &value.name,
                meaning: &value.meaning,
                health: class.map(|class| class.is),
                retried: class.is_some_and(|class| class.retried),
                is_final: value.is_final,
            }
        });
        Self { paths: rules.paths().map(ToString::to_string).collect(), values: values.collect() }
    }
}

fn texts(list: &[impl ToString]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}
