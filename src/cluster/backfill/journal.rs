//! The completed writes of a run, so that a stopped run can continue.
//!
//! An append-only text file. The first line contains the scope of the run, each other line a completed
//! step:
//!
//! ```text
//! {"journal":"statusgate backfill","version":2,"server":"…","cluster":"…","policies":"…","objects":"…"}
//! patched vshnredis.vshn.appcat.vshn.io/v1 0b0d1b9c-…
//! finished vshnredis.vshn.appcat.vshn.io/v1 1 7c24f1d6-…
//! ```
//!
//! A line is written in one call, directly after the API server has confirmed the write. So a killed
//! process loses at most this line. The next start drops an incomplete last line; its object is judged
//! again and needs no change. Objects without a change, or that were rejected, are not in the journal:
//! it is cheap and correct to judge them again. A target with rejected or failed objects is not
//! finished. A finished target has the uid of its CRD (`-` if it has none, or cannot be read): a CRD that
//! was installed again has new objects.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, FileType, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Scope, Target};
use crate::cluster::hash::fnv1a_128;

/// The journal of a run. Without a file, it stores nothing.
#[derive(Debug, Default)]
pub struct Journal {
    file: Option<Appended>,
    patched: HashMap<String, HashSet<u128>>,
    /// Finished targets: the number of patched objects, and the uid of the CRD.
    finished: HashMap<String, (u64, String)>,
    /// The current uids of the CRDs.
    definitions: HashMap<String, String>,
}

#[derive(Debug)]
struct Appended {
    path: PathBuf,
    file: File,
    /// The end of the last complete line.
    end: u64,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    journal: String,
    version: u32,
    /// `None` if another version of statusgate wrote other fields.
    #[serde(flatten)]
    scope: Option<Scope>,
}

