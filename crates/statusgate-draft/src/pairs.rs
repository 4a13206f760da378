//! Which values occur together: what holds whenever a summary is True, or a phase has a value.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexSet;
use statusgate_core::model::Json;

use super::fields::is_phase;
use super::lists::{STATUSES, text};
use super::tally::Seen;
use super::{MIN_EXPECTED, MIN_OBJECTS};

/// What has a value in each write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Variable {
    Condition(String),
    /// A text that may be a phase.
    Phase(String),
    Bool(String),
    /// `true` or `false`.
    Deleting,
}

/// What one value of a variable implies of another.
#[derive(Clone, Debug)]
pub(crate) struct Implication<'p> {
    pub(crate) other: &'p Variable,
    pub(crate) value: &'p str,
    /// The objects that show it.
    pub(crate) objects: u32,
    /// The objects that would contradict it by chance.
    pub(crate) expected: f64,
}

/// The counts of pairs, by the indices of variables and values in `names`.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    variables: IndexSet<Variable>,
    values: IndexSet<String>,
    counts: HashMap<[usize; 4], Seen>,
}

/// Variables and values that are counted, each.
const MAX_NAMES: usize = 256;

/// Pairs that are counted.
const MAX_PAIRS: usize = 100_000;

/// Any value.
const ANY: usize = usize::MAX;

/// The conditions that summarize others, by the names that most systems give them.
const SUMMARIES: [&str; 7] =
    ["Ready", "Available", "Succeeded", "Complete", "Healthy", "Accepted", "Established"];

impl Pairs {
    pub(crate) fn see(
        &mut self,
        object: u32,
        status: &Json<'_>,
        fields: &BTreeMap<String, &Json<'_>>,
        is_deleting: bool,
    ) {
        // By variable: a list can have a type twice.
        let mut state: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
        let conditions = status.get("conditions").and_then(Json::as_array).unwrap_or_default();
        for item in conditions {
            let (Some(name), Some(value)) = (text(item, "type"), text(item, "status")) else {
                continue;
            };
            if STATUSES.contains(&value) {
                let is_summary = SUMMARIES.contains(&name);
                state.extend(self.name(Variable::Condition(name.to_owned()), value, is_summary));
            }
        }
        for (path, value) in fields {
            match value {
                Json::String(value) if is_phase(path) => {
                    state.extend(self.name(Variable::Phase(path.clone()), value, true));
                }
                Json::Bool(value) => {
                    let value = if *value { "true" } else { "false" };
                    state.extend(self.name(Variable::Bool(path.clone()), value, false));
                }
                _ => {}
            }
        }
        let deleting = if is_deleting { "true" } else { "false" };
        state.extend(self.name(Variable::Deleting, deleting, false));
        for (one, (a, _)) in state.iter().filter(|(_, (_, leads))| *leads) {
            for (other, (b, _)) in state.iter().filter(|(other, _)| *other != one) {
                for key in [
                    [*one, *a, *other, *b],
                    [*one, *a, *other, ANY],
                    [*one, ANY, *other, *b],
                    [*one, ANY, *other, ANY],
                ] {
                    if self.counts.len() < MAX_PAIRS || self.counts.contains_key(&key) {
                        self.counts.entry(key).or_default().see(object);
                    }
                }
            }
        }
    }

    /// The indices of a variable and a value, while there is place.
    fn name(
        &mut self,
        variable: Variable,
        value: &str,
        leads: bool,
    ) -> Option<(usize, (usize, bool))> {
        let (variables, values) = (self.variables.len(), self.values.len());
        let is_known = variables < MAX_NAMES && values < MAX_NAMES
            || (self.variables.contains(&variable) && self.values.contains(value));
        is_known.then(|| {
            let variable = self.variables.insert_full(variable).0;
            (variable, (self.values.insert_full(value.to_owned()).0, leads))
        })
    }

    /// What a value of a variable implies: variables that had exactly one value with it, and others without it. The best
    /// supported first.
    pub(crate) fn implications(&self, of: &Variable, value: &str) -> Vec<Implication<'_>> {
        let (Some(one), Some(a)) =
            (self.variables.get_index_of(of), self.values.get_index_of(value))
        else {
            return Vec::new();
        };
        let others = 0..self.variables.len();
        let mut found: Vec<Implication<'_>> =
            others.filter_map(|other| self.implication([one, a], other)).collect();
        found.sort_by(|one, other| {
            other.expected.total_cmp(&one.expected).then_with(|| one.other.cmp(other.other))
        });
        found
    }

    /// The conditions that may summarize others.
    pub(crate) fn summaries(&self) -> impl Iterator<Item = &Variable> {
        let names = self.variables.iter();
        names.filter(
            |of| matches!(of, Variable::Condition(name) if SUMMARIES.contains(&name.as_str())),
        )
    }

    fn implication(&self, [one, a]: [usize; 2], other: usize) -> Option<Implication<'_>> {
        let seen = |a: usize, b: usize| {
            self.counts.get(&[one, a, other, b]).map_or(0, |seen| seen.objects)
        };
        let (objects, all) = (seen(a, ANY), seen(ANY, ANY));
        if objects < MIN_OBJECTS {
            return None;
        }
        let mut values = (0..self.values.len()).filter(|b| seen(a, *b) > 0);
        let (Some(only), None) = (values.next(), values.next()) else { return None };
        let others = (0..self.values.len()).filter(|b| *b != only);
        let expected = others
            .map(|b| f64::from(objects) * f64::from(seen(ANY, b)) / f64::from(all.max(1)))
            .sum();
        let (other, value) = (&self.variables[other], &self.values[only]);
        // Few objects are deleted while they are recorded: that a phase was never seen with it proves nothing.
        if *other == Variable::Deleting && value == "false" {
            return None;
        }
        (expected >= MIN_EXPECTED).then_some(Implication { other, value, objects, expected })
    }
}

impl Variable {
    /// As questions name it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Condition(name) => name,
            Self::Phase(path) | Self::Bool(path) => path,
            Self::Deleting => "deletion",
        }
    }
}
