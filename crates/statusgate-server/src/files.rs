//! Files, folders and standard input: the texts that `statusgate_core` reads.

mod open;

use std::path::PathBuf;

use statusgate_core::policy::{Diagnostics, PolicySet, Source};

pub use open::{ReadError, open, read_bytes};

/// Reads the policies of a command that runs once: those of files and folders, or the example
/// policies if none are named.
///
/// # Errors
/// What cannot be read.
pub fn load_policies_or_examples(paths: &[PathBuf]) -> Result<Vec<Source>, Diagnostics> {
    if paths.is_empty() { Ok(PolicySet::examples()) } else { load_policies(paths) }
}

/// Reads the CustomResourceDefinitions of files and folders.
///
/// # Errors
/// What cannot be read.
pub fn load_definitions(paths: &[PathBuf]) -> Result<Vec<Source>, Diagnostics> {
    let (sources, unread) = open::open_policies(paths);
    if unread.is_empty() { Ok(sources) } else { Err(Diagnostics::new(&sources, unread)) }
}

/// Reads the policies of files and folders.
///
/// # Errors
/// What cannot be read, and the mistakes in the other files. A folder without documents is an error,
/// too: its path is more likely wrong than meant.
pub fn load_policies(paths: &[PathBuf]) -> Result<Vec<Source>, Diagnostics> {
    let (sources, unread) = open::open_policies(paths);
    if unread.is_empty() {
        return Ok(sources);
    }
    let mut all = Diagnostics::default();
    all.extend(unread);
    all.extend(PolicySet::mistakes_of_some(&sources).into_iter().flatten());
    Err(all)
}
