//! What the parts of a convention call each other by: its phases and its lists of conditions.

use super::super::yaml::{Node, Problems, Span, Value};
use super::Convention;

/// The names that a predicate, a rule or a default may use. `None` is what nobody knows, of a
/// convention that extends one that is not known: there no name is wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    phases: Option<Vec<String>>,
    lists: Option<Vec<String>>,
}

impl Names {
    /// The names of a convention that compiles.
    pub(crate) fn of(convention: &Convention) -> Self {
        let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
        let lists = convention.conditions.iter();
        Self {
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
        let has_phases = spec.member("phase").and_then(|phase| phase.member("values")).is_some();
        Self {
            phases: (complete || has_phases).then_some(phases),
            lists: complete.then_some(lists),
        }
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

/// The texts under one key of the items of a list.
fn texts<'n>(node: Option<&'n Node>, list: &str, key: &str) -> Vec<(&'n str, &'n Span)> {
    let items = node.and_then(|node| node.member(list)).map(Node::items).unwrap_or_default();
    let text = |item: &'n Node| match item.member(key)? {
        Node { value: Value::String(text), span } => Some((text.as_str(), span)),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}
