//! Traces over OTLP: one span for each review, which continues the trace of the API server.
//!
//! The batch processor of the SDK has a bounded queue and a thread of its own: a request never waits. Without
//! a collector there is no tracer and no span.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnectorBuilder;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanKind, Tracer, TracerProvider};
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::runtime::Handle;

use statusgate_core::causes::with_causes;

/// The tracer of this program.
pub fn tracer(provider: &SdkTracerProvider) -> SdkTracer {
    let scope = InstrumentationScope::builder("statusgate");
    provider.tracer_with_scope(scope.with_version(env!("CARGO_PKG_VERSION")).build())
}

/// Starts the span of a request with these headers. `None` if its trace is not sampled.
pub fn start(tracer: &SdkTracer, name: &'static str, headers: &HeaderMap) -> Option<Span> {
    use opentelemetry::trace::Span as _;

    let parent = TraceContextPropagator::new()
        .extract_with_context(&Context::new(), &HeaderExtractor(headers));
    let span = tracer.span_builder(name).with_kind(SpanKind::Server);
    let span = span.start_with_context(tracer, &parent);
    span.is_recording().then_some(span)
}

/// An exporter to a collector of OTLP over HTTP. `url` is the complete address, `authorities` a PEM file of
/// the CAs that it may use in place of those of the system. The values of `headers` are percent-encoded.
/// Requests run on `runtime`.
///
/// # Errors
/// An address that is not http or https, or broken authorities.
pub fn exporter(
    url: &str,
    authorities: Option<&[u8]>,
    headers: HashMap<String, String>,
    runtime: Handle,
) -> Result<SpanExporter, TraceError> {
    let address: Uri = url.parse().map_err(|_| TraceError::BadAddress)?;
    let client: Arc<dyn HttpClient> = match address.scheme_str() {
        Some("http") => Arc::new(HyperClient::with_default_connector(TIMEOUT, None)),
        Some("https") => {
            let connector = HttpsConnectorBuilder::new();
            let connector = match authorities {
                Some(pem) => connector.with_tls_config(trusting(pem)?),
                None => connector
                    .with_provider_and_native_roots(ring::default_provider())
                    .map_err(TraceError::NoAuthorities)?,
            };
            let connector = connector.https_only().enable_http1().build();
            Arc::new(HyperClient::new(connector, TIMEOUT, None))
        }
        _ => return Err(TraceError::BadAddress),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(url)
        .with_headers(headers)
        .with_http_client(Collector { client, runtime, failing: AtomicBool::new(false) });
    Ok(exporter.build()?)
}

fn trusting(pem: &[u8]) -> Result<ClientConfig, TraceError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| TraceError::BadAuthorities)?;
        roots.add(certificate).map_err(|_| TraceError::BadAuthorities)?;
    }
    if roots.is_empty() {
        return Err(TraceError::BadAuthorities);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TraceError::Tls)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Sends the requests of the exporter. The log of the SDK is off: it has one line for each failed batch, and
/// at `debug` the address and the response, which may contain passwords.
#[derive(Debug)]
struct Collector {
    client: Arc<dyn HttpClient>,
    /// The thread of the batch processor has no runtime, and hyper needs one.
    runtime: Handle,
    failing: AtomicBool,
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = Arc::clone(&self.client);
        let response = self.runtime.spawn(async move { client.send_bytes(request).await }).await?;
        let failure = match &response {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("HTTP {}", response.status())),
            Err(error) => Some(with_causes(&**error)),
        };
        match (failure, self.failing.load(Relaxed)) {
            (Some(error), false) => {
                tracing::warn!(error, "the collector does not accept traces");
            }
            (None, true) => tracing::info!("the collector accepts traces again"),
            _ => return response,
        }
        self.failing.fetch_not(Relaxed);
        response
    }
}

/// An error in the settings of traces.
#[derive(Debug, Error)]
pub enum TraceError {
    /// An address that is not a URL with http or https. It is not shown: it may contain a password.
    #[error("the address of the OTLP collector is not an http or https URL")]
    BadAddress,
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
    /// The exporter rejects its configuration.
    #[error(transparent)]
    Exporter(#[from] ExporterBuildError),
}

/// The default of OpenTelemetry, for one request.
const TIMEOUT: Duration = Duration::from_secs(10);
