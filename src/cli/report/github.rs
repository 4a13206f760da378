//! Workflow commands of GitHub Actions: `::error file=…,line=…,col=…,title=…::message`.

use std::io::{self, Write};

use super::Report;
use crate::engine::Action;
use crate::source::{Place, one_line};

/// A command for each finding and for each document that could not be read, then the totals.
pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for (object, found, place) in report.findings() {
        let level = match found.action {
            Action::Deny => "error",
            Action::Repair | Action::Warn => "warning",
            Action::Audit => "notice",
        };
        let message = format!("{}: {}: {}", object.identity, found.field, found.message);
        command(out, level, &found.rule, &place.file, Some(place), &message)?;
    }
    for mistake in &report.mistakes {
        let place = mistake.place.as_deref();
        command(out, "error", "not an object", &mistake.file, place, &mistake.message)?;
    }
    writeln!(out, "{report}")
}

fn command(
    out: &mut impl Write,
    level: &str,
    title: &str,
    file: &str,
    place: Option<&Place>,
    message: &str,
) -> io::Result<()> {
    write!(out, "::{level} file={}", property(file))?;
    if let Some(place) = place {
        let Place { line, column, end_column, .. } = place;
        // GitHub's last column is the last one that is meant.
        let end = end_column.saturating_sub(1).max(*column);
        write!(out, ",line={line},col={column},endColumn={end}")?;
    }
    writeln!(out, ",title={}::{}", property(title), data(message))
}

/// actions/toolkit, `command.ts`: `escapeData`; and what is left that would steer a terminal, because
/// the log is shown in one, too.
fn data(text: &str) -> String {
    one_line(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

/// The same file: `escapeProperty`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