impl Journal {
    /// Opens or creates a journal.
    ///
    /// # Errors
    /// A file that cannot be read or written, that is not a journal of this run, or that another process
    /// uses.
    pub fn open(path: &Path, scope: &Scope) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Failed { path: path.to_owned(), source };
        // Before it is opened: opening a pipe blocks until another process opens it.
        if let Some(kind) = fs::metadata(path).ok().and_then(|of| special(of.file_type())) {
            return Err(JournalError::NotAFile { path: path.to_owned(), kind });
        }
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(failed)?;
        let mut tries = LOCK_TRIES;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if tries > 0 => tries -= 1,
                Err(TryLockError::WouldBlock) => {
                    return Err(JournalError::Busy { path: path.to_owned() });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            std::thread::sleep(LOCK_WAIT);
        }
        let mut journal = Self::default();
        let end = journal.read(path, &file, scope)?;
        // Only an incomplete line can follow the last complete one.
        file.set_len(end).map_err(failed)?;
        let mut appended = Appended { path: path.to_owned(), file, end };
        appended.file.seek(SeekFrom::Start(end)).map_err(failed)?;
        if end == 0 {
            let (journal, scope) = (NAME.to_owned(), Some(scope.clone()));
            let header = serde_json::to_string(&Header { journal, version: VERSION, scope });
            appended.append(&header.map_err(io::Error::from).map_err(failed)?)?;
        }
        journal.file = Some(appended);
        Ok(journal)
    }

    /// Whether an earlier run patched an object.
    pub fn has_patched(&self, target: &Target, uid: &str) -> bool {
        self.patched.get(&name(target)).is_some_and(|done| done.contains(&key(uid)))
    }

    /// Sets the uid of the CRD of a target; empty if unknown.
    pub fn define(&mut self, target: &Target, uid: &str) {
        if !uid.is_empty() {
            self.definitions.insert(name(target), uid.to_owned());
        }
    }

    /// The number of patched objects of a target, if an earlier run finished it with the same CRD.
    pub fn finished(&self, target: &Target) -> Option<u64> {
        let name = name(target);
        let (patched, definition) = self.finished.get(&name)?;
        (definition == self.definition(&name)).then_some(*patched)
    }

    fn definition(&self, name: &str) -> &str {
        self.definitions.get(name).map_or(NO_DEFINITION, String::as_str)
    }

    /// Adds a patched object.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note_patched(&mut self, target: &Target, uid: &str) -> Result<(), JournalError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.append(&format!("{PATCHED} {} {uid}", name(target)))?;
        self.patched.entry(name(target)).or_default().insert(key(uid));
        Ok(())
    }

    /// Adds a finished target, and drops its objects from memory.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note_finished(&mut self, target: &Target) -> Result<(), JournalError> {
        let name = name(target);
        let patched = self.patched.remove(&name).map_or(0, |patched| patched.len());
        let line = format!("{FINISHED} {name} {patched} {}", self.definition(&name));
        let Some(file) = &mut self.file else { return Ok(()) };
        file.append(&line)?;
        self.sync()
    }

    /// Syncs the file to the disk. Without it, only a crash of the machine loses lines.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.syncer().map_or(Ok(()), |sync| sync())
    }

    /// The same for another thread, because a sync may take a second. `None` without a file.
    pub(super) fn syncer(
        &self,
    ) -> Option<impl FnOnce() -> Result<(), JournalError> + Send + 'static> {
        let Appended { path, file, .. } = self.file.as_ref()?;
        let (path, file) = (path.clone(), file.try_clone());
        Some(move || {
            let synced = file.and_then(|file| file.sync_data());
            synced.map_err(|source| JournalError::Unwritten { path, source })
        })
    }

    /// Reads the file. Returns the end of the last complete line.
    fn read(&mut self, path: &Path, file: &File, scope: &Scope) -> Result<u64, JournalError> {
        let bad = |line: usize| JournalError::NotAJournal { path: path.to_owned(), line };
        let mut reader = BufReader::new(file);
        let (mut end, mut bytes) = (0, Vec::new());
        for number in 1.. {
            bytes.clear();
            let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes);
            let failed = |source| JournalError::Failed { path: path.to_owned(), source };
            let length = read.map_err(failed)? as u64;
            if bytes.pop_if(|byte| *byte == b'\n').is_none() {
                // An incomplete first line may also be another file.
                let is_foreign = number == 1 && !torn_header(&bytes);
                return if is_foreign || length == LONGEST_LINE {
                    Err(bad(number))
                } else {
                    Ok(end)
                };
            }
            let line = std::str::from_utf8(&bytes).map_err(|_| bad(number))?;
            if number == 1 {
                compare(path, line, scope)?;
            } else {
                self.remember(line).ok_or_else(|| bad(number))?;
            }
            end += bytes.len() as u64 + 1;
        }
        Ok(end)
    }

    fn remember(&mut self, line: &str) -> Option<()> {
        match *line.split(' ').collect::<Vec<_>>() {
            [PATCHED, target, uid] if !uid.is_empty() => {
                self.patched.entry(target.to_owned()).or_default().insert(key(uid));
            }
            [FINISHED, target, patched, definition] if !definition.is_empty() => {
                self.patched.remove(target);
                let finished = (patched.parse().ok()?, definition.to_owned());
                self.finished.insert(target.to_owned(), finished);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Appended {
    fn append(&mut self, line: &str) -> Result<(), JournalError> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        if let Err(source) = written {
            // A full disk may store half a line. If it cannot be removed, the next start does.
            let _ = self.file.set_len(self.end);
            return Err(JournalError::Unwritten { path: self.path.clone(), source });
        }
        self.end += line.len() as u64 + 1;
        Ok(())
    }
}

/// Compares the first line with the scope of this run.
fn compare(path: &Path, line: &str, scope: &Scope) -> Result<(), JournalError> {
    let path = || path.to_owned();
    let foreign = || JournalError::NotAJournal { path: path(), line: 1 };
    let header: Header = serde_json::from_str(line).map_err(|_| foreign())?;
    if header.journal != NAME {
        return Err(foreign());
    }
    if header.version != VERSION {
        return Err(JournalError::AnotherVersion { path: path() });
    }
    match header.scope.ok_or_else(foreign)?.differs(scope) {
        Some(differs) => Err(JournalError::AnotherRun { path: path(), differs }),
        None => Ok(()),
    }
}

/// The kind of something that is not a regular file.
fn special(of: FileType) -> Option<&'static str> {
    Some(match () {
        () if of.is_file() => return None,
        () if of.is_dir() => "a folder",
        () if of.is_fifo() => "a pipe",
        () if of.is_socket() => "a socket",
        () => "a device",
    })
}

/// Whether this is the start of a header.
fn torn_header(bytes: &[u8]) -> bool {
    let start = format!("{{\"journal\":\"{NAME}\"");
    let length = bytes.len().min(start.len());
    bytes.get(..length) == start.as_bytes().get(..length)
}

fn name(target: &Target) -> String {
    format!("{}/{}", target.name(), target.version)
}

/// Sixteen bytes for a uid of any length.
fn key(uid: &str) -> u128 {
    fnv1a_128(uid.as_bytes())
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A file that cannot be read or written.
    #[error("cannot use the journal {}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A full disk, or one that fails.
    #[error(
        "cannot write the journal {}; its lines are complete: make room for it and run the same command to continue",
        path.display()
    )]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A pipe, a device or a folder, which cannot be read again.
    #[error("{} is {kind}: a journal must be a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// `a pipe`.
        kind: &'static str,
    },
    /// Another file, or an edited journal.
    #[error("{} is not a journal of statusgate backfill: line {line} is invalid; use another file", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A journal of another version.
    #[error("another version of statusgate wrote the journal {}; use another file", path.display())]
    AnotherVersion {
        /// The file.
        path: PathBuf,
    },
    /// A journal of a run with another scope.
    #[error("the journal {} belongs to a run {differs}; use another file", path.display())]
    AnotherRun {
        /// The file.
        path: PathBuf,
        /// The difference.
        differs: String,
    },
    /// A journal in use.
    #[error("another process is using the journal {}", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

/// A lock is held for a moment longer while a process forks, or after it was killed.
const LOCK_TRIES: u32 = 25;
const LOCK_WAIT: Duration = Duration::from_millis(20);

const NAME: &str = "statusgate backfill";
/// Version 1 had no cluster.
const VERSION: u32 = 2;
const PATCHED: &str = "patched";
const FINISHED: &str = "finished";
const NO_DEFINITION: &str = "-";

/// The maximum bytes of a line. Lines of a journal have a few hundred. Another file may have gigabytes
/// without a line break.
const LONGEST_LINE: u64 = 64 << 10;

#[cfg(test)]
mod tests;
