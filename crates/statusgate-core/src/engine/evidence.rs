//! The facts of an object under a convention: the input of predicates.

use crate::model::{Json, Object, Pointer, Resource};
use crate::policy::convention::{ConditionType, Convention, PhaseRules};

pub(crate) use crate::language::Answers;
use crate::language::ElementFacts;
pub use crate::language::{Facts, Truth};

/// The facts of an object: its phase, and the first list of conditions that objects of its version have.
pub fn facts_of<'s, 'a>(
    convention: &'s Convention,
    object: &'s Object<'a>,
    old: Option<&'s Object<'a>>,
    resource: &'s Resource<'a>,
) -> Facts<'s, 'a> {
    let generation = convention.generation.as_ref();
    let facts = Facts {
        phase: phase_of(convention, object),
        old_phase: old.and_then(|old| phase_of(convention, old)),
        observed_generation: generation.and_then(|rules| rules.own_path()),
        ..Facts::new(object, old, resource)
    };
    let list = convention.primary_conditions(&resource.version);
    list.map_or(facts, |list| facts.reading(list.for_predicates()))
}

/// The same facts for a rule about one element of a list. `before` is the stored element with the same
/// key, `kind` are the rules of its type.
pub fn with_element<'s, 'a>(
    facts: Facts<'s, 'a>,
    item: &'s Json<'a>,
    before: Option<&'s Json<'a>>,
    kind: Option<&ConditionType>,
) -> Facts<'s, 'a> {
    let polarity = kind.and_then(|kind| kind.polarity).unwrap_or_default();
    Facts { element: Some(ElementFacts { item, before, polarity }), ..facts }
}

/// The phase of an object, if it is a non-empty string.
pub fn phase_of<'s>(convention: &Convention, object: &'s Object<'_>) -> Option<&'s str> {
    let rules = convention.phase.as_ref()?;
    object
        .at_status(phase_path(rules, object))
        .and_then(Json::as_str)
        .filter(|phase| !phase.is_empty())
}

/// The location of an object's phase: the first of the convention's paths with a string, otherwise the
/// first path.
pub(crate) fn phase_path<'p>(rules: &'p PhaseRules, object: &Object<'_>) -> &'p Pointer {
    if rules.other_paths.is_empty() {
        return &rules.path;
    }
    let written =
        rules.paths().find(|path| matches!(object.at_status(path), Some(Json::String(_))));
    written.unwrap_or(&rules.path)
}
