//! Log lines on stderr: JSON for machines, pretty for a terminal.
//!
//! A separate thread writes the lines from a bounded queue. A blocked stderr (a full pipe, a paused
//! terminal) must not block a worker and with it every write in the cluster, so a full queue drops
//! lines and counts them.

use std::error::Error;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anstream::{AutoStream, ColorChoice};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use super::lines::{Counting, Cutting, LostLines};

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One JSON object per line.
    Json,
    /// For a terminal.
    Pretty,
}

impl Format {
    /// Pretty if stderr is a terminal, otherwise JSON.
    pub fn for_stderr() -> Self {
        if io::stderr().is_terminal() { Self::Pretty } else { Self::Json }
    }
}

/// The running log. Dropping it writes the queued lines.
#[derive(Debug)]
pub struct Logs {
    _flush_on_drop: WorkerGuard,
    /// The counter of lost lines, for the metrics.
    pub lost: LostLines,
    /// The filter, for a later change.
    pub filter: Filter,
}

/// The filter of the running log. Clones share it.
#[derive(Clone, Debug)]
pub struct Filter(reload::Handle<Targets, Registry>);

impl Filter {
    /// Uses another filter from now on.
    ///
    /// # Errors
    /// An invalid filter; the one in use stays.
    pub fn set(&self, filter: &str) -> Result<(), LogError> {
        let targets = targets(filter)?;
        self.0.reload(targets).map_err(LogError::of("failed to change the log filter"))
    }
}

/// A file with the filter of the running log.
#[derive(Clone, Debug)]
pub struct FilterFile {
    /// The file.
    pub path: PathBuf,
    /// The content in use.
    pub used: String,
    /// The filter that follows the file.
    pub filter: Filter,
}

impl FilterFile {
    /// Reads the filter of a file.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(path: &Path) -> Result<String, LogError> {
        let failed = format!("failed to read the log filter in {}", path.display());
        let text = std::fs::read_to_string(path).map_err(LogError::of(failed))?;
        Ok(text.trim().to_owned())
    }
}

impl Logs {
    /// Starts logging for the whole process. `filter` is a level or comma-separated `target=level`
    /// pairs: `info`, `warn,statusgate=debug`.
    ///
    /// A level alone applies to statusgate; libraries log at `info` or less. At `trace`, TLS and
    /// HTTP libraries log what clients sent, including tokens. Users must ask for that explicitly.
    ///
    /// `Targets` decides by level and target alone, unlike `EnvFilter`. tracing can therefore cache
    /// the decision per call site, and a disabled event costs one load. A reload of the filter empties
    /// this cache; only enabled events take the lock of the filter.
    ///
    /// # Errors
    /// An invalid filter, or a process that already logs.
    pub fn start(format: Format, filter: &str) -> Result<Self, LogError> {
        let (targets, filter) = reload::Layer::new(targets(filter)?);
        let failed = Arc::new(AtomicU64::default());
        let stderr = Counting { inner: io::stderr(), failed: Arc::clone(&failed) };
        let (queue, guard) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(QUEUED_LINES)
            .thread_name("statusgate-log")
            .finish(stderr);
        let lost = LostLines { dropped: queue.error_counter(), failed };
        let registry = tracing_subscriber::registry().with(targets);
        let lines = Cutting { queue, format };
        let layer = tracing_subscriber::fmt::layer().with_writer(move || lines.clone());
        match format {
            Format::Json => registry.with(layer.json().flatten_event(true)).try_init(),
            Format::Pretty => registry
                .with(layer.with_ansi(AutoStream::choice(&io::stderr()) != ColorChoice::Never))
                .try_init(),
        }
        .map_err(LogError::of("failed to start logging"))?;
        Ok(Self { _flush_on_drop: guard, lost, filter: Filter(filter) })
    }
}

fn targets(filter: &str) -> Result<Targets, LogError> {
    let broken = |source| LogError {
        message: format!(
            "failed to parse the log filter {filter:?}: use error, warn, info, debug, trace or off, or \
             comma-separated target=level pairs"
        ),
        source,
    };
    // `Targets` reads `debgu` as a target, and would disable everything else. An empty text is a level.
    let mut levels = filter.split(',').filter(|part| !part.contains('='));
    if levels.any(|level| level.is_empty() || level.parse::<LevelFilter>().is_err()) {
        return Err(broken(None));
    }
    match filter.parse::<LevelFilter>() {
        Ok(level) => Ok(Targets::new()
            .with_default(level.min(LevelFilter::INFO))
            // rustls warns at every handshake of clients that send an IP address as server name,
            // such as wrk and curl. `server::handshake` logs failures, with a rate limit.
            .with_target("rustls", level.min(LevelFilter::ERROR))
            // kube warns at every attempt of a watch without permission. `manager::context` logs an error
            // once.
            .with_target("kube_runtime", level.min(LevelFilter::ERROR))
            // It logs each failed request as an error, also without an API server. All errors are returned.
            .with_target("kube_client", LevelFilter::OFF)
            // The beginning of a target is enough: the packages are `statusgate_server`, `statusgate_manager`, …
            .with_target("statusgate", level)),
        Err(_) => filter.parse().map_err(|error: ParseError| broken(Some(error.into()))),
    }
}

/// Logs only the location of a panic, for the whole process.
///
/// The default hook prints the panic's message, which may quote user data: "byte index 3 is not a
/// char boundary; it is inside 'é' of `…`".
pub fn log_panics_without_their_message() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic: a bug in statusgate, please report it");
    }));
}

/// An error when logging starts, or when its filter changes.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LogError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl LogError {
    fn of<E: Error + Send + Sync + 'static>(message: impl Into<String>) -> impl FnOnce(E) -> Self {
        let message = message.into();
        |source| Self { message, source: Some(source.into()) }
    }
}

/// tracing-appender's default is 128,000 lines. With 400 bytes per line and a blocked stderr that
/// is 50 MB, close to the memory limit of the whole server. An empty queue takes 36 bytes per line.
const QUEUED_LINES: usize = 2_048;

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_bare_level_applies_to_statusgate_only() {
        let targets = targets("trace").unwrap();
        for package in ["statusgate::cli", "statusgate_server", "statusgate_manager::documents"] {
            assert!(targets.would_enable(package, &Level::TRACE), "{package}");
        }
        assert!(targets.would_enable("hyper", &Level::INFO));
        assert!(!targets.would_enable("hyper", &Level::DEBUG));
        assert!(!targets.would_enable("kube_client::client::builder", &Level::ERROR));
    }

    #[test]
    fn pairs_apply_to_their_targets_and_invalid_filters_are_rejected() {
        let pairs = targets("warn,hyper=debug").unwrap();
        assert!(pairs.would_enable("hyper", &Level::DEBUG));
        assert!(!pairs.would_enable("statusgate", &Level::INFO));
        for wrong in ["statusgate=loud", "debgu", "", "info,", "info,hyper"] {
            let error = targets(wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong:?}: use error")), "{error}");
        }
    }
}
