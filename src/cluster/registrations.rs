//! Definitions of custom resources and stored registrations: reads, writes and watches.

use http::Method;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use serde_json::{Value, json};

use super::call::{Answer, Call};
use super::pages::crd_path;
use super::watch::Watch;
use super::{Cluster, ClusterError, Patience, with_causes};
use crate::manifests::registrations::{Kind, UNINSTALL};
use crate::manifests::resource::CustomResource;
use statusgate_core::policy::PolicySet;

/// The state of a definition, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Another one after the definition was deleted and created again.
    pub uid: String,
    /// It increases with each change of the specification.
    pub generation: i64,
}

/// A change of the list of definitions.
#[derive(Clone, Debug)]
pub enum Change {
    /// The list starts anew.
    Restarted,
    /// A definition of this name exists.
    Present(String, Revision),
    /// The definition of this name was deleted.
    Deleted(String),
    /// The list is complete.
    Complete,
}

/// The result of a write that depends on the stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is stored.
    Stored,
    /// Something else wrote first: read again.
    Outdated,
}

impl Cluster {
    /// The custom resources that policies may select, from their definitions. Discovery would include
    /// built-in and aggregated kinds, and shows a changed definition some time later.
    ///
    /// # Errors
    /// When the definitions cannot be read.
    pub async fn custom_resources(
        &self,
        policies: &PolicySet,
    ) -> Result<Vec<CustomResource>, ClusterError> {
        let what = "list the CustomResourceDefinitions";
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(self.client());
        let mut page = ListParams::default().limit(PAGE);
        let mut resources = Vec::new();
        loop {
            let list = api.list(&page).await;
            let list = list.map_err(|error| self.failed_in_client(what, error))?;
            for name in list.items.iter().filter_map(|item| item.metadata.name.as_deref()) {
                if policies.may_select(name) {
                    resources.extend(self.custom_resource(name).await?);
                }
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page.continue_token = Some(token),
                None => return Ok(resources),
            }
        }
    }

