//! PEM text in, usable keys out, or a sentence that says which file is wrong and how.
//!
//! Whatever the API server would stumble over later is refused here: a key of another certificate,
//! a certificate that is over, one without names. A certificate that is *not yet* valid passes: its
//! issuer's clock may be some seconds ahead of ours, and refusing would keep us on a worse one.

use std::fmt;
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
use thiserror::Error;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The content of a PEM file, with its name for messages.
#[derive(Clone, Copy)]
pub struct Pem<'a> {
    /// Where it came from, as shown to people.
    pub name: &'a str,
    /// The bytes.
    pub text: &'a [u8],
}

/// A serving certificate with its key, checked.
#[derive(Clone)]
pub struct Bundle {
    /// Chain and key, as rustls takes them.
    pub key: Arc<CertifiedKey>,
    /// From when the leaf is valid.
    pub not_before: Timestamp,
    /// Until when the leaf is valid.
    pub not_after: Timestamp,
    /// The DNS names and IP addresses of the leaf.
    pub names: Vec<String>,
}

impl Bundle {
    /// Reads a chain (leaf first) and the leaf's key.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn parse(certificate: Pem<'_>, key: Pem<'_>, now: Timestamp) -> Result<Self, BundleError> {
        let chain = certificates(certificate)?;
        let secret = PrivateKeyDer::from_pem_slice(key.text).map_err(|source| match source {
            pem::Error::NoItemsFound => BundleError::NoKey { name: key.name.to_owned() },
            source => BundleError::FailedReadPem { name: key.name.to_owned(), source },
        })?;
        let Some(leaf) = chain.first() else {
            return Err(BundleError::NoCertificate { name: certificate.name.to_owned() });
        };
        let facts = Facts::read(leaf, certificate.name)?;
        if facts.not_after < now {
            let name = certificate.name.to_owned();
            return Err(BundleError::Expired { name, on: facts.not_after });
        }
        if facts.names.is_empty() {
            return Err(BundleError::NoNames { name: certificate.name.to_owned() });
        }
        let key =
            CertifiedKey::from_der(chain, secret, &ring::default_provider()).map_err(|source| {
                match source {
                    rustls::Error::InconsistentKeys(_) => BundleError::ForeignKey {
                        certificate: certificate.name.to_owned(),
                        key: key.name.to_owned(),
                    },
                    source => BundleError::UnusableKey { name: key.name.to_owned(), source },
                }
            })?;
        let Facts { not_before, not_after, names } = facts;
        Ok(Self { key: Arc::new(key), not_before, not_after, names })
    }

    /// Whether a client that trusts this authority alone would accept this certificate. The check
    /// is a client's own, not a comparison of names.
    #[must_use]
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

/// The common name of the first certificate of a PEM text, and when it ends: what a person would
/// call it.
#[must_use]
pub fn subject(pem: Pem<'_>) -> Option<(String, Timestamp)> {
    let certificates = certificates(pem).ok()?;
    let (_, certificate) = X509Certificate::from_der(certificates.first()?).ok()?;
    let name = certificate.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
    Some((name, Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?))
}

// rustls' own `Debug` of a key is careful today; a log line must not depend on it.
impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle")
            .field("names", &self.names)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// The authorities whose clients may connect (`--client-ca`).
#[derive(Clone, Debug)]
pub struct ClientAuthorities(Arc<dyn ClientCertVerifier>);

impl ClientAuthorities {
    /// Reads one or more CA certificates.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn parse(authorities: Pem<'_>) -> Result<Self, BundleError> {
        let refused = |source: Box<dyn std::error::Error + Send + Sync>| {
            BundleError::UnusableAuthority { name: authorities.name.to_owned(), source }
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authorities)? {
            roots.add(certificate).map_err(|source| refused(source.into()))?;
        }
        WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::new(ring::default_provider()),
        )
        .build()
        .map(Self)
        .map_err(|source| refused(source.into()))
    }

    pub(super) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.0)
    }
}

/// What a certificate says of itself.
struct Facts {
    not_before: Timestamp,
    not_after: Timestamp,
    names: Vec<String>,
}

impl Facts {
    fn read(leaf: &CertificateDer<'_>, name: &str) -> Result<Self, BundleError> {
        let unreadable = || BundleError::UnreadableCertificate { name: name.to_owned() };
        let (_, leaf) = X509Certificate::from_der(leaf).map_err(|_| unreadable())?;
        let time = |seconds| Timestamp::from_second(seconds).map_err(|_| unreadable());
        let names = leaf.subject_alternative_name().map_err(|_| unreadable())?;
        let names = names.map_or_else(Vec::new, |names| {
            names.value.general_names.iter().filter_map(readable_name).collect()
        });
        Ok(Self {
            not_before: time(leaf.validity().not_before.timestamp())?,
            not_after: time(leaf.validity().not_after.timestamp())?,
            names,
        })
    }
}

