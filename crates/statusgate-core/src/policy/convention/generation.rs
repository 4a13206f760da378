//! How `observedGeneration` relates to `metadata.generation`.

use super::super::Disposition;
use super::super::compile::Compiler;
use super::Generation;
use crate::model::Pointer;

impl Generation {
    /// Where the object's own generation is: the first path.
    pub fn own_path(&self) -> Option<&Pointer> {
        self.paths.as_ref()?.first().map(|path| &**path)
    }
}

impl Compiler<'_> {
    pub(super) fn generation(&self, mut generation: Generation) -> Generation {
        let source = generation.source.clone();
        let rules = self.tables(&[&source]);
        rules.name("generation-ahead", generation.ahead.as_mut());
        // An object that is restored from a backup has old generations, and its own starts at 1 again.
        rules.name("generation-ahead", generation.ahead_at_first.as_mut());
        rules.name("generation-decreased", generation.decreased.as_mut());
        // Without `reset`, 0 is the same as absence.
        rules.name("generation-decreased", generation.reset.as_mut());
        // Flux's CRDs begin with −1: the object was not observed yet.
        generation.below =
            generation.minimum.map(|_| rules.sanction("generation-minimum", Disposition::Deny));
        generation
    }
}
