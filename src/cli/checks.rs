//! The output of checks, for people and programs.

use std::io::{self, Write};

use serde_json::json;

use super::{say, table};
use crate::cluster::{CheckResult, Level};

/// Prints problems and warnings on stderr.
pub(super) fn complain(checks: &[CheckResult]) {
    for check in checks.iter().filter(|check| check.level > Level::Ok) {
        say(format_args!("{}: {}: {}", check.level.name(), check.subject, check.message));
        if !check.help.is_empty() {
            say(format_args!("  help: {}", check.help));
        }
    }
}

/// Prints all checks as a table, the worst first.
pub(super) fn print_table(out: &mut impl Write, checks: &[CheckResult]) -> io::Result<()> {
    let mut sorted: Vec<&CheckResult> = checks.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(check.level));
    let mut table = table::new(&["", "check", "of", "found"]);
    for check in sorted {
        let mut found = wrapped(&check.message);
        if !check.help.is_empty() {
            found.push_str(&format!("\n→ {}", wrapped(&check.help)));
        }
        table.add_row([check.level.name(), check.id, &check.subject, &found]);
    }
    writeln!(out, "{}", table::text(&mut table))?;
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    writeln!(out, "\nproblems: {problems}, warnings: {warnings}, ok: {}", count(Level::Ok))
}

/// Wraps a text to the width of the last column.
fn wrapped(text: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        if width > 0 && width + word.len() > WIDTH {
            lines.push_str("\n  ");
            width = 2;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += word.len();
    }
    lines
}

const WIDTH: usize = 90;

/// Prints all checks as one JSON document.
pub(super) fn print_json(out: &mut impl Write, checks: &[CheckResult]) -> io::Result<()> {
    let list = checks.iter().map(|check| {
        json!({
            "check": check.id,
            "level": check.level.name(),
            "of": check.subject,
            "found": check.message,
            "help": check.help,
        })
    });
    let document = json!({"checks": list.collect::<Vec<_>>()});
    writeln!(out, "{document:#}")
}

/// Whether one of the checks is a problem.
pub(super) fn has_problem(checks: &[CheckResult]) -> bool {
    checks.iter().any(|check| check.level == Level::Problem)
}
