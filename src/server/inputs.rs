//! What the server is made of besides its settings: policies, certificate, client CA. Each is
//! loaded once at the start, where anything wrong ends the program, and kept up to date after.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::time::sleep;

use super::drain::StageWatch;
use super::reload::{File, Refused, Reloader};
use super::settings::{CertificateSource, Settings};
use super::snapshot::Snapshot;
use super::{StartError, clock};
use crate::policy::{self, PolicySet, Source};
use crate::telemetry::Metrics;
use crate::tls::{Authority, Bundle, ClientAuthorities, Expiry, Pem, ServerTls};

/// Everything that may change on disk while the server runs.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    reloaders: Vec<Reloader>,
    certificate: Option<CertificateWatch>,
}

impl Inputs {
    /// Loads the policies.
    pub(super) fn policies(
        &mut self,
        settings: &Settings,
        metrics: &Arc<Metrics>,
        now: Timestamp,
    ) -> Result<Arc<ArcSwap<Snapshot>>, StartError> {
        let sources = policy::load(&settings.policies).map_err(StartError::BrokenPolicies)?;
        let policies = PolicySet::compile(&sources).map_err(StartError::BrokenPolicies)?;
        let snapshot = Arc::new(ArcSwap::from_pointee(Snapshot::new(policies, metrics)));
        metrics.reloaded(POLICIES, now.as_second());
        if !settings.policies.is_empty() {
            let paths = settings.policies.clone();
            let (target, metrics) = (Arc::clone(&snapshot), Arc::clone(metrics));
            self.reloaders.push(Reloader::new(
                POLICIES,
                &sources.into_iter().map(File::from).collect::<Vec<_>>(),
                move || Ok(policy::load_files(&paths)?.into_iter().map(File::from).collect()),
                move |files, _| {
                    let sources: Vec<Source> = files.iter().map(File::source).collect();
                    let policies = PolicySet::compile(&sources)?;
                    target.store(Arc::new(Snapshot::new(policies, &metrics)));
                    Ok(())
                },
            ));
        }
        Ok(snapshot)
    }

    /// Loads certificate and client CA.
    pub(super) fn tls(
        &mut self,
        settings: &Settings,
        metrics: &Metrics,
        now: Timestamp,
    ) -> Result<Arc<ServerTls>, StartError> {
        let clients = settings.client_ca.as_deref().map(File::read).transpose()?;
        let authorities = clients.as_ref().map(|file| ClientAuthorities::parse(pem(file)));
        let authorities = authorities.transpose()?;
        let (bundle, pair) = match &settings.certificate {
            CertificateSource::SelfSigned => (self_signed(settings, now)?, None),
            CertificateSource::Files { certificate, key } => {
                let files = read_pair(certificate, key)?;
                let bundle = parse_pair(&files, now)?;
                (bundle, Some((certificate.clone(), key.clone(), files)))
            }
        };
        let tls = ServerTls::new(&bundle, authorities.as_ref());
        let tls = Arc::new(tls.map_err(StartError::FailedConfigureTls)?);
        let current = Arc::new(ArcSwap::from_pointee(bundle));
        self.certificate =
            Some(CertificateWatch { current: Arc::clone(&current), told: Expiry::Far });
        metrics.reloaded(CERTIFICATE, now.as_second());

        if let Some((certificate, key, files)) = pair {
            let target = Arc::clone(&tls);
            self.reloaders.push(Reloader::new(
                CERTIFICATE,
                &files,
                move || read_pair(&certificate, &key).map(Vec::from).map_err(Refused::from),
                move |files, now| {
                    let bundle = parse_pair(files, now)?;
                    target.swap_certificate(&bundle);
                    current.store(Arc::new(bundle));
                    Ok(())
                },
            ));
        }
        if let (Some(path), Some(file)) = (settings.client_ca.clone(), clients) {
            metrics.reloaded(CLIENT_CA, now.as_second());
            let target = Arc::clone(&tls);
            self.reloaders.push(Reloader::new(
                CLIENT_CA,
                &[file],
                move || Ok(vec![File::read(&path)?]),
                move |files, _| {
                    for file in files {
                        target.swap_clients(&ClientAuthorities::parse(pem(file))?)?;
                    }
                    Ok(())
                },
            ));
        }
        self.poll(now, metrics);
        Ok(tls)
    }

