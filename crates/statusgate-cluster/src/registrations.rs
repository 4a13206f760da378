//! Definitions of custom resources and stored registrations: reads, writes and watches.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use serde_json::{Value, json};

use super::error::{unless, unless_missing};
use super::pages::crd_path;
use super::secret::{FIELD_MANAGER, as_statusgate};
use super::watch::{self, Watch};
use super::{Cluster, ClusterError, Patience};
use crate::manifests::registrations::{HookKind, UNINSTALL};
use crate::manifests::resource::CustomResource;
use statusgate_core::causes::with_causes;
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
pub enum DefinitionEvent {
    /// The list starts anew.
    Restarted,
    /// A definition of this name exists.
    Present(String, Revision),
    /// The definition of this name was deleted.
    Deleted(String),
    /// The list is complete.
    Complete,
}

impl Cluster {
    /// What `of` makes of the custom resources that policies may select, and of the JSON of their definitions.
    /// Discovery would include built-in and aggregated kinds, and shows a changed definition some time later.
    ///
    /// # Errors
    /// When the definitions cannot be read.
    pub async fn custom_resources<T>(
        &self,
        policies: &PolicySet,
        of: impl Fn(CustomResource, &[u8]) -> T,
    ) -> Result<Vec<T>, ClusterError> {
        let what = "list the CustomResourceDefinitions";
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(self.client());
        let mut page = ListParams::default().limit(PAGE);
        let mut resources = Vec::new();
        loop {
            let list = self.ask(what, api.list(&page)).await?;
            for name in list.items.iter().filter_map(|item| item.metadata.name.as_deref()) {
                if policies.may_select(name) {
                    resources.extend(self.custom_resource(name, &of).await?);
                }
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page.continue_token = Some(token),
                None => return Ok(resources),
            }
        }
    }

    /// The same for one, by the name of its definition; `None` if the definition was deleted.
    ///
    /// # Errors
    /// When the definition cannot be read.
    pub async fn custom_resource<T>(
        &self,
        name: &str,
        of: impl Fn(CustomResource, &[u8]) -> T,
    ) -> Result<Option<T>, ClusterError> {
        let what = format!("read the CustomResourceDefinition {name}");
        let read = self.read(&what, &crd_path(name), Patience::SHORT).await;
        let Some(body) = unless_missing(read)? else { return Ok(None) };
        match CustomResource::read(&body) {
            Ok(resource) => Ok(Some(of(resource, &body))),
            Err(source) => Err(ClusterError::BadAnswer { what, source }),
        }
    }

    /// A stored registration; `None` if it does not exist.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn registration(
        &self,
        kind: HookKind,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let what = format!("read the {} {name}", kind.name());
        let registrations = self.registrations(kind);
        let read = self.ask_again(&what, || registrations.get_opt(name)).await?;
        let read = read.map(serde_json::to_value).transpose();
        read.map_err(|source| ClusterError::BadAnswer { what, source })
    }

    /// Creates a registration. Returns `false` if it exists already: two replicas may start at once.
    ///
    /// # Errors
    /// When the API server rejects it or does not respond.
    pub async fn create_registration(
        &self,
        kind: HookKind,
        registration: &Value,
    ) -> Result<bool, ClusterError> {
        let what = format!("create the {}", kind.name());
        let object: DynamicObject = serde_json::from_value(registration.clone())
            .map_err(|source| ClusterError::BadAnswer { what: what.clone(), source })?;
        let (registrations, options) = (self.registrations(kind), as_statusgate());
        unless(&[409], self.ask_again(&what, || registrations.create(&options, &object)).await)
    }

    /// Changes a registration by a JSON patch that tests its `resourceVersion`. Returns `false` if the test
    /// fails.
    ///
    /// # Errors
    /// When the API server rejects the patch or does not respond.
    pub async fn patch_registration(
        &self,
        kind: HookKind,
        name: &str,
        patch: &Value,
    ) -> Result<bool, ClusterError> {
        let what = format!("patch the {} {name}", kind.name());
        let patch = serde_json::from_value(patch.clone())
            .map_err(|source| ClusterError::BadAnswer { what: what.clone(), source })?;
        unless(&[404, 409], self.patch(&what, kind, name, &Patch::Json::<()>(patch)).await)
    }

    /// Annotates a registration, so that servers no longer create it. Returns whether it exists.
    ///
    /// # Errors
    /// When the API server rejects the request or does not respond.
    pub async fn announce_removal(&self, kind: HookKind, name: &str) -> Result<bool, ClusterError> {
        let what = format!("annotate the {} {name}", kind.name());
        let patch = Patch::Merge(json!({"metadata": {"annotations": {UNINSTALL: "true"}}}));
        unless(&[404], self.patch(&what, kind, name, &patch).await)
    }

    /// Deletes a registration. Returns whether it existed.
    ///
    /// # Errors
    /// When the API server rejects the request or does not respond.
    pub async fn delete_registration(
        &self,
        kind: HookKind,
        name: &str,
    ) -> Result<bool, ClusterError> {
        let what = format!("delete the {} {name}", kind.name());
        let (registrations, options) = (self.registrations(kind), DeleteParams::default());
        unless(&[404], self.ask_again(&what, || registrations.delete(name, &options)).await)
    }

    async fn patch<P: serde::Serialize + std::fmt::Debug>(
        &self,
        what: &str,
        kind: HookKind,
        name: &str,
        patch: &Patch<P>,
    ) -> Result<DynamicObject, ClusterError> {
        let (registrations, field_manager) =
            (self.registrations(kind), Some(FIELD_MANAGER.to_owned()));
        let options = PatchParams { field_manager, ..PatchParams::default() };
        self.ask_again(what, || registrations.patch(name, &options, patch)).await
    }

    fn registrations(&self, kind: HookKind) -> Api<DynamicObject> {
        Api::all_with(self.client(), &resource(kind))
    }

    /// Reports all definitions and then each change and each failure, until it is dropped.
    pub async fn watch_definitions(&self, mut report: impl FnMut(Result<DefinitionEvent, String>)) {
        let of = |object: PartialObjectMeta<CustomResourceDefinition>| {
            let metadata = object.metadata;
            let uid = metadata.uid.unwrap_or_default();
            let revision = Revision { uid, generation: metadata.generation.unwrap_or_default() };
            (metadata.name.unwrap_or_default(), revision)
        };
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(self.watching());
        let mut events = Watch::new(api, Config::default().page_size(PAGE));
        loop {
            let event = events.next().await.map(|event| match event {
                Event::Init => DefinitionEvent::Restarted,
                Event::InitApply(object) | Event::Apply(object) => {
                    let (name, revision) = of(object);
                    DefinitionEvent::Present(name, revision)
                }
                Event::Delete(object) => DefinitionEvent::Deleted(of(object).0),
                Event::InitDone => DefinitionEvent::Complete,
            });
            report(event.map_err(|error| with_causes(&error)));
        }
    }

    /// Reports each change of a registration and each failure, until it is dropped.
    pub async fn watch_registration(
        &self,
        kind: HookKind,
        name: &str,
        report: impl FnMut(Result<(), String>),
    ) {
        let api: Api<PartialObjectMeta<DynamicObject>> =
            Api::all_with(self.watching(), &resource(kind));
        watch::changes(api, name, report).await;
    }
}

fn resource(kind: HookKind) -> ApiResource {
    match kind {
        HookKind::Mutating => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        HookKind::Validating => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
    }
}

/// A definition's annotations may contain the complete definition as it was applied.
const PAGE: u32 = 50;
