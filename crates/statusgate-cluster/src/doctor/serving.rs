//! The server that a registration calls: whether the API server accepts its certificate, and whether it
//! is statusgate.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::{CONTENT_TYPE, HOST};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::hook::Hook;
use super::trust::Authorities;
use crate::CheckResult;
use crate::call::Silence;
use statusgate_tls::{Expiry, Validity};

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

/// Checks the server of one webhook. `elsewhere` is its address from here, if different.
pub(super) async fn check(
    hook: &Hook,
    elsewhere: Option<&Address>,
    now: Timestamp,
) -> Vec<CheckResult> {
    let subject = hook.subject();
    let problem = |id, message: String, help: &str| {
        vec![CheckResult::problem(id, subject.clone(), message, help)]
    };
    let Some(own) = own_address(hook) else {
        let message = "clientConfig has neither a service nor a URL".to_owned();
        return problem("reachable", message, "set one");
    };
    let fill_in = "set caBundle with cert-manager, or with the commands in docs/install.md";
    if hook.ca_bundle().is_empty() {
        let message = "caBundle is empty: the API server uses its system roots";
        return vec![CheckResult::warning("ca-bundle", subject, message, fill_in)];
    }
    let authorities = Authorities::read(hook.ca_bundle(), now);
    if authorities.valid.is_empty() {
        let message = match authorities.invalid {
            Some(Validity { not_before: from, not_after: until }) => {
                format!("the CA in caBundle is valid from {from} until {until}: every call fails")
            }
            None => "caBundle contains no CA: every call fails".to_owned(),
        };
        return problem("ca-bundle", message, fill_in);
    }
    let address = elsewhere.unwrap_or(&own);
    let stream = match connect(address, &own.host, &authorities).await {
        Ok(stream) => stream,
        Err(error) => {
            if let Some(reason) = rejection(&error) {
                let (mut message, help) = distrust(reason, &own.host);
                if let Some(Validity { not_after: until, .. }) = authorities.invalid {
                    message.push_str(&format!(" (one registered CA is valid until {until})"));
                }
                return problem("ca-bundle", message, help);
            }
            if elsewhere.is_none() && hook.service().is_some() {
                let message = format!("cannot reach {address} from here: {error}");
                let help = "run doctor in the cluster, or forward the port and pass it with --url";
                return vec![CheckResult::warning("reachable", subject, message, help)];
            }
            let message = format!("cannot reach {address}: {error}");
            return problem("reachable", message, "start statusgate there, or correct the address");
        }
    };
    let mut checks = vec![CheckResult::ok(
        "ca-bundle",
        subject.clone(),
        format!("the CA verifies the certificate of {address}"),
    )];
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    checks.extend(expiry(chain, &authorities, &subject, now));
    checks.push(match ask(stream, hook, &own).await {
        Ok(()) => {
            CheckResult::ok("reachable", subject, format!("statusgate responds at {address}"))
        }
        Err(error) => CheckResult::problem(
            "reachable",
            subject,
            format!("{address} does not respond like statusgate: {error}"),
            "check what listens there",
        ),
    });
    checks
}

/// The address that the API server connects to; its host is the expected name of the certificate.
fn own_address(hook: &Hook) -> Option<Address> {
    if let Some(service) = hook.service() {
        let host = format!("{}.{}.svc", service.name, service.namespace);
        return Some(Address { host, port: service.port });
    }
    hook.settings.client_config.url.as_deref()?.parse().ok()
}

async fn connect(
    address: &Address,
    name: &str,
    authorities: &Authorities,
) -> Result<TlsStream<TcpStream>, Silence> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(authorities.verifier()?)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned())?;
    let exchange = async {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    };
    Ok(tokio::time::timeout(LIMIT, exchange).await??)
}

/// The reason of a failed handshake. A missing connection has none.
fn rejection(error: &Silence) -> Option<&rustls::Error> {
    error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
}

/// Why a certificate is rejected, and the fix.
fn distrust(error: &rustls::Error, name: &str) -> (String, &'static str) {
    let rustls::Error::InvalidCertificate(reason) = error else {
        return (format!("the handshake fails: {error}"), "check what listens there");
    };
    match reason {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            "the registered CA did not issue the served certificate".to_owned(),
            "register the CA of this certificate, or serve a certificate of the registered CA",
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            format!("the served certificate is not valid for {name}"),
            "issue one with this name: statusgate certs --help",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ("the served certificate has expired".to_owned(), "issue a new one")
        }
        other => (format!("the served certificate is invalid: {other:?}"), "issue a new one"),
    }
}

