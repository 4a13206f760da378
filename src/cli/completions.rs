//! `statusgate completions`: the completions of a shell.

use std::io::{self, Write};

use clap_complete::Shell;

use super::Outcome;

/// The arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "For bash: source <(statusgate completions bash)")]
pub(super) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script of a shell.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    // The generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "statusgate", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Outcome::Clean)
}
