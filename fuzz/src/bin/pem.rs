//! Certificates, keys and CA files: as PEM text, or as DER that this target encodes.

#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use statusgate_tls::{Authority, Bundle, ClientAuthorities, Pem, subject};

fuzz_target!(init: statusgate_fuzz::catch_panics(), |data: &[u8]| {
    statusgate_fuzz::run(data, || read(data));
});

fn read(data: &[u8]) {
    if data.starts_with(b"-") {
        return read_pem(data, data);
    }
    let encoded = |label: &str| {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(data))
    };
    read_pem(encoded("CERTIFICATE").as_bytes(), encoded("PRIVATE KEY").as_bytes());
}

fn read_pem(certificate: &[u8], key: &[u8]) {
    let pem = |text| Pem { name: "file", text };
    let (issued, own_key) = (pem(CERTIFICATE), pem(KEY));
    let (certificate, key) = (pem(certificate), pem(key));
    for (certificate, key) in [(certificate, own_key), (issued, key), (certificate, key)] {
        match Bundle::parse(certificate, key, now()) {
            Ok(bundle) => {
                assert!(!bundle.names.is_empty() && bundle.validity.not_after >= now());
                bundle.is_trusted_by(certificate, now());
            }
            Err(error) => assert!(error.to_string().contains("file")),
        }
    }
    if let Ok(bundle) = Bundle::parse(issued, own_key, now()) {
        assert!(!bundle.is_trusted_by(certificate, now()));
    }
    let _ = ClientAuthorities::parse(certificate);
    let _ = subject(certificate);
    let text = |pem: Pem<'_>| String::from_utf8_lossy(pem.text).into_owned();
    let _ = Authority::from_pem(&text(certificate), &text(key));
}

fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).expect("a time in 2026")
}

// Fixed, so that the corpus has other certificates of the same key.
const CERTIFICATE: &[u8] = include_bytes!("../../pem/certificate.pem");
const KEY: &[u8] = include_bytes!("../../pem/key.pem");
