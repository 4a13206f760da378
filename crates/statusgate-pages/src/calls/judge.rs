//! One write: the responses of both webhooks, and what readers see afterwards.

use std::slice;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::{Value, json};

use super::documents::Documents;
use super::{CallResult, Failure, kubectl};
use crate::readers::lua::argo_cd;
use statusgate_analysis::scene::yaml;
use statusgate_core::engine::{Found, HealthClass, HealthStatus, Reading, Verdict, decide};
use statusgate_core::kstatus::{Fork, compute};
use statusgate_core::model::{Json, Webhook};
use statusgate_core::policy::{Diagnostics, PolicySet, built_in};
use statusgate_core::request::{Request, Served, writer};
use statusgate_core::source::{Diagnostic, Identity, Manifest, Manifests, Place, Source};
use statusgate_core::wire::{AdmissionRequest, respond};

/// A write.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Write {
    #[serde(flatten)]
    pub(super) documents: Documents,
    /// The object, an AdmissionReview, or an event of the audit log or of a watch.
    pub(super) object: String,
    /// The stored object.
    #[serde(default)]
    pub(super) old: String,
    #[serde(default)]
    pub(super) user: String,
    #[serde(default)]
    pub(super) groups: Vec<String>,
    /// The plural of the kind, if it is irregular.
    #[serde(default)]
    pub(super) plural: String,
    /// The time of the write, if the object is no record of a request.
    #[serde(deserialize_with = "time")]
    pub(super) now: Timestamp,
}

fn time<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| D::Error::custom("now is not a time such as 2024-06-01T12:00:00Z"))
}

/// A write that was judged.
pub(super) struct Judged<'p> {
    pub(super) manifest: Manifest<'p>,
    pub(super) old: Option<Manifest<'p>>,
    pub(super) policies: &'p PolicySet,
    /// The request as the API server sends it.
    pub(super) request: AdmissionRequest<'p>,
    pub(super) mutation: Verdict<'p>,
    pub(super) verdict: Verdict<'p>,
    pub(super) now: Timestamp,
}

impl Write {
    /// The object and the stored object.
    pub(super) fn texts(&self) -> [Source; 2] {
        [("object", &self.object), ("old", &self.old)].map(|(name, text)| Source::new(name, text))
    }
}

/// The manifests of each text of a write.
pub(super) fn read(texts: &[Source; 2]) -> [Manifests<'_>; 2] {
    texts.each_ref().map(|text| Manifests::read(slice::from_ref(text)))
}

pub(super) fn answer(write: &Write) -> CallResult {
    let policies = write.documents.judging()?;
    let texts = write.texts();
    let manifests = read(&texts);
    let judged = judge(write, &policies, &manifests)?;
    let warnings = manifests.iter().flat_map(Manifests::warnings);
    let mut warned = Diagnostics::default();
    warned.extend(warnings.map(|warning| warning.0.clone()));
    Ok(json!({
        "mistakes": [],
        "warnings": warned.to_json(),
        "judged": judged.to_json()?,
    }))
}

/// Records of these requests have no status that could be stored.
const NO_OBJECT: &str = "there is no object to judge: the text is empty, or it is a review of a dry run, of a deletion or without an object";

/// Judges the only object of a text.
pub(super) fn judge<'p>(
    write: &'p Write,
    policies: &'p PolicySet,
    [objects, olds]: &'p [Manifests<'p>; 2],
) -> Result<Judged<'p>, Failure> {
    let mut mistakes = [objects.mistakes(), olds.mistakes()].concat();
    for more in [objects, olds].iter().flat_map(|all| all.iter().skip(1)) {
        mistakes.push(more.mistake("", "only one object can be judged".to_owned()));
    }
    if objects.iter().next().is_none() && mistakes.is_empty() {
        let place = Place::of(&Source::new("object", write.object.as_str()), &(0..0));
        mistakes.push(Diagnostic::at(place, NO_OBJECT));
    }
    let Some(manifest) = objects.iter().next().filter(|_| mistakes.is_empty()) else {
        return Err(mistakes.into());
    };
    let old = manifest.old().or_else(|| olds.iter().next());
    let request = Request::of(&manifest, old, writer(&write.user, &write.groups));
    let now = request.time().unwrap_or(write.now);
    let mut served = Served::guessed(manifest.identity, policies);
    if !write.plural.is_empty() {
        served.plural.clone_from(&write.plural);
    }
    let mut subject = request.subject(policies, served).map_err(|unfit| {
        let at = old.filter(|_| unfit.is_old).unwrap_or(manifest);
        let message = format!("this cannot be judged: {unfit}");
        Failure::from(vec![at.mistake(unfit.field, message)])
    })?;
    // One webhook after the other, as an API server calls them.
    let mutation = decide(policies, &subject, Webhook::Mutate, now);
    if let Some(status) = &mutation.status {
        subject.object = subject.object.with_status(Some(status.clone()));
    }
    let verdict = decide(policies, &subject, Webhook::Validate, now);
    let Identity { kind, namespace, name, .. } = manifest.identity;
    let request = AdmissionRequest {
        uid: "".into(),
        kind_group: manifest.identity.group().into(),
        kind: kind.into(),
        name: name.into(),
        namespace: namespace.into(),
        dry_run: false,
        has_object: true,
        subject,
    };
    Ok(Judged { manifest, old, policies, request, mutation, verdict, now })
}

