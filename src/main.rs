//! The `statusgate` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    statusgate::cli::run()
}
