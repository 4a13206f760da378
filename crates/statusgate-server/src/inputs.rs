//! The files that a server loads: policies, CustomResourceDefinitions, certificate, client CA, log filter. An error at the start ends the
//! program; later changes are reloaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::StartError;
use super::drain::StageWatch;
use super::policies::{PolicyStore, log_skipped};
use super::reload::{Poll, reloader};
use super::settings::{CertificateSource, ServerSettings};
use crate::files;
use crate::telemetry::{FilterFile, Metrics};
use statusgate_core::policy::{DefinedVersions, Source};
use statusgate_core::schema::NEWEST;
use statusgate_tls::{
    Authority, Bundle, CertificateError, ClientAuthorities, Expiry, Pem, ServerTls, Validity,
};

/// The files that may change while the server runs.
#[derive(Default)]
pub(super) struct Inputs(Vec<Poll>);

impl Inputs {
    /// Reloads these files when they change.
    pub(super) fn policies(&mut self, paths: &[PathBuf], store: &PolicyStore) {
        if paths.is_empty() {
            return;
        }
        let (used, paths, store) = (store.files(), paths.to_vec(), store.clone());
        self.0.push(reloader(
            POLICIES,
            &used,
            move || Ok(files::load_policies(&paths)?),
            move |files: &Vec<Source>, _| {
                log_skipped(&*store.replace_files(files.clone())?);
                Ok(())
            },
        ));
    }

    /// Loads the CustomResourceDefinitions, and reloads them when they change.
    pub(super) fn definitions(
        &mut self,
        paths: &[PathBuf],
        store: &PolicyStore,
    ) -> Result<(), StartError> {
        if paths.is_empty() {
            return Ok(());
        }
        let files = files::load_definitions(paths).map_err(StartError::BrokenPolicies)?;
        let defined = DefinedVersions::read(&files, NEWEST).map_err(StartError::BrokenPolicies)?;
        if defined.is_empty() {
            return Err(StartError::NoDefinition);
        }
        store.replace_defined(defined);
        let (paths, store) = (paths.to_vec(), store.clone());
        self.0.push(reloader(
            DEFINITIONS,
            &files,
            move || Ok(files::load_definitions(&paths)?),
            move |files, _| {
                store.replace_defined(DefinedVersions::read(files, NEWEST)?);
                Ok(())
            },
        ));
        Ok(())
    }

    /// Follows the file of the log filter.
    pub(super) fn log(&mut self, settings: &ServerSettings, metrics: &Metrics, now: Timestamp) {
        let Some(FilterFile { path, used, filter }) = settings.log_from.clone() else { return };
        metrics.reloaded(LOG, now.as_second());
        self.0.push(reloader(
            LOG,
            &used,
            move || Ok(FilterFile::read(&path)?),
            move |text, _| Ok(filter.set(text)?),
        ));
    }

    /// Loads the certificate and the client CA.
    pub(super) fn tls(
        &mut self,
        settings: &ServerSettings,
        metrics: &Metrics,
        now: Timestamp,
    ) -> Result<Arc<ServerTls>, StartError> {
        let clients = settings.client_ca.as_deref().map(read).transpose()?;
        let authorities = clients.as_ref().map(|file| ClientAuthorities::parse(pem(file)));
        let authorities = authorities.transpose()?;
        let (bundle, pair) = match &settings.certificate {
            CertificateSource::Given(bundle) => (bundle.clone(), None),
            CertificateSource::SelfSigned => (self_signed(settings, now)?, None),
            CertificateSource::Files { certificate, key } => {
                let files = read_pair(certificate, key)?;
                let bundle = parse_pair(&files, now)?;
                (bundle, Some((certificate.clone(), key.clone(), files)))
            }
        };
        let tls = ServerTls::new(bundle, authorities).map_err(StartError::FailedConfigureTls)?;
        let tls = Arc::new(tls);
        let mut expiry = expiry_watch(Arc::clone(&tls));
        expiry(now, metrics);
        metrics.reloaded(CERTIFICATE, now.as_second());

        if let Some((certificate, key, files)) = pair {
            let target = Arc::clone(&tls);
            self.0.push(reloader(
                CERTIFICATE,
                &files,
                move || Ok(read_pair(&certificate, &key)?),
                move |files, now| Ok(target.swap_certificate(parse_pair(files, now)?)?),
            ));
        }
        if let (Some(path), Some(file)) = (settings.client_ca.clone(), clients) {
            metrics.reloaded(CLIENT_CA, now.as_second());
            let target = Arc::clone(&tls);
            self.0.push(reloader(
                CLIENT_CA,
                &file,
                move || Ok(read(&path)?),
                move |file, _| Ok(target.swap_clients(ClientAuthorities::parse(pem(file))?)?),
            ));
        }
        self.0.push(expiry);
        Ok(tls)
    }

