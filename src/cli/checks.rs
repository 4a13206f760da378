//! Checks as people and programs read them.

use std::io::{self, Write};

use serde_json::json;

use super::table;
use crate::cluster::{Check, Level};

/// Prints problems and warnings, for someone who is about to do something else.
///
/// # Errors
/// When they cannot be written.
pub(super) fn complain(out: &mut impl Write, checks: &[Check]) -> io::Result<()> {
    for check in checks.iter().filter(|check| check.level > Level::Ok) {
        writeln!(out, "{}: {}: {}", check.level.name(), check.subject, check.message)?;
        if !check.help.is_empty() {
            writeln!(out, "  help: {}", check.help)?;
        }
    }
    Ok(())
}

/// Prints all of them as a table, the worst first.
///
/// # Errors
/// When they cannot be written.
pub(super) fn print_table(out: &mut impl Write, checks: &[Check]) -> io::Result<()> {
    let mut sorted: Vec<&Check> = checks.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(check.level));
    let mut table = table::new(&["", "check", "of", "found"]);
    for check in sorted {
        let found = if check.help.is_empty() {
            check.message.clone()
        } else {
            format!("{}\n→ {}", check.message, check.help)
        };
        table.add_row([check.level.name(), check.id, &check.subject, &found]);
    }
    writeln!(out, "{table}")?;
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    writeln!(out, "\n{problems} problems, {warnings} warnings, {} ok", count(Level::Ok))
}

/// Prints all of them as one JSON document.
///
/// # Errors
/// When they cannot be written.
pub(super) fn print_json(out: &mut impl Write, checks: &[Check]) -> io::Result<()> {
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

/// Whether there is a problem among them.
pub(super) fn has_problem(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.level == Level::Problem)
}
