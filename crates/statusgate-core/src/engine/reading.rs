//! What readers see of an object: its health, its kstatus result, and its standing under each policy.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::{Health, Standing, since};
use crate::kstatus::{ComputeError, Fork, KStatus, compute};
use crate::model::{Json, Subject};
use crate::policy::{Policy, PolicySet, built_in};

/// An object as its readers see it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reading<'p> {
    /// Under the first policy with a convention that defines it, otherwise as far as kstatus knows.
    #[serde(flatten)]
    pub health: Health,
    /// Whether a convention defines it.
    #[serde(skip)]
    pub has_convention: bool,
    /// `{status, message, conditions}`, or `{error, message}`.
    #[serde(flatten, serialize_with = "result")]
    pub result: Result<KStatus, ComputeError>,
    /// The newest transition time, otherwise the creation, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    pub since: Option<i64>,
    /// Under the first policy that judges the object. Most objects have only one.
    #[serde(flatten, serialize_with = "standing")]
    judged: Option<PolicyStanding<'p>>,
    /// Under the other policies.
    #[serde(rename = "otherPolicies", skip_serializing_if = "Vec::is_empty")]
    others: Vec<PolicyStanding<'p>>,
}

/// The standing of an object under one policy.
#[derive(Debug, Serialize)]
struct PolicyStanding<'p> {
    policy: &'p str,
    /// `None` under a convention without phases.
    #[serde(flatten)]
    standing: Option<Standing<'p>>,
    /// `None` under a convention that does not define health.
    #[serde(flatten)]
    health: Option<Health>,
}

impl<'p> Reading<'p> {
    /// Reads an object at a time in Unix seconds. `subject` is the same object for the policies; without it, no policy
    /// can judge the object.
    pub fn of(
        object: &Json<'_>,
        subject: Option<&Subject<'_>>,
        policies: &'p PolicySet,
        now: i64,
        fork: Fork,
    ) -> Self {
        let selected = subject.into_iter().flat_map(|subject| policies.select(subject));
        let selected: Vec<&'p Policy> = selected.map(|(_, policy)| policy).collect();
        let judged = subject.into_iter().flat_map(|subject| {
            selected.iter().map(move |policy| PolicyStanding {
                policy: &policy.name,
                standing: Standing::of(policy, &subject.object, &subject.resource),
                health: Health::of(&policy.convention, &subject.object, &subject.resource),
            })
        });
        let judged: Vec<PolicyStanding<'p>> = judged.collect();
        let since = subject.and_then(|subject| {
            // Most conditions have this form.
            let otherwise = if selected.is_empty() { built_in::convention("metav1") } else { None };
            let conventions = selected.iter().map(|policy| &*policy.convention);
            let conventions = conventions.chain(otherwise.as_deref());
            since(conventions, &subject.object, &subject.resource.version, now)
        });
        let result = compute(object, now, fork);
        let health = judged.iter().find_map(|judged| judged.health.clone());
        let has_convention = health.is_some();
        let health = health.unwrap_or_else(|| {
            let why = subject.map(|subject| subject.resource.without_health(!judged.is_empty()));
            Health::without_convention(object, &result, &why.unwrap_or_default())
        });
        let mut judged = judged.into_iter();
        let (first, others) = (judged.next(), judged.collect());
        Self { health, has_convention, result, since, judged: first, others }
    }

    /// The standing of the object under each policy.
    pub fn standings(&self) -> impl Iterator<Item = (&'p str, &Standing<'p>)> {
        let all = self.judged.iter().chain(&self.others);
        all.filter_map(|judged| Some((judged.policy, judged.standing.as_ref()?)))
    }
}

/// The policy is the first one of those that select the object.
fn standing<S: Serializer>(
    judged: &Option<PolicyStanding<'_>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    judged.as_ref().and_then(|judged| judged.standing.as_ref()).serialize(serializer)
}

/// A time in RFC 3339.
fn time<S: Serializer>(seconds: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map(|time| time.to_string()).serialize(serializer)
}

fn result<S: Serializer>(
    result: &Result<KStatus, ComputeError>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Wire {
        error: bool,
        message: String,
    }
    match result {
        Ok(result) => result.serialize(serializer),
        Err(error) => Wire { error: true, message: error.to_string() }.serialize(serializer),
    }
}