    /// Looks after everything until the server closes.
    pub(super) async fn watch(
        mut self,
        every: Duration,
        metrics: Arc<Metrics>,
        mut stage: StageWatch,
    ) {
        loop {
            tokio::select! {
                () = stage.closing() => return,
                () = sleep(every) => {}
            }
            // Reading may hang (a network file system) and compiling takes milliseconds: neither
            // belongs on a thread that answers requests.
            let metrics = Arc::clone(&metrics);
            let polled = tokio::task::spawn_blocking(move || {
                self.poll(clock::now(), &metrics);
                self
            });
            match polled.await {
                Ok(inputs) => self = inputs,
                Err(error) => {
                    tracing::error!(%error, "files are not watched any more: a bug in statusgate");
                    return;
                }
            }
        }
    }

    fn poll(&mut self, now: Timestamp, metrics: &Metrics) {
        for reloader in &mut self.reloaders {
            reloader.poll(now, metrics);
        }
        if let Some(certificate) = &mut self.certificate {
            certificate.poll(now, metrics);
        }
    }
}

/// Watches the certificate in use come to its end, which no change of files announces.
#[derive(Debug)]
struct CertificateWatch {
    current: Arc<ArcSwap<Bundle>>,
    told: Expiry,
}

impl CertificateWatch {
    fn poll(&mut self, now: Timestamp, metrics: &Metrics) {
        let bundle = self.current.load();
        metrics.certificate_not_after.set(bundle.not_after.as_second());
        let expiry = Expiry::of(bundle.not_before, bundle.not_after, now);
        if expiry == self.told {
            return;
        }
        self.told = expiry;
        let not_after = bundle.not_after;
        match expiry {
            Expiry::Far => tracing::info!(%not_after, "the certificate was renewed"),
            Expiry::Near => tracing::warn!(%not_after, "the certificate should have been renewed"),
            Expiry::Over => tracing::error!(
                %not_after,
                "the certificate has expired: API servers refuse this server"
            ),
        }
    }
}

fn read_pair(certificate: &Path, key: &Path) -> Result<[File; 2], super::ReadError> {
    Ok([File::read(certificate)?, File::read(key)?])
}

fn parse_pair(files: &[File], now: Timestamp) -> Result<Bundle, crate::tls::BundleError> {
    let nothing = Pem { name: "nowhere", text: b"" };
    let mut files = files.iter().map(pem);
    let certificate = files.next().unwrap_or(nothing);
    Bundle::parse(certificate, files.next().unwrap_or(nothing), now)
}

fn pem(file: &File) -> Pem<'_> {
    Pem { name: &file.name, text: &file.bytes }
}

fn self_signed(settings: &Settings, now: Timestamp) -> Result<Bundle, StartError> {
    tracing::warn!("serving with a certificate made up for this run, which no one can verify");
    let names = [
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
        settings.listen.ip().to_string(),
    ];
    let authority = Authority::make("statusgate, made up for one run", SELF_SIGNED_LIFE, now)?;
    let issued = authority.issue(&names, SELF_SIGNED_LIFE, now)?;
    let certificate = Pem { name: "the made-up certificate", text: issued.certificate.as_bytes() };
    let key = Pem { name: "the made-up key", text: issued.key.as_bytes() };
    Ok(Bundle::parse(certificate, key, now)?)
}

/// The names of the inputs in logs and metrics.
const POLICIES: &str = "policies";
const CERTIFICATE: &str = "certificate";
const CLIENT_CA: &str = "client_ca";

/// Nobody leaves a desk running for longer; and nobody verifies it anyway.
const SELF_SIGNED_LIFE: Duration = Duration::from_secs(365 * 86_400);