impl Judged<'_> {
    /// The findings of both webhooks.
    pub(super) fn findings(&self) -> Vec<Found> {
        let verdicts = [&self.mutation, &self.verdict].into_iter();
        verdicts.flat_map(|verdict| &verdict.findings).map(Found::from).collect()
    }

    fn to_json(&self) -> CallResult {
        let Self { manifest, policies, request, mutation, verdict, .. } = self;
        let subject = &request.subject;
        let names: Vec<&str> = policies.names_of(&verdict.policies).collect();
        let unjudged = names.is_empty().then(|| policies.why_unselected(subject));
        let responses = [response(request, mutation)?, response(request, verdict)?];
        let object: Value = serde_json::from_str(manifest.text)?;
        let before = object["status"].clone();
        let after = mutation.status.as_ref().map_or_else(|| before.clone(), Json::to_value);
        let mut places = manifest.places();
        let findings = self.findings().into_iter().map(|found| {
            let place = places.at(&found.field);
            let line = found.to_string();
            json!({"finding": found, "text": line, "place": place, "builtIn": is_built_in(&found.rule)})
        });
        let patch = mutation.patch.iter().flat_map(|patch| &patch.0).map(ToString::to_string);
        Ok(json!({
            "identity": manifest.identity.to_string(),
            "resource": subject.resource.resource,
            "subresource": subject.subresource,
            "operation": subject.operation.name(),
            "user": subject.writer.user,
            "policies": names,
            "unjudged": unjudged,
            "kubectl": kubectl::output(request, &responses),
            "mutate": &responses[0],
            "validate": &responses[1],
            "findings": findings.collect::<Value>(),
            "patch": patch.collect::<Value>(),
            "before": yaml(&before),
            "after": yaml(&after),
            "readers": self.readers(object, after)?,
        }))
    }

    /// What readers see if the write is stored.
    fn readers(&self, mut object: Value, status: Value) -> CallResult {
        if !status.is_null() {
            object["status"] = status;
        }
        let text = object.to_string();
        let tree = Json::parse(&text)?;
        let subject = Some(&self.request.subject);
        let now = self.now.as_second();
        let reading = Reading::of(&tree, subject, self.policies, now, Fork::default());
        let class = reading.health.class;
        let mut data = json!(reading);
        // Without a convention, there is nothing to export: Flux uses its kstatus.
        data["exported"] = reading.has_convention.into();
        data["argocd"] = reading.has_convention.then(|| argo_cd(class.is)).into();
        data["flux"] = match reading.has_convention {
            true => flux(class),
            false => {
                compute(&tree, now, Fork::Fluxcd).map_or("Unknown", |result| result.status.name())
            }
        }
        .into();
        Ok(data)
    }
}

/// Whether a built-in convention has a rule; these have pages.
fn is_built_in(rule: &str) -> bool {
    let convention = rule.split_once('/').and_then(|(name, _)| built_in::convention(name));
    convention.is_some_and(|convention| convention.declared.get(rule).is_some())
}

/// The `response` of an AdmissionReview.
fn response(request: &AdmissionRequest<'_>, verdict: &Verdict<'_>) -> CallResult {
    let bytes = respond(request, verdict)?;
    let mut review: Value = serde_json::from_slice(&bytes)?;
    Ok(review["response"].take())
}

/// The status that Flux shows with health expressions of this convention. It stops to wait at `Failed`, so this is only a
/// failure without a retry.
const fn flux(class: HealthClass) -> &'static str {
    match class.is {
        HealthStatus::Current => "Current",
        HealthStatus::Failed if !class.retried => "Failed",
        HealthStatus::Terminating => "Terminating",
        _ => "InProgress",
    }
}
