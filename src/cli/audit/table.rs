//! The tables of an audit: counts, rules, contents, then examples; the worst first.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use super::super::output::severity;
use super::super::report::{by_action, plural};
use super::super::table;
use statusgate_cluster::audit::{Findings, Reason, Row, RuleSums};
use statusgate_core::engine::{Action, HealthStatus};
use statusgate_core::source::one_line;

pub(super) fn write(
    out: &mut impl Write,
    findings: &Findings,
    older_than: Option<Duration>,
) -> io::Result<()> {
    let rows = findings.tally.worst_first();
    write_kinds(out, &rows, older_than.is_some())?;
    write_rules(out, &rows)?;
    write_contents(out, &rows)?;
    write_examples(out, &rows)?;
    writeln!(out, "\n{}", sentence(findings))
}

fn write_kinds(out: &mut impl Write, rows: &[&Row], with_age: bool) -> io::Result<()> {
    let mut header = vec!["policy", "kind", "objects", "deny", "repair", "warn", "audit", "clean"];
    header.extend(with_age.then_some("recent"));
    header.push("to backfill");
    let mut table = table::new(&header);
    for row in rows {
        let counts = Action::WORST_FIRST.map(|action| row.worst(action));
        // `+`: the kind is incomplete.
        let objects = format!("{}{}", row.objects, if row.complete { "" } else { "+" });
        let mut cells = vec![row.policy.clone(), row.target.kind.clone(), objects];
        cells.extend(counts.iter().map(u64::to_string));
        cells.push(row.clean().to_string());
        cells.extend(with_age.then(|| row.passing().to_string()));
        cells.push(row.backfill.to_string());
        table.add_row(cells);
    }
    writeln!(out, "{table}")
}

fn write_rules(out: &mut impl Write, rows: &[&Row]) -> io::Result<()> {
    let mut table = table::new(&["rule", "action", "policy", "kind", "objects", "findings"]);
    let rules = rules(rows);
    if rules.is_empty() {
        return Ok(());
    }
    for (row, rule, action, sums) in rules {
        table.add_row([
            rule,
            &severity(action),
            &row.policy,
            &row.target.kind,
            &sums.objects.to_string(),
            &sums.findings.to_string(),
        ]);
    }
    writeln!(out, "\n{table}")
}

fn write_contents(out: &mut impl Write, rows: &[&Row]) -> io::Result<()> {
    let mut table = table::new(&["policy", "kind", "phases", "conditions", "health"]);
    let filled: Vec<_> = rows.iter().filter(|row| row.objects > 0).collect();
    if filled.is_empty() {
        return Ok(());
    }
    for row in filled {
        let mut by_kind: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((kind, status), count) in &row.conditions {
            by_kind.entry(kind).or_default().push(format!("{status} {count}"));
        }
        let mut phases: Vec<_> = row.phases.iter().collect();
        phases.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let phases = phases.iter().map(|(phase, count)| format!("{} {count}", one_line(phase)));
        let conditions = by_kind
            .iter()
            .map(|(kind, counts)| format!("{}: {}", one_line(kind), counts.join(", ")));
        table.add_row([
            row.policy.clone(),
            row.target.kind.clone(),
            phases.collect::<Vec<_>>().join("\n"),
            conditions.collect::<Vec<_>>().join("\n"),
            health(row),
        ]);
    }
    writeln!(out, "\n{}", table.unwrapped())
}

/// The number of objects by health; of those that are not current, one with its reason.
fn health(row: &Row) -> String {
    let lines = HealthStatus::WORST_FIRST.iter().filter_map(|health| {
        let (count, Reason { path, reason }) = row.health.get(health)?;
        let count = format!("{} {count}", health.name());
        Some(match health {
            HealthStatus::Current => count,
            _ => format!("{count} ({path}: {})", one_line(reason)),
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn write_examples(out: &mut impl Write, rows: &[&Row]) -> io::Result<()> {
    for (row, rule, action, sums) in rules(rows) {
        if sums.examples.is_empty() {
            continue;
        }
        writeln!(out, "\n{} {rule} ({}, {})", severity(action), row.policy, row.target.kind)?;
        for example in &sums.examples {
            let message = one_line(&example.message);
            writeln!(out, "  {}  {}: {message}", example.path, one_line(&example.field))?;
        }
        match sums.objects.saturating_sub(sums.examples.len() as u64) {
            0 => {}
            more => writeln!(out, "  and {more} more")?,
        }
    }
    Ok(())
}

/// The rules with findings: the worst action first, then the most objects.
fn rules<'r>(rows: &[&'r Row]) -> Vec<(&'r Row, &'r str, Action, &'r RuleSums)> {
    let all = rows.iter().flat_map(|&row| {
        row.rules.iter().map(move |((rule, action), sums)| (row, rule.as_str(), *action, sums))
    });
    let mut rules: Vec<_> = all.collect();
    rules.sort_by_key(|(_, _, action, sums)| std::cmp::Reverse((*action, sums.objects)));
    rules
}

fn sentence(findings: &Findings) -> String {
    let tally = &findings.tally;
    let objects = plural(usize::try_from(tally.objects).unwrap_or(usize::MAX), "object");
    let mut text = format!("{objects}: {}", by_action(&tally.found));
    if tally.backfill > 0 {
        text.push_str(&format!("; {} to backfill (statusgate backfill)", tally.backfill));
    }
    if !findings.failures.is_empty() {
        text.push_str("; the audit is incomplete");
    }
    text
}
