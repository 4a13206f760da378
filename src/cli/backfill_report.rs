//! The report of a backfill: objects as they are processed, then the totals.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::json;

use super::backfill::Args;
use super::output::{Output, diff_line, stdout};
use super::progress::Progress;
use super::{say, table};
use statusgate_cluster::backfill::{Audience, ChangedValue, Named, ObjectReport, Outcome};
use statusgate_cluster::{Target, object_path};
use statusgate_core::policy::PolicySet;

/// Counts objects and prints them in a format.
pub(super) struct Reporter<'a> {
    /// The table format prints only objects that need attention; a dry run, every change as a diff.
    args: &'a Args,
    policies: Arc<PolicySet>,
    progress: Progress,
    /// By policies and kind.
    totals: BTreeMap<(String, String), Totals>,
}

/// The objects of one policy and kind, by column.
type Totals = BTreeMap<&'static str, u64>;

impl<'a> Reporter<'a> {
    pub(super) fn new(args: &'a Args, policies: Arc<PolicySet>, total: Option<u64>) -> Self {
        Self { args, policies, progress: Progress::new("backfill", total), totals: BTreeMap::new() }
    }

    /// Whether an object was rejected or failed.
    pub(super) fn has_findings(&self) -> bool {
        sum(&self.totals, REJECTED) + sum(&self.totals, FAILED) > 0
    }

    /// Prints the totals: on stdout, or on stderr if stdout is JSON.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.progress.finish();
        let columns = || COLUMNS.into_iter().filter(|name| self.args.repair || *name != REPAIRED);
        let mut header = vec!["policy", "kind"];
        header.extend(columns().map(|name| match name {
            PATCHED if self.args.dry_run => "to patch",
            REPAIRED if self.args.dry_run => "to repair",
            name => name,
        }));
        let mut table = table::new(&header);
        for ((policy, kind), totals) in &self.totals {
            let numbers = columns().map(|name| totals.get(name).unwrap_or(&0).to_string());
            table.add_row([policy.clone(), kind.clone()].into_iter().chain(numbers));
        }
        if self.args.output == Output::Json {
            say(table);
            Ok(())
        } else {
            writeln!(stdout(true), "{table}")
        }
    }

    fn totals(&mut self, target: &Target, policies: &[u16]) -> &mut Totals {
        let names = self.policies.names_of(policies).collect::<Vec<_>>().join(", ");
        self.totals.entry((names, target.kind.clone())).or_default()
    }

    fn text(&self, target: &Target, report: &ObjectReport) -> Option<String> {
        if self.args.output == Output::Json {
            let policies = self.policies.names_of(&report.policies).collect::<Vec<_>>();
            return Some(json_line(target, report, &policies, self.args.dry_run));
        }
        let Named { namespace, name, .. } = &report.object;
        let path = || format!("{} {}", target.name(), object_path(namespace, name));
        match &report.outcome {
            Outcome::Rejected(reason) => Some(format!("rejected {}: {reason}", path())),
            Outcome::Failed(reason) => Some(format!("failed   {}: {reason}", path())),
            Outcome::Patched if self.args.dry_run || report.repair.is_some() => {
                let verb = if self.args.dry_run { "" } else { "repaired " };
                let repair = report.repair.iter().map(|message| format!(": {message}"));
                let repair: String = repair.collect();
                Some(format!("{verb}{}{repair}{}", path(), diff(&report.changes)))
            }
            _ => None,
        }
    }
}

impl Audience for Reporter<'_> {
    fn object(&mut self, target: &Target, report: &ObjectReport) -> io::Result<()> {
        let totals = self.totals(target, &report.policies);
        let column = match report.outcome {
            Outcome::Patched => PATCHED,
            Outcome::Unchanged => "unchanged",
            Outcome::Deleted => "deleted",
            Outcome::Rejected(_) => REJECTED,
            Outcome::Failed(_) => FAILED,
        };
        let is_repaired = column == PATCHED && report.repair.is_some();
        *totals.entry(column).or_default() += 1;
        *totals.entry(REPAIRED).or_default() += u64::from(is_repaired);
        *totals.entry(CONFLICTS).or_default() += u64::from(report.conflicts);
        self.progress.advance(1);
        if let Some(text) = self.text(target, report) {
            self.progress
                .aside(|| writeln!(stdout(self.args.output == Output::Table), "{text}"))?;
        }
        self.tick();
        Ok(())
    }

    fn tick(&mut self) {
        let sum = |column| sum(&self.totals, column);
        self.progress.tick(|| {
            let bad = sum(REJECTED) + sum(FAILED);
            format!("{} patched, {bad} rejected or failed", sum(PATCHED))
        });
    }
}

