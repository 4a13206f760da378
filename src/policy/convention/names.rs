//! What the parts of a convention call each other by: its phases and its lists of conditions.

use super::Convention;
use super::conditions::one_or_all;
use crate::model::Pointer;
use crate::source::tree::{Node, Problems, Span, Value};

/// The names that a predicate, a rule or a default may use. `None` is what nobody knows, of a
/// convention that extends one that is not known: there no name is wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    phases: Option<Vec<String>>,
    /// Where the phase is, as far as that is known.
    phase_paths: Vec<String>,
    lists: Option<Vec<String>>,
}

impl Names {
    /// The names of a convention that compiles.
    pub(crate) fn of(convention: &Convention) -> Self {
        let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
        let lists = convention.conditions.iter();
        let paths = convention.phase.iter();
        let paths = paths.flat_map(|rules| std::iter::once(&rules.path).chain(&rules.other_paths));
        Self {
            phase_paths: paths.map(Pointer::to_string).collect(),
            phases: Some(phases.map(|phase| phase.name.clone()).collect()),
            lists: Some(lists.map(|list| list.path.to_string()).collect()),
        }
    }

    /// The names in the spec of a convention, without a word about what is wrong with an entry: that
    /// is said where the rest of it is read. A phase that is there twice is reported at the second.
    /// Where it is not `complete`, its own phases are still all that there are: they replace others.
    pub(crate) fn read(spec: &Node, complete: bool, problems: &Problems) -> Self {
        let mut phases: Vec<String> = Vec::new();
        for (name, span) in texts(spec.member("phase"), "values", "phase") {
            if phases.iter().any(|known| known == name) {
                problems.report(span, format!("phase {name} is listed twice"));
            } else {
                phases.push(name.to_owned());
            }
        }
        let lists = texts(Some(spec), "conditions", "path");
        let lists = lists.into_iter().map(|(path, _)| path.to_owned()).collect();
        let paths = spec.member("phase").and_then(|phase| phase.member("path"));
        let paths = paths.iter().flat_map(|node| one_or_all(node));
        let has_phases = spec.member("phase").and_then(|phase| phase.member("values")).is_some();
        Self {
            phase_paths: paths.filter_map(|node| text(node)).map(str::to_owned).collect(),
            phases: (complete || has_phases).then_some(phases),
            lists: complete.then_some(lists),
        }
    }

    /// Whether the phase is there.
    pub(crate) fn is_phase(&self, path: &Pointer) -> bool {
        self.phase_paths.contains(&path.to_string())
    }

    /// Reports a phase that does not exist.
    pub(crate) fn check_phase(&self, span: &Span, name: &str, problems: &Problems) {
        let without = "the convention has no \"phase\" with values";
        check(self.phases.as_deref(), "phase", without, (span, name), problems);
    }

    /// Reports a path at which the convention has no list of conditions.
    pub(crate) fn check_list(&self, span: &Span, path: &str, problems: &Problems) {
        let without = "the convention has no \"conditions\"";
        check(self.lists.as_deref(), "list of conditions", without, (span, path), problems);
    }
}

fn check(
    known: Option<&[String]>,
    what: &str,
    without: &str,
    (span, found): (&Span, &str),
    problems: &Problems,
) {
    match known {
        Some([]) => {
            let message = format!("unknown {what} \"{found}\"");
            problems.report_with_help(span, message, Some(without.to_owned()));
        }
        Some(known) if !known.iter().any(|name| name == found) => {
            problems.unknown(span, what, found, known.iter().map(String::as_str));
        }
        _ => {}
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The texts under one key of the items of a list.
fn texts<'n>(node: Option<&'n Node>, list: &str, key: &str) -> Vec<(&'n str, &'n Span)> {
    let items = node.and_then(|node| node.member(list)).map(Node::items).unwrap_or_default();
    let text = |item: &'n Node| match item.member(key)? {
        Node { value: Value::String(text), span } => Some((text.as_str(), span)),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}
