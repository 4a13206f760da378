//! For a person.

use std::io::{self, Write};

use super::Report;
use crate::files::picture;

/// Each finding with its place and a caret, then the totals. What could not be read goes to stderr:
/// that is for the caller.
pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for object in &report.objects {
        let identity = &object.identity;
        // What stands in one place is drawn once.
        for same in object.findings.chunk_by(|(_, one), (_, other)| one == other) {
            for (found, place) in same {
                let (action, field) = (found.action.label(), &found.field);
                let (message, rule) = (one_line(&found.message), &found.rule);
                writeln!(out, "{place}: {action}: {identity}: {field}: {message} [{rule}]")?;
            }
            for (_, place) in same.iter().take(1) {
                writeln!(out, "{}", picture(place))?;
            }
        }
        if report.verbose {
            let (file, document) = (&object.file, object.document);
            let item = object.item.map(|item| format!(", item {item}")).unwrap_or_default();
            if object.policies.is_empty() {
                writeln!(out, "{file}: no policy selects {identity} (document {document}{item})")?;
            }
            for operation in &object.patch {
                writeln!(
                    out,
                    "{file}: note: {identity} (document {document}{item}) would be patched: {operation}"
                )?;
            }
        }
    }
    writeln!(out, "{report}")
}

/// A message as part of a line: those of CEL rules can be anything.
pub(super) fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
