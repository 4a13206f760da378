//! The certificate that the next handshake gets.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// One certificate for every name, exchangeable while handshakes run.
///
/// Server names are not looked at: API servers call a webhook by service name or by address, and
/// answering with the only certificate there is lets the client say what it expected.
pub struct Resolver(ArcSwap<CertifiedKey>);

impl Resolver {
    /// Starts with this certificate.
    #[must_use]
    pub fn new(key: Arc<CertifiedKey>) -> Self {
        Self(ArcSwap::new(key))
    }

    /// From the next handshake on, this one. Open connections keep theirs.
    pub fn swap(&self, key: Arc<CertifiedKey>) {
        self.0.store(key);
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

// Written by hand so that no key can reach a log.
impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}
