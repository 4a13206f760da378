//! The records as a table.

use std::io::{self, Write};

use super::super::report::plural;
use super::super::table;
use super::Record;
use statusgate_cluster::object_path;
use statusgate_core::engine::HealthStatus;
use statusgate_core::model::shortened;
use statusgate_core::source::{Identity, one_line};

/// Characters of a reason: with the other columns about two lines of a terminal.
const MAX_REASON: usize = 80;

/// Writes one row per object, the contradicted phases, and the number of objects by health.
pub(super) fn write(records: &[Record<'_>], out: &mut impl Write) -> io::Result<()> {
    let with_phases = records.iter().any(|record| record.reading.standings().next().is_some());
    let phases = if with_phases { &["phase", "admissible"][..] } else { &[] };
    let mut table =
        table::new(&[&["kind", "name", "health"], phases, &["reason", "kstatus"]].concat());
    for record in records {
        let phases = if with_phases { phases_of(record).to_vec() } else { Vec::new() };
        let Identity { kind, namespace, name, .. } = &record.entry.identity;
        let mut row = vec![
            kind.clone(),
            object_path(namespace, name),
            record.reading.health.class.to_string(),
        ];
        row.extend(phases);
        row.extend([shortened(&record.reading.health.reason, MAX_REASON), status(record)]);
        table.add_row(row.iter().map(|cell| one_line(cell)));
    }
    if !records.is_empty() {
        writeln!(out, "{table}\n")?;
    }
    for record in records {
        for (policy, standing) in record.reading.standings() {
            if let Some(contradiction) = &standing.contradiction {
                let line = one_line(&format!("{}: {contradiction}", record.entry.identity));
                writeln!(out, "{line} [policy {policy}]")?;
            }
        }
    }
    writeln!(out, "{}", summary(records))
}

fn status(record: &Record<'_>) -> String {
    record.reading.result.as_ref().map_or("error", |result| result.status.name()).to_owned()
}

/// Phase and admissible phases, those of several policies separated by semicolons.
fn phases_of(record: &Record<'_>) -> [String; 2] {
    let (mut phases, mut admissible) = (Vec::new(), Vec::new());
    for (_, standing) in record.reading.standings() {
        let phase = standing.phase.as_deref().unwrap_or("-");
        phases.push(match standing.instead {
            Some(instead) => format!("{phase} -> {instead}"),
            None => phase.to_owned(),
        });
        admissible.push(standing.admissible_in_words());
    }
    [phases.join("; "), admissible.join("; ")]
}

/// `3 objects: 1 failed, 2 current`.
fn summary(records: &[Record<'_>]) -> String {
    let count = |health: &HealthStatus| {
        let count =
            records.iter().filter(|record| record.reading.health.class.is == *health).count();
        (count > 0).then(|| format!("{count} {}", health.name()))
    };
    let counts: Vec<String> = HealthStatus::WORST_FIRST.iter().filter_map(count).collect();
    let objects = plural(records.len(), "object");
    if counts.is_empty() { objects } else { format!("{objects}: {}", counts.join(", ")) }
}
