//! StatusPolicies and StatusConventions in the cluster: a watch, and writes of their status.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::runtime::watcher::{self, Config, Event};
use serde_json::{Value, json};

use super::call::Call;
use super::error::unless_missing;
use super::watch::Watch;
use super::{Cluster, ClusterError};
use crate::manifests::crds::{GROUP, VERSION, plural};
use statusgate_core::documents::DocumentKind;

/// A document in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredDocument {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.creationTimestamp`.
    pub created: String,
    /// `spec`.
    pub spec: Value,
    /// `status`.
    pub status: Value,
}

/// What a watch reports.
#[derive(Debug)]
pub enum DocumentEvent {
    /// All documents: at first, and when events may have been missed.
    All(Vec<StoredDocument>),
    /// A document was created or changed.
    Put(StoredDocument),
    /// The document with this name was deleted.
    Removed(String),
    /// The CustomResourceDefinition is not installed. The watch tries again.
    NotInstalled,
    /// The watch failed. It tries again.
    Failed(watcher::Error),
}

fn resource(kind: DocumentKind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(GROUP, VERSION, kind.name());
    ApiResource::from_gvk_with_plural(&gvk, plural(kind))
}

/// A watch of all documents of a kind. It never ends.
pub struct DocumentWatch {
    events: Watch<DynamicObject>,
    /// The documents of a list that is not complete.
    listed: Vec<StoredDocument>,
}

impl Cluster {
    /// Watches the documents of a kind.
    pub fn watch_documents(&self, kind: DocumentKind) -> DocumentWatch {
        let api = Api::all_with(self.watching(), &resource(kind));
        let config = Config::default().page_size(PAGE);
        DocumentWatch { events: Watch::new(api, config), listed: Vec::new() }
    }

    /// All documents of a kind; none if its CustomResourceDefinition is not installed.
    ///
    /// # Errors
    /// No response, or one without success.
    pub async fn documents(&self, kind: DocumentKind) -> Result<Vec<StoredDocument>, ClusterError> {
        let api: Api<DynamicObject> = Api::all_with(self.client(), &resource(kind));
        let (what, options) = (format!("list {}", plural(kind)), ListParams::default());
        let list = unless_missing(self.ask_again(&what, || api.list(&options)).await)?;
        let items = list.map(|list| list.items).unwrap_or_default();
        Ok(items.into_iter().map(StoredDocument::of).collect())
    }

    /// Applies a status with all that this field manager has in it; `None` removes it. Nothing happens if the
    /// document was deleted, created again, or (with a `version`) changed meanwhile.
    ///
    /// # Errors
    /// No response, or another one without success.
    pub async fn apply_document_status(
        &self,
        kind: DocumentKind,
        document: &StatusTarget,
        manager: &str,
        status: Option<&Value>,
    ) -> Result<(), ClusterError> {
        let StatusTarget { name, uid, version } = document;
        let path = format!(
            "/apis/{GROUP}/{VERSION}/{}/{name}/status?fieldManager={manager}&force=true",
            plural(kind)
        );
        let mut object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": kind.name(),
            "metadata": {"name": name, "uid": uid},
        });
        if let Some(version) = version {
            object["metadata"]["resourceVersion"] = json!(version);
        }
        if let Some(status) = status {
            object["status"] = status.clone();
        }
        let call = Call::apply(&path, &object.to_string());
        let what = format!("write the status of {} {name}", kind.name());
        match self.send(&call).await {
            Ok(answer) if matches!(answer.status, 200..300 | 404 | 409) => Ok(()),
            reply => Err(self.failed(&what, reply)),
        }
    }
}

/// Documents per response of a list. All of a response are in memory as trees with `managedFields`; kube's
/// default is 500.
const PAGE: u32 = 50;

/// The document of a status write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusTarget {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// The only `metadata.resourceVersion` that is changed.
    pub version: Option<String>,
}

impl DocumentWatch {
    /// The next event. If the future is dropped, no event is lost.
    pub async fn next(&mut self) -> DocumentEvent {
        loop {
            match self.events.next().await {
                Err(error) if code_of(&error) == Some(404) => return DocumentEvent::NotInstalled,
                Err(error) => return DocumentEvent::Failed(error),
                Ok(Event::Init) => self.listed.clear(),
                Ok(Event::InitApply(object)) => self.listed.push(StoredDocument::of(object)),
                Ok(Event::InitDone) => {
                    return DocumentEvent::All(std::mem::take(&mut self.listed));
                }
                Ok(Event::Apply(object)) => return DocumentEvent::Put(StoredDocument::of(object)),
                Ok(Event::Delete(object)) => {
                    return DocumentEvent::Removed(object.metadata.name.unwrap_or_default());
                }
            }
        }
    }
}

fn code_of(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

impl StoredDocument {
    fn of(object: DynamicObject) -> Self {
        let DynamicObject { metadata, mut data, .. } = object;
        let mut take = |key: &str| data.get_mut(key).map(Value::take).unwrap_or_default();
        Self {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0.to_string()).unwrap_or_default(),
            spec: take("spec"),
            status: take("status"),
        }
    }
}
