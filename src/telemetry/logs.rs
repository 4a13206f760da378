//! Lines on stderr: JSON for machines, pretty for a terminal.
//!
//! Everything goes through a bounded queue and a thread of its own. A stuck stderr (a full pipe, a
//! paused terminal) must not hold a worker, and with it every write in the cluster: when the queue
//! is full, lines are dropped and counted.

use std::io::{self, IsTerminal};

use thiserror::Error;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For a person at a terminal.
    Pretty,
}

impl Format {
    /// Pretty on a terminal, JSON where something else reads.
    #[must_use]
    pub fn for_stderr() -> Self {
        if io::stderr().is_terminal() { Self::Pretty } else { Self::Json }
    }
}

/// The running log. Dropping it writes out what is queued.
#[derive(Debug)]
pub struct Logs {
    _flush_on_drop: WorkerGuard,
    dropped: ErrorCounter,
}

impl Logs {
    /// Starts logging for the whole process. `filter` is a level, or `target=level` pairs with
    /// commas between them: `info`, `warn,statusgate=debug`.
    ///
    /// A level alone is meant for statusgate; libraries stay at `info` then. What TLS and HTTP
    /// libraries tell at `trace` includes what clients sent, tokens too, and nobody who asks for
    /// more of *our* log should get that by accident.
    ///
    /// The filter is `Targets` and not `EnvFilter`: it decides by level and target alone, so that
    /// tracing can settle a call site once and a disabled event costs one load afterwards.
    ///
    /// # Errors
    /// A filter that cannot be read, or a process that logs already.
    pub fn start(format: Format, filter: &str) -> Result<Self, LogError> {
        let targets = targets(filter)
            .map_err(|source| LogError::FailedParseFilter { filter: filter.to_owned(), source })?;
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
        .map_err(LogError::FailedStart)?;
        Ok(Self { _flush_on_drop: guard, dropped })
    }

    /// How many lines the full queue has dropped, for the metrics.
    #[must_use]
    pub fn dropped(&self) -> ErrorCounter {
        self.dropped.clone()
    }
}

fn targets(filter: &str) -> Result<Targets, ParseError> {
    match filter.parse::<LevelFilter>() {
        Ok(level) => Ok(Targets::new()
            .with_default(level.min(LevelFilter::INFO))
            // It warns, at every handshake, of clients that send an address as server name, wrk and
            // curl among them. What failed is told by `server::handshake`, within measure.
            .with_target("rustls", level.min(LevelFilter::ERROR))
            .with_target(env!("CARGO_CRATE_NAME"), level)),
        Err(_) => filter.parse(),
    }
}

/// Logs a panic by its place alone, for the whole process.
///
/// The default hook prints the panic's message, and that may quote what was being read: "byte
/// index 3 is not a char boundary; it is inside 'é' of `…`" carries a piece of somebody's object.
pub fn log_panics_without_their_message() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic: a bug in statusgate, please report it");
    }));
}

/// Why logging did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The filter is not of the form `level` or `target=level,…`.
    #[error("failed to read the log filter {filter:?}")]
    FailedParseFilter {
        /// As given.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// Something in this process logs already.
    #[error("failed to start logging")]
    FailedStart(#[source] TryInitError),
}

/// tracing-appender's default is 128,000 lines: at 400 bytes a line that is 50 MB under a stuck
/// stderr, more than the whole server may use.
const QUEUED_LINES: usize = 8_192;

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_bare_level_is_ours_and_never_opens_the_libraries() {
        let targets = targets("trace").unwrap();
        assert!(targets.would_enable("statusgate::server", &Level::TRACE));
        assert!(targets.would_enable("hyper", &Level::INFO));
        assert!(!targets.would_enable("hyper", &Level::DEBUG));
    }

    #[test]
    fn pairs_mean_what_they_say_and_nonsense_is_refused() {
        let pairs = targets("warn,hyper=debug").unwrap();
        assert!(pairs.would_enable("hyper", &Level::DEBUG));
        assert!(!pairs.would_enable("statusgate", &Level::INFO));
        assert!(targets("statusgate=loud").is_err());
    }
}
