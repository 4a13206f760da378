//! Certificates: [`issue`] creates them, [`bundle`] reads them, [`validity`] watches them, [`rotation`]
//! replaces them in time, and [`config`] puts them into a running listener.
//!
//! Nothing here reads a file or a clock: texts and times are arguments.

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