/// The number of objects in a column.
fn sum(totals: &BTreeMap<(String, String), Totals>, column: &str) -> u64 {
    totals.values().filter_map(|totals| totals.get(column)).sum()
}

const PATCHED: &str = "patched";
const REPAIRED: &str = "repaired";
const CONFLICTS: &str = "conflicts";
const REJECTED: &str = "rejected";
const FAILED: &str = "failed";

/// The columns of the totals.
const COLUMNS: [&str; 7] = [PATCHED, REPAIRED, "unchanged", "deleted", CONFLICTS, REJECTED, FAILED];

/// The changes, one per line, the old value before the new one.
fn diff(changes: &[ChangedValue]) -> String {
    let mut text = String::new();
    for ChangedValue { path, old, new } in changes {
        for (sign, value) in [('-', old), ('+', new)] {
            if let Some(value) = value {
                text.push_str(&format!("\n{}", diff_line(&format!("  {sign} {path}: {value}"))));
            }
        }
    }
    text
}

fn json_line(target: &Target, report: &ObjectReport, policies: &[&str], dry_run: bool) -> String {
    let Named { namespace, name, uid, .. } = &report.object;
    let (outcome, reason) = match &report.outcome {
        Outcome::Patched if dry_run => ("toPatch", None),
        Outcome::Patched => ("patched", None),
        Outcome::Unchanged => ("unchanged", None),
        Outcome::Deleted => ("deleted", None),
        Outcome::Rejected(reason) => ("rejected", Some(reason)),
        Outcome::Failed(reason) => ("failed", Some(reason)),
    };
    let mut line = json!({
        "outcome": outcome,
        "policies": policies,
        "apiVersion": target.api_version(),
        "kind": target.kind,
        "name": name,
        "uid": uid,
        "conflicts": report.conflicts,
        "changes": report.changes,
    });
    if !namespace.is_empty() {
        line["namespace"] = namespace.as_str().into();
    }
    if let Some(reason) = reason {
        line["reason"] = reason.as_str().into();
    }
    if let Some(repair) = &report.repair {
        line["repair"] = repair.as_str().into();
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::super::connection::tests::target;
    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn report(outcome: Outcome) -> ObjectReport {
        let (namespace, name) = ("n".to_owned(), "one".to_owned());
        let object = Named { namespace, name, uid: "u".to_owned(), ..Named::default() };
        let (policies, changes) = (Vec::new(), Vec::new());
        ObjectReport { object, policies, outcome, repair: None, conflicts: 1, changes }
    }

    #[test]
    fn a_diff_has_the_old_value_before_the_new_one() {
        let change = |path: &str, old: Option<Value>, new: Option<Value>| ChangedValue {
            path: path.to_owned(),
            old,
            new,
        };
        let changes = [
            change("/status/phase", Some(json!("")), Some(json!("Unknown"))),
            change("/status/billing", Some(Value::Null), None),
        ];
        assert_eq!(
            anstream::adapter::strip_str(&diff(&changes)).to_string(),
            "\n  - /status/phase: \"\"\n  + /status/phase: \"Unknown\"\n  - /status/billing: null"
        );
    }

    #[test]
    fn each_json_line_is_one_object() {
        let report = report(Outcome::Rejected("no".to_owned()));
        let line = json_line(&target("foos", "Foo"), &report, &["p"], false);
        assert_eq!(
            serde_json::from_str::<Value>(&line).unwrap(),
            json!({"outcome": "rejected", "reason": "no", "policies": ["p"], "apiVersion": "a.io/v1",
                "kind": "Foo", "namespace": "n", "name": "one", "uid": "u", "conflicts": 1,
                "changes": []})
        );
    }

    #[test]
    fn the_table_format_prints_only_objects_that_need_attention() {
        let policies = Arc::new(PolicySet::compile(&PolicySet::examples()).unwrap());
        let args = Command::parse_from(["backfill"]).args;
        let reporter = Reporter::new(&args, policies, None);
        let text = |outcome: Outcome| reporter.text(&target("foos", "Foo"), &report(outcome));
        assert_eq!(text(Outcome::Patched), None);
        assert_eq!(text(Outcome::Unchanged), None);
        assert_eq!(
            text(Outcome::Rejected("no".into())).as_deref(),
            Some("rejected foos.a.io n/one: no")
        );
    }
}
