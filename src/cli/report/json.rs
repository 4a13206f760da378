//! JSON, for programs.

use std::io::{self, Write};

use serde::Serialize;

use super::{Judged, Report};
use crate::engine::Action;
use crate::source::Diagnostic;

/// Writes one document. Its keys are stable; new ones may be added.
pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let totals = report.totals();
    let document = Document {
        objects: &report.objects,
        mistakes: &report.mistakes,
        summary: Summary {
            files: report.files.len(),
            objects: report.objects.len(),
            judged: totals.judged,
            patched: totals.patched,
            mistakes: report.mistakes.len(),
            findings: Action::WORST_FIRST.map(|action| (action.label(), totals.of(action))).into(),
            policies: totals.policies,
            failed: report.fails(),
        },
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

#[derive(Serialize)]
struct Document<'r> {
    objects: &'r [Judged],
    mistakes: &'r [Diagnostic],
    summary: Summary<'r>,
}

#[derive(Serialize)]
struct Summary<'r> {
    files: usize,
    objects: usize,
    judged: usize,
    patched: usize,
    mistakes: usize,
    policies: std::collections::BTreeMap<&'r str, usize>,
    findings: std::collections::BTreeMap<&'static str, u64>,
    failed: bool,
}
