//! JSON lines, for programs.

use std::io::{self, Write};

use super::Report;

/// Writes one line per object. docs/check.md describes the members; new ones may be added.
pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    for object in &report.objects {
        serde_json::to_writer(&mut *out, object)?;
        writeln!(out)?;
    }
    Ok(())
}
