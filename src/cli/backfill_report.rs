//! What a backfill tells: a line an object where that is wanted, and the sums at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::progress::Progress;
use super::table;
use crate::cluster::Target;
use crate::cluster::backfill::{Audience, Change, Outcome, Report};
use crate::policy::PolicySet;

/// Counts, and prints what the format wants.
pub(super) struct Teller {
    policies: Arc<PolicySet>,
    format: Format,
    progress: Progress,
    sums: BTreeMap<(String, String), Sums>,
}

/// How objects are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Only what a person has to look at.
    Findings,
    /// Every change, as a diff.
    Diff,
    /// A JSON document a line, for every object.
    Json { dry_run: bool },
}

/// What became of the objects of one policy and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    patched: u64,
    unchanged: u64,
    earlier: u64,
    gone: u64,
    conflicts: u64,
    refused: u64,
    failed: u64,
}

impl Teller {
    pub(super) fn new(policies: Arc<PolicySet>, format: Format, total: Option<u64>) -> Self {
        let progress = Progress::new("backfill", total);
        Self { policies, format, progress, sums: BTreeMap::new() }
    }

    /// Whether an object could not be brought up to date.
    pub(super) fn has_findings(&self) -> bool {
        self.sums.values().any(|sums| sums.refused + sums.failed > 0)
    }

    /// The sums as a table: on stdout, or beside it where that is JSON.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.progress.finish();
        let dry = matches!(self.format, Format::Diff | Format::Json { dry_run: true });
        let patched = if dry { "to patch" } else { "patched" };
        let mut table = table::new(&[
            "policy",
            "kind",
            patched,
            "unchanged",
            "earlier",
            "gone",
            "conflicts",
            "refused",
            "failed",
        ]);
        for ((policy, kind), sums) in &self.sums {
            let numbers = [
                sums.patched,
                sums.unchanged,
                sums.earlier,
                sums.gone,
                sums.conflicts,
                sums.refused,
                sums.failed,
            ];
            let numbers = numbers.iter().map(u64::to_string);
            table.add_row([policy.clone(), kind.clone()].into_iter().chain(numbers));
        }
        let text = table::text(&mut table);
        if matches!(self.format, Format::Json { .. }) {
            writeln!(io::stderr(), "{text}")
        } else {
            writeln!(io::stdout(), "{text}")
        }
    }

    fn names(&self, policies: &[u16]) -> Vec<&str> {
        let all = self.policies.policies();
        let name = |index: &u16| all.get(usize::from(*index)).map(|policy| policy.name.as_str());
        policies.iter().filter_map(name).collect()
    }

    fn sums(&mut self, target: &Target, policies: &[u16]) -> &mut Sums {
        let names = self.names(policies).join(", ");
        self.sums.entry((names, target.kind.clone())).or_default()
    }

    fn text(&self, report: &Report<'_>) -> Option<String> {
        match (self.format, report.outcome) {
            (Format::Json { dry_run }, _) => {
                Some(json_line(report, &self.names(report.policies), dry_run))
            }
            (_, Outcome::Refused(reason)) => Some(format!("refused  {}: {reason}", path(report))),
            (_, Outcome::Failed(reason)) => Some(format!("failed   {}: {reason}", path(report))),
            (Format::Diff, Outcome::Patched) => {
                Some(format!("{}{}", path(report), diff(report.changes)))
            }
            _ => None,
        }
    }
}

impl Audience for Teller {
    fn object(&mut self, report: &Report<'_>) -> io::Result<()> {
        let sums = self.sums(report.target, report.policies);
        match report.outcome {
            Outcome::Patched => sums.patched += 1,
            Outcome::Unchanged => sums.unchanged += 1,
            Outcome::Earlier => sums.earlier += 1,
            Outcome::Gone => sums.gone += 1,
            Outcome::Refused(_) => sums.refused += 1,
            Outcome::Failed(_) => sums.failed += 1,
        }
        sums.conflicts += u64::from(report.conflicts);
        self.progress.advance(1);
        if let Some(text) = self.text(report) {
            self.progress.aside(|| writeln!(io::stdout(), "{text}"))?;
        }
        self.tick();
        Ok(())
    }

    fn finished_earlier(&mut self, target: &Target, patched: u64) {
        self.sums(target, &target.policies).earlier += patched;
        let line = format!("{} is left out: the journal has it finished", target.name());
        // If stderr is gone, nobody wants to know.
        let _ = self.progress.aside(|| writeln!(io::stderr(), "{line}"));
    }

