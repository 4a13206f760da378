//! Workflow commands of GitHub Actions: `::error file=…,line=…,col=…,title=…::message`.

use std::io::{self, Write};

use super::Report;
use statusgate_core::engine::Action;
use statusgate_core::source::{Place, one_line};

/// Writes a command for each finding and each unreadable document, then the totals.
pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    for (object, found, place) in report.findings() {
        let level = match found.action {
            Action::Deny => "error",
            Action::Repair | Action::Warn => "warning",
            Action::Audit => "notice",
        };
        let message = format!("{}: {}: {}", object.entry, found.field, found.message);
        command(out, level, &found.rule, &place.file, Some(place), &message)?;
    }
    for mistake in &report.mistakes {
        let place = mistake.place.as_deref();
        command(out, "error", "not an object", &mistake.file, place, &mistake.message)?;
    }
    if let Some(why) = report.unproven() {
        writeln!(out, "::error title=not judged::{}", data(why))?;
        report.write_unjudged(out)?;
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
        // GitHub's end column is inclusive.
        let end = end_column.saturating_sub(1).max(*column);
        write!(out, ",line={line},col={column},endColumn={end}")?;
    }
    writeln!(out, ",title={}::{}", property(title), data(message))
}

/// `escapeData` in `command.ts` of actions/toolkit. Other control characters are removed for terminals.
fn data(text: &str) -> String {
    one_line(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

/// `escapeProperty` in the same file.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
