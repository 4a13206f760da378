//! How `observedGeneration` relates to `metadata.generation`.

use super::super::Action;
use super::super::compile::Compiler;
use super::{Limit, Sanction};
use crate::documents;
use crate::model::Pointer;

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
    pub minimum: Option<Limit<i64>>,
    /// Where these come from.
    pub source: String,
}

impl Compiler<'_> {
    pub(super) fn generation(&self, generation: &documents::Generation) -> GenerationRules {
        let rules = self.tables(&[&generation.source]);
        GenerationRules {
            paths: generation.paths.iter().flatten().map(|path| (**path).clone()).collect(),
            ahead: rules.sanction("generation-ahead", generation.ahead, Action::Deny),
            ahead_at_first: rules.sanction(
                "generation-ahead",
                generation.ahead_at_first,
                Action::Warn,
            ),
            decreased: rules.sanction("generation-decreased", generation.decreased, Action::Warn),
            reset: rules.optional("generation-decreased", generation.reset),
            minimum: generation.minimum.map(|value| Limit {
                value,
                sanction: rules.sanction(
                    "generation-minimum",
                    generation.below_minimum,
                    Action::Deny,
                ),
            }),
            source: generation.source.clone().unwrap_or_default(),
        }
    }
}
