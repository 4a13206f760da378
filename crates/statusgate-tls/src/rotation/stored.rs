//! The content of the Secret, as PEM texts and as a summary.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;

use super::step::{Authority, Leaf, SecretSummary};
use crate::bundle::certificates;
use crate::{Bundle, CertificateError, Pem, Validity};

/// The content of a valid Secret.
#[derive(Clone)]
pub struct Stored {
    texts: Texts,
    summary: SecretSummary,
    bundle: Bundle,
}

/// The values of the Secret.
#[derive(Clone, PartialEq, Eq)]
struct Texts {
    authorities: String,
    authority_key: String,
    leaf: String,
    leaf_key: String,
}

impl Stored {
    /// Reads the data of a Secret. An expired certificate is valid content. A missing key of the authority
    /// is, too: the next step replaces the authority.
    ///
    /// # Errors
    /// A missing or invalid value, or a leaf that none of the authorities signed.
    pub fn parse(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, CertificateError> {
        let text = |name: &str| match data.get(name) {
            Some(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            None => Err(CertificateError::new(format!("there is no {name}"))),
        };
        Self::read(Texts {
            authorities: text(CA_CRT)?,
            authority_key: text(CA_KEY).unwrap_or_default(),
            leaf: text(TLS_CRT)?,
            leaf_key: text(TLS_KEY)?,
        })
    }

    fn read(texts: Texts) -> Result<Self, CertificateError> {
        let authorities = certificates(Pem::of(CA_CRT, &texts.authorities))?;
        let mut trusted: Vec<Authority> =
            authorities.iter().map(|der| authority(der)).collect::<Result<_, _>>()?;
        let (leaf, leaf_key) = (Pem::of(TLS_CRT, &texts.leaf), Pem::of(TLS_KEY, &texts.leaf_key));
        let bundle = Bundle::parse(leaf, leaf_key, Timestamp::MIN)?;
        let validity = bundle.validity;
        let signer = trusted.iter().zip(&authorities).find(|(authority, der)| {
            // A time in both validities: whether they are valid now is decided later.
            let end = validity.not_after.min(authority.validity.not_after).as_second();
            let time = Timestamp::from_second(end - 1).unwrap_or(validity.not_before);
            bundle.is_trusted_by(Pem::of(CA_CRT, &to_pem(der)), time)
        });
        let Some((signer, _)) = signer else {
            return Err(CertificateError::new(
                "no certificate in ca.crt signed the one in tls.crt",
            ));
        };
        let leaf = Leaf {
            id: bundle.key.cert.first().map(|der| fingerprint(der)).unwrap_or_default(),
            authority: signer.id.clone(),
            validity,
            names: bundle.names.clone(),
        };
        let can_sign = texts.signer().is_ok();
        // At least the signer is among them.
        let newest = trusted.remove(0);
        let summary = SecretSummary { newest, older: trusted, can_sign, leaf };
        Ok(Self { texts, summary, bundle })
    }

    /// Creates an authority and a leaf.
    ///
    /// # Errors
    /// An invalid name, or no randomness.
    pub fn create(
        authority: Validity,
        leaf: Validity,
        names: &[String],
    ) -> Result<Self, CertificateError> {
        let signer = crate::Authority::make(AUTHORITY_NAME, authority)?;
        let issued = signer.issue(names, leaf)?;
        Self::read(Texts {
            authorities: signer.certificate().to_owned(),
            authority_key: signer.key(),
            leaf: issued.certificate,
            leaf_key: issued.key,
        })
    }

    /// With a new authority, which all following leaves come from.
    ///
    /// # Errors
    /// No randomness.
    pub fn with_new_authority(&self, validity: Validity) -> Result<Self, CertificateError> {
        let signer = crate::Authority::make(AUTHORITY_NAME, validity)?;
        let authorities = format!("{}{}", signer.certificate(), self.texts.authorities);
        let authority_key = signer.key();
        Self::read(Texts { authorities, authority_key, ..self.texts.clone() })
    }

    /// With a new leaf from the newest authority.
    ///
    /// # Errors
    /// An invalid name, no key of the authority, or no randomness.
    pub fn with_new_leaf(
        &self,
        validity: Validity,
        names: &[String],
    ) -> Result<Self, CertificateError> {
        let issued = self.texts.signer()?.issue(names, validity)?;
        let texts = self.texts.clone();
        Self::read(Texts { leaf: issued.certificate, leaf_key: issued.key, ..texts })
    }

    /// With another trusted authority.
    ///
    /// # Errors
    /// A text that is not a certificate.
    pub fn with_trusted(&self, certificate: &str) -> Result<Self, CertificateError> {
        let separator = if self.texts.authorities.ends_with('\n') { "" } else { "\n" };
        let authorities = format!("{}{separator}{certificate}", self.texts.authorities);
        Self::read(Texts { authorities, ..self.texts.clone() })
    }

    /// With only the newest authority.
    ///
    /// # Errors
    /// When an older authority signed the leaf.
    pub fn without_older(&self) -> Result<Self, CertificateError> {
        let authorities = self.certificate_of(&self.summary.newest.id);
        Self::read(Texts { authorities, ..self.texts.clone() })
    }

    /// The summary for the next step.
    pub const fn summary(&self) -> &SecretSummary {
        &self.summary
    }

    /// The trusted authorities as PEM, newest first.
    pub fn authorities(&self) -> &str {
        &self.texts.authorities
    }

    /// The leaf for the listener.
    pub const fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The data of the Secret.
    pub fn data(&self) -> BTreeMap<String, Vec<u8>> {
        let Texts { authorities, authority_key, leaf, leaf_key } = &self.texts;
        [(CA_CRT, authorities), (CA_KEY, authority_key), (TLS_CRT, leaf), (TLS_KEY, leaf_key)]
            .map(|(name, text)| (name.to_owned(), text.clone().into_bytes()))
            .into()
    }

    /// The certificate of a trusted authority with this fingerprint, as PEM.
    pub fn certificate_of(&self, id: &str) -> String {
        let authorities =
            certificates(Pem::of(CA_CRT, &self.texts.authorities)).unwrap_or_default();
        let found = authorities.iter().find(|der| fingerprint(der) == id);
        found.map(|der| to_pem(der)).unwrap_or_default()
    }
}

impl Texts {
    fn signer(&self) -> Result<crate::Authority, CertificateError> {
        let authorities = certificates(Pem::of(CA_CRT, &self.authorities))?;
        let newest = authorities.first().map(|der| to_pem(der)).unwrap_or_default();
        crate::Authority::from_pem(&newest, &self.authority_key)
    }
}

/// The names of a leaf: those of the Service, as API servers use them, and the host of the webhook's URL,
/// if there is one.
pub fn wanted_names(service: &str, namespace: &str, host: Option<&str>) -> Vec<String> {
    let name = format!("{service}.{namespace}.svc");
    let mut names = vec![format!("{name}.cluster.local"), name];
    names.reverse();
    if let Some(host) = host {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        // As a certificate spells it, because the names are compared as texts.
        let host = bare.parse::<IpAddr>().map_or_else(|_| bare.to_lowercase(), |ip| ip.to_string());
        if !names.contains(&host) {
            names.push(host);
        }
    }
    names
}

/// The fingerprints of the certificates of a caBundle. An unreadable bundle has none: an API server
/// rejects it.
pub fn fingerprints(bundle: &str) -> Vec<String> {
    let found = certificates(Pem::of("the caBundle", bundle)).unwrap_or_default();
    found.iter().map(|der| fingerprint(der)).collect()
}

fn authority(der: &[u8]) -> Result<Authority, CertificateError> {
    let validity = Validity::of(der)
        .ok_or_else(|| CertificateError::new("a certificate in ca.crt is not readable X.509"))?;
    Ok(Authority { id: fingerprint(der), validity })
}

/// SHA-256 as hex, like `openssl x509 -fingerprint -sha256` without colons. With the hash of a cipher
/// suite, because rustls exports no other way to it.
fn fingerprint(der: &[u8]) -> String {
    let Some(suite) = TLS13_AES_128_GCM_SHA256.tls13() else { return String::new() };
    let hash = suite.common.hash_provider.hash(der);
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn to_pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line));
    let body: String = lines.map(|line| format!("{line}\n")).collect();
    format!("-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n")
}