/// Checks the expiry of the certificate and of its CA.
fn expiry(
    chain: &[CertificateDer<'_>],
    authorities: &Authorities,
    subject: &str,
    now: Timestamp,
) -> Vec<CheckResult> {
    let is_far = |validity: Validity| validity.expiry(now) == Expiry::Far;
    let mut checks = Vec::new();
    if let Some(validity) = chain.first().and_then(|leaf| Validity::of(leaf)) {
        let message = format!("the certificate is valid until {}", validity.not_after);
        checks.push(if is_far(validity) {
            CheckResult::ok("certificate", subject, message)
        } else {
            let help = "renew it; a running server reloads the file";
            CheckResult::warning("certificate", subject, message, help)
        });
    }
    let authority = authorities.validity_behind(chain);
    if let Some(validity) = authority.filter(|validity| !is_far(*validity)) {
        let message = format!("the CA of the certificate is valid until {}", validity.not_after);
        let help = "register a new CA in addition, then serve a certificate of the new CA";
        checks.push(CheckResult::warning("ca-bundle", subject, message, help));
    }
    checks
}

/// Sends a review for a resource that no policy judges. statusgate allows it and returns its uid.
async fn ask(stream: TlsStream<TcpStream>, hook: &Hook, own: &Address) -> Result<(), Silence> {
    let exchange = async {
        let (mut requests, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // It ends the connection when it is dropped.
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        // The server of the documents serves this path too.
        let path = hook.webhook().path();
        let request = Request::post(path)
            .header(HOST, &own.host)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from_static(QUESTION.as_bytes())))?;
        let answer = requests.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let response = &answer["response"];
        if response["uid"] == UID && response["allowed"] == true {
            return Ok(());
        }
        Err(Silence::from(format!(
            "HTTP {status} without an AdmissionReview response to this request"
        )))
    };
    tokio::time::timeout(LIMIT, exchange).await?
}

impl FromStr for Address {
    type Err = String;

    /// `https://HOST[:PORT][/…]`, or `HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an address such as https://127.0.0.1:8443");
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        match (uri.scheme_str(), uri.port_u16()) {
            (Some("https"), port) => Ok(Self { host, port: port.unwrap_or(443) }),
            (None, Some(port)) => Ok(Self { host, port }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(formatter, "[{host}]:{port}")
        } else {
            write!(formatter, "{host}:{port}")
        }
    }
}

/// The default timeout of the API server.
const LIMIT: Duration = Duration::from_secs(10);

const UID: &str = "statusgate-doctor";

const QUESTION: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
"uid":"statusgate-doctor","kind":{"group":"statusgate.dev","version":"v1","kind":"Question"},
"resource":{"group":"statusgate.dev","version":"v1","resource":"questions"},"subResource":"status",
"name":"doctor","operation":"UPDATE","userInfo":{"username":"statusgate-doctor"},
"object":{"apiVersion":"statusgate.dev/v1","kind":"Question","metadata":{"name":"doctor"}},
"oldObject":{"apiVersion":"statusgate.dev/v1","kind":"Question","metadata":{"name":"doctor"}},"dryRun":true}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_a_url_or_host_and_port() {
        for (text, address) in [
            ("https://127.0.0.1:8443", "127.0.0.1:8443"),
            ("https://statusgate.example.org/mutate", "statusgate.example.org:443"),
            ("localhost:8443", "localhost:8443"),
            ("https://[::1]:8443/", "[::1]:8443"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), address);
        }
        for text in ["", "http://127.0.0.1:8443", "localhost", "/mutate"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_reason_of_a_rejected_certificate_is_named() {
        let message = |reason| distrust(&rustls::Error::InvalidCertificate(reason), "a.b.svc").0;
        assert!(message(CertificateError::UnknownIssuer).contains("registered CA did not issue"));
        assert!(message(CertificateError::NotValidForName).ends_with("is not valid for a.b.svc"));
        assert!(message(CertificateError::Expired).ends_with("has expired"));
    }
}
