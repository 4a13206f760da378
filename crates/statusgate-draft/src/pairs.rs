//! Which values occur together: what holds whenever a summary is True, or a phase has a value.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexSet;
use statusgate_core::model::{Conditions, Json};

use super::places::{Fields, text};
use super::tally::Seen;
use super::text::is_phase;
use super::{CONDITIONS, MIN_EXPECTED, MIN_OBJECTS};

/// What has a value in each write: a condition, or a field by its path.
pub(crate) type Variable = (Kind, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Condition,
    /// A text that may be a phase.
    Phase,
    /// `true` or `false`.
    Bool,
    Deletion,
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
    pub(crate) variables: IndexSet<Variable>,
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
    pub(crate) fn see(&mut self, object: u32, fields: &Fields<'_>, is_deleting: bool) {
        // By variable: a list can have a type twice.
        let mut state = BTreeMap::new();
        let conditions = fields.get(CONDITIONS).and_then(|place| place.value.as_array());
        for item in conditions.unwrap_or_default() {
            if let (Some(name), Some(value)) = (text(item, "type"), Conditions::status_of(item)) {
                state.extend(self.place((Kind::Condition, name.to_owned()), value.name()));
            }
        }
        for (path, place) in fields {
            let path = (*path).to_owned();
            state.extend(match place.value {
                Json::String(text) if is_phase(&path) => self.place((Kind::Phase, path), text),
                Json::Bool(flag) => self.place((Kind::Bool, path), &flag.to_string()),
                _ => None,
            });
        }
        state.extend(self.place((Kind::Deletion, "deletion".to_owned()), &is_deleting.to_string()));
        for (one, a) in state.iter().filter(|(one, _)| leads(&self.variables[**one])) {
            for (other, b) in state.iter().filter(|(other, _)| *other != one) {
                for key in [(*a, *b), (*a, ANY), (ANY, *b), (ANY, ANY)] {
                    let key = [*one, key.0, *other, key.1];
                    if self.counts.len() < MAX_PAIRS || self.counts.contains_key(&key) {
                        self.counts.entry(key).or_default().see(object);
                    }
                }
            }
        }
    }

    /// The indices of a variable and a value, while there is place.
    fn place(&mut self, variable: Variable, value: &str) -> Option<(usize, usize)> {
        let has_place = self.variables.len() < MAX_NAMES && self.values.len() < MAX_NAMES
            || (self.variables.contains(&variable) && self.values.contains(value));
        has_place.then(|| {
            let (variable, _) = self.variables.insert_full(variable);
            (variable, self.values.insert_full(value.to_owned()).0)
        })
    }

    /// What a value of a variable implies: variables that had exactly one value with it, and others without it. The best
    /// supported first.
    pub(crate) fn implications(&self, of: &Variable, value: &str) -> Vec<Implication<'_>> {
        let given = self.variables.get_index_of(of).zip(self.values.get_index_of(value));
        let others = (0..self.variables.len()).filter_map(|other| self.implication(given?, other));
        let mut found: Vec<_> = others.collect();
        found.sort_by(|one, other| {
            other.expected.total_cmp(&one.expected).then_with(|| one.other.cmp(other.other))
        });
        found
    }

    fn implication(&self, (one, a): (usize, usize), other: usize) -> Option<Implication<'_>> {
        let seen = |a: usize, b: usize| {
            self.counts.get(&[one, a, other, b]).map_or(0, |seen| seen.objects)
        };
        let (objects, all) = (seen(a, ANY), seen(ANY, ANY));
        if objects < MIN_OBJECTS {
            return None;
        }
        let (values, others) = (0..self.values.len()).partition::<Vec<_>, _>(|b| seen(a, *b) > 0);
        let [only] = values[..] else { return None };
        let expected = others
            .iter()
            .map(|b| f64::from(objects) * f64::from(seen(ANY, *b)) / f64::from(all.max(1)))
            .sum();
        let (other, value) = (&self.variables[other], &self.values[only]);
        // Few objects are deleted while they are recorded: that a phase was never seen with it proves nothing.
        if other.0 == Kind::Deletion && value == "false" {
            return None;
        }
        (expected >= MIN_EXPECTED).then_some(Implication { other, value, objects, expected })
    }
}

/// Whether the values of a variable may imply others.
fn leads((kind, name): &Variable) -> bool {
    *kind == Kind::Phase || (*kind == Kind::Condition && SUMMARIES.contains(&name.as_str()))
}
