//! `--policies`: the flag of every command that judges.

use std::path::PathBuf;

use anyhow::Context;

use crate::policy::{PolicySet, Source};
use crate::server::policy_files;

/// Where the policies are.
#[derive(Debug, clap::Args)]
pub struct Policies {
    /// Policies: a file or a folder. May be repeated. Default: the built-in example policies.
    #[arg(id = "policies", long, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
}

impl Policies {
    /// Reads and compiles the policies.
    pub(super) fn load(&self) -> anyhow::Result<PolicySet> {
        Ok(PolicySet::compile(&sources(&self.paths)?)?)
    }
}

/// Reads policy documents; without a path, the example policies.
pub(super) fn sources(paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    policy_files::load(paths).context("failed to read the policies")
}