    fn tick(&mut self) {
        let sums = &self.sums;
        self.progress.tick(|| {
            let sum = |field: fn(&Sums) -> u64| sums.values().map(field).sum::<u64>();
            let bad = sum(|sums| sums.refused + sums.failed);
            format!("{} patched, {bad} refused or failed", sum(|sums| sums.patched))
        });
    }
}

/// `vshnredis.vshn.appcat.vshn.io default/cache`.
fn path(report: &Report<'_>) -> String {
    let Report { target, namespace, name, .. } = report;
    if namespace.is_empty() {
        format!("{} {name}", target.name())
    } else {
        format!("{} {namespace}/{name}", target.name())
    }
}

/// The changes, one a line, the old value before the new.
fn diff(changes: &[Change]) -> String {
    let mut text = String::new();
    for Change { path, old, new } in changes {
        for (sign, value) in [('-', old), ('+', new)] {
            if let Some(value) = value {
                text.push_str(&format!("\n  {sign} {path}: {value}"));
            }
        }
    }
    text
}

fn json_line(report: &Report<'_>, policies: &[&str], dry_run: bool) -> String {
    let (outcome, reason) = match report.outcome {
        Outcome::Patched if dry_run => ("toPatch", None),
        Outcome::Patched => ("patched", None),
        Outcome::Unchanged => ("unchanged", None),
        Outcome::Earlier => ("earlier", None),
        Outcome::Gone => ("gone", None),
        Outcome::Refused(reason) => ("refused", Some(reason)),
        Outcome::Failed(reason) => ("failed", Some(reason)),
    };
    let change = |change: &Change| {
        let mut members = Map::from_iter([("path".to_owned(), Value::from(change.path.clone()))]);
        for (name, value) in [("old", &change.old), ("new", &change.new)] {
            if let Some(value) = value {
                members.insert(name.to_owned(), value.clone());
            }
        }
        Value::Object(members)
    };
    let mut line = json!({
        "outcome": outcome,
        "policies": policies,
        "apiVersion": report.target.api_version(),
        "kind": report.target.kind,
        "name": report.name,
        "uid": report.uid,
        "conflicts": report.conflicts,
        "changes": report.changes.iter().map(change).collect::<Vec<_>>(),
    });
    if !report.namespace.is_empty() {
        line["namespace"] = report.namespace.into();
    }
    if let Some(reason) = reason {
        line["reason"] = reason.as_str().into();
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target {
            group: "a.io".into(),
            version: "v1".into(),
            plural: "foos".into(),
            kind: "Foo".into(),
            namespaced: true,
            status_subresource: true,
            policies: vec![0],
        }
    }

    fn report<'r>(target: &'r Target, outcome: &'r Outcome, changes: &'r [Change]) -> Report<'r> {
        let (namespace, name, uid) = ("n", "one", "u");
        Report { target, policies: &[], namespace, name, uid, outcome, conflicts: 1, changes }
    }

    #[test]
    fn a_diff_has_the_old_value_before_the_new_one() {
        let change = |path: &str, old: Option<Value>, new: Option<Value>| Change {
            path: path.to_owned(),
            old,
            new,
        };
        let changes = [
            change("/status/phase", Some(json!("")), Some(json!("Unknown"))),
            change("/status/billing", Some(Value::Null), None),
        ];
        assert_eq!(
            diff(&changes),
            "\n  - /status/phase: \"\"\n  + /status/phase: \"Unknown\"\n  - /status/billing: null"
        );
    }

    #[test]
    fn a_line_of_json_stands_alone() {
        let (target, outcome) = (target(), Outcome::Refused("no".to_owned()));
        let line = json_line(&report(&target, &outcome, &[]), &["p"], false);
        assert_eq!(
            serde_json::from_str::<Value>(&line).unwrap(),
            json!({"outcome": "refused", "reason": "no", "policies": ["p"], "apiVersion": "a.io/v1",
                "kind": "Foo", "namespace": "n", "name": "one", "uid": "u", "conflicts": 1,
                "changes": []})
        );
    }

    #[test]
    fn a_person_is_told_what_to_look_at_and_spared_the_rest() {
        let policies = Arc::new(PolicySet::compile(&PolicySet::examples()).unwrap());
        let teller = Teller::new(policies, Format::Findings, None);
        let target = target();
        let text = |outcome: Outcome| teller.text(&report(&target, &outcome, &[]));
        assert_eq!(text(Outcome::Patched), None);
        assert_eq!(text(Outcome::Unchanged), None);
        assert_eq!(
            text(Outcome::Refused("no".into())).as_deref(),
            Some("refused  foos.a.io n/one: no")
        );
    }
}
