//! `--policies`: the flag of every command that judges.

use std::path::PathBuf;

use crate::policy::{self, PolicySet};

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
        Ok(PolicySet::compile(&policy::load(&self.paths)?)?)
    }
}
