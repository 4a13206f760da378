//! `statusgate man`: manual pages.

use std::io;

use anyhow::Context;
use clap_mangen::Man;

use super::Outcome;

/// The arguments of `man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "To read a page: statusgate man check | man -l -")]
pub(super) struct Args {
    /// The command, such as `check` or `manifests install`. Default: statusgate itself.
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

/// Prints a manual page.
///
/// # Errors
/// When there is no such command, or stdout cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut whole = super::command();
    // Sets the full names of the commands.
    whole.build();
    let named = args.path.iter().try_fold(&whole, |command, name| command.find_subcommand(name));
    let command = named.with_context(|| {
        format!("unknown command \"{}\"; `statusgate help` lists the commands", args.path.join(" "))
    })?;
    Man::new(command.clone()).render(&mut io::stdout().lock())?;
    Ok(Outcome::Clean)
}
