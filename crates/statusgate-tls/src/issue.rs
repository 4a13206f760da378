//! Creates certificate authorities and serving certificates, as PEM text. The time is an argument.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use x509_parser::pem::parse_x509_pem;

use super::{Bundle, CertificateError, Pem, Validity};

/// A certificate authority that can sign.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use statusgate_tls::{Authority, Validity};
///
/// let day = Duration::from_secs(86_400);
/// let valid = |days| Validity::from_now(days * day, "2026-11-21T12:00:00Z".parse().unwrap());
/// let authority = Authority::make("my cluster", valid(3650))?;
/// let serving = authority.issue(&["statusgate.statusgate-system.svc".into()], valid(365))?;
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
    /// Creates an authority. `name` becomes the common name of the certificate.
    ///
    /// # Errors
    /// A name that X.509 does not allow, or no randomness.
    pub fn make(name: &str, validity: Validity) -> Result<Self, CertificateError> {
        let failed = |source| {
            CertificateError::caused_by("failed to create a certificate authority", source)
        };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(name);
        // It can sign leaf certificates, but no further authorities.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_life(&mut params, validity);
        let certificate = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// Reads an existing authority.
    ///
    /// # Errors
    /// Texts that are not a CA certificate and its key.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let failed = |source: rcgen::Error| {
            CertificateError::caused_by("failed to read the certificate authority", source)
        };
        let key = KeyPair::from_pem(key).map_err(failed)?;
        // With another key it would sign certificates that no client can verify.
        let (_, pem) = parse_x509_pem(certificate.as_bytes())
            .map_err(|_| failed(rcgen::Error::CouldNotParseCertificate))?;
        let parsed = pem.parse_x509();
        let public =
            parsed.as_ref().map(|parsed| parsed.public_key().subject_public_key.data.as_ref());
        if public != Ok(key.public_key_raw()) {
            return Err(CertificateError::new(
                "the key of the certificate authority does not belong to its certificate",
            ));
        }
        let issuer = Issuer::from_ca_cert_pem(certificate, key).map_err(failed)?;
        Ok(Self { issuer, certificate: certificate.to_owned() })
    }

    /// The CA certificate as PEM, for a `caBundle`.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The CA key as PEM.
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Creates a serving certificate for these DNS names and IP addresses.
    ///
    /// It uses ECDSA P-256: a handshake costs the server a tenth of one with RSA-2048. The chain
    /// omits the CA: a client that can verify the leaf already has it.
    ///
    /// # Errors
    /// A name that is neither a DNS name nor an IP address, or no randomness.
    pub fn issue(&self, names: &[String], validity: Validity) -> Result<Issued, CertificateError> {
        let failed = |source: rcgen::Error| {
            let message = format!("failed to issue a certificate for {}", names.join(", "));
            CertificateError::caused_by(message, source)
        };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = subject(LEAF_NAME);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_life(&mut params, validity);
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

/// A serving certificate and its key, as PEM.
pub struct Issued {
    /// The leaf.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Issued {
    /// The certificate and its key for a listener.
    ///
    /// # Errors
    /// As for [`Bundle::parse`].
    pub fn bundle(&self) -> Result<Bundle, CertificateError> {
        let pem = |text| Pem::of("the issued certificate", text);
        Bundle::parse(pem(&self.certificate), pem(&self.key), Timestamp::MIN)
    }
}

fn subject(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

fn set_life(params: &mut CertificateParams, validity: Validity) {
    // rcgen uses types of the `time` crate. Its own epoch avoids a dependency on that crate.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let time = |time: Timestamp| {
        let seconds = time.as_second().min(LAST_SECOND);
        epoch + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    };
    params.not_before = time(validity.not_before);
    params.not_after = time(validity.not_after);
}

/// The end of the year 9999, where the times of X.509 end. RFC 5280 uses it for "no expiry".
const LAST_SECOND: i64 = 253_402_300_799;

/// The common name of the certificates from [`Authority::issue`]. API servers ignore it;
/// `statusgate certs` recognizes its own files by it.
pub const LEAF_NAME: &str = "statusgate";
