//! The command line: one file per command, and the exit codes.
//!
//! 0: nothing found. 1: findings. 2: usage or IO. Errors are printed once, with their causes, on
//! stderr. A closed pipe on stdout (`| head`) is not an error.

mod action;
mod audit;
mod backfill;
mod backfill_report;
mod certs;
mod check;
mod checks;
mod completions;
mod connection;
mod doctor;
mod draft;
mod entry;
mod explain;
mod export;
mod filter;
mod in_use;
mod input;
mod lint;
mod man;
mod manifests;
mod output;
mod plurals;
mod policies;
mod progress;
mod record;
mod report;
mod review;
mod schema;
mod scope;
mod serve;
mod signals;
mod status;
mod survey;
mod table;
mod test;
mod time;
mod traces;
mod ui;
mod uninstall;
mod wait;

use std::env;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use colorchoice_clap::Color;

use statusgate_core::policy::Diagnostics;

/// Keeps the .status of Kubernetes custom resources consistent with a status convention.
#[derive(Debug, Parser)]
#[command(
    name = "statusgate",
    version = VERSION.as_str(),
    about,
    arg_required_else_help = true,
    after_help = concat!("Documentation: ", env!("CARGO_PKG_HOMEPAGE"), "/docs")
)]
struct Cli {
    #[command(flatten)]
    color: Color,

    #[command(subcommand)]
    command: Command,
}

/// The version, and the commit and its date if build.rs knows them.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("STATUSGATE_BUILD").unwrap_or_default() {
        "" => version.to_owned(),
        build => format!("{version} ({build})"),
    }
});

/// The list of commands: `Name(module)`, with the help text as its doc comment.
macro_rules! commands {
    ($($(#[$help:meta])* $name:ident($module:ident),)*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($(#[$help])* $name(Box<$module::Args>),)*
        }

        impl Command {
            fn run(&self) -> anyhow::Result<Outcome> {
                match self {
                    $(Self::$name(args) => $module::run(args),)*
                }
            }
        }
    };
}

commands! {
    /// Run the admission webhook server.
    Serve(serve),
    /// Respond to recorded AdmissionReviews like the server.
    Review(review),
    /// Print the health, the phase and the kstatus result of objects, from files or a cluster.
    Status(status),
    /// Wait in a cluster until objects have a health.
    Wait(wait),
    /// Write missing defaults to stored objects, through /status.
    Backfill(backfill),
    /// Judge stored objects, once or repeatedly.
    Audit(audit),
    /// Check that policies, CRDs, webhook registrations and certificates are consistent.
    Doctor(doctor),
    /// Print the JSON Schema of a document kind.
    Schema(schema),
    /// Print the manifests that statusgate needs in a cluster.
    #[command(subcommand)]
    Manifests(manifests),
    /// Delete the webhook registrations.
    Uninstall(uninstall),
    /// Judge manifests and recorded writes: files, folders, pipes.
    Check(check),
    /// Record and judge the status writes of a running cluster, without changing them.
    Record(record),
    /// Draft a convention and its policy from recorded status writes.
    Draft(draft),
    /// Run the unit tests of policies.
    Test(test),
    /// List conventions, or explain one (page, truth table, phase graph) or one rule (with examples).
    Explain(explain),
    /// Print what conventions define in the formats of other tools.
    #[command(subcommand)]
    Export(export),
    /// Prove that conventions are sound, or show their faults.
    Lint(lint),
    /// Serve a page to look at conventions and at the objects of a cluster, and to try writes.
    Ui(ui),
    /// Create a certificate authority and a serving certificate.
    Certs(certs),
    /// Print the completions for a shell.
    Completions(completions),
    /// Print the manual page of statusgate or of one command.
    Man(man),
}

/// The result of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing found.
    Clean,
    /// The command completed and has findings.
    Findings,
}

impl Outcome {
    /// The outcome of a command that may have findings.
    const fn of(findings: bool) -> Self {
        if findings { Self::Findings } else { Self::Clean }
    }
}

/// Runs the program with its arguments.
pub fn run() -> ExitCode {
    let cli = match command().try_get_matches().and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        // Help and version also arrive here, with code 0; usage errors have code 2.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    cli.color.write_global();
    // The listener names its provider. Other users of TLS in this process need a default.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match cli.command.run() {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            match error.downcast_ref::<Diagnostics>() {
                Some(mistakes) => say(mistakes),
                None => say(format_args!("{error:#}")),
            }
            ExitCode::from(2)
        }
    }
}

/// The command line. kubectl runs its plugin `statusgate` by the name `kubectl-statusgate`.
fn command() -> clap::Command {
    let program = env::args_os().next().unwrap_or_default();
    let is_plugin = Path::new(&program).file_stem() == Some("kubectl-statusgate".as_ref());
    let name = if is_plugin { "kubectl statusgate" } else { "statusgate" };
    Cli::command().bin_name(name)
}

/// The context of an error of stdout while results are printed.
const NO_REPORT: &str = "cannot write the report";

/// Prints the result of a command that has no findings.
fn print(text: &str) -> anyhow::Result<Outcome> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Outcome::Clean)
}

/// Prints a line on stderr, with colors if it has any. If stderr is closed, there is no other place to report this, and it must
/// not end the command.
fn say(line: impl fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{line:#}");
}

/// Prints all errors but the last and returns the last.
fn fail_with(mut errors: impl DoubleEndedIterator<Item = anyhow::Error>) -> anyhow::Result<()> {
    let Some(last) = errors.next_back() else { return Ok(()) };
    errors.for_each(|error| say(format_args!("{error:#}")));
    Err(last)
}

/// Whether stdout was closed. The causes of other errors do not count: the connection to an API server
/// can also break.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
