//! The conventions that documents may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::convention::Convention;
use super::extends::Specs;
use super::yaml::{Node, Problems};

/// Conventions by name.
pub(crate) type Conventions = BTreeMap<String, Arc<Convention>>;

/// The conventions that documents may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Their texts, for those that extend one.
    pub(crate) specs: Specs,
    /// Those that compile.
    pub(crate) conventions: Conventions,
    /// The names of those that do not: who uses one of these has made no mistake.
    pub(crate) broken: Vec<String>,
}

impl Known {
    /// The convention that a policy names.
    pub(crate) fn find(&self, node: &Node, problems: &Problems) -> Option<Arc<Convention>> {
        let name = problems.string(node)?;
        let found = self.conventions.get(name);
        if found.is_none() && !self.broken.iter().any(|broken| broken == name) {
            let known = self.conventions.keys().map(String::as_str);
            self.specs.report_unknown(node, name, known, problems);
        }
        found.cloned()
    }
}
