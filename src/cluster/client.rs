//! The connection: from a kubeconfig to answers.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ClusterError, Patience, told};

/// A cluster that one can talk to. Clones share their connections.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
    version: String,
    /// DER, as in the kubeconfig.
    authority: Arc<[Vec<u8>]>,
}

/// What the server said, whether it did what was asked or not.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// `Retry-After`, where it is a number of seconds.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

/// Why there was no answer.
pub(super) type Silence = Box<dyn Error + Send + Sync>;

impl Cluster {
    /// Connects with a kubeconfig: the given one, or what kubectl would take, or the service
    /// account of the pod this runs in. Asks the server for its version, so that an address that
    /// leads nowhere shows here.
    ///
    /// # Errors
    /// A kubeconfig that is broken or names no such context; a server that does not answer.
    pub async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
    ) -> Result<Self, ClusterError> {
        let (config, from) = configure(kubeconfig, context).await?;
        let server = config.cluster_url.to_string();
        let authority = config.root_cert.clone().unwrap_or_default().into();
        let client = Client::try_from(config)
            .map_err(|source| ClusterError::BadConfig { from, source: source.into() })?;
        let mut cluster = Self { client, server, version: String::new(), authority };
        let what = "ask for the version";
        let version: Version = cluster.read_as(what, "/version", Patience::NONE).await?;
        cluster.version = version.git_version;
        Ok(cluster)
    }

    /// The address of the API server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Its version: `v1.33.2`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The certificates of the authority that vouches for it; none where the machine's own do.
    pub(super) fn authority(&self) -> &[Vec<u8>] {
        &self.authority
    }

    /// GETs a path, and tries again for as long as the reason passes. `what` says in messages what
    /// this is: `list xvshnredis.vshn.appcat.vshn.io`.
    ///
    /// # Errors
    /// No answer, or one that is no success.
    pub async fn read(
        &self,
        what: &str,
        path: &str,
        patience: Patience,
    ) -> Result<Bytes, ClusterError> {
        let mut backoff = patience.start();
        loop {
            let answer = self.send(Method::GET, path, "", Vec::new()).await;
            if answer.as_ref().is_ok_and(|answer| answer.status < 300) {
                return Ok(answer.map(|answer| answer.body).unwrap_or_default());
            }
            let passes = passes(&answer);
            let asked = answer.as_ref().ok().and_then(|answer| answer.retry_after);
            match backoff.wait(asked) {
                Some(wait) if passes => tokio::time::sleep(wait).await,
                _ => return Err(self.failed(what, answer)),
            }
        }
    }

    /// The same, read as JSON.
    ///
    /// # Errors
    /// No answer, one that is no success, or one of another shape.
    pub(super) async fn read_as<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        patience: Patience,
    ) -> Result<T, ClusterError> {
        let body = self.read(what, path, patience).await?;
        let bad = |source| ClusterError::BadAnswer { what: what.to_owned(), source };
        serde_json::from_slice(&body).map_err(bad)
    }

    /// Sends one request, once. `format` is the content type of the body; empty where there is none.
    ///
    /// # Errors
    /// Where no whole answer comes back within [`ANSWER_LIMIT`].
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        format: &str,
        body: Vec<u8>,
    ) -> Result<Answer, Silence> {
        self.send_for(method, path, format, body, usize::MAX).await
    }

    /// The same, for an answer of so many bytes at most; a larger one is none.
    pub(super) async fn send_for(
        &self,
        method: Method,
        path: &str,
        format: &str,
        body: Vec<u8>,
        most: usize,
    ) -> Result<Answer, Silence> {
        let mut request = Request::builder().method(method).uri(path);
        request = if format.is_empty() {
            request.header(ACCEPT, "application/json")
        } else {
            // Of an object that was written nobody reads more than its metadata.
            request.header(CONTENT_TYPE, format).header(ACCEPT, METADATA_ONLY)
        };
        let request = request.body(Body::from(body))?;
        let exchange = async {
            let response = self.client.send(request).await?;
            let status = response.status().as_u16();
            let seconds = response.headers().get(RETRY_AFTER);
            let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
            let retry_after = seconds.map(Duration::from_secs);
            let body = Limited::new(response.into_body(), most).collect().await?.to_bytes();
            Ok::<_, Silence>(Answer { status, retry_after, body })
        };
        tokio::time::timeout(ANSWER_LIMIT, exchange).await?
    }

    /// An answer that is no success, or none, as an error.
    pub(super) fn failed(&self, what: &str, answer: Result<Answer, Silence>) -> ClusterError {
        let what = what.to_owned();
        match answer {
            Ok(answer) => {
                ClusterError::Refused { what, code: answer.status, message: answer.message() }
            }
            Err(source) => ClusterError::Unreachable { what, server: self.server.clone(), source },
        }
    }
}

