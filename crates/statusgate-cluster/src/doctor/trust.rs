//! Verifies certificates like the API server: `crypto/x509` of Go, which differs from webpki.
//!
//! Go checks the dates of the authorities; for webpki, a trust anchor is only a name and a key. And Go
//! accepts a registered leaf certificate (`x509.Certificate.Verify`: a leaf among the roots is a chain of
//! one); then only name and dates matter.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, VerifierBuilderError};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use statusgate_tls::Validity;

/// The authorities of a registration.
#[derive(Clone, Debug, Default)]
pub(super) struct Authorities {
    /// Those that are currently valid.
    pub(super) valid: Vec<CertificateDer<'static>>,
    /// The validity of one that is expired or not valid yet.
    pub(super) invalid: Option<Validity>,
}

impl Authorities {
    /// Reads a `caBundle`. Like Go, it ignores everything that is not a certificate.
    pub(super) fn read(bundle: &[u8], now: Timestamp) -> Self {
        let mut authorities = Self::default();
        for certificate in CertificateDer::pem_slice_iter(bundle).flatten() {
            match Validity::of(&certificate) {
                Some(validity) if validity.contains(now) => authorities.valid.push(certificate),
                Some(validity) => authorities.invalid = Some(validity),
                None => {}
            }
        }
        authorities
    }

    /// The verifier for served certificates.
    pub(super) fn verifier(&self) -> Result<Arc<Verifier>, VerifierBuilderError> {
        let mut roots = RootCertStore::empty();
        // A certificate that webpki rejects cannot sign, but the server may serve it itself.
        roots.add_parsable_certificates(self.valid.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let webpki = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build()?;
        Ok(Arc::new(Verifier { registered: self.valid.clone(), webpki }))
    }

    /// The validity of the authority of a chain: the longest of those that are an issuer in the chain
    /// or a part of it.
    pub(super) fn validity_behind(&self, chain: &[CertificateDer<'_>]) -> Option<Validity> {
        let behind = |authority: &&CertificateDer<'static>| {
            let Ok((_, parsed)) = X509Certificate::from_der(authority) else { return false };
            chain.iter().any(|shown| {
                let issued = X509Certificate::from_der(shown)
                    .is_ok_and(|(_, shown)| shown.issuer().as_raw() == parsed.subject().as_raw());
                issued || shown == *authority
            })
        };
        let behind = self.valid.iter().filter(behind);
        behind.filter_map(|authority| Validity::of(authority)).max_by_key(|of| of.not_after)
    }
}

/// Verifies a certificate like the API server.
#[derive(Debug)]
pub(super) struct Verifier {
    registered: Vec<CertificateDer<'static>>,
    webpki: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.registered.iter().any(|registered| registered == end_entity) {
            // `read` has checked its dates.
            let parsed = ParsedCertificate::try_from(end_entity)?;
            rustls::client::verify_server_name(&parsed, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;
    use statusgate_tls::Authority;

    const DAY: Duration = Duration::from_secs(86_400);

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn valid(days: u32) -> Validity {
        Validity::from_now(days * DAY, now())
    }

    fn der(pem: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    fn accepts(bundle: &str, leaf: &CertificateDer<'_>, name: &str) -> bool {
        let verifier = Authorities::read(bundle.as_bytes(), now()).verifier().unwrap();
        let time =
            UnixTime::since_unix_epoch(Duration::from_secs(now().as_second().try_into().unwrap()));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(leaf, &[], &name, &[], time).is_ok()
    }

    #[test]
    fn an_expired_authority_is_ignored() {
        let year_ago = now() - 365 * DAY;
        let old = Authority::make("old", Validity::from_now(30 * DAY, year_ago)).unwrap();
        let new = Authority::make("new", valid(3650)).unwrap();
        let read = |bundle: &str| Authorities::read(bundle.as_bytes(), now());
        let authorities = read(old.certificate());
        assert!(authorities.valid.is_empty());
        assert_eq!(authorities.invalid.unwrap().not_after, year_ago + 30 * DAY);
        let both = format!("{}{}", old.certificate(), new.certificate());
        assert_eq!(read(&both).valid, [der(new.certificate())]);
        let leaf = |authority: &Authority| {
            der(&authority.issue(&["a.b.svc".into()], valid(30)).unwrap().certificate)
        };
        assert!(accepts(&both, &leaf(&new), "a.b.svc"));
        assert!(!accepts(&both, &leaf(&new), "b.b.svc"));
        assert!(!accepts(&both, &leaf(&old), "a.b.svc"));
    }

    #[test]
    fn a_registered_leaf_is_accepted_for_its_name() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["a.b.svc".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let leaf = params.self_signed(&key).unwrap();
        let (pem, leaf) = (leaf.pem(), leaf.der());
        assert!(accepts(&pem, leaf, "a.b.svc"));
        assert!(!accepts(&pem, leaf, "b.b.svc"));
    }

    #[test]
    fn the_expiry_of_the_authority_of_a_certificate_is_known() {
        let authority = Authority::make("ca", valid(10)).unwrap();
        let other = Authority::make("other", valid(3650)).unwrap();
        let leaf = authority.issue(&["a.b.svc".into()], valid(365)).unwrap();
        let bundle = format!("{}{}", other.certificate(), authority.certificate());
        let authorities = Authorities::read(bundle.as_bytes(), now());
        let validity = authorities.validity_behind(&[der(&leaf.certificate)]).unwrap();
        assert_eq!(validity.not_after, now() + 10 * DAY);
    }
}