fn readable_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            if let Ok(v4) = <[u8; 4]>::try_from(*bytes) {
                Some(std::net::Ipv4Addr::from(v4).to_string())
            } else {
                let v6 = <[u8; 16]>::try_from(*bytes).ok()?;
                Some(std::net::Ipv6Addr::from(v6).to_string())
            }
        }
        _ => None,
    }
}

/// Every certificate of a PEM text. One that cannot be read is an error and not skipped: a chain
/// with a hole fails at the client, far from its cause.
fn certificates(pem: Pem<'_>) -> Result<Vec<CertificateDer<'static>>, BundleError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem.text)
        .collect::<Result<_, _>>()
        .map_err(|source| BundleError::FailedReadPem { name: pem.name.to_owned(), source })?;
    if chain.is_empty() {
        return Err(BundleError::NoCertificate { name: pem.name.to_owned() });
    }
    Ok(chain)
}

/// What is wrong with a certificate, a key or a CA file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The text is broken PEM.
    #[error("failed to read {name} as PEM")]
    FailedReadPem {
        /// The file.
        name: String,
        /// Where PEM breaks.
        source: pem::Error,
    },
    /// There is PEM or nothing, but no certificate.
    #[error("no certificate in {name}")]
    NoCertificate {
        /// The file.
        name: String,
    },
    /// There is PEM or nothing, but no private key.
    #[error("no private key in {name}")]
    NoKey {
        /// The file.
        name: String,
    },
    /// The PEM is fine, what is in it is not X.509.
    #[error("the certificate in {name} is not a readable X.509 certificate")]
    UnreadableCertificate {
        /// The file.
        name: String,
    },
    /// Certificate and key are not a pair.
    #[error("the key in {key} does not belong to the certificate in {certificate}")]
    ForeignKey {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
    },
    /// A kind of key that cannot sign here.
    #[error("the key in {name} cannot be used (ECDSA P-256, P-384, Ed25519 and RSA can)")]
    UnusableKey {
        /// The file.
        name: String,
        /// What the TLS library says.
        source: rustls::Error,
    },
    /// The certificate is over.
    #[error("the certificate in {name} expired on {on}")]
    Expired {
        /// The file.
        name: String,
        /// When.
        on: Timestamp,
    },
    /// Only a common name, which no API server has looked at since Kubernetes 1.19.
    #[error("the certificate in {name} has no DNS name or IP address (subject alternative name)")]
    NoNames {
        /// The file.
        name: String,
    },
    /// Not a CA that clients could be checked against.
    #[error("failed to use {name} as client CA")]
    UnusableAuthority {
        /// The file.
        name: String,
        /// What the TLS library says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Authority;

    const DAY: Duration = Duration::from_secs(86_400);

    fn issue(now: Timestamp) -> crate::tls::Issued {
        let authority = Authority::make("test", 10 * DAY, now).unwrap();
        authority.issue(&["localhost".into(), "::1".into()], DAY, now).unwrap()
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
    fn an_issued_pair_is_read_back_with_its_names_and_times() {
        let issued = issue(now());
        let bundle = parse(&issued.certificate, &issued.key, now()).unwrap();
        assert_eq!(bundle.names, ["localhost", "::1"]);
        assert_eq!(bundle.not_after, "2026-11-22T00:00:00Z".parse().unwrap());
    }

    #[test]
    fn a_key_of_another_generation_is_called_foreign() {
        let error = parse(&issue(now()).certificate, &issue(now()).key, now()).unwrap_err();
        assert_eq!(error, "the key in tls.key does not belong to the certificate in tls.crt");
    }

    #[test]
    fn an_expired_certificate_says_when_it_expired() {
        let issued = issue(now());
        let later = "2026-12-24T00:00:00Z".parse().unwrap();
        let error = parse(&issued.certificate, &issued.key, later).unwrap_err();
        assert_eq!(error, "the certificate in tls.crt expired on 2026-11-22T00:00:00Z");
    }

    #[test]
    fn swapped_empty_and_cut_files_are_told_apart() {
        let issued = issue(now());
        let said = |certificate, key| parse(certificate, key, now()).unwrap_err();
        assert_eq!(said(&issued.key, &issued.certificate), "no certificate in tls.crt");
        assert_eq!(said("", &issued.key), "no certificate in tls.crt");
        assert_eq!(said(&issued.certificate, ""), "no private key in tls.key");
        let cut = &issued.certificate[..issued.certificate.len() / 2];
        assert_eq!(said(cut, &issued.key), "failed to read tls.crt as PEM");
    }
}
