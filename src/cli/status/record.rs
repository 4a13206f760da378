//! The result for one object. As JSON, it is one line.

use serde::Serialize;

use super::super::entry::Entry;
use super::super::plurals::Plurals;
use statusgate_core::engine::{HealthStatus, Reading};
use statusgate_core::model::{Json, Writer};
use statusgate_core::policy::PolicySet;
use statusgate_core::request::Request;
use statusgate_core::source::{self, Identity, Manifest};

/// One object, and what readers see of it.
#[derive(Debug, Serialize)]
pub(super) struct Record<'m> {
    #[serde(flatten)]
    pub(super) entry: Entry,
    #[serde(flatten)]
    pub(super) reading: Reading<'m>,
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
        let subject = request.subject(policies, plurals.served(identity, policies));
        let entry = Entry::of(manifest, policies, subject.as_ref());
        // Invalid metadata: no policy can judge the object, and kstatus reports an error.
        let reading = Reading::of(&tree, subject.as_ref().ok(), policies, now);
        Ok(Self { entry, reading })
    }

    /// Whether the object needs attention.
    pub(super) fn is_bad(&self) -> bool {
        self.reading.health.class.is == HealthStatus::Failed
            || self.reading.result.is_err()
            || self.reading.standings().any(|(_, standing)| standing.contradiction.is_some())
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
