//! The conventions that documents may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::convention::{self, Convention, Names};
use super::extends::Specs;
use crate::source::tree::{Node, Problems, Value, near};

/// Conventions by name.
pub(crate) type Conventions = BTreeMap<String, Arc<Convention>>;

/// The conventions that documents may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Their texts, for those that extend one.
    pub(crate) specs: Specs,
    /// Those that compile.
    pub(crate) conventions: Conventions,
    /// Those that do not, by name: who uses one of these has made no mistake.
    pub(crate) broken: BTreeMap<String, Broken>,
}

/// A convention with mistakes: what a policy that follows it may still be asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broken {
    /// Its phases and lists.
    pub(crate) names: Names,
    /// What its optional rules and defaults are called; `None` where nobody knows all of them.
    pub(crate) parts: Option<Vec<String>>,
}

impl Broken {
    /// As far as the spec says.
    pub(crate) fn of(spec: &Node, complete: bool) -> Self {
        let names = Names::read(spec, complete, &Problems::default());
        if !complete {
            return Self { names, parts: None };
        }
        let items = |node: Option<&'_ Node>| node.map(Node::items).unwrap_or_default().to_vec();
        let each = items(spec.member("conditions"));
        let each = each.iter().flat_map(|list| items(list.member("each")));
        let rules = items(spec.member("rules")).into_iter().chain(each).filter(is_optional);
        let id = |rule: Node| match &rule.member("id")?.value {
            Value::String(id) => Some(id.clone()),
            _ => None,
        };
        let fills = items(spec.member("backfill")).into_iter().filter(is_optional);
        let fills = fills.filter_map(|fill| convention::name_of(&fill));
        Self { names, parts: Some(rules.filter_map(id).chain(fills).collect()) }
    }
}

/// Whether it is meant to be: the mistake may be in that very key.
fn is_optional(entry: &Node) -> bool {
    let Value::Map(entries) = &entry.value else { return false };
    entries.iter().any(|(key, _)| near(&key.name, std::iter::once("optional")).is_some())
}

impl Known {
    /// The convention that a policy names.
    pub(crate) fn find(&self, node: &Node, problems: &Problems) -> Option<Arc<Convention>> {
        let name = problems.string(node)?;
        let found = self.conventions.get(name);
        if found.is_none() && !self.broken.contains_key(name) {
            let known = self.conventions.keys().map(String::as_str);
            self.specs.report_unknown(node, name, known, problems);
        }
        found.cloned()
    }

    /// What is known of the one that a policy names, where it has mistakes.
    pub(crate) fn find_broken(&self, node: &Node) -> Option<&Broken> {
        match &node.value {
            Value::String(name) => self.broken.get(name),
            _ => None,
        }
    }
}
