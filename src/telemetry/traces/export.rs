//! Sends batches of spans to a collector. A dead collector costs one attempt for each batch; its spans are
//! counted and forgotten.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Finished, Ids, Sampler, SpanCounters, Traces, protobuf};
use crate::telemetry::Metrics;

/// Where spans are sent.
#[derive(Clone, Debug)]
pub struct Collector {
    url: Uri,
    headers: HeaderMap,
    resource: Vec<(String, String)>,
    client: HttpClient,
    /// Which traces are exported.
    pub sampler: Sampler,
    /// The longest time between the first span of a batch and its export.
    pub delay: Duration,
}

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

impl Collector {
    /// A collector of OTLP over HTTP. `url` is the complete address, `authorities` a PEM file of the CAs that
    /// it may use in place of those of the system, `resource` the attributes of this process.
    ///
    /// # Errors
    /// An address that is not http or https, or broken authorities.
    pub fn new(
        url: &str,
        authorities: Option<&[u8]>,
        resource: Vec<(String, String)>,
    ) -> Result<Self, TraceError> {
        let url: Uri = url.parse().map_err(|_| TraceError::BadAddress)?;
        let tls = match url.scheme_str() {
            // Reading the authorities of the system takes memory.
            Some("http") => trusting(RootCertStore::empty())?,
            Some("https") => match authorities {
                Some(pem) => trusting(roots(pem)?)?,
                None => HttpsConnectorBuilder::new()
                    .with_provider_and_native_roots(ring::default_provider())
                    .map_err(TraceError::NoAuthorities)?,
            },
            _ => return Err(TraceError::BadAddress),
        };
        let connector = tls.https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let (headers, sampler) = (HeaderMap::new(), Sampler::default());
        Ok(Self { url, headers, resource, client, sampler, delay: DELAY })
    }

    /// Adds a header to each request. Its value is not shown in logs.
    ///
    /// # Errors
    /// An invalid name or value.
    pub fn header(&mut self, name: &str, value: &str) -> Result<(), TraceError> {
        let broken = || TraceError::BadHeader(name.to_owned());
        let header = HeaderName::try_from(name).map_err(|_| broken())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| broken())?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(())
    }

    /// The start and the end of the queue.
    pub fn open(self, metrics: &Metrics) -> (Traces, Exporter) {
        let (queue, spans) = mpsc::channel(QUEUED_SPANS);
        let counters = metrics.spans.clone();
        let (sampler, ids) = (self.sampler, Arc::<Ids>::default());
        let traces = Traces { queue, sampler, ids, counters: counters.clone() };
        (traces, Exporter { collector: self, spans, counters, batch: Vec::new(), failure: None })
    }
}

type WithTls = HttpsConnectorBuilder<hyper_rustls::builderstates::WantsSchemes>;

fn trusting(roots: RootCertStore) -> Result<WithTls, TraceError> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TraceError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(HttpsConnectorBuilder::new().with_tls_config(config))
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TraceError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| TraceError::BadAuthorities)?;
        roots.add(certificate).map_err(|_| TraceError::BadAuthorities)?;
    }
    if roots.is_empty() { Err(TraceError::BadAuthorities) } else { Ok(roots) }
}

/// The end of the queue.
#[derive(Debug)]
pub struct Exporter {
    collector: Collector,
    spans: mpsc::Receiver<Finished>,
    counters: SpanCounters,
    /// The next batch, also while it is sent: the last one is sent again if the server ends meanwhile.
    batch: Vec<Finished>,
    /// The failure of the last batch.
    failure: Option<String>,
}

impl Exporter {
    /// Exports spans until `closing` completes, and then those in the queue.
    pub async fn run(mut self, closing: impl Future<Output = ()>) {
        tokio::select! {
            () = closing => {}
            () = self.export() => {}
        }
        self.spans.close();
        while !self.batch.is_empty() || self.receive().await {
            self.send().await;
        }
    }

    async fn export(&mut self) {
        while self.receive().await {
            let delay = self.collector.delay;
            let fill = async { while self.batch.len() < BATCH && self.receive().await {} };
            // A batch that is not full is complete after the delay.
            let _ = timeout(delay, fill).await;
            self.send().await;
        }
    }

    /// Waits for spans. Returns whether there may be more.
    async fn receive(&mut self) -> bool {
        let free = BATCH - self.batch.len();
        self.spans.recv_many(&mut self.batch, free).await > 0
    }

    async fn send(&mut self) {
        let failure = self.collector.post(&self.batch).await.err();
        let spans = self.batch.len() as u64;
        self.batch.clear();
        match &failure {
            None => self.counters.exported.inc_by(spans),
            Some(_) => self.counters.failed.inc_by(spans),
        };
        if failure == self.failure {
            return;
        }
        match &failure {
            None => tracing::info!("the collector accepts traces again"),
            Some(error) => {
                tracing::warn!(error, "traces are lost: the collector does not accept them");
            }
        }
        self.failure = failure;
    }
}

impl Collector {
    async fn post(&self, batch: &[Finished]) -> Result<(), String> {
        let body = protobuf::request(&self.resource, batch);
        let mut request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(USER_AGENT, concat!("statusgate/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        request.headers_mut().extend(self.headers.clone());
        let exchange = async {
            let response =
                self.client.request(request).await.map_err(|error| with_cause(&error))?;
            let status = response.status();
            // A connection is reused only after its response was read.
            let _ = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
            if status.is_success() { Ok(()) } else { Err(format!("HTTP {status}")) }
        };
        timeout(TIMEOUT, exchange).await.unwrap_or_else(|_| Err("no response in time".to_owned()))
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", with_cause(cause)),
        None => error.to_string(),
    }
}

/// An error in the settings of traces.
#[derive(Debug, Error)]
pub enum TraceError {
    /// An address that is not a URL with http or https. It is not shown: it may contain a password.
    #[error("the address of the OTLP collector is not an http or https URL")]
    BadAddress,
    /// A header with characters that HTTP does not allow.
    #[error("the header {0:?} for the OTLP collector is invalid")]
    BadHeader(String),
    /// A file without a valid certificate.
    #[error("the certificates for the OTLP collector are not valid PEM")]
    BadAuthorities,
    /// The certificates of the system cannot be read.
    #[error(
        "failed to read the certificate authorities of the system; name a file for the OTLP collector"
    )]
    NoAuthorities(#[source] std::io::Error),
    /// The TLS library rejects its configuration.
    #[error("failed to configure TLS for the OTLP collector")]
    Tls(#[source] rustls::Error),
}

/// The defaults of OpenTelemetry's batch processor and exporter.
const QUEUED_SPANS: usize = 2_048;
const BATCH: usize = 512;
const DELAY: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(10);

const MAX_RESPONSE: usize = 64 << 10;
