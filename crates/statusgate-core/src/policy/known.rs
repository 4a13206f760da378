//! The conventions that documents may name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::built_in;
use super::convention::{Convention, own_name};
use super::extends::Specs;
use crate::source::tree::At;

/// Those that documents may name: the built-in ones, and those of the documents.
#[derive(Debug, Default)]
pub(crate) struct KnownConventions {
    /// Their texts, for those that extend one.
    pub(crate) specs: Specs,
    /// Those of the documents, with and without errors, by name.
    pub(crate) given: BTreeMap<String, KnownConvention>,
    /// The conventions with the optional parts that policies enable. Policies share them.
    pub(super) with_parts: RefCell<WithParts>,
}

/// By the name of the convention and the parts.
type WithParts = BTreeMap<(String, Vec<String>), Arc<Convention>>;

/// A convention, and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct KnownConvention {
    pub(crate) convention: Arc<Convention>,
    /// Whether it has no errors. A reference to one with errors is not reported.
    pub(crate) sound: bool,
    /// Whether all is known that it inherits.
    pub(crate) complete: bool,
    /// Whether another convention inherits from it.
    pub(crate) inherited: bool,
}

impl KnownConvention {
    /// What a policy may enable; `None` where not all of it is known. In a convention with errors, the
    /// error may be in the key that makes a part optional.
    pub(crate) fn parts(&self) -> Option<Vec<&str>> {
        let convention = &self.convention;
        match (self.complete, self.sound) {
            (false, _) => None,
            (true, true) => Some(convention.optional_parts().collect()),
            (true, false) => {
                let written = convention.declared.written().map(own_name);
                let defaults = convention.backfill.iter().map(|default| default.name.as_str());
                Some(written.chain(defaults).collect())
            }
        }
    }
}

impl KnownConventions {
    /// The convention that a policy names.
    pub(crate) fn find(&self, name: &str, at: At<'_>) -> Option<KnownConvention> {
        if let Some(found) = self.given.get(name) {
            return Some(found.clone());
        }
        let found = built_in::convention(name);
        if found.is_none() {
            let given = self.given.iter().filter(|(_, found)| found.sound);
            self.specs.report_unknown(name, given.map(|(name, _)| name.as_str()), at);
        }
        let (sound, complete, inherited) = (true, true, false);
        Some(KnownConvention { convention: found?, sound, complete, inherited })
    }

    /// A convention with the optional parts that a policy enables, and without the others.
    pub(crate) fn with_parts(
        &self,
        convention: &Arc<Convention>,
        enabled: &[String],
    ) -> Arc<Convention> {
        if convention.optional_parts().next().is_none() {
            return Arc::clone(convention);
        }
        let mut wanted = enabled.to_vec();
        wanted.sort_unstable();
        let key = (convention.name.clone(), wanted);
        let mut known = self.with_parts.borrow_mut();
        Arc::clone(known.entry(key).or_insert_with(|| Arc::new(convention.with_parts(enabled))))
    }

    /// The convention of this name, if there is one without errors.
    pub(crate) fn find_named(&self, name: &str) -> Option<Arc<Convention>> {
        match self.given.get(name) {
            Some(found) => found.sound.then(|| found.convention.clone()),
            None => built_in::convention(name),
        }
    }
}
