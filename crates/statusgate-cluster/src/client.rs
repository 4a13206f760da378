//! The connection to an API server: from a kubeconfig to responses.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use kube::client::Body;
use serde::de::DeserializeOwned;

use super::call::{
    Call, Received, Reply, Silence, code_of, is_internal, is_temporary, message, passes,
    requested_delay, retry_after,
};
use super::kubeconfig::configure;
use super::pages::encoded;
use super::{Backoff, ClusterError, Patience, Target, requests, watch};
use statusgate_core::schema::{NEWEST, minor_of};

/// A connected cluster. Clones share their connections.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
    version: String,
}

impl Cluster {
    /// Connects with a kubeconfig: the given one, the one that kubectl uses, or the service account of
    /// this pod. Requests the version, so that a wrong address is reported here.
    ///
    /// # Errors
    /// An invalid kubeconfig, an unknown context, or a server that does not respond.
    pub async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
    ) -> Result<Self, ClusterError> {
        let (config, from) = configure(kubeconfig, context).await?;
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config)
            .map_err(|source| ClusterError::BadConfig { from, source: source.into() })?;
        let mut cluster = Self { client, server, version: String::new() };
        let what = "ask for the version";
        let version: Info = cluster.read_as(what, "/version", Patience::NONE).await?;
        cluster.version = version.git_version;
        Ok(cluster)
    }

    /// The address of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The version of the API server: `v1.33.2`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The minor version of the API server; of an unknown one, the newest that schemas were compared with.
    pub fn minor(&self) -> u32 {
        minor_of(&self.version).unwrap_or(NEWEST)
    }

    /// The namespace of the context.
    pub fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The same cluster. It reports the HTTP status of the response to each request; `None` if there was no
    /// response.
    #[must_use]
    pub fn reporting(&self, report: impl Fn(Option<u16>) + Send + Sync + 'static) -> Self {
        let client = requests::reporting(self.client.clone(), Arc::new(report));
        Self { client, ..self.clone() }
    }

    /// The client for [`Self::ask`].
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client for one watch.
    pub(super) fn watching(&self) -> Client {
        watch::paced(self.client.clone(), ANSWER_LIMIT)
    }

    /// GETs a path and retries temporary failures. `what` describes the request in messages:
    /// `list xvshnredis.vshn.appcat.vshn.io`.
    ///
    /// # Errors
    /// No response, or one without success.
    pub async fn read(
        &self,
        what: &str,
        path: &str,
        patience: Patience,
    ) -> Result<Bytes, ClusterError> {
        let answer = self.retry(what, &Call::get(path), &mut patience.start(), None).await?;
        if answer.status < 300 { Ok(answer.body) } else { Err(self.failed(what, Ok(answer))) }
    }

    /// GETs JSON.
    ///
    /// # Errors
    /// No response, one without success, or one of another type.
    pub(super) async fn read_as<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        patience: Patience,
    ) -> Result<T, ClusterError> {
        let body = self.read(what, path, patience).await?;
        serde_json::from_slice(&body)
            .map_err(|source| ClusterError::BadAnswer { what: what.to_owned(), source })
    }

    /// GETs one object; `None` if it does not exist.
    ///
    /// # Errors
    /// No response, or another one without success. For some moments after a restart, the API server does
    /// not know its custom resources or its roles.
    pub async fn object(
        &self,
        target: &Target,
        namespace: &str,
        name: &str,
        patience: Patience,
    ) -> Result<Option<Bytes>, ClusterError> {
        let what = format!("get {}/{name}", target.name());
        let [of, named] = [namespace, name].map(|text| encoded(text).to_string());
        let path = target.object_path(&of, &named);
        let answer = self.retry(&what, &Call::get(&path), &mut patience.start(), None).await?;
        match answer.status {
            ..300 => Ok(Some(answer.body)),
            _ if answer.is_missing(name) => Ok(None),
            _ => Err(self.failed(&what, Ok(answer))),
        }
    }

    /// Sends a request until it succeeds or fails permanently. `own` limits the retries of a 500, if it
    /// may be caused by one object.
    ///
    /// # Errors
    /// When the patience ends before a temporary failure does.
    pub(super) async fn retry(
        &self,
        what: &str,
        call: &Call<'_>,
        backoff: &mut Backoff,
        mut own: Option<&mut Backoff>,
    ) -> Result<Received, ClusterError> {
        loop {
            let reply = self.send(call).await;
            if !passes(&reply) {
                return reply.map_err(|silence| self.failed(what, Err(silence)));
            }
            let backoff = match &mut own {
                Some(own) if is_internal(&reply) => &mut **own,
                _ => &mut *backoff,
            };
            match backoff.wait(retry_after(&reply)) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(self.failed(what, reply)),
            }
        }
    }

    /// Sends a request once.
    ///
    /// # Errors
    /// When no complete response arrives within [`ANSWER_LIMIT`].
    pub(super) async fn send(&self, call: &Call<'_>) -> Reply {
        self.send_up_to(call, usize::MAX).await
    }

    /// The same, but a response with a larger body is an error.
    pub(super) async fn send_up_to(&self, call: &Call<'_>, bytes: usize) -> Reply {
        let mut request = Request::builder().method(call.method.clone()).uri(call.path);
        request = if call.format.is_empty() {
            request.header(ACCEPT, "application/json")
        } else {
            // Of written objects only the metadata is used.
            request.header(CONTENT_TYPE, call.format).header(ACCEPT, METADATA_ONLY)
        };
        let request = request.body(Body::from(call.body.clone()))?;
        let exchange = async {
            let response = self.client.send(request).await?;
            let status = response.status().as_u16();
            let retry_after = requested_delay(response.headers());
            let body = Limited::new(response.into_body(), bytes).collect().await?.to_bytes();
            Ok::<_, Silence>(Received { status, retry_after, body })
        };
        tokio::time::timeout(ANSWER_LIMIT, exchange).await?
    }

    /// Sends a request of [`kube::Api`] once.
    ///
    /// # Errors
    /// No response within [`ANSWER_LIMIT`], or one without success.
    pub(super) async fn ask<T>(
        &self,
        what: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ClusterError> {
        let what = what.to_owned();
        let limited = tokio::time::timeout(ANSWER_LIMIT, request).await;
        match limited.unwrap_or_else(|elapsed| Err(kube::Error::Service(elapsed.into()))) {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => {
                let code = code_of(&status);
                Err(ClusterError::Rejected { what, code, message: message(*status) })
            }
            Err(kube::Error::SerdeError(source)) => Err(ClusterError::BadAnswer { what, source }),
            Err(error) => Err(self.failed(&what, Err(error.into()))),
        }
    }

    /// The same, with retries of temporary failures for [`Patience::SHORT`].
    pub(super) async fn ask_again<T, F>(
        &self,
        what: &str,
        request: impl Fn() -> F,
    ) -> Result<T, ClusterError>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut backoff = Patience::SHORT.start();
        loop {
            let result = self.ask(what, request()).await;
            let passes = match &result {
                Err(ClusterError::Rejected { code, .. }) => is_temporary(*code),
                result => matches!(result, Err(ClusterError::Unreachable { .. })),
            };
            match backoff.wait(None).filter(|_| passes) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return result,
            }
        }
    }

    /// Turns a failed request into an error.
    pub(super) fn failed(&self, what: &str, reply: Reply) -> ClusterError {
        let what = what.to_owned();
        match reply {
            Ok(answer) => {
                ClusterError::Rejected { what, code: answer.status, message: answer.message() }
            }
            Err(source) => ClusterError::Unreachable { what, server: self.server.clone(), source },
        }
    }
}

#[cfg(test)]
impl Cluster {
    pub(super) fn of(client: Client) -> Self {
        Self { client, server: String::new(), version: String::new() }
    }
}

/// The API server ends every request after 60 s (`--request-timeout`).
const ANSWER_LIMIT: Duration = Duration::from_secs(70);

/// Aggregated API servers may ignore the first type.
const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
