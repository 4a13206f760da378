//! The flags of every command that reads manifests.

use std::path::{Path, PathBuf};

use anyhow::bail;

use statusgate_core::language::Glob;
use statusgate_core::source::{Diagnostic, Source};
use statusgate_server::files;

/// Where the manifests are.
#[derive(Debug, clap::Args)]
pub(super) struct Input {
    /// Files, folders, or `-` for standard input: YAML of several documents, JSON, JSON lines,
    /// Lists, watch events, AdmissionReviews, audit logs.
    #[arg(value_name = "FILE")]
    paths: Vec<PathBuf>,

    /// The same, in the syntax of kubectl. May be repeated.
    #[arg(short = 'f', long = "file", visible_alias = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Include subfolders.
    #[arg(short = 'R', long)]
    pub(super) recursive: bool,

    /// Leave out these files and folders: a name (values.yaml), a folder and all in it ('templates/*'), or a
    /// path. `*` stands for any text. May be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<Glob>,
}

impl Input {
    /// Rejects `-` if it occurs more than once, here or in `others`: the second reader would find an
    /// empty input.
    pub(super) fn check_stdin(&self, others: &[&[PathBuf]]) -> anyhow::Result<()> {
        let here = [self.files.as_slice(), &self.paths];
        check_stdin(here.into_iter().chain(others.iter().copied()).flatten())
    }

    /// The words of the command line, as what they name is not a file.
    ///
    /// # Errors
    /// A file in the syntax of kubectl.
    pub(super) fn words(&self) -> anyhow::Result<Vec<String>> {
        if !self.files.is_empty() {
            bail!("-f names files, not objects of a cluster");
        }
        Ok(self.paths.iter().map(|path| path.display().to_string()).collect())
    }

    /// Whether the command line names this file itself, not its folder.
    pub(super) fn names(&self, file: &str) -> bool {
        let mut named = self.files.iter().chain(&self.paths);
        named.any(|path| path.strip_prefix(".").unwrap_or(path) == Path::new(file))
    }

    /// Reads the inputs; without any, reads `otherwise`.
    ///
    /// # Errors
    /// When there is no input.
    pub(super) fn open(
        &self,
        otherwise: Option<&str>,
    ) -> anyhow::Result<(Vec<Source>, Vec<Diagnostic>)> {
        let named = self.files.iter().chain(&self.paths).cloned();
        let mut paths: Vec<PathBuf> = named.collect();
        if paths.is_empty() {
            paths.extend(otherwise.map(PathBuf::from));
        }
        if paths.is_empty() {
            bail!("name a file, a folder, or - for standard input");
        }
        Ok(files::open(&paths, self.recursive, &self.exclude))
    }
}

/// Rejects `-` if it occurs more than once.
pub(super) fn check_stdin<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> anyhow::Result<()> {
    if paths.filter(|path| path.as_path() == Path::new("-")).count() > 1 {
        bail!("- occurs more than once: standard input can be read only once");
    }
    Ok(())
}
