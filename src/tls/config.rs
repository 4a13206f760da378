//! The TLS side of the listener, with its two exchangeable parts.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};

use super::{Bundle, ClientAuthorities, Resolver};

/// What a handshake needs: the certificate (swapped inside its resolver) and the configuration
/// around it (rebuilt when the client CA changes). Both act on new connections only.
#[derive(Debug)]
pub struct ServerTls {
    resolver: Arc<Resolver>,
    config: ArcSwap<ServerConfig>,
}

impl ServerTls {
    /// Serves with this certificate; with authorities, to clients that prove themselves only.
    ///
    /// # Errors
    /// Only if the crypto provider had no cipher suite for TLS 1.2 or 1.3.
    pub fn new(
        bundle: &Bundle,
        clients: Option<&ClientAuthorities>,
    ) -> Result<Self, rustls::Error> {
        let resolver = Arc::new(Resolver::new(Arc::clone(&bundle.key)));
        let config = ArcSwap::new(config(&resolver, clients)?);
        Ok(Self { resolver, config })
    }

    /// The configuration for the next handshake.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// Takes over a new certificate.
    pub fn swap_certificate(&self, bundle: &Bundle) {
        self.resolver.swap(Arc::clone(&bundle.key));
    }

    /// Takes over new client authorities.
    ///
    /// # Errors
    /// As for [`ServerTls::new`].
    pub fn swap_clients(&self, clients: &ClientAuthorities) -> Result<(), rustls::Error> {
        self.config.store(config(&self.resolver, Some(clients))?);
        Ok(())
    }
}

fn config(
    resolver: &Arc<Resolver>,
    clients: Option<&ClientAuthorities>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    // The provider is named and not taken from the process: with a second one compiled in (a
    // dependency's feature), `ServerConfig::builder()` panics.
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])?;
    let builder = match clients {
        Some(clients) => builder.with_client_cert_verifier(clients.verifier()),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::<Resolver>::clone(resolver));
    // API servers offer HTTP/1.1 only; h2 is for load generators, meshes and other callers.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // No resumption. The API server's client keeps connections open and never resumes a session
    // (Go does not without a session cache), so tickets would be made, sent and thrown away at
    // every handshake; and a resumed session would outlive the certificate, or the client CA, that
    // it was made under.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Arc::new(config))
}
