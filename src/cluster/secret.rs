//! One Secret: read, create, replace and watch.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use serde_json::{Value, json};

use super::call::Call;
use super::watch::Watch;
use super::{Cluster, ClusterError, Patience, with_causes};

/// A stored Secret.
#[derive(Clone)]
pub struct Secret {
    /// Its values. An invalid encoding cannot be stored.
    pub data: BTreeMap<String, Vec<u8>>,
    /// As the API server returned it, so that a replacement keeps labels and other values.
    object: Value,
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
        let read = self.read_as(&what, &path(namespace, name), Patience::NONE).await;
        match read.map(Secret::new) {
            Ok(secret) => Ok(Some(secret)),
            Err(ClusterError::Rejected { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
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
        let object = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "statusgate"}},
            "type": "kubernetes.io/tls",
            "data": encoded(data),
        });
        let what = format!("create the Secret {namespace}/{name}");
        self.write_secret(&what, Method::POST, &path(namespace, ""), &object).await
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
        let mut object = secret.object.clone();
        let mut values = secret.data.clone();
        values.extend(data.clone());
        object["data"] = encoded(&values);
        let what = format!("replace the Secret {namespace}/{name}");
        self.write_secret(&what, Method::PUT, &path(namespace, name), &object).await
    }

    async fn write_secret(
        &self,
        what: &str,
        method: Method,
        path: &str,
        object: &Value,
    ) -> Result<bool, ClusterError> {
        let path = format!("{path}?fieldManager=statusgate");
        let body = object.to_string().into();
        let reply =
            self.send(&Call { method, path: &path, format: "application/json", body }).await;
        match &reply {
            Ok(answer) if answer.status < 300 => Ok(true),
            Ok(answer) if answer.status == 409 || answer.is_missing(name_of(object)) => Ok(false),
            _ => Err(self.failed(what, reply)),
        }
    }

    /// Reports each change of a Secret until it is dropped, or an error while it cannot be watched. The
    /// watch transfers only metadata: the keys are read when needed.
    pub async fn watch_secret(
        &self,
        namespace: &str,
        name: &str,
        mut report: impl FnMut(Result<(), String>),
    ) {
        let secrets: Api<PartialObjectMeta<k8s_openapi::api::core::v1::Secret>> =
            Api::namespaced(self.client(), namespace);
        // With this selector, a role can limit the permission to the name.
        let config = Config::default().fields(&format!("metadata.name={name}"));
        let mut events = Watch::new(secrets, config);
        loop {
            let event = events.next().await;
            // Before a list starts, nothing is known.
            if !matches!(event, Ok(Event::Init)) {
                report(event.map(|_| ()).map_err(|error| with_causes(&error)));
            }
        }
    }
}

impl Secret {
    fn new(object: Value) -> Self {
        let values = object["data"].as_object().into_iter().flatten();
        let data = values.filter_map(|(name, value)| {
            Some((name.clone(), STANDARD.decode(value.as_str()?).ok()?))
        });
        Self { data: data.collect(), object }
    }
}

#[cfg(test)]
impl Secret {
    pub(super) fn of(data: BTreeMap<String, Vec<u8>>) -> Self {
        Self { data, object: Value::Null }
    }
}

fn encoded(data: &BTreeMap<String, Vec<u8>>) -> Value {
    data.iter().map(|(name, value)| (name.clone(), STANDARD.encode(value))).collect()
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn path(namespace: &str, name: &str) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    if name.is_empty() { path } else { format!("{path}/{name}") }
}
