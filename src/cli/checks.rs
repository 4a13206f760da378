//! The output of checks, for people and programs.

use std::io::{self, Write};

use anstyle::AnsiColor;

use super::output::painted;
use super::{say, table};
use statusgate_cluster::{CheckResult, Level};

/// Prints problems and warnings on stderr.
pub(super) fn complain(checks: &[CheckResult]) {
    for check in checks.iter().filter(|check| check.level > Level::Ok) {
        say(format_args!("{}: {}: {}", severity(check.level), check.subject, check.message));
        if !check.help.is_empty() {
            say(format_args!("  help: {}", check.help));
        }
    }
}

fn severity(level: Level) -> String {
    painted(
        level.name(),
        match level {
            Level::Problem => AnsiColor::Red,
            Level::Warning => AnsiColor::Yellow,
            Level::Ok => AnsiColor::Green,
        },
    )
}

/// Prints all checks as a table, the worst first.
pub(super) fn print_table(out: &mut impl Write, checks: &[CheckResult]) -> io::Result<()> {
    let mut sorted: Vec<&CheckResult> = checks.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(check.level));
    let mut table = table::new(&["", "check", "of", "found"]);
    for check in sorted {
        let mut found = check.message.clone();
        if !check.help.is_empty() {
            found.push_str(&format!("\n→ {}", check.help));
        }
        table.add_row([&*severity(check.level), check.id, &check.subject, &found]);
    }
    writeln!(out, "{table}")?;
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    writeln!(out, "\nproblems: {problems}, warnings: {warnings}, ok: {}", count(Level::Ok))
}

/// Whether one of the checks is a problem.
pub(super) fn has_problem(checks: &[CheckResult]) -> bool {
    checks.iter().any(|check| check.level == Level::Problem)
}
