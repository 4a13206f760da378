//! `statusgate completions`: the completions of a shell.

use std::io::{self, Write};

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;

use super::Outcome;
use statusgate_analysis::lint::Kind;
use statusgate_core::policy::PolicySet;

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
    let mut command = with_names(super::command());
    clap_complete::generate(args.shell, &mut command, "statusgate", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Outcome::Clean)
}

/// The command with the names of the built-in conventions, their rules and the kinds of remarks of `lint` as the
/// values of the arguments that take them. The arguments also accept other names.
fn with_names(command: Command) -> Command {
    let policies = PolicySet::of(Vec::new());
    let conventions: Vec<String> = PolicySet::built_in_names().map(str::to_owned).collect();
    let declared = policies.conventions().values().flat_map(|known| known.declared.iter());
    let rules: Vec<String> = declared.map(|(id, _)| id.to_string()).collect();
    let kinds: Vec<String> = Kind::ALL.map(|kind| format!("lint/{}", kind.name())).to_vec();
    let all = [conventions.clone(), rules.clone(), kinds].concat();
    command.mut_subcommands(|command| {
        let is_explain = command.get_name() == "explain";
        command.mut_args(|arg| match arg.get_id().as_str() {
            "convention" => arg.value_parser(PossibleValuesParser::new(&conventions)),
            "rules" => arg.value_parser(PossibleValuesParser::new(&rules)),
            "name" if is_explain => arg.value_parser(PossibleValuesParser::new(&all)),
            _ => arg,
        })
    })
}
