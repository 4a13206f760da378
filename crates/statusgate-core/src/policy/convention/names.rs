//! The names by which parts of a convention refer to each other: phases and lists of conditions.

use crate::documents::{ConventionSpec, PLACEHOLDER_POINTER};
use crate::language::Glob;
use crate::model::Pointer;
use crate::source::tree::{At, near};

/// Types with at most so many characters are similar only if they differ in case.
const SHORT: usize = 4;

/// The names that a predicate, a rule or a default may use. `None` is unknown: the convention extends
/// an unknown one, or a name cannot be read. Then no name is reported.
#[derive(Clone, Debug, Default)]
pub struct Names {
    phases: Option<Vec<String>>,
    /// Where the phase is, as far as that is known.
    phase_paths: Vec<Pointer>,
    lists: Option<Vec<String>>,
    /// The types of conditions, with `*` in the names of families. `None` also if the spec names others.
    types: Option<Vec<String>>,
    /// Whether a list accepts other types.
    open: bool,
}

impl Names {
    /// The names of a convention. A placeholder for a phase is empty.
    pub(crate) fn of(spec: &ConventionSpec, complete: bool) -> Self {
        let values = spec.phase.iter().flat_map(|phase| &phase.values);
        let phases: Vec<String> = values.flat_map(|value| value.phase.iter()).cloned().collect();
        let complete_phases = complete && !phases.iter().any(String::is_empty);
        let paths = spec.phase.iter().flat_map(|phase| phase.path.iter());
        let lists: Vec<String> = spec.conditions.iter().map(|list| list.path.to_string()).collect();
        let complete_lists = complete && !lists.iter().any(|path| path == PLACEHOLDER_POINTER);
        let known = complete && spec.conditions.iter().all(|list| list.polarity_from.is_empty());
        let types = spec.conditions.iter().flat_map(|list| list.types.keys().cloned());
        Self {
            types: known.then(|| types.collect()),
            open: spec.conditions.is_empty()
                || spec.conditions.iter().any(|list| list.other_types.is_none()),
            phase_paths: paths.map(|path| (**path).clone()).collect(),
            phases: complete_phases.then_some(phases),
            lists: complete_lists.then_some(lists),
        }
    }

    /// Whether this is a path of the phase.
    pub(crate) fn is_phase(&self, path: &Pointer) -> bool {
        self.phase_paths.contains(path)
    }

    /// Reports a phase that does not exist.
    pub(crate) fn check_phase(&self, at: At<'_>, name: &str) {
        let without = "the convention has no \"phase\" with values";
        check(self.phases.as_deref(), "phase", without, at, name);
    }

    /// Reports a type that no list of conditions may have, or that is similar to a declared one. Returns whether
    /// it is another type that no list declares. An heir does not name the types of inherited parts: where it closes
    /// its lists, these parts find no such condition.
    pub(crate) fn check_condition(&self, at: At<'_>, name: &str, is_own: bool) -> bool {
        let Some(types) = &self.types else { return false };
        if !is_own || types.iter().any(|known| Glob::from(known.as_str()).matches(name)) {
            return false;
        }
        let known = types.iter().map(String::as_str);
        // Short names are all similar.
        let meant = near(name, known.clone())
            .filter(|meant| meant.len() > SHORT || meant.eq_ignore_ascii_case(name));
        if !self.open {
            at.unknown("condition type", name, known);
        } else if let Some(meant) = meant {
            let message = format!("no list declares the condition type \"{name}\"");
            let help = format!("did you mean \"{meant}\"? Otherwise add it to \"types\"");
            at.report_with_help(message, help);
        } else {
            return !types.is_empty();
        }
        false
    }

    /// Reports a path at which the convention has no list of conditions.
    pub(crate) fn check_any_list(&self, at: At<'_>, path: &Pointer) {
        self.check_list_of(|list| !list.ends_with("/*"), at, path);
    }

    /// The same for rules and defaults, which do not read a list inside another list.
    pub(crate) fn check_list(&self, at: At<'_>, path: &Pointer) {
        self.check_list_of(|list| !list.contains('*'), at, path);
    }

    fn check_list_of(&self, is_readable: impl Fn(&str) -> bool, at: At<'_>, path: &Pointer) {
        let without = "the convention has no \"conditions\"";
        let lists = self.lists.as_ref().map(|lists| {
            lists.iter().filter(|list| is_readable(list)).cloned().collect::<Vec<_>>()
        });
        check(lists.as_deref(), "list of conditions", without, at, &path.to_string());
    }
}

fn check(known: Option<&[String]>, what: &str, without: &str, at: At<'_>, found: &str) {
    match known {
        Some([]) => at.report_with_help(format!("unknown {what} \"{found}\""), without),
        Some(known) if !known.iter().any(|name| name == found) => {
            at.unknown(what, found, known.iter().map(String::as_str));
        }
        _ => {}
    }
}
