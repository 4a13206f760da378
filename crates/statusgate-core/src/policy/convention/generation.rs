//! How `observedGeneration` relates to `metadata.generation`.

use super::super::Disposition;
use super::super::compile::Compiler;
use super::{Limit, Sanction};
use crate::documents;
use crate::model::Pointer;

/// How `observedGeneration` relates to `metadata.generation`.
#[derive(Clone, Debug)]
pub struct GenerationRules {
    /// The object's own, `/status/observedGeneration`.
    pub paths: Vec<Pointer>,
    /// The generation does not exist yet.
    pub ahead: Sanction,
    /// The same for an object without a stored status: an object that is restored from a backup has old
    /// generations, and its own starts at 1 again.
    pub ahead_at_first: Sanction,
    /// The generation is older than the stored one.
    pub decreased: Sanction,
    /// The object's own is set back to 0. `None` if 0 is the same as absence.
    pub reset: Option<Sanction>,
    /// The least value of the object's own. Flux's CRDs begin with −1: the object was not observed yet.
    pub minimum: Option<Limit<i64>>,
    /// Where these come from.
    pub source: String,
}

impl Compiler<'_> {
    pub(super) fn generation(&self, generation: &documents::Generation) -> GenerationRules {
        let rules = self.tables(&[&generation.source]);
        GenerationRules {
            paths: generation.paths.iter().flatten().map(|path| (**path).clone()).collect(),
            ahead: rules.sanction("generation-ahead", generation.ahead, Disposition::Deny),
            ahead_at_first: rules.sanction(
                "generation-ahead",
                generation.ahead_at_first,
                Disposition::Warn,
            ),
            decreased: rules.sanction(
                "generation-decreased",
                generation.decreased,
                Disposition::Warn,
            ),
            reset: rules.optional("generation-decreased", generation.reset),
            minimum: generation.minimum.map(|value| Limit {
                value,
                sanction: rules.sanction("generation-minimum", None, Disposition::Deny),
            }),
            source: generation.source.clone(),
        }
    }
}
