//! Reads certificates, keys and CA files from PEM text.
//!
//! Rejects here what the API server would reject later: the key of another certificate, an expired
//! certificate, a certificate without names. A certificate that is *not yet* valid passes: its
//! issuer's clock may be some seconds ahead, and the previous certificate would not be better.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{CertificateError, Validity};

/// The content of a PEM file, with its name for messages.
#[derive(Clone, Copy)]
pub struct Pem<'a> {
    /// The file name for messages.
    pub name: &'a str,
    /// The bytes.
    pub text: &'a [u8],
}

/// A valid serving certificate with its key.
#[derive(Clone)]
pub struct Bundle {
    /// Chain and key, for rustls.
    pub key: Arc<CertifiedKey>,
    /// When the leaf is valid.
    pub validity: Validity,
    /// The DNS names and IP addresses of the leaf.
    pub names: Vec<String>,
}

impl<'a> Pem<'a> {
    /// A text and its name.
    pub const fn of(name: &'a str, text: &'a str) -> Self {
        Self { name, text: text.as_bytes() }
    }
}

impl Bundle {
    /// Reads a chain (leaf first) and the leaf's key.
    ///
    /// # Errors
    /// An invalid certificate or key; the error names the file.
    pub fn parse(
        certificate: Pem<'_>,
        key: Pem<'_>,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        let file = certificate.name;
        let chain = certificates(certificate)?;
        let secret = PrivateKeyDer::from_pem_slice(key.text).map_err(|source| match source {
            pem::Error::NoItemsFound => {
                CertificateError::new(format!("no private key in {}", key.name))
            }
            source => unreadable_pem(key, source),
        })?;
        let leaf = chain.first().ok_or_else(|| no_certificate(certificate))?;
        let invalid =
            |what: &str| CertificateError::new(format!("the certificate in {file} {what}"));
        let unreadable = || invalid("is not a readable X.509 certificate");
        let (_, leaf) = X509Certificate::from_der(leaf).map_err(|_| unreadable())?;
        let validity = Validity::in_certificate(&leaf).ok_or_else(unreadable)?;
        let names = leaf.subject_alternative_name().map_err(|_| unreadable())?;
        let names: Vec<String> = names.map_or_else(Vec::new, |names| {
            names.value.general_names.iter().filter_map(readable_name).collect()
        });
        if validity.not_after < now {
            return Err(invalid(&format!("expired on {}", validity.not_after)));
        }
        // API servers ignore the common name since Kubernetes 1.19.
        if names.is_empty() {
            return Err(invalid("has no DNS name or IP address (subject alternative name)"));
        }
        let key = CertifiedKey::from_der(chain, secret, &ring::default_provider()).map_err(
            |source| match source {
                rustls::Error::InconsistentKeys(_) => CertificateError::new(format!(
                    "the key in {} does not belong to the certificate in {file}",
                    key.name
                )),
                source => CertificateError::caused_by(
                    format!(
                        "the key in {} is not supported; use ECDSA P-256, P-384, Ed25519 or RSA",
                        key.name
                    ),
                    source,
                ),
            },
        )?;
        Ok(Self { key: Arc::new(key), validity, names })
    }

    /// Whether a client that trusts only this authority accepts this certificate. Runs the
    /// verification of a TLS client.
    pub fn is_trusted_by(&self, authority: Pem<'_>, now: Timestamp) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(authority).unwrap_or_default());
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let name = self.names.first().and_then(|name| ServerName::try_from(name.as_str()).ok());
        let (Ok(verifier), Some(name), [leaf, between @ ..]) =
            (verifier.build(), name, self.key.cert.as_slice())
        else {
            return false;
        };
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        verifier.verify_server_cert(leaf, between, &name, &[], now).is_ok()
    }
}

/// The common name and the expiry of the first certificate of a PEM text.
pub fn subject(pem: Pem<'_>) -> Option<(String, Timestamp)> {
    let certificates = certificates(pem).ok()?;
    let (_, certificate) = X509Certificate::from_der(certificates.first()?).ok()?;
    let name = certificate.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
    Some((name, Validity::in_certificate(&certificate)?.not_after))
}

