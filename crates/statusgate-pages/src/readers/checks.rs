//! Health checks in CEL, as Flux, Crossplane's function-auto-ready and kro read them.

use std::fmt::Write as _;

use super::cel::{self, Cel};
use super::program::Clause;
use super::{Program, Readable, Reader};
use statusgate_core::engine::HealthStatus;
use statusgate_core::language::formula::{Formula, Question};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::HealthClass;

/// Part of a Kustomization. Flux looks for a check by group and kind, so each kind has one, and it waits
/// while an expression is an error, as it is without a `status`.
pub(super) fn flux(kinds: &[Readable]) -> String {
    let mut text = "spec:\n  healthCheckExprs:\n".to_owned();
    for kind in kinds {
        let Some((version, program)) = kind.versions.last() else { continue };
        let (failed, current) = flux_expressions(program);
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

/// Flux compares this field itself. If it is not an integer, Flux reports an error.
fn is_read_by_flux(clause: &Clause) -> bool {
    let path = observed_generation(clause);
    path.is_some_and(|path| path.tokens() == ["status", "observedGeneration"])
}

/// The field of a stale clause.
fn observed_generation(clause: &Clause) -> Option<&Pointer> {
    match &clause.when {
        Formula::Ask(Question::Observed { path, .. }) if clause.rule.is_none() => Some(path),
        _ => None,
    }
}

/// What Flux cannot express.
pub(super) fn flux_gaps(kind: &Readable) -> Vec<String> {
    let Some((version, program)) = kind.versions.last() else { return Vec::new() };
    let mut gaps = Vec::new();
    let mut texts = program.clauses.iter().filter(|clause| {
        matches!(clause.when, Formula::Ask(Question::Observed { text: true, .. }))
            && clause.when.under(&program.schema) != Formula::NEVER
    });
    if texts.any(is_read_by_flux) {
        gaps.push("Flux reports an error if status.observedGeneration is a string".to_owned());
    }
    let expressions = flux_expressions(program);
    if kind.versions.iter().any(|(_, other)| flux_expressions(other) != expressions) {
        gaps.push(format!("Flux has one check for each kind, and this is that of {version}"));
    }
    gaps
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
