//! The table, for people.

use std::io::{self, Write};

use super::super::output::severity;
use super::{Located, Report};
use statusgate_core::source::one_line;

/// Writes each finding with its location and a caret, then the kinds that were not judged, and the totals. The caller reports unreadable
/// documents.
pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    for object in &report.objects {
        let entry = &object.entry;
        // Findings at the same location share one excerpt.
        for same in object.findings.chunk_by(|one, other| one.place == other.place) {
            for Located { found, place } in same {
                let (action, field) = (severity(found.action), &found.field);
                let (message, rule) = (&found.message, &found.rule);
                let line = format!("{entry}: {field}: {message} [{rule}]");
                writeln!(out, "{place}: {action}: {}", one_line(&line))?;
            }
            writeln!(out, "{}", same[0].place.picture(true))?;
        }
        if report.verbose {
            let (file, document) = (one_line(&entry.file), entry.document);
            let item = entry.item.map(|item| format!(", item {item}")).unwrap_or_default();
            if let Some(reason) = &entry.unjudged {
                let reason = one_line(reason);
                writeln!(out, "{file}: not judged: {entry} (document {document}{item}): {reason}")?;
            }
            for operation in &object.patch {
                let operation = one_line(&operation.to_string());
                writeln!(
                    out,
                    "{file}: note: {entry} (document {document}{item}) would be patched: {operation}"
                )?;
            }
        }
    }
    for file in report.skipped.iter().filter(|_| report.verbose) {
        writeln!(out, "{}: note: skipped: no manifest", one_line(file))?;
    }
    report.write_unjudged(out)?;
    writeln!(out, "{report}")
}