// Written by hand, so that no key can reach a log through the `Debug` of rustls.
impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle")
            .field("names", &self.names)
            .field("not_after", &self.validity.not_after)
            .finish_non_exhaustive()
    }
}

/// The authorities of accepted client certificates (`--client-ca`).
#[derive(Clone, Debug)]
pub struct ClientAuthorities(pub(super) Arc<dyn ClientCertVerifier>);

impl ClientAuthorities {
    /// Reads one or more CA certificates.
    ///
    /// # Errors
    /// An invalid CA file; the error names it.
    pub fn parse(authorities: Pem<'_>) -> Result<Self, CertificateError> {
        let message = format!("failed to use {} as client CA", authorities.name);
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authorities)? {
            let added = roots.add(certificate);
            added.map_err(|source| CertificateError::caused_by(&*message, source))?;
        }
        WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::new(ring::default_provider()),
        )
        .build()
        .map(Self)
        .map_err(|source| CertificateError::caused_by(message, source))
    }
}

fn readable_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let ip = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            ip.ok().map(|ip| ip.to_string())
        }
        _ => None,
    }
}

/// Every certificate of a PEM text. An unreadable one is an error: a client would reject the
/// incomplete chain without naming the cause.
pub(super) fn certificates(pem: Pem<'_>) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem.text)
        .collect::<Result<_, _>>()
        .map_err(|source| unreadable_pem(pem, source))?;
    if chain.is_empty() { Err(no_certificate(pem)) } else { Ok(chain) }
}

fn unreadable_pem(pem: Pem<'_>, source: pem::Error) -> CertificateError {
    CertificateError::caused_by(format!("failed to read {} as PEM", pem.name), source)
}

fn no_certificate(pem: Pem<'_>) -> CertificateError {
    CertificateError::new(format!("no certificate in {}", pem.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Authority;

    const DAY: Duration = Duration::from_secs(86_400);

    fn issue(now: Timestamp) -> crate::Issued {
        let valid = |days| Validity::from_now(days * DAY, now);
        let authority = Authority::make("test", valid(10)).unwrap();
        authority.issue(&["localhost".into(), "::1".into()], valid(1)).unwrap()
    }

    fn parse(certificate: &str, key: &str, now: Timestamp) -> Result<Bundle, String> {
        let certificate = Pem { name: "tls.crt", text: certificate.as_bytes() };
        let key = Pem { name: "tls.key", text: key.as_bytes() };
        Bundle::parse(certificate, key, now).map_err(|error| error.to_string())
    }

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn parsing_an_issued_pair_returns_its_names_and_times() {
        let issued = issue(now());
        let bundle = parse(&issued.certificate, &issued.key, now()).unwrap();
        assert_eq!(bundle.names, ["localhost", "::1"]);
        assert_eq!(bundle.validity.not_after, "2026-11-22T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn the_key_of_another_certificate_is_rejected() {
        let error = parse(&issue(now()).certificate, &issue(now()).key, now()).unwrap_err();
        assert_eq!(error, "the key in tls.key does not belong to the certificate in tls.crt");
    }

    #[test]
    fn the_error_for_an_expired_certificate_has_the_date() {
        let issued = issue(now());
        let later = "2026-12-24T00:00:00Z".parse().unwrap();
        let error = parse(&issued.certificate, &issued.key, later).unwrap_err();
        assert_eq!(error, "the certificate in tls.crt expired on 2026-11-22T00:00:00Z");
    }

    #[test]
    fn swapped_empty_and_truncated_files_have_different_errors() {
        let issued = issue(now());
        let error = |certificate, key| parse(certificate, key, now()).unwrap_err();
        assert_eq!(error(&issued.key, &issued.certificate), "no certificate in tls.crt");
        assert_eq!(error("", &issued.key), "no certificate in tls.crt");
        assert_eq!(error(&issued.certificate, ""), "no private key in tls.key");
        let truncated = &issued.certificate[..issued.certificate.len() / 2];
        assert_eq!(error(truncated, &issued.key), "failed to read tls.crt as PEM");
    }
}
