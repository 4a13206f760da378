//! The connection to an API server: from a kubeconfig to responses.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use jiff::fmt::rfc2822;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::Status;
use kube::{Client, Config};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;

use super::{Backoff, ClusterError, Patience, requests, watch, with_causes};

/// A connected cluster. Clones share their connections.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
    version: String,
    /// DER, as in the kubeconfig.
    authority: Arc<[Vec<u8>]>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Call<'c> {
    pub(super) method: Method,
    pub(super) path: &'c str,
    /// The content type of the body; empty without a body.
    pub(super) format: &'static str,
    pub(super) body: Bytes,
}

/// A response of the server, successful or not.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

/// The reason for a missing response.
pub(super) type Silence = Box<dyn Error + Send + Sync>;

/// The result of sending a request.
pub(super) type Reply = Result<Answer, Silence>;

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
        let authority = config.root_cert.clone().unwrap_or_default().into();
        let client = Client::try_from(config)
            .map_err(|source| ClusterError::BadConfig { from, source: source.into() })?;
        let mut cluster = Self { client, server, version: String::new(), authority };
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

    /// The same cluster. It reports the HTTP status of the response to each request; `None` if there was no
    /// response.
    #[must_use]
    pub fn reporting(&self, report: impl Fn(Option<u16>) + Send + Sync + 'static) -> Self {
        let client = requests::reporting(self.client.clone(), Arc::new(report));
        Self { client, ..self.clone() }
    }

    /// A client for one list or watch.
    pub(super) fn client(&self) -> Client {
        watch::paced(self.client.clone(), ANSWER_LIMIT)
    }

    /// The certificate authorities of the kubeconfig. Empty if those of the system apply.
    pub(super) fn authority(&self) -> &[Vec<u8>] {
        &self.authority
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
        let bad = |source| ClusterError::BadAnswer { what: what.to_owned(), source };
        serde_json::from_slice(&body).map_err(bad)
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
    ) -> Result<Answer, ClusterError> {
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
            Ok::<_, Silence>(Answer { status, retry_after, body })
        };
        tokio::time::timeout(ANSWER_LIMIT, exchange).await?
    }

    /// Turns an error of kube's client into one of ours.
    pub(super) fn failed_in_client(&self, what: &str, error: kube::Error) -> ClusterError {
        let what = what.to_owned();
        match error {
            kube::Error::Api(status) => {
                ClusterError::Rejected { what, code: status.code, message: status.message }
            }
            error => {
                let (server, source) = (self.server.clone(), error.into());
                ClusterError::Unreachable { what, server, source }
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
        Self { client, server: String::new(), version: String::new(), authority: Arc::default() }
    }
}

impl<'c> Call<'c> {
    /// A GET.
    pub(super) const fn get(path: &'c str) -> Self {
        Self { method: Method::GET, path, format: "", body: Bytes::new() }
    }
}

impl Answer {
    /// Whether this is a temporary failure.
    pub const fn passes(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
    }

    /// The message of the server.
    pub fn message(&self) -> String {
        let Status { message, details, .. } = self.to_status();
        let causes = details.into_iter().flat_map(|details| details.causes);
        let causes: Vec<String> = causes
            .map(|cause| match cause.field.as_str() {
                "" => cause.message,
                field => format!("{field}: {}", cause.message),
            })
            .collect();
        // The message of `Invalid` repeats its causes.
        if !causes.is_empty() {
            return causes.join("; ");
        }
        if !message.is_empty() {
            return message;
        }
        // A proxy may send a page of HTML.
        let text = String::from_utf8_lossy(&self.body);
        let line = text.lines().next().unwrap_or_default().chars().take(200);
        format!("HTTP {} {}", self.status, line.collect::<String>())
    }

    /// The body as a `metav1.Status`; empty if it is something else.
    pub(super) fn to_status(&self) -> Status {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Whether the server names fields of the object that it rejects.
    pub(super) fn has_causes(&self) -> bool {
        self.to_status().details.is_some_and(|details| !details.causes.is_empty())
    }

    /// Whether this is a 404 of an API server that knows the kind, but not this object. A router's 404
    /// names no object.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        self.status == 404 && self.to_status().details.is_some_and(|details| details.name == name)
    }
}

/// Whether a request failed temporarily. An invalid request always fails.
pub(super) fn passes(reply: &Reply) -> bool {
    match reply {
        Ok(answer) => answer.passes(),
        Err(silence) => !is_no_request(silence),
    }
}

/// The delay that the server requests.
pub(super) fn retry_after(reply: &Reply) -> Option<Duration> {
    reply.as_ref().ok()?.retry_after
}

/// Whether the response is a 500.
pub(super) fn is_internal(reply: &Reply) -> bool {
    reply.as_ref().is_ok_and(|answer| answer.status == 500)
}

/// Whether the request was invalid and was not sent.
pub(super) fn is_no_request(silence: &Silence) -> bool {
    silence.is::<http::Error>()
}

/// `Retry-After`: a number of seconds, or a time. API servers send seconds, some proxies a time. It is
/// compared with the time of the response, because the clock of this machine may differ.
fn requested_delay(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let asked = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = |text: &str| rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    time(asked)?.duration_since(time(text(DATE)?)?).try_into().ok()
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
        // Like `Config::infer`, but that one's error contains lines of the file.
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

/// The error of a kubeconfig without an excerpt: the next line may be a token.
fn without_secrets(error: KubeconfigError) -> Silence {
    match error {
        KubeconfigError::Parse(error) => {
            format!("invalid YAML: {}", error.without_snippet()).into()
        }
        // Its message contains its cause.
        error => with_causes(&error).into(),
    }
}

/// Removes user and password from an address, because errors and journals contain it. client-go
/// uses them for basic auth, which API servers no longer support since 1.19.
fn without_user(url: &Uri) -> Result<Uri, Silence> {
    let Some((_, host)) = url.authority().and_then(|whole| whole.as_str().rsplit_once('@')) else {
        return Ok(url.clone());
    };
    let mut parts = url.clone().into_parts();
    parts.authority = Some(host.parse()?);
    Ok(Uri::from_parts(parts)?)
}

/// A token for a header. A block of YAML (`token: |`) ends with a line break.
fn one_line(token: &SecretString) -> Result<SecretString, Silence> {
    let text = token.expose_secret().trim();
    if HeaderValue::from_str(text).is_err() {
        return Err("the token of the user contains a line break or a control character".into());
    }
    Ok(SecretString::from(text))
}

/// Limits the wait for an address without a server.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The API server ends every request after 60 s (`--request-timeout`).
const ANSWER_LIMIT: Duration = Duration::from_secs(70);

/// Aggregated API servers may ignore the first type.
const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::with_causes;

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
        configured.map(|(config, _)| config).map_err(|error| with_causes(&error))
    }

    #[tokio::test]
    async fn the_error_of_a_broken_kubeconfig_has_a_location_and_no_excerpt() {
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
    async fn the_password_of_an_address_is_removed() {
        let config = configured("https://me:SECRET@a:6443/path", "b").await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://a:6443/path");
    }

    #[test]
    fn an_invalid_request_is_not_retried() {
        let made = Request::builder().uri("/apis/a b").body(());
        assert!(!passes(&Err(made.unwrap_err().into())));
        assert!(passes(&Err("connection reset".into())));
    }

    #[test]
    fn a_requested_delay_is_a_number_of_seconds_or_a_time_after_the_response() {
        let delay = |retry_after: &str, date: &str| {
            let headers = [(RETRY_AFTER, retry_after), (DATE, date)];
            let value = |text: &str| HeaderValue::from_str(text).unwrap();
            let headers = headers.into_iter().filter(|(_, text)| !text.is_empty());
            requested_delay(&headers.map(|(name, text)| (name, value(text))).collect())
        };
        let (now, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:44 GMT");
        assert_eq!(delay("7", ""), Some(Duration::from_secs(7)));
        assert_eq!(delay(later, now), Some(Duration::from_secs(7)));
        for (retry_after, date) in
            [("", now), (later, ""), (now, later), ("soon", now), ("-1", now)]
        {
            assert_eq!(delay(retry_after, date), None, "{retry_after:?} {date:?}");
        }
    }

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer { status, retry_after: None, body: Bytes::from_static(body.as_bytes()) }
    }

    #[test]
    fn the_message_of_a_failure_has_its_causes_its_message_or_its_first_line() {
        let invalid = r#"{"message":"long","details":{"causes":[
            {"reason":"FieldValueInvalid","message":"must be a string","field":"status.phase"}]}}"#;
        assert_eq!(answer(422, invalid).message(), "status.phase: must be a string");
        assert_eq!(answer(403, r#"{"message":"no"}"#).message(), "no");
        assert_eq!(answer(502, "<html>\n<body>").message(), "HTTP 502 <html>");
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        for (status, passes) in [(429, true), (500, true), (503, true), (403, false), (422, false)]
        {
            assert_eq!(answer(status, "").passes(), passes, "{status}");
        }
    }

    #[test]
    fn a_failed_test_of_a_json_patch_has_no_causes_and_a_rejected_object_has() {
        let has_causes = |details: &str| {
            let body = format!(
                r#"{{"kind":"Status","status":"Failure","reason":"Invalid","code":422,"message":"the server rejected our request due to an error in our request","details":{details}}}"#
            );
            Answer { status: 422, retry_after: None, body: body.into() }.has_causes()
        };
        assert!(!has_causes("{}"));
        let cause = r#"{"reason":"FieldValueInvalid","message":"m","field":"webhooks[0].rules"}"#;
        assert!(has_causes(&format!(r#"{{"causes":[{cause}]}}"#)));
    }
}