const CA_CRT: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const TLS_CRT: &str = "tls.crt";
const TLS_KEY: &str = "tls.key";

/// The common name of the authorities.
const AUTHORITY_NAME: &str = "statusgate, managed";

#[cfg(test)]
mod tests {
    use super::*;

    fn validity(from: i64, until: i64) -> Validity {
        let at = |second| Timestamp::from_second(second).unwrap();
        Validity { not_before: at(from), not_after: at(until) }
    }

    fn names() -> Vec<String> {
        wanted_names("statusgate", "system", Some("[::1]"))
    }

    fn created() -> Stored {
        Stored::create(validity(1000, 9000), validity(1000, 3000), &names()).unwrap()
    }

    #[test]
    fn the_content_survives_the_secret() {
        let stored = created();
        let read = Stored::parse(&stored.data()).unwrap();
        assert_eq!(read.summary(), stored.summary());
        let summary = read.summary();
        assert_eq!(summary.newest.validity, validity(1000, 9000));
        assert_eq!(summary.leaf.validity, validity(1000, 3000));
        assert_eq!(
            summary.leaf.names,
            ["statusgate.system.svc", "statusgate.system.svc.cluster.local", "::1"]
        );
        assert!(summary.can_sign && summary.older.is_empty());
        assert_eq!(summary.leaf.authority, summary.newest.id);
        assert_eq!(summary.newest.id.len(), 64);
    }

