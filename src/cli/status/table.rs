//! The records as a table.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::super::report::plural;
use super::super::table;
use super::record::Record;
use crate::cluster::object_path;
use statusgate_core::kstatus::{Status, aggregate};
use statusgate_core::source::{Identity, one_line};

/// Characters of a message: with the other columns about two lines of a terminal.
const MAX_MESSAGE: usize = 80;

/// Writes one row per object, the contradicted phases, and the aggregated result.
pub(super) fn write(records: &[Record<'_>], out: &mut impl Write) -> io::Result<()> {
    let with_phases = records.iter().any(|record| record.standings().next().is_some());
    let phases = if with_phases { &["phase", "admissible"][..] } else { &[] };
    let mut table = table::new(&[&["kind", "name", "kstatus"], phases, &["message"]].concat());
    for record in records {
        let phases = if with_phases { phases_of(record).to_vec() } else { Vec::new() };
        let Identity { kind, namespace, name, .. } = &record.entry.identity;
        let mut row = vec![kind.clone(), object_path(namespace, name), status(record)];
        row.extend(phases);
        row.push(message(record));
        table.add_row(row.iter().map(|cell| one_line(cell)));
    }
    if !records.is_empty() {
        writeln!(out, "{table}\n")?;
    }
    for record in records {
        for (policy, standing) in record.standings() {
            if let Some(contradiction) = &standing.contradiction {
                let line = one_line(&format!("{}: {contradiction}", record.entry.identity));
                writeln!(out, "{line} [policy {policy}]")?;
            }
        }
    }
    writeln!(out, "{}", summary(records))
}

fn status(record: &Record<'_>) -> String {
    record.result.as_ref().map_or("error", |result| result.status.name()).to_owned()
}

fn message(record: &Record<'_>) -> String {
    let message = match &record.result {
        Ok(result) => result.message.clone(),
        Err(error) => error.to_string(),
    };
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

/// Phase and admissible phases, those of several policies separated by semicolons.
fn phases_of(record: &Record<'_>) -> [String; 2] {
    let (mut phases, mut admissible) = (Vec::new(), Vec::new());
    for (_, standing) in record.standings() {
        let phase = standing.phase.as_deref().unwrap_or("-");
        phases.push(match standing.instead {
            Some(instead) => format!("{phase} -> {instead}"),
            None => phase.to_owned(),
        });
        admissible.push(standing.admissible_in_words());
    }
    [phases.join("; "), admissible.join("; ")]
}

/// `3 objects: Failed (1 Current, 1 Failed, 1 error)`, with the aggregated kstatus result.
fn summary(records: &[Record<'_>]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for record in records {
        *counts.entry(status(record)).or_default() += 1;
    }
    let objects = plural(records.len(), "object");
    let whole = aggregate(records.iter().map(Record::status), Status::Current);
    let counts: Vec<String> =
        counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    match counts.as_slice() {
        [] => objects,
        counts => format!("{objects}: {whole} ({})", counts.join(", ")),
    }
}
