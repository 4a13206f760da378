//! Reloads files that change while the server runs: policies, the certificate pair, the client CA.
//!
//! It polls and compares the *content*. kubelet updates a mounted Secret or ConfigMap by replacing a
//! `..data` symlink: a watch on the file sees a deletion and nothing more, and modification times
//! are unreliable. Reading some kilobytes every two seconds misses nothing.
//!
//! Broken content never replaces valid content, and is logged once.

use std::error::Error;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use jiff::Timestamp;

use crate::policy::Source;
use crate::telemetry::Metrics;

/// The content of a file, with its name for messages.
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
    /// The error of the operating system.
    pub source: std::io::Error,
}

/// Any error of a reload.
pub(super) type ReloadError = Box<dyn Error + Send + Sync>;

type Read = Box<dyn Fn() -> Result<Vec<File>, ReloadError> + Send>;
type Apply = Box<dyn Fn(&[File], Timestamp) -> Result<(), ReloadError> + Send>;

/// Reloads one input when its files change.
pub(super) struct Reloader {
    /// The name in logs and metrics.
    what: &'static str,
    /// The fingerprint of the content in use.
    used: u64,
    /// The fingerprint of the content on disk if it is broken.
    broken: Option<u64>,
    read: Read,
    apply: Apply,
}

impl Reloader {
    /// A reloader for an input that was loaded from `used`. `read` returns the current files;
    /// `apply` puts them into use, or fails without a change.
    pub(super) fn new(
        what: &'static str,
        used: &[File],
        read: impl Fn() -> Result<Vec<File>, ReloadError> + Send + 'static,
        apply: impl Fn(&[File], Timestamp) -> Result<(), ReloadError> + Send + 'static,
    ) -> Self {
        let used = fingerprint(&Ok(used.to_vec()));
        Self { what, used, broken: None, read: Box::new(read), apply: Box::new(apply) }
    }

    /// Compares the files with the content in use and applies a change.
    pub(super) fn poll(&mut self, now: Timestamp, metrics: &Metrics) {
        let what = self.what;
        let files = (self.read)();
        let content = fingerprint(&files);
        if content == self.used {
            if self.broken.take().is_some() {
                metrics.reload_recovered(what);
                tracing::info!(what, "the files on disk are again those in use");
            }
            return;
        }
        // The two files of a certificate pair are not written at once. An incomplete change is
        // complete within microseconds, so only content that is stable over two reads counts.
        if self.broken == Some(content) || fingerprint(&(self.read)()) != content {
            return;
        }
        match files.and_then(|files| (self.apply)(&files, now)) {
            Ok(()) => {
                (self.used, self.broken) = (content, None);
                metrics.reloaded(what, now.as_second());
                tracing::info!(what, "reloaded changed files");
            }
            Err(error) => {
                self.broken = Some(content);
                metrics.reload_failed(what);
                let error = chain(&*error);
                tracing::error!(
                    what,
                    error,
                    "changed files are broken; the last valid ones stay in use"
                );
            }
        }
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("what", &self.what).finish_non_exhaustive()
    }
}

/// An error with its causes, on one line.
fn chain(error: &(dyn Error + Send + Sync)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Identifies content without a second copy of a private key in memory. 64 bits suffice: a user who
/// can write these files gains nothing from a collision. A read error is content too, so that it is
/// logged once.
fn fingerprint(files: &Result<Vec<File>, ReloadError>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match files {
        Ok(files) => files.hash(&mut hasher),
        Err(error) => chain(&**error).hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::telemetry::Scrape;

    fn file(bytes: &str) -> Vec<File> {
        vec![File { name: "f".into(), bytes: bytes.into() }]
    }

    fn poll(reloader: &mut Reloader, metrics: &Metrics) -> [u64; 3] {
        reloader.poll(Timestamp::UNIX_EPOCH, metrics);
        let text = metrics.encode().unwrap();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map_or(0, |value| value.trim().parse().unwrap())
        };
        [
            value(r#"statusgate_reloads_total{what="test",outcome="success"}"#),
            value(r#"statusgate_reloads_total{what="test",outcome="failure"}"#),
            value(r#"statusgate_reload_failing{what="test"}"#),
        ]
    }

    #[test]
    fn broken_content_is_tried_once_and_its_removal_is_a_recovery() {
        let disk = Arc::new(Mutex::new("good"));
        let content = Arc::clone(&disk);
        let read = move || Ok(file(*content.lock().unwrap()));
        let apply = |files: &[File], _| match files[0].bytes.starts_with(b"good") {
            true => Ok(()),
            false => Err("broken".into()),
        };
        let mut reloader = Reloader::new("test", &file("good"), read, apply);
        let metrics = Metrics::new(None);
        for (content, counts) in [
            ("good", [0, 0, 0]),
            ("bad", [0, 1, 1]),
            ("bad", [0, 1, 1]),
            ("worse", [0, 2, 1]),
            ("good", [0, 2, 0]),
            ("bad", [0, 3, 1]),
            ("good 2", [1, 3, 0]),
        ] {
            *disk.lock().unwrap() = content;
            assert_eq!(poll(&mut reloader, &metrics), counts, "{content}");
        }
    }

    #[test]
    fn an_incomplete_change_waits_for_the_next_poll() {
        let contents = Mutex::new(vec![file("whole"), file("whole"), file("whole"), file("half")]);
        let applied = Arc::new(Mutex::new(Vec::new()));
        let read = move || Ok(contents.lock().unwrap().pop().unwrap());
        let sink = Arc::clone(&applied);
        let mut reloader = Reloader::new("test", &file("old"), read, move |files, _| {
            sink.lock().unwrap().push(files[0].bytes.clone());
            Ok(())
        });
        let metrics = Metrics::new(None);
        poll(&mut reloader, &metrics);
        assert!(applied.lock().unwrap().is_empty());
        poll(&mut reloader, &metrics);
        assert_eq!(*applied.lock().unwrap(), [b"whole".to_vec()]);
    }

    #[test]
    fn a_missing_file_is_one_failure() {
        let read = || Err("missing".into());
        let mut reloader = Reloader::new("test", &[], read, |_, _| Ok(()));
        let metrics = Metrics::new(None);
        for _ in 0..3 {
            assert_eq!(poll(&mut reloader, &metrics), [0, 1, 1]);
        }
    }
}
