//! Health checks in CEL, as Flux, Crossplane's function-auto-ready and kro read them.

use std::fmt::Write as _;

use indexmap::IndexMap;

use super::cel::{self, Cel, quoted};
use super::program::Clause;
use super::{Program, Readable, Reader};
use statusgate_core::engine::HealthStatus;
use statusgate_core::language::formula::{Formula, Question};
use statusgate_core::policy::convention::HealthClass;

/// Part of a Kustomization or a HelmRelease. Flux looks for a check by group and kind, so each kind has one, and it
/// waits while an expression is an error, as it is without a `status`.
pub(super) fn flux(kinds: &[Readable], settings: &str) -> String {
    let mut text = format!("spec:\n{settings}  healthCheckExprs:\n");
    for kind in kinds {
        let Some((version, _)) = kind.versions.last() else { continue };
        let (failed, current) = of_all_versions(kind);
        comment(&mut text, Reader::Flux, kind, "    ");
        let _ = writeln!(text, "    - apiVersion: {}", kind.api_version(version));
        let _ = writeln!(text, "      kind: {}", kind.kind);
        if let Some(failed) = failed {
            folded(&mut text, "      ", "failed: ", &failed);
        }
        folded(&mut text, "      ", "current: ", &current);
    }
    text
}

/// `failed` and `current` of a kind. They ask for the version, unless it makes no difference.
fn of_all_versions(kind: &Readable) -> (Option<String>, String) {
    let mut versions: IndexMap<_, Vec<String>> = IndexMap::new();
    for (version, program) in &kind.versions {
        let same = versions.entry(flux_expressions(program)).or_default();
        same.push(quoted(&kind.api_version(version)));
    }
    if versions.len() == 1 && kind.complete {
        return versions.pop().map(|(expressions, _)| expressions).unwrap_or_default();
    }
    let (mut failed, mut current) = (Vec::new(), Vec::new());
    for (expressions, versions) in versions {
        let of = |expression| format!("(apiVersion in [{}] && {expression})", versions.join(", "));
        failed.extend(expressions.0.map(of));
        current.push(of(expressions.1));
    }
    ((!failed.is_empty()).then(|| failed.join(" || ")), current.join(" || "))
}

/// `failed` and `current` of Flux, which asks for them in this order.
pub fn flux_expressions(program: &Program) -> (Option<String>, String) {
    let program = program.asking(cel::can_ask);
    let cel = Cel { root: "", typed: false, schema: &program.schema };
    let failed = program.gives(HealthClass::is_final_failure, is_read_by_flux);
    let current = program
        .gives(is_current, |clause| is_read_by_flux(clause) || clause.health.is_final_failure());
    let failed = (failed != Formula::NEVER).then(|| cel.expression(&failed));
    (failed, cel.expression(&current))
}

/// Flux compares this field itself if it is an integer (fluxcd/pkg 3619c73 runtime/cel/status_evaluator.go).
fn is_read_by_flux(clause: &Clause) -> bool {
    match &clause.when {
        Formula::Ask(Question::Observed { path, text: false, .. }) if clause.rule.is_none() => {
            path.tokens() == ["status", "observedGeneration"]
        }
        _ => false,
    }
}

/// The input of function-auto-ready.
pub(super) fn auto_ready(kinds: &[Readable]) -> String {
    let mut text = "apiVersion: autoready.fn.crossplane.io/v1beta1\nkind: Input\ncelHealthCheckCustomization:\n".to_owned();
    for kind in kinds {
        comment(&mut text, Reader::AutoReady, kind, "  ");
        for (version, program) in &kind.versions {
            let key = format!("{}_{version}_{}: ", kind.group, kind.kind);
            let is_current = current(program, "object", false);
            folded(&mut text, "  ", &key, &is_current);
        }
    }
    text
}

/// kro checks the types of expressions.
const NO_SCHEMA: &str = "  # kro rejects fields that the schema of the kind does not have. With --crds or --from-cluster, these are left out.\n";

/// Parts of the resources of a ResourceGraphDefinition.
pub(super) fn kro(kinds: &[Readable]) -> String {
    let mut text = "resources:\n".to_owned();
    for kind in kinds {
        comment(&mut text, Reader::Kro, kind, "  ");
        for (version, program) in &kind.versions {
            // A prefix, because kro reserves ids such as `function` and `namespace`.
            let id = format!("my{}", kind.kind);
            let is_current = current(program, &id, true);
            if program.schema.is_free() {
                text.push_str(NO_SCHEMA);
            }
            let _ = writeln!(text, "  - id: {id}\n    template:");
            let _ = writeln!(text, "      apiVersion: {}", kind.api_version(version));
            let _ = writeln!(text, "      kind: {}\n    readyWhen:", kind.kind);
            folded(&mut text, "      ", "- ", &format!("${{{is_current}}}"));
        }
    }
    text
}

/// Whether the object in a variable is current, with its stale clause.
pub fn current(program: &Program, root: &str, typed: bool) -> String {
    let program = program.asking(cel::can_ask);
    let cel = Cel { root, typed, schema: &program.schema };
    cel.expression(&program.gives(is_current, |_| false))
}

fn is_current(health: HealthClass) -> bool {
    health.is == HealthStatus::Current
}

fn comment(text: &mut String, reader: Reader, kind: &Readable, indent: &str) {
    let _ = writeln!(text, "{indent}# {}: {}", kind.name(), kind.origin());
    for gap in reader.gaps(kind) {
        let _ = writeln!(text, "{indent}# {gap}");
    }
}

/// A scalar in lines that YAML joins with spaces.
fn folded(text: &mut String, indent: &str, key: &str, value: &str) {
    const WIDTH: usize = 100;
    let _ = write!(text, "{indent}{key}>-");
    let mut width = WIDTH;
    // Only after an operator: a line that begins with a space would keep its line break.
    for part in value.split_inclusive(" && ").flat_map(|part| part.split_inclusive(" || ")) {
        if width + part.len() > WIDTH {
            text.truncate(text.trim_end().len());
            let _ = write!(text, "\n{indent}  ");
            width = 0;
        }
        text.push_str(part);
        width += part.len();
    }
    text.push('\n');
}
