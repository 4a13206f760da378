//! The certificate in use, and the remaining time until it expires.

use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;

use crate::telemetry::Metrics;
use crate::tls::{Bundle, Expiry, ServerTls};

/// The serving certificate of a running server. Clones share it.
#[derive(Clone, Debug)]
pub struct ServingCertificate {
    tls: Arc<ServerTls>,
    current: Arc<ArcSwap<Bundle>>,
}

impl ServingCertificate {
    pub(super) fn new(tls: &Arc<ServerTls>, bundle: Bundle) -> Self {
        Self { tls: Arc::clone(tls), current: Arc::new(ArcSwap::from_pointee(bundle)) }
    }

    /// Uses another certificate for new handshakes. Open connections stay.
    ///
    /// # Errors
    /// When the TLS library rejects its configuration; the certificate in use stays.
    pub fn swap(&self, bundle: Bundle) -> Result<(), rustls::Error> {
        self.tls.swap_certificate(&bundle)?;
        self.current.store(Arc::new(bundle));
        Ok(())
    }
}

/// Logs when the certificate in use comes close to its expiry.
#[derive(Debug)]
pub(super) struct CertificateWatch {
    certificate: ServingCertificate,
    logged: Expiry,
}

impl CertificateWatch {
    pub(super) const fn new(certificate: ServingCertificate) -> Self {
        Self { certificate, logged: Expiry::Far }
    }

    pub(super) fn poll(&mut self, now: Timestamp, metrics: &Metrics) {
        let bundle = self.certificate.current.load();
        let not_after = bundle.validity.not_after;
        metrics.server.certificate_not_after.set(not_after.as_second());
        let expiry = bundle.validity.expiry(now);
        if expiry == self.logged {
            return;
        }
        self.logged = expiry;
        match expiry {
            Expiry::Far => tracing::info!(%not_after, "the certificate was renewed"),
            Expiry::Near => tracing::warn!(%not_after, "the renewal of the certificate is late"),
            Expiry::Over => tracing::error!(
                %not_after,
                "the certificate has expired: API servers reject this server"
            ),
        }
    }
}