impl Answer {
    /// Whether the reason of this failure is one that passes.
    #[must_use]
    pub const fn passes(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
    }

    /// The server's own words.
    #[must_use]
    pub fn message(&self) -> String {
        let said = self.said();
        let causes = said.details.causes.iter().map(|cause| {
            if cause.field.is_empty() {
                cause.message.clone()
            } else {
                format!("{}: {}", cause.field, cause.message)
            }
        });
        let causes: Vec<String> = causes.collect();
        match (said.message.as_str(), causes.is_empty()) {
            // What is not from the API server may be a page of HTML.
            ("", true) => {
                let text = String::from_utf8_lossy(&self.body);
                let line = text.lines().next().unwrap_or_default().chars().take(200);
                format!("HTTP {} {}", self.status, line.collect::<String>())
            }
            (message, true) => message.to_owned(),
            // The message of `Invalid` repeats its causes.
            (_, false) => causes.join("; "),
        }
    }

    /// What a refusal says in the shape of a `metav1.Status`; nothing, where it has another.
    pub(super) fn said(&self) -> Said {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Whether the reason of a failure is one that passes. A request that cannot even be made, for a
/// path that is none, will not be made later either.
pub(super) fn passes(answer: &Result<Answer, Silence>) -> bool {
    match answer {
        Ok(answer) => answer.passes(),
        Err(silence) => !is_no_request(silence),
    }
}

/// Whether there was no answer because there was no question.
pub(super) fn is_no_request(silence: &Silence) -> bool {
    silence.is::<http::Error>()
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "gitVersion")]
    git_version: String,
}