    /// A custom resource by the name of its definition; `None` if the definition was deleted.
    ///
    /// # Errors
    /// When the definition cannot be read.
    pub async fn custom_resource(
        &self,
        name: &str,
    ) -> Result<Option<CustomResource>, ClusterError> {
        let what = format!("read the CustomResourceDefinition {name}");
        match self.read(&what, &crd_path(name), Patience::SHORT).await {
            Ok(body) => match CustomResource::read(&body) {
                Ok(resource) => Ok(Some(resource)),
                Err(source) => Err(ClusterError::BadAnswer { what, source }),
            },
            Err(ClusterError::Rejected { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A stored registration; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn registration(
        &self,
        kind: Kind,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let what = format!("read the {} {name}", kind.name());
        match self.read_as(&what, &path(kind, name), Patience::SHORT).await {
            Ok(registration) => Ok(Some(registration)),
            Err(ClusterError::Rejected { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a registration. It is outdated if it exists already: two replicas may start at once.
    ///
    /// # Errors
    /// When the API server rejects it or does not respond.
    pub async fn create_registration(
        &self,
        kind: Kind,
        registration: &Value,
    ) -> Result<Written, ClusterError> {
        let what = format!("create the {}", kind.name());
        let path = format!("{}?{FIELD_MANAGER}", path(kind, ""));
        let body = registration.to_string().into();
        let call = Call { method: Method::POST, path: &path, format: "application/json", body };
        let answer = self.retry(&what, &call, &mut Patience::SHORT.start(), None).await?;
        match answer.status {
            ..300 => Ok(Written::Stored),
            409 => Ok(Written::Outdated),
            _ => Err(self.failed(&what, Ok(answer))),
        }
    }

    /// Changes a registration by a JSON patch that tests its `resourceVersion`.
    ///
    /// # Errors
    /// When the API server rejects the patch or does not respond.
    pub async fn patch_registration(
        &self,
        kind: Kind,
        name: &str,
        patch: &Value,
    ) -> Result<Written, ClusterError> {
        let what = format!("patch the {} {name}", kind.name());
        let path = format!("{}?{FIELD_MANAGER}", path(kind, name));
        let (body, format) = (patch.to_string().into(), "application/json-patch+json");
        let call = Call { method: Method::PATCH, path: &path, format, body };
        let answer = self.retry(&what, &call, &mut Patience::SHORT.start(), None).await?;
        match answer.status {
            ..300 => Ok(Written::Stored),
            404 | 409 => Ok(Written::Outdated),
            // A failed test is not a conflict but an invalid request for the API server. Unlike a rejected
            // registration it has no causes.
            422 if !answer.has_causes() => Ok(Written::Outdated),
            _ => Err(self.failed(&what, Ok(answer))),
        }
    }

    /// Annotates a registration, so that servers no longer create it. Returns whether it exists.
    ///
    /// # Errors
    /// When the API server rejects the request or does not respond.
    pub async fn announce_removal(&self, kind: Kind, name: &str) -> Result<bool, ClusterError> {
        let what = format!("annotate the {} {name}", kind.name());
        let path = format!("{}?{FIELD_MANAGER}", path(kind, name));
        let body = json!({"metadata": {"annotations": {UNINSTALL: "true"}}}).to_string().into();
        let format = "application/merge-patch+json";
        let call = Call { method: Method::PATCH, path: &path, format, body };
        let answer = self.retry(&what, &call, &mut Patience::SHORT.start(), None).await?;
        self.existed(&what, answer)
    }

    /// Deletes a registration. Returns whether it existed.
    ///
    /// # Errors
    /// When the API server rejects the request or does not respond.
    pub async fn delete_registration(&self, kind: Kind, name: &str) -> Result<bool, ClusterError> {
        self.delete(&format!("delete the {} {name}", kind.name()), &path(kind, name)).await
    }

    /// Deletes one object. Returns whether it existed.
    ///
    /// # Errors
    /// When the API server rejects the request or does not respond.
    pub async fn delete(&self, what: &str, path: &str) -> Result<bool, ClusterError> {
        let (method, format) = (Method::DELETE, "application/json");
        let call = Call { method, path, format, body: Default::default() };
        let answer = self.retry(what, &call, &mut Patience::SHORT.start(), None).await?;
        self.existed(what, answer)
    }

    fn existed(&self, what: &str, answer: Answer) -> Result<bool, ClusterError> {
        match answer.status {
            ..300 => Ok(true),
            404 => Ok(false),
            _ => Err(self.failed(what, Ok(answer))),
        }
    }

    /// Reports all definitions and then each change and each failure, until it is dropped.
    pub async fn watch_definitions(&self, mut report: impl FnMut(Result<Change, String>)) {
        let of = |object: PartialObjectMeta<CustomResourceDefinition>| {
            let metadata = object.metadata;
            let uid = metadata.uid.unwrap_or_default();
            let revision = Revision { uid, generation: metadata.generation.unwrap_or_default() };
            (metadata.name.unwrap_or_default(), revision)
        };
        let config = Config::default().page_size(PAGE);
        let change = |event| match event {
            Event::Init => Change::Restarted,
            Event::InitApply(object) | Event::Apply(object) => {
                let (name, revision) = of(object);
                Change::Present(name, revision)
            }
            Event::Delete(object) => Change::Deleted(of(object).0),
            Event::InitDone => Change::Complete,
        };
        self.watch::<CustomResourceDefinition>(config, |event| report(event.map(change))).await;
    }

    /// Reports each change of a registration and each failure, until it is dropped. The selector lets a
    /// role allow only this name.
    pub async fn watch_registration(
        &self,
        kind: Kind,
        name: &str,
        mut report: impl FnMut(Result<(), String>),
    ) {
        let config = Config::default().fields(&format!("metadata.name={name}"));
        let mut report = |event: Option<_>| event.into_iter().for_each(&mut report);
        match kind {
            Kind::Mutating => {
                let report = |event| report(without_start(event));
                self.watch::<MutatingWebhookConfiguration>(config, report).await;
            }
            Kind::Validating => {
                let report = |event| report(without_start(event));
                self.watch::<ValidatingWebhookConfiguration>(config, report).await;
            }
        }
    }

    /// Watches the metadata of objects. kube lists again after 410 and waits between attempts.
    async fn watch<K>(
        &self,
        config: Config,
        mut report: impl FnMut(Result<Event<PartialObjectMeta<K>>, String>),
    ) where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
        PartialObjectMeta<K>: serde::de::DeserializeOwned,
    {
        let api: Api<PartialObjectMeta<K>> = Api::all(self.client());
        let mut events = Watch::new(api, config);
        loop {
            report(events.next().await.map_err(|error| with_causes(&error)));
        }
    }
}

/// Before a list starts, nothing is known.
fn without_start<K>(event: Result<Event<K>, String>) -> Option<Result<(), String>> {
    (!matches!(event, Ok(Event::Init))).then(|| event.map(|_| ()))
}

fn path(kind: Kind, name: &str) -> String {
    let path = format!("/apis/admissionregistration.k8s.io/v1/{}", kind.plural());
    if name.is_empty() { path } else { format!("{path}/{name}") }
}

const FIELD_MANAGER: &str = "fieldManager=statusgate";

/// A definition's annotations may contain the complete definition as it was applied.
const PAGE: u32 = 50;
