//! One Secret: read, create, replace, delete and watch.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::core::PartialObjectMeta;

use super::error::unless;
use super::{Cluster, ClusterError, watch};

/// A stored Secret.
#[derive(Clone)]
pub struct Secret {
    /// Its values.
    pub data: BTreeMap<String, Vec<u8>>,
    /// As the API server returned it, so that a replacement keeps labels and other values.
    object: v1::Secret,
}

impl Cluster {
    /// Reads a Secret once; `None` if it does not exist.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Secret>, ClusterError> {
        let what = format!("read the Secret {namespace}/{name}");
        let read = self.ask(&what, self.secrets(namespace).get_opt(name)).await?;
        Ok(read.map(Secret::new))
    }

    /// Creates a Secret of the type `kubernetes.io/tls`. Returns `false` if it already exists.
    ///
    /// # Errors
    /// When the API server rejects it or does not respond.
    pub async fn create_secret(
        &self,
        namespace: &str,
        name: &str,
        data: &BTreeMap<String, Vec<u8>>,
    ) -> Result<bool, ClusterError> {
        let what = format!("create the Secret {namespace}/{name}");
        let labels = [("app.kubernetes.io/name".to_owned(), "statusgate".to_owned())].into();
        let (name, labels) = (Some(name.to_owned()), Some(labels));
        let object = v1::Secret {
            metadata: ObjectMeta { name, labels, ..ObjectMeta::default() },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(encoded(data)),
            ..v1::Secret::default()
        };
        let secrets = self.secrets(namespace);
        unless(&[409], self.ask(&what, secrets.create(&as_statusgate(), &object)).await)
    }

    /// Replaces values of a Secret. Returns `false` if it changed or was deleted since it was read.
    ///
    /// # Errors
    /// When the API server rejects it or does not respond.
    pub async fn replace_secret(
        &self,
        namespace: &str,
        name: &str,
        secret: &Secret,
        data: &BTreeMap<String, Vec<u8>>,
    ) -> Result<bool, ClusterError> {
        let what = format!("replace the Secret {namespace}/{name}");
        let mut object = secret.object.clone();
        object.data.get_or_insert_default().extend(encoded(data));
        let secrets = self.secrets(namespace);
        let replaced = self.ask(&what, secrets.replace(name, &as_statusgate(), &object)).await;
        unless(&[404, 409], replaced)
    }

    /// Deletes a Secret. Returns whether it existed.
    ///
    /// # Errors
    /// When the API server rejects the request or does not respond.
    pub async fn delete_secret(&self, namespace: &str, name: &str) -> Result<bool, ClusterError> {
        let what = format!("delete the Secret {namespace}/{name}");
        let (secrets, options) = (self.secrets(namespace), DeleteParams::default());
        unless(&[404], self.ask_again(&what, || secrets.delete(name, &options)).await)
    }

    fn secrets(&self, namespace: &str) -> Api<v1::Secret> {
        Api::namespaced(self.client(), namespace)
    }

    /// Reports each change of a Secret until it is dropped, or an error while it cannot be watched. The
    /// watch transfers only metadata: the keys are read when needed.
    pub async fn watch_secret(
        &self,
        namespace: &str,
        name: &str,
        report: impl FnMut(Result<(), String>),
    ) {
        let secrets: Api<PartialObjectMeta<v1::Secret>> =
            Api::namespaced(self.watching(), namespace);
        watch::changes(secrets, name, report).await;
    }
}

impl Secret {
    fn new(object: v1::Secret) -> Self {
        let data = object.data.clone().unwrap_or_default();
        Self { data: data.into_iter().map(|(name, value)| (name, value.0)).collect(), object }
    }
}

fn encoded(data: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, ByteString> {
    data.iter().map(|(name, value)| (name.clone(), ByteString(value.clone()))).collect()
}

/// Options of a write.
pub(super) fn as_statusgate() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// The field manager of all writes except status.
pub(super) const FIELD_MANAGER: &str = "statusgate";