    #[test]
    fn a_rotation_keeps_the_old_authority_until_it_is_removed() {
        let first = created();
        let spread = first.with_new_authority(validity(2000, 12000)).unwrap();
        let summary = spread.summary();
        assert_eq!(summary.older, [first.summary().newest.clone()]);
        assert_eq!((&summary.leaf, summary.can_sign), (&first.summary().leaf, true));
        assert!(spread.without_older().is_err(), "the leaf needs the old authority");
        let switched = spread.with_new_leaf(validity(2000, 4000), &names()).unwrap();
        assert_eq!(switched.summary().leaf.authority, summary.newest.id);
        let retired = switched.without_older().unwrap();
        assert_eq!(retired.summary().newest, summary.newest);
        assert!(retired.summary().older.is_empty());
        let old = first.certificate_of(&first.summary().leaf.authority);
        let again = retired.with_trusted(&old).unwrap();
        assert_eq!(again.summary().older, summary.older);
        assert_eq!(fingerprints(again.authorities()), fingerprints(spread.authorities()));
    }

    #[test]
    fn invalid_content_is_rejected_with_a_reason() {
        let (one, other) = (created().data(), created().data());
        let error = |name: &str, value: Option<&[u8]>| {
            let mut data = one.clone();
            match value {
                Some(value) => data.insert(name.to_owned(), value.to_vec()),
                None => data.remove(name),
            };
            Stored::parse(&data).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(error("ca.crt", None), "there is no ca.crt");
        assert_eq!(error("tls.crt", Some(b"garbage")), "no certificate in tls.crt");
        assert_eq!(error("ca.crt", Some(b"")), "no certificate in ca.crt");
        assert_eq!(
            error("tls.key", Some(&other["tls.key"])),
            "the key in tls.key does not belong to the certificate in tls.crt"
        );
        assert_eq!(
            error("ca.crt", Some(&other["ca.crt"])),
            "no certificate in ca.crt signed the one in tls.crt"
        );
    }

    #[test]
    fn without_the_key_of_the_authority_the_leaf_is_usable() {
        let mut data = created().data();
        data.insert("ca.key".to_owned(), created().data()["ca.key"].clone());
        assert!(!Stored::parse(&data).unwrap().summary().can_sign);
        data.remove("ca.key");
        let stored = Stored::parse(&data).unwrap();
        assert!(!stored.summary().can_sign);
        assert!(stored.with_new_authority(validity(0, 9000)).unwrap().summary().can_sign);
    }

    #[test]
    fn a_name_of_the_url_is_spelled_as_in_a_certificate() {
        let host = |host| wanted_names("s", "n", Some(host)).pop().unwrap();
        assert_eq!(host("127.0.0.1"), "127.0.0.1");
        assert_eq!(host("[0:0::1]"), "::1");
        assert_eq!(host("Example.COM"), "example.com");
        assert_eq!(wanted_names("s", "n", Some("s.n.svc")), wanted_names("s", "n", None));
    }
}
