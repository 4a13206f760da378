//! The certificates of statusgate: made, read, watched and replaced. The server serves with them, and `statusgate doctor`
//! judges those of a cluster.
//!
//! | module | holds |
//! |---|---|
//! | [`bundle`] | certificate, key and authorities as PEM; a mistake is an error with the name of its file |
//! | [`config`] | the keys of a running listener, which can be exchanged |
//! | [`issue`] | makes authorities and certificates |
//! | [`validity`] | from when to when, and when to warn |
//! | [`rotation`] | the certificate in a Secret that all replicas keep valid; [`rotation::step()`] decides everything |
//!
//! Nothing here reads a file or a clock, logs or connects: texts and times are arguments. Begin with [`Bundle`].

pub mod bundle;
pub mod config;
pub mod issue;
pub mod rotation;
pub mod validity;

use std::error::Error;

pub use bundle::{Bundle, ClientAuthorities, Pem, subject};
pub use config::ServerTls;
pub use issue::{Authority, Issued, LEAF_NAME};
pub use validity::{Expiry, Validity};

/// Certificates, keys or CA files that are invalid or cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CertificateError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl CertificateError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    fn caused_by(message: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self { message: message.into(), source: Some(Box::new(source)) }
    }
}
