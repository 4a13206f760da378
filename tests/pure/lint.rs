//! `statusgate lint` finds each fault in a small convention that has it. The built-in conventions have
//! none, and the engine confirms it.

mod cel;
mod contradictions;
mod engine;
mod faults;
mod kinds;
mod policies;
mod values;

use crate::support::compile;
use statusgate_analysis::lint::{self, Kind, Remark};
use statusgate_core::policy::PolicySet;

const CONDITIONS: &str = "conditions: [{path: /status/conditions}]";

/// A convention document. `spec` is YAML in block style.
fn document(spec: &str) -> String {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: test}}\nspec:\n{spec}"
    )
}

fn remarks(spec: &str) -> Vec<Remark> {
    let report = lint::lint(&compile(&[document(spec)]), "test").unwrap();
    let mut faults = report.remarks.iter().filter(|remark| remark.kind.is_fault());
    assert_eq!(faults.find(|fault| fault.witness.is_none()), None, "each has a witness");
    report.remarks
}

/// The remarks about a policy of this name.
fn lint_policy(policies: &PolicySet, name: &str) -> Vec<Remark> {
    let policy = policies.policies().iter().find(|policy| *policy.name == *name).unwrap();
    lint::lint_policy(policies, policy).remarks
}

/// The one remark of a kind, and that there are no faults of other kinds.
fn only(kind: Kind, spec: &str) -> Remark {
    let remarks = remarks(spec);
    let others = remarks.iter().filter(|remark| remark.kind != kind && remark.kind.is_fault());
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&Remark>::new());
    let mut found = remarks.into_iter().filter(|remark| remark.kind == kind);
    let remark = found.next().unwrap();
    assert_eq!(found.next(), None);
    remark
}

/// A convention with two phases that differ in Ready, and more.
fn two_phases(more: &str) -> String {
    format!(
        "{CONDITIONS}
phase:
  path: /status/phase
  default: Unknown
  values:
    - {{phase: Up, necessary: {{condition: Ready, is: 'True'}}, sufficient: {{condition: Ready, is: 'True'}}}}
    - {{phase: Down, necessary: {{condition: Ready, isNot: 'True'}}}}
    - {{phase: Unknown}}
{more}"
    )
}
