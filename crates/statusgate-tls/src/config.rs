//! The TLS configuration of the listener. Its certificate and client CA can be replaced.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};

use super::{Bundle, ClientAuthorities, Validity};

/// The configuration for new handshakes. Open connections keep theirs.
#[derive(Debug)]
pub struct ServerTls {
    peers: Mutex<Peers>,
    config: ArcSwap<ServerConfig>,
}

/// The certificate of the server and the authorities of its clients.
#[derive(Clone, Debug)]
struct Peers {
    bundle: Bundle,
    clients: Option<ClientAuthorities>,
}

impl ServerTls {
    /// Serves with this certificate. With authorities, only clients that present one of their
    /// certificates can connect.
    ///
    /// # Errors
    /// Only if the crypto provider had no cipher suite for TLS 1.2 or 1.3.
    pub fn new(bundle: Bundle, clients: Option<ClientAuthorities>) -> Result<Self, rustls::Error> {
        let peers = Peers { bundle, clients };
        let config = ArcSwap::from_pointee(peers.config()?);
        Ok(Self { peers: Mutex::new(peers), config })
    }

    /// The configuration for the next handshake.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// When the certificate is valid.
    pub fn validity(&self) -> Validity {
        self.lock().bundle.validity
    }

    /// Replaces the certificate.
    ///
    /// # Errors
    /// As for [`ServerTls::new`]; the certificate in use stays.
    pub fn swap_certificate(&self, bundle: Bundle) -> Result<(), rustls::Error> {
        self.change(|peers| peers.bundle = bundle)
    }

    /// Replaces the client authorities.
    ///
    /// # Errors
    /// As for [`ServerTls::new`].
    pub fn swap_clients(&self, clients: ClientAuthorities) -> Result<(), rustls::Error> {
        self.change(|peers| peers.clients = Some(clients))
    }

    fn change(&self, change: impl FnOnce(&mut Peers)) -> Result<(), rustls::Error> {
        let mut peers = self.lock();
        let mut changed = peers.clone();
        change(&mut changed);
        self.config.store(Arc::new(changed.config()?));
        *peers = changed;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers {
    fn config(&self) -> Result<ServerConfig, rustls::Error> {
        // `ServerConfig::builder()` takes the provider of the process and panics if a feature of a
        // dependency adds a second one.
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])?;
        let builder = match &self.clients {
            Some(clients) => builder.with_client_cert_verifier(Arc::clone(&clients.0)),
            None => builder.with_no_client_auth(),
        };
        // One certificate for every server name: API servers call a webhook by service name or by
        // address, and the client's error names the one it expected.
        let resolver = SingleCertAndKey::from(Arc::clone(&self.bundle.key));
        let mut config = builder.with_cert_resolver(Arc::new(resolver));
        // The API server's client offers HTTP/2 only on loopback (k8s.io/apiserver/pkg/util/webhook/client.go):
        // it would put all calls on one connection, and so on one replica.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // No resumption: the API server's client keeps connections open and never resumes a session
        // (Go needs a session cache for that), so every handshake would send unused tickets. And a
        // resumed session would outlive its certificate and client CA.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }
}
