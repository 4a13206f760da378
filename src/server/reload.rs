//! Files that change under a running server: policies, the certificate pair, the client CA.
//!
//! Polled and compared by *content*. kubelet updates a mounted Secret or ConfigMap by swapping a
//! `..data` symlink: a watch on the file sees it deleted and goes blind, modification times lie,
//! and kubelet itself looks only once a minute. Reading some kilobytes every two seconds cannot
//! miss anything.
//!
//! What is broken never replaces what works, and is told once, not at every poll.

use std::error::Error;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use jiff::Timestamp;

use crate::policy::Source;
use crate::telemetry::Metrics;

/// What is known of the content on disk, by fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// What is on disk is in use.
    Good { used: u64 },
    /// What is on disk was refused; the one before is in use.
    Broken { used: u64, refused: u64 },
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// This is on disk.
    Seen(u64),
    /// It was tried and taken over.
    Taken(u64),
    /// It was tried and is broken.
    Refused(u64),
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing new.
    None,
    /// New content: try it.
    Try,
    /// The broken content was taken back.
    TellRecovered,
    /// The new content is in use.
    TellTaken,
    /// The new content is broken.
    TellRefused,
}

impl State {
    /// The only transition function.
    const fn step(self, event: Event) -> (Self, Effect) {
        let (Self::Good { used } | Self::Broken { used, .. }) = self;
        match (self, event) {
            (Self::Good { .. }, Event::Seen(seen)) if seen == used => (self, Effect::None),
            (Self::Broken { .. }, Event::Seen(seen)) if seen == used => {
                (Self::Good { used }, Effect::TellRecovered)
            }
            (Self::Broken { refused, .. }, Event::Seen(seen)) if seen == refused => {
                (self, Effect::None)
            }
            (_, Event::Seen(_)) => (self, Effect::Try),
            (_, Event::Taken(taken)) => (Self::Good { used: taken }, Effect::TellTaken),
            (_, Event::Refused(refused)) => (Self::Broken { used, refused }, Effect::TellRefused),
        }
    }
}

/// One file that was read, with its name for messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl File {
    pub(super) fn read(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self { name, bytes }),
            Err(source) => Err(ReadError { name, source }),
        }
    }

    /// The text of a policy.
    pub(super) fn source(&self) -> Source {
        Source::new(self.name.as_str(), String::from_utf8_lossy(&self.bytes))
    }
}

impl From<Source> for File {
    fn from(source: Source) -> Self {
        Self { name: source.name, bytes: source.text.into_bytes() }
    }
}

/// A file or folder that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {name}")]
pub struct ReadError {
    /// The file or folder.
    pub name: String,
    /// What the system says.
    pub source: std::io::Error,
}

/// Any error on the way from files to something in use.
pub(super) type Refused = Box<dyn Error + Send + Sync>;

type Read = Box<dyn Fn() -> Result<Vec<File>, Refused> + Send>;
type Take = Box<dyn Fn(&[File], Timestamp) -> Result<(), Refused> + Send>;

/// Something made from files, kept up to date.
pub(super) struct Reloader {
    /// Its name in logs and metrics: a label, so one of few.
    what: &'static str,
    state: State,
    read: Read,
    take: Take,
}

impl Reloader {
    /// Keeps up to date what was made from `used`. `read` gets the files; `take` makes something
    /// of them and puts it into use, or changes nothing.
    pub(super) fn new(
        what: &'static str,
        used: &[File],
        read: impl Fn() -> Result<Vec<File>, Refused> + Send + 'static,
        take: impl Fn(&[File], Timestamp) -> Result<(), Refused> + Send + 'static,
    ) -> Self {
        let state = State::Good { used: fingerprint(&Ok(used.to_vec())) };
        Self { what, state, read: Box::new(read), take: Box::new(take) }
    }

    /// Looks once.
    pub(super) fn poll(&mut self, now: Timestamp, metrics: &Metrics) {
        let seen = (self.read)();
        let mark = fingerprint(&seen);
        if self.advance(Event::Seen(mark), metrics, now, None) != Effect::Try {
            return;
        }
        // Two files are not read in one moment: a certificate of one generation may have come
        // with the key of the next. Such a half settles within microseconds; what still stands at
        // a second look is what somebody wrote.
        if fingerprint(&(self.read)()) != mark {
            return;
        }
        match seen.and_then(|files| (self.take)(&files, now)) {
            Ok(()) => self.advance(Event::Taken(mark), metrics, now, None),
            Err(error) => self.advance(Event::Refused(mark), metrics, now, Some(&*error)),
        };
    }

