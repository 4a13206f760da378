//! Log lines on stderr: JSON for machines, pretty for a terminal.
//!
//! A separate thread writes the lines from a bounded queue. A blocked stderr (a full pipe, a paused
//! terminal) must not block a worker and with it every write in the cluster, so a full queue drops
//! lines and counts them.

use std::error::Error;
use std::io::{self, IsTerminal};

use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line.
    Json,
    /// Readable text for a terminal.
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
    dropped: ErrorCounter,
}

impl Logs {
    /// Starts logging for the whole process. `filter` is a level or comma-separated `target=level`
    /// pairs: `info`, `warn,statusgate=debug`.
    ///
    /// A level alone applies to statusgate; libraries log at `info` or less. At `trace`, TLS and
    /// HTTP libraries log what clients sent, including tokens. Users must ask for that explicitly.
    ///
    /// `Targets` decides by level and target alone, unlike `EnvFilter`. tracing can therefore cache
    /// the decision per call site, and a disabled event costs one load.
    ///
    /// # Errors
    /// An invalid filter, or a process that already logs.
    pub fn start(format: Format, filter: &str) -> Result<Self, LogError> {
        let targets = targets(filter).map_err(|source| LogError {
            message: format!("failed to parse the log filter {filter:?}"),
            source: source.into(),
        })?;
        let (writer, guard) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(QUEUED_LINES)
            .thread_name("statusgate-log")
            .finish(io::stderr());
        let dropped = writer.error_counter();
        let registry = tracing_subscriber::registry().with(targets);
        let layer = tracing_subscriber::fmt::layer().with_writer(writer);
        match format {
            Format::Json => registry.with(layer.json().flatten_event(true)).try_init(),
            Format::Pretty => registry.with(layer.with_ansi(io::stderr().is_terminal())).try_init(),
        }
        .map_err(|source| LogError {
            message: "failed to start logging".to_owned(),
            source: source.into(),
        })?;
        Ok(Self { _flush_on_drop: guard, dropped })
    }

    /// The counter of dropped lines, for the metrics.
    pub fn dropped(&self) -> ErrorCounter {
        self.dropped.clone()
    }
}

fn targets(filter: &str) -> Result<Targets, ParseError> {
    match filter.parse::<LevelFilter>() {
        Ok(level) => Ok(Targets::new()
            .with_default(level.min(LevelFilter::INFO))
            // rustls warns at every handshake of clients that send an IP address as server name,
            // such as wrk and curl. `server::handshake` logs failures, with a rate limit.
            .with_target("rustls", level.min(LevelFilter::ERROR))
            .with_target(env!("CARGO_CRATE_NAME"), level)),
        Err(_) => filter.parse(),
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

/// An error when logging starts.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LogError {
    message: String,
    source: Box<dyn Error + Send + Sync>,
}

/// tracing-appender's default is 128,000 lines. With 400 bytes per line and a blocked stderr that
/// is 50 MB, close to the memory limit of the whole server.
const QUEUED_LINES: usize = 8_192;

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_bare_level_applies_to_statusgate_only() {
        let targets = targets("trace").unwrap();
        assert!(targets.would_enable("statusgate::server", &Level::TRACE));
        assert!(targets.would_enable("hyper", &Level::INFO));
        assert!(!targets.would_enable("hyper", &Level::DEBUG));
    }

    #[test]
    fn pairs_apply_to_their_targets_and_invalid_filters_are_rejected() {
        let pairs = targets("warn,hyper=debug").unwrap();
        assert!(pairs.would_enable("hyper", &Level::DEBUG));
        assert!(!pairs.would_enable("statusgate", &Level::INFO));
        assert!(targets("statusgate=loud").is_err());
    }
}
