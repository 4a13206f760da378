//! Makes a certificate authority and serving certificates. Pure: the time is handed in, the texts
//! are handed back.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use thiserror::Error;
use x509_parser::pem::parse_x509_pem;

/// A certificate authority that can sign.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use statusgate::tls::Authority;
///
/// let day = Duration::from_secs(86_400);
/// let now = "2026-11-21T12:00:00Z".parse()?;
/// let authority = Authority::make("my cluster", 3650 * day, now)?;
/// let serving = authority.issue(&["statusgate.statusgate-system.svc".into()], 365 * day, now)?;
/// assert!(serving.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// Makes a new authority. `name` shows in the certificate's subject.
    ///
    /// # Errors
    /// A name that X.509 cannot hold, or no randomness.
    pub fn make(name: &str, lifetime: Duration, now: Timestamp) -> Result<Self, IssueError> {
        let failed = |source| IssueError::FailedMakeAuthority { source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(name);
        // May sign leaves, not further authorities.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_life(&mut params, lifetime, now);
        let certificate = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// Takes up an authority that was made before.
    ///
    /// # Errors
    /// Texts that are not a CA certificate and a key.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, IssueError> {
        let failed = |source| IssueError::FailedReadAuthority { source };
        let key = KeyPair::from_pem(key).map_err(failed)?;
        // Otherwise it would sign certificates that nobody can verify.
        let (_, pem) = parse_x509_pem(certificate.as_bytes())
            .map_err(|_| failed(rcgen::Error::CouldNotParseCertificate))?;
        let parsed = pem.parse_x509();
        let public =
            parsed.as_ref().map(|parsed| parsed.public_key().subject_public_key.data.as_ref());
        if public != Ok(key.public_key_raw()) {
            return Err(IssueError::ForeignKey);
        }
        let issuer = Issuer::from_ca_cert_pem(certificate, key).map_err(failed)?;
        Ok(Self { issuer, certificate: certificate.to_owned() })
    }

    /// The CA certificate, PEM: what goes into a `caBundle`.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The CA's key, PEM.
    #[must_use]
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Makes a serving certificate for these DNS names and IP addresses.
    ///
    /// ECDSA P-256: a handshake costs the server a tenth of one with RSA-2048. The CA is not put
    /// into the chain: whoever can verify the leaf has it already, and it would travel with every
    /// handshake.
    ///
    /// # Errors
    /// A name that is neither a DNS name nor an address, or no randomness.
    pub fn issue(
        &self,
        names: &[String],
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<Issued, IssueError> {
        let failed = |source| IssueError::FailedIssue { names: names.join(", "), source };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = subject(LEAF_NAME);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_life(&mut params, lifetime, now);
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

/// A serving certificate and its key, PEM.
pub struct Issued {
    /// The leaf.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

fn subject(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

fn set_life(params: &mut CertificateParams, lifetime: Duration, now: Timestamp) {
    // rcgen speaks the `time` crate; from its own epoch we need no dependency on that.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
    params.not_after = epoch + now + lifetime;
}

/// What a certificate could not be made from.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IssueError {
    /// No authority could be made.
    #[error("failed to make a certificate authority")]
    FailedMakeAuthority {
        /// What the X.509 library says.
        source: rcgen::Error,
    },
    /// These files are no authority.
    #[error("failed to read the certificate authority")]
    FailedReadAuthority {
        /// What the X.509 library says.
        source: rcgen::Error,
    },
    /// The CA certificate and the CA key are not a pair.
    #[error("the key of the certificate authority does not belong to its certificate")]
    ForeignKey,
    /// No certificate for these names.
    #[error("failed to issue a certificate for {names}")]
    FailedIssue {
        /// As asked for.
        names: String,
        /// What the X.509 library says.
        source: rcgen::Error,
    },
}

/// The common name of what [`Authority::issue`] makes. API servers do not look at it; it tells a
/// person, and `statusgate certs`, whose file this is.
pub const LEAF_NAME: &str = "statusgate";

/// A certificate is made on one machine and checked on another: five minutes is what Kubernetes'
/// own tools allow for clocks that differ.
const CLOCK_SKEW: Duration = Duration::from_secs(300);