    fn advance(
        &mut self,
        event: Event,
        metrics: &Metrics,
        now: Timestamp,
        error: Option<&(dyn Error + Send + Sync)>,
    ) -> Effect {
        let (state, effect) = self.state.step(event);
        self.state = state;
        let what = self.what;
        match effect {
            Effect::None | Effect::Try => {}
            Effect::TellRecovered => {
                metrics.reload_recovered(what);
                tracing::info!(what, "what is on disk is again what is in use");
            }
            Effect::TellTaken => {
                metrics.reloaded(what, now.as_second());
                tracing::info!(what, "took over changed files");
            }
            Effect::TellRefused => {
                metrics.reload_failed(what);
                let error = error.map(|error| Chain(error).to_string()).unwrap_or_default();
                tracing::error!(what, error, "changed files are broken; the last good ones stay");
            }
        }
        effect
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader")
            .field("what", &self.what)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// An error with its causes, on one line.
struct Chain<'e>(&'e (dyn Error + Send + Sync));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Tells contents apart. 64 bits against accidents: whoever can write these files need not forge a
/// collision, and a second copy of a private key need not lie in memory for comparing. That files
/// cannot be read is a content too, so that it is told once.
fn fingerprint(seen: &Result<Vec<File>, Refused>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match seen {
        Ok(files) => files.hash(&mut hasher),
        Err(error) => Chain(&**error).to_string().hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::telemetry::Scrape;

    #[test]
    fn broken_content_is_tried_once_and_taking_it_back_is_told() {
        let state = State::Good { used: 1 };
        assert_eq!(state.step(Event::Seen(1)).1, Effect::None);
        assert_eq!(state.step(Event::Seen(2)).1, Effect::Try);
        let (state, effect) = state.step(Event::Refused(2));
        assert_eq!(effect, Effect::TellRefused);
        assert_eq!(state.step(Event::Seen(2)).1, Effect::None);
        assert_eq!(state.step(Event::Seen(3)).1, Effect::Try, "another broken content");
        assert_eq!(state.step(Event::Seen(1)), (State::Good { used: 1 }, Effect::TellRecovered));
        assert_eq!(state.step(Event::Taken(4)), (State::Good { used: 4 }, Effect::TellTaken));
    }

    #[test]
    fn a_pair_that_is_being_written_is_left_for_the_next_poll() {
        let file = |bytes: &str| vec![File { name: "f".into(), bytes: bytes.into() }];
        // First half-written, then whole; and it stays so.
        let contents = Mutex::new(vec![file("whole"), file("whole"), file("whole"), file("half")]);
        let taken = Arc::new(Mutex::new(Vec::new()));
        let read = move || Ok(contents.lock().unwrap().pop().unwrap());
        let sink = Arc::clone(&taken);
        let mut reloader = Reloader::new("test", &file("old"), read, move |files, _| {
            sink.lock().unwrap().push(files[0].bytes.clone());
            Ok(())
        });
        let metrics = Metrics::new(None);
        reloader.poll(Timestamp::UNIX_EPOCH, &metrics);
        assert!(taken.lock().unwrap().is_empty());
        reloader.poll(Timestamp::UNIX_EPOCH, &metrics);
        assert_eq!(*taken.lock().unwrap(), [b"whole".to_vec()]);
    }

    #[test]
    fn a_file_that_goes_away_is_told_once_and_changes_nothing() {
        let metrics = Metrics::new(None);
        let read = || Err("gone".into());
        let mut reloader = Reloader::new("test", &[], read, |_, _| Ok(()));
        for _ in 0..3 {
            reloader.poll(Timestamp::UNIX_EPOCH, &metrics);
        }
        let text = metrics.encode().unwrap();
        let line = r#"statusgate_reloads_total{what="test",outcome="failure"} 1"#;
        assert!(text.contains(line), "{text}");
    }
}
