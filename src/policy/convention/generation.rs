//! How `observedGeneration` relates to `metadata.generation`.

use super::super::Action;
use super::super::predicate::pointer;
use super::{Reader, Sanction};
use crate::model::Pointer;
use crate::source::tree::Node;

/// How `observedGeneration` relates to `metadata.generation`.
#[derive(Clone, Debug)]
pub struct GenerationRules {
    /// Where the object's own is, `/status/observedGeneration`.
    pub paths: Vec<Pointer>,
    /// Said of a generation that does not exist yet.
    pub ahead: Sanction,
    /// The same, of an object that had no status before: one that is restored from a backup brings
    /// old generations with it, and starts anew to count them.
    pub ahead_at_first: Sanction,
    /// Said of one that was observed before.
    pub decreased: Sanction,
    /// Said of the object's own that is set back to 0; nothing, where that is the same as none.
    pub reset: Option<Sanction>,
    /// The least that the object's own may be. Flux's CRDs begin with −1, to be told apart from
    /// an object that was observed.
    pub minimum: Option<i64>,
    /// Said of one below that.
    pub below_minimum: Sanction,
    /// Where these come from.
    pub source: String,
}

impl Reader<'_> {
    pub(super) fn generation(&self, node: &Node) -> Option<GenerationRules> {
        let map = self.problems.map(node)?;
        let rules = GenerationRules {
            paths: self.list(&map, "paths", |item| pointer(item, self.problems)),
            ahead: self.sanction(&map, "ahead", "generation-ahead", Action::Deny),
            ahead_at_first: self.sanction(&map, "aheadAtFirst", "generation-ahead", Action::Warn),
            decreased: self.sanction(&map, "decreased", "generation-decreased", Action::Warn),
            reset: self.sanction_if_said(&map, "reset", "generation-decreased"),
            minimum: map.get("minimum").and_then(|node| self.problems.integer(node)),
            below_minimum: self.sanction(&map, "belowMinimum", "generation-minimum", Action::Deny),
            source: self.text(&map, "source"),
        };
        map.close();
        Some(rules)
    }
}
