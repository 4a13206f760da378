//! Commands of `kubectl wait`, for kinds of which one condition or one value says everything.

use std::fmt::Write as _;

use super::checks::{comment, is_current, observed_generation};
use super::{Program, Readable, Reader, cel};
use crate::language::formula::{Formula, List, Question};
use crate::readers::program::Clause;

/// The commands, with a comment for each kind.
pub(super) fn commands(kinds: &[Readable]) -> String {
    let mut text = String::new();
    for kind in kinds {
        comment(&mut text, Reader::Wait, kind, "");
        let argument = kind.versions.last().and_then(|(_, program)| argument(program).ok());
        if let Some(argument) = argument {
            let dot = if kind.group.is_empty() { "" } else { "." };
            let resource = format!("{}{dot}{}", kind.plural, kind.group);
            let _ = writeln!(text, "kubectl wait {resource}/NAME --for={argument}");
        }
    }
    text
}

/// Why there is no command.
pub(super) fn gap(kind: &Readable) -> Option<&'static str> {
    kind.versions.last().and_then(|(_, program)| argument(program).err())
}

/// The value of `--for`, or why there is none. kubectl ignores a condition that observed an older generation.
///
/// # Errors
/// kubectl cannot ask whether an object is current.
pub fn argument(program: &Program) -> Result<String, &'static str> {
    let program = program.asking(cel::can_ask);
    let formula = program.gives(is_current, |clause| observed_generation(clause).is_some());
    match formula {
        Formula::Ask(Question::Condition {
            list: List::At(path),
            kind,
            member: "status",
            among,
            negated: false,
        }) => {
            let is_read = path.tokens() == ["status", "conditions"];
            match among.as_slice() {
                [status] if is_read => Ok(format!("condition={kind}={status}")),
                [_] => Err("kubectl wait reads only status.conditions"),
                _ => Err("kubectl wait compares a condition with one status"),
            }
        }
        Formula::Ask(Question::Value { path, among, negated: false, .. }) => {
            let is_stale = |clause: &Clause| {
                observed_generation(clause).is_some()
                    && clause.when.under(&program.schema) != Formula::NEVER
            };
            let is_name =
                |name: &String| name.chars().all(|character| character.is_ascii_alphanumeric());
            match among.as_slice() {
                _ if program.clauses.iter().any(is_stale) => {
                    Err("kubectl wait ignores status.observedGeneration with a jsonpath")
                }
                [value] if path.tokens().iter().all(is_name) => {
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    Ok(format!("jsonpath='{{.{}}}'={value}", path.tokens().join(".")))
                }
                _ => Err("kubectl wait compares one field with one value"),
            }
        }
        Formula::Any(parts) if parts.is_empty() => Err("no object is current"),
        Formula::All(parts) if parts.is_empty() => Err("each object is current"),
        _ => Err("no single condition or value says that the object is current"),
    }
}