    /// Polls the files until the server closes.
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
            // Reading may block (a network file system) and compiling takes milliseconds. Both
            // would delay requests on a worker.
            let metrics = Arc::clone(&metrics);
            let polled = tokio::task::spawn_blocking(move || {
                let now = super::now();
                self.0.iter_mut().for_each(|poll| poll(now, &metrics));
                self
            });
            match polled.await {
                Ok(inputs) => self = inputs,
                Err(error) => {
                    tracing::error!(%error, "files are no longer reloaded: a bug in statusgate");
                    return;
                }
            }
        }
    }
}

/// Logs when the certificate in use comes close to its expiry.
fn expiry_watch(tls: Arc<ServerTls>) -> Poll {
    let mut logged = Expiry::Far;
    Box::new(move |now, metrics| {
        let validity = tls.validity();
        let (not_after, expiry) = (validity.not_after, validity.expiry(now));
        metrics.server.certificate_not_after.set(not_after.as_second());
        if std::mem::replace(&mut logged, expiry) == expiry {
            return;
        }
        match expiry {
            Expiry::Far => tracing::info!(%not_after, "the certificate was renewed"),
            Expiry::Near => tracing::warn!(%not_after, "the renewal of the certificate is late"),
            Expiry::Over => tracing::error!(
                %not_after,
                "the certificate has expired: API servers reject this server"
            ),
        }
    })
}

fn read(path: &Path) -> Result<Source, StartError> {
    let name = path.display().to_string();
    match std::fs::read(path) {
        // Text around the PEM blocks may have any encoding.
        Ok(bytes) => Ok(Source::new(name, String::from_utf8_lossy(&bytes))),
        Err(source) => Err(StartError::FailedReadFile { name, source }),
    }
}

fn read_pair(certificate: &Path, key: &Path) -> Result<[Source; 2], StartError> {
    Ok([read(certificate)?, read(key)?])
}

fn parse_pair(
    [certificate, key]: &[Source; 2],
    now: Timestamp,
) -> Result<Bundle, CertificateError> {
    Bundle::parse(pem(certificate), pem(key), now)
}

fn pem(file: &Source) -> Pem<'_> {
    Pem { name: &file.name, text: file.text.as_bytes() }
}

fn self_signed(settings: &ServerSettings, now: Timestamp) -> Result<Bundle, StartError> {
    tracing::warn!("serving with a self-signed certificate that no client can verify");
    let names = [
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
        settings.listen.ip().to_string(),
    ];
    let validity = Validity::from_now(SELF_SIGNED_LIFETIME, now);
    let authority = Authority::make("statusgate, self-signed", validity)?;
    Ok(authority.issue(&names, validity)?.bundle()?)
}

/// The names of the inputs in logs and metrics.
pub(super) const POLICIES: &str = "policies";
const DEFINITIONS: &str = "definitions";
const LOG: &str = "log";
const CERTIFICATE: &str = "certificate";
const CLIENT_CA: &str = "client_ca";

/// Longer than any local test runs.
const SELF_SIGNED_LIFETIME: Duration = Duration::from_secs(365 * 86_400);
