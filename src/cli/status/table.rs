//! The records as a table.

use std::io::{self, Write};

use super::super::report::plural;
use super::super::table;
use super::super::time::age;
use super::Record;
use statusgate_cluster::object_path;
use statusgate_core::engine::HealthStatus;
use statusgate_core::source::{Identity, one_line};

/// Writes one line per object, the contradicted phases, and the number of objects by health.
pub(super) fn write(records: &[Record<'_>], now: i64, out: &mut impl Write) -> io::Result<()> {
    let with_phases = records.iter().any(has_phase);
    let with_times = records.iter().any(|record| record.reading.since.is_some());
    let times = if with_times { &["since"][..] } else { &[] };
    let phases = if with_phases { &["phase"][..] } else { &[] };
    let mut table =
        table::new(&[&["kind", "name", "health"], times, phases, &["kstatus", "reason"]].concat());
    for record in records {
        let Identity { kind, namespace, name, .. } = &record.entry.identity;
        let reading = &record.reading;
        let mut row =
            vec![kind.clone(), object_path(namespace, name), reading.health.class.to_string()];
        row.extend(
            with_times.then(|| reading.since.map_or_else(String::new, |since| age(since, now))),
        );
        row.extend(with_phases.then(|| phases_of(record)));
        let result = reading.result.as_ref();
        row.push(result.map_or("error", |result| result.status.name()).to_owned());
        row.push(reading.health.reason.clone());
        table.add_row(row.iter().map(|cell| one_line(cell)));
    }
    if !records.is_empty() {
        writeln!(out, "{}\n", table.unwrapped())?;
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

/// Whether a policy says something about the phase.
fn has_phase(record: &Record<'_>) -> bool {
    let mut standings = record.reading.standings();
    standings.any(|(_, standing)| standing.phase.is_some() || standing.instead.is_some())
}

/// The phase and what would replace it, those of several policies separated by semicolons.
fn phases_of(record: &Record<'_>) -> String {
    let phases = record.reading.standings().map(|(_, standing)| {
        let phase = standing.phase.as_deref().unwrap_or("-");
        match standing.instead {
            Some(instead) => format!("{phase} -> {instead}"),
            None => phase.to_owned(),
        }
    });
    phases.collect::<Vec<_>>().join("; ")
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
