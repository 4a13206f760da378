//! The result for one object. As JSON, it is one line.

use serde::{Serialize, Serializer};

use super::super::entry::Entry;
use super::super::plurals::Plurals;
use super::super::request::Request;
use statusgate_core::engine::{Health, HealthStatus, Standing};
use statusgate_core::kstatus::{ComputeError, KStatus, compute};
use statusgate_core::model::{Json, Writer};
use statusgate_core::policy::PolicySet;
use statusgate_core::source::{self, Identity, Manifest};

/// One object with its health, its kstatus result and its standing under each policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record<'m> {
    #[serde(flatten)]
    pub(super) entry: Entry,
    /// Under the first policy with a convention that defines it, otherwise by kstatus.
    #[serde(flatten)]
    pub(super) health: Health,
    /// `{status, message, conditions}`, or `{error, message}`.
    #[serde(flatten, serialize_with = "result")]
    pub(super) result: Result<KStatus, ComputeError>,
    /// Under the first policy that judges the object. Most objects have only one.
    #[serde(flatten, serialize_with = "standing")]
    pub(super) judged: Option<PolicyStanding<'m>>,
    /// Under the other policies.
    #[serde(rename = "otherPolicies", skip_serializing_if = "Vec::is_empty")]
    pub(super) others: Vec<PolicyStanding<'m>>,
}

/// The standing of an object under one policy.
#[derive(Debug, Serialize)]
pub(super) struct PolicyStanding<'p> {
    pub(super) policy: &'p str,
    /// `None` under a convention without phases.
    #[serde(flatten)]
    pub(super) standing: Option<Standing<'p>>,
    /// `None` under a convention that does not define health.
    #[serde(flatten)]
    health: Option<Health>,
}

impl<'m> Record<'m> {
    /// # Errors
    /// When the object exceeds the limits of the JSON reader.
    pub(super) fn of(
        manifest: &Manifest<'m>,
        policies: &'m PolicySet,
        plurals: &Plurals,
        now: i64,
    ) -> Result<Self, serde_json::Error> {
        let identity = manifest.identity;
        let mut tree = Json::parse(manifest.text)?;
        inherit(&mut tree, identity);
        let (object, writer) = (manifest.text, Writer::default());
        let recorded = manifest.record.and_then(source::Record::request);
        let request = Request { identity, object, old: None, writer, recorded };
        let subject = request.subject(policies, plurals);
        let entry = Entry::of(manifest, policies, subject.as_ref());
        // Invalid metadata: no policy can judge the object, and kstatus reports an error.
        let subject = subject.ok();
        let selected = subject.iter().flat_map(|subject| {
            policies.select(subject).map(|(_, policy)| PolicyStanding {
                policy: &policy.name,
                standing: Standing::of(policy, &subject.object, &subject.resource),
                health: Health::of(&policy.convention, &subject.object, &subject.resource),
            })
        });
        let judged: Vec<PolicyStanding<'m>> = selected.collect();
        let result = compute(&tree, now);
        let health = judged.iter().find_map(|judged| judged.health.clone());
        let mut judged = judged.into_iter();
        Ok(Self {
            entry,
            health: health.unwrap_or_else(|| Health::of_kstatus(&result)),
            result,
            judged: judged.next(),
            others: judged.collect(),
        })
    }

    /// The standing of the object under each policy.
    pub(super) fn standings(&self) -> impl Iterator<Item = (&'m str, &Standing<'m>)> {
        let all = self.judged.iter().chain(&self.others);
        all.filter_map(|judged| Some((judged.policy, judged.standing.as_ref()?)))
    }

    /// Whether the object needs attention.
    pub(super) fn is_bad(&self) -> bool {
        self.health.class.is == HealthStatus::Failed
            || self.result.is_err()
            || self.standings().any(|(_, standing)| standing.contradiction.is_some())
    }
}

/// Items of a List from the API server have no apiVersion and kind. They inherit those of the List.
fn inherit<'j>(tree: &mut Json<'j>, identity: &'j Identity) {
    for (name, value) in [("apiVersion", &identity.api_version), ("kind", &identity.kind)] {
        if tree.get(name).is_none()
            && let Json::Object(members) = tree
        {
            members.insert(name.into(), Json::String(value.as_str().into()));
        }
    }
}

/// The policy is the first one of the entry.
fn standing<S: Serializer>(
    judged: &Option<PolicyStanding<'_>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    judged.as_ref().and_then(|judged| judged.standing.as_ref()).serialize(serializer)
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