/// What of a `metav1.Status` counts here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    pub(super) message: String,
    pub(super) metadata: SaidMetadata,
    pub(super) details: SaidDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SaidMetadata {
    /// Where to go on with a list whose token has expired.
    #[serde(rename = "continue")]
    pub(super) continue_: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SaidDetails {
    pub(super) name: String,
    pub(super) causes: Vec<SaidCause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SaidCause {
    pub(super) message: String,
    pub(super) field: String,
}

async fn configure(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<(Config, String), ClusterError> {
    let options =
        KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let (config, from) = if let Some(path) = kubeconfig {
        let from = format!("the kubeconfig {}", path.display());
        let config = match Kubeconfig::read_from(path) {
            Ok(file) => Config::from_custom_kubeconfig(file, &options).await,
            Err(error) => Err(error),
        };
        (config.map_err(without_secrets), from)
    } else if let Some(context) = context {
        let from = format!("the context {context} of the kubeconfig");
        (Config::from_kubeconfig(&options).await.map_err(without_secrets), from)
    } else {
        let from = "a kubeconfig (KUBECONFIG, ~/.kube/config) or a service account".to_owned();
        // What `Config::infer` does; but its error has the lines of the file in it.
        let config = match Config::from_kubeconfig(&options).await {
            Ok(config) => Ok(config),
            Err(error) => Config::incluster()
                .map_err(|outside| format!("{}; {outside}", without_secrets(error)).into()),
        };
        (config, from)
    };
    let config = config.and_then(|mut config| {
        config.cluster_url = without_user(&config.cluster_url)?;
        config.auth_info.token = config.auth_info.token.as_ref().map(one_line).transpose()?;
        Ok(config)
    });
    let mut config = match config {
        Ok(config) => config,
        Err(source) => return Err(ClusterError::BadConfig { from, source }),
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_LIMIT);
    Ok((config, from))
}

/// What is wrong with a kubeconfig, without the lines around it: the next one may be a token.
fn without_secrets(error: KubeconfigError) -> Silence {
    match error {
        KubeconfigError::Parse(error) => {
            format!("invalid YAML: {}", error.without_snippet()).into()
        }
        // It tells its cause itself: one without a cause.
        error => told(&error).into(),
    }
}

/// An address without a name and a password. Nothing logs in with them (client-go takes them for
/// basic auth, which API servers have not had since 1.19), and the address is in errors and in
/// journals.
fn without_user(url: &Uri) -> Result<Uri, Silence> {
    let Some((_, host)) = url.authority().and_then(|whole| whole.as_str().rsplit_once('@')) else {
        return Ok(url.clone());
    };
    let mut parts = url.clone().into_parts();
    parts.authority = Some(host.parse()?);
    Ok(Uri::from_parts(parts)?)
}

/// A token as it can stand in a header. A block of YAML (`token: |`) ends with a line break.
fn one_line(token: &SecretString) -> Result<SecretString, Silence> {
    let text = token.expose_secret().trim();
    if HeaderValue::from_str(text).is_err() {
        return Err("the token of the user contains a line break or a control character".into());
    }
    Ok(SecretString::from(text))
}

/// An address behind which there is nothing should not cost a coffee break.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The API server ends every request itself after 60 s (`--request-timeout`).
const ANSWER_LIMIT: Duration = Duration::from_secs(70);

/// Servers behind the aggregation layer may not know how to leave the rest out.
const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::told;

    async fn configured(server: &str, token: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let text = format!(
            "current-context: c\nclusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users:\n- name: u\n  user:\n    token: {token}\n"
        );
        std::fs::write(&path, text).unwrap();
        let configured = configure(Some(&path), None).await;
        configured.map(|(config, _)| config).map_err(|error| told(&error))
    }

    #[tokio::test]
    async fn a_broken_kubeconfig_is_told_by_its_place_and_not_by_its_lines() {
        let error = configured("https://a", "[SECRET, b]").await.unwrap_err();
        assert!(error.contains("line 7, column 12"), "{error}");
        assert!(!error.contains("SECRET"), "{error}");
    }

    #[tokio::test]
    async fn a_token_is_one_line() {
        let config = configured("https://a", "|\n      SECRET").await.unwrap();
        assert_eq!(config.auth_info.token.unwrap().expose_secret(), "SECRET");
        let error = configured("https://a", "\"SECRET\\nx\"").await.unwrap_err();
        assert!(error.contains("line break") && !error.contains("SECRET"), "{error}");
    }

    #[tokio::test]
    async fn an_address_is_without_its_password() {
        let config = configured("https://me:SECRET@a:6443/path", "b").await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://a:6443/path");
    }

    #[test]
    fn a_request_that_cannot_be_made_is_not_made_again() {
        let made = Request::builder().uri("/apis/a b").body(());
        assert!(!passes(&Err(made.unwrap_err().into())));
        assert!(passes(&Err("connection reset".into())));
    }

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer { status, retry_after: None, body: Bytes::from_static(body.as_bytes()) }
    }

    #[test]
    fn a_refusal_is_told_by_its_causes_its_message_or_its_first_line() {
        let invalid = r#"{"message":"long","details":{"causes":[
            {"reason":"FieldValueInvalid","message":"must be a string","field":"status.phase"}]}}"#;
        assert_eq!(answer(422, invalid).message(), "status.phase: must be a string");
        assert_eq!(answer(403, r#"{"message":"no"}"#).message(), "no");
        assert_eq!(answer(502, "<html>\n<body>").message(), "HTTP 502 <html>");
    }

    #[test]
    fn only_reasons_that_pass_are_worth_another_try() {
        for (status, passes) in [(429, true), (500, true), (503, true), (403, false), (422, false)]
        {
            assert_eq!(answer(status, "").passes(), passes, "{status}");
        }
    }
}
