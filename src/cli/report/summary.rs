//! The summary by rule, for thousands of objects.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::super::output::severity;
use super::super::table;
use super::{Checked, Report};
use statusgate_core::engine::{Action, Found};
use statusgate_core::source::{Place, one_line};

/// The findings of one rule with one action.
struct Row<'r> {
    findings: usize,
    objects: usize,
    /// The first of them.
    example: (&'r Checked, &'r Place),
    /// The last object that was counted.
    last: &'r Checked,
}

/// Writes a table with one row per rule and action, then the kinds that were not judged, and the totals.
pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut rows: BTreeMap<(&str, Action), Row<'_>> = BTreeMap::new();
    for (object, Found { rule, action, .. }, place) in report.findings() {
        let first = Row { findings: 0, objects: 1, example: (object, place), last: object };
        let row = rows.entry((rule, *action)).or_insert(first);
        row.findings += 1;
        if !std::ptr::eq(row.last, object) {
            row.objects += 1;
            row.last = object;
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    // The worst first; of one action the most frequent.
    rows.sort_by_key(|((_, action), row)| std::cmp::Reverse((*action, row.findings)));
    if !rows.is_empty() {
        let mut table = table::new(&["rule", "action", "findings", "objects", "example"]);
        for ((rule, action), Row { findings, objects, example: (object, place), .. }) in rows {
            let example = format!("{} at {place}", object.entry);
            let (findings, objects) = (findings.to_string(), objects.to_string());
            table.add_row([
                one_line(rule),
                severity(action),
                findings,
                objects,
                one_line(&example),
            ]);
        }
        writeln!(out, "{table}\n")?;
    }
    report.write_unjudged(out)?;
    let judged = report.judged();
    let faulty = report.count(|object| !object.findings.is_empty());
    let (clean, unjudged) = (judged - faulty, report.objects.len() - judged);
    writeln!(
        out,
        "objects with findings: {faulty}, without findings: {clean}, not judged: {unjudged}"
    )?;
    writeln!(out, "{report}")
}
