//! The command line: one file a command, and the contract of exit codes.
//!
//! Zero is clean, one is findings, two is usage or IO. Errors are printed once, with their causes,
//! on stderr. A reader that goes away (`| head`) is not an error.

pub mod audit;
pub mod backfill;
mod backfill_report;
pub mod certs;
pub mod check;
mod checks;
pub mod connection;
pub mod doctor;
mod duration;
pub mod explain;
mod fail_on;
mod input;
mod judge;
pub mod lint;
mod namespace;
pub mod plurals;
mod progress;
mod report;
pub mod request;
pub mod review;
pub mod schema;
pub mod serve;
pub mod status;
mod table;
pub mod test;
mod time;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Keeps the .status of Kubernetes custom resources true to a status convention.
#[derive(Debug, Parser)]
#[command(name = "statusgate", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the admission webhook server.
    Serve(serve::Args),
    /// Answer one recorded AdmissionReview, as the server would.
    Review(review::Args),
    /// Say what objects amount to: their phase, what it may be, and what kstatus makes of them.
    Status(status::Args),
    /// Bring stored objects up to date, through /status.
    Backfill(backfill::Args),
    /// Judge stored objects, once or again and again.
    Audit(audit::Args),
    /// Look whether policies, schemas, registrations and certificate fit together.
    Doctor(doctor::Args),
    /// Print the JSON Schema of a kind of document.
    Schema(schema::Args),
    /// Judge manifests: files, folders, pipes.
    Check(check::Args),
    /// Try the unit tests of policies.
    Test(test::Args),
    /// List the conventions, or explain one: its page, its truth table, its graph of phases.
    Explain(explain::Args),
    /// Prove conventions sound, or show what is wrong with them.
    Lint(lint::Args),
    /// Make a certificate authority and a serving certificate.
    Certs(certs::Args),
}

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to complain about.
    Clean,
    /// It did what it should, and found something.
    Findings,
}

/// Runs the program on its arguments.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version come this way too, with code 0; usage errors have 2.
        Err(said) => {
            let _ = said.print();
            return ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(2));
        }
    };
    // Not only for our listener, which names its provider: whatever else speaks TLS in this
    // process would otherwise have to guess one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = match &cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Review(args) => review::run(args),
        Command::Status(args) => status::run(args),
        Command::Backfill(args) => backfill::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Check(args) => check::run(args),
        Command::Test(args) => test::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Lint(args) => lint::run(args),
        Command::Certs(args) => certs::run(args),
    };
    match outcome {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is gone too, there is nobody left to tell.
            let _ = writeln!(io::stderr(), "{error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
