//! `--policies`: the flag of every command that judges.

use std::path::PathBuf;

use anyhow::bail;

use super::explain;
use crate::files;
use statusgate_core::documents::PolicySpec;
use statusgate_core::policy::PolicySet;

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
        Ok(PolicySet::compile(&files::load_policies_or_examples(&self.paths)?)?)
    }
}

/// The policies of some paths, or one policy, which may name a convention of these paths.
pub(super) fn following(paths: &[PathBuf], spec: Option<PolicySpec>) -> anyhow::Result<PolicySet> {
    let Some(spec) = spec else {
        return Ok(PolicySet::compile(&files::load_policies_or_examples(paths)?)?);
    };
    let sources = files::load_policies(paths)?;
    // First compile these alone: errors then show their location.
    let given = PolicySet::compile(&sources)?;
    let (name, known) = (&spec.convention, given.conventions());
    if !known.contains_key(name) {
        bail!("{}", explain::unknown(name, known.keys().map(String::as_str)));
    }
    Ok(given.with_policies(&[("all", spec)])?)
}
