//! The structural schema of one version of a CustomResourceDefinition: does the API server accept a value,
//! why not, and what does it store?
//!
//! ```text
//! openAPIV3Schema ─► node ─► Schema ─┬► at, pruned   which field a pointer names
//!                                    ├► accepts      one value
//!                                    ├► refuses      changes of a webhook, as far as that is certain
//!                                    ├► read         what is read of a stored object
//!                                    └► judge        a write: accepted, rejected with causes, or not proven;
//!                                                    what is stored, and what ratcheting forgives
//! ```
//!
//! | file | repeats |
//! |---|---|
//! | `decode` | pruning, defaulting and objectmeta of apiextensions-apiserver |
//! | `check`, `number`, `format`, `pattern` | the validators of kube-openapi, and Go's numbers and expressions |
//! | `list` | listtype of apiextensions-apiserver, and the correlation of elements |
//! | `rule` | CEL about a plain string or boolean |
//!
//! This was compared with recorded answers of kube-apiserver 1.36 (`tests/fixtures/oracles/schema.jsonl`). What
//! depends on more, such as most CEL, is never guessed: it is [`Verdict::NotProven`]. A server keeps only the schema around
//! the fields that it sets.

mod cause;
mod check;
mod decode;
mod format;
mod guard;
mod list;
mod node;
mod number;
mod path;
mod pattern;
mod rule;
mod scale;
mod verdict;
mod write;

use std::sync::Arc;

use serde_json::{Value, json};

pub use cause::{Cause, REQUIRED};
pub use guard::Refusal;
pub use node::{ListType, Node};
pub use verdict::{Outcome, Verdict};
pub use write::{Endpoint, Origin, Sender, Write};

use check::{At, Check};
use path::Path;
use scale::Scale;
use verdict::Fault;

use crate::model::Pointer;

/// The newest minor version of Kubernetes that this was compared with.
pub const NEWEST: u32 = 36;

/// The minor version of `v1.33.2` or `1.33`.
///
/// # Errors
/// Another text.
pub fn minor_of(version: &str) -> Result<u32, String> {
    let mut numbers = version.trim_start_matches('v').split(['.', '-', '+']);
    match (numbers.next(), numbers.next().and_then(|minor| minor.parse().ok())) {
        (Some("1"), Some(minor)) => Ok(minor),
        _ => Err(format!("{version:?} is no version of Kubernetes, such as 1.33")),
    }
}

/// From this minor version, rules are evaluated by default.
const RULES: u32 = 25;

/// From this minor version, writes of the main resource are ratcheted.
const MAIN_RATCHETING: u32 = 30;

/// From this minor version, writes of the status are ratcheted.
const STATUS_RATCHETING: u32 = 33;

/// From this minor version, `k8s-short-name` and `k8s-long-name` are checked.
const NAME_FORMATS: u32 = 34;

/// From this minor version, numbers must be in the range of their format.
const INT32_RANGES: u32 = 36;

/// The schema of one version of a custom resource.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Arc<Node>,
    minor: u32,
    scale: Option<Arc<Scale>>,
}

/// How a schema treats a field.
#[derive(Clone, Copy, Debug)]
pub enum FieldSchema<'s> {
    /// The field has this schema.
    Declared(&'s Node),
    /// The API server stores any value.
    Free,
    /// The API server prunes the field.
    Pruned,
}

impl Schema {
    /// Compiles an `openAPIV3Schema` for a minor version of Kubernetes.
    pub fn compile(schema: &Value, minor: u32) -> Self {
        // Every object has a type and metadata, even if the schema does not declare them.
        let root = Node { is_embedded: true, ..Node::compile(schema, minor) };
        Self { root: Arc::new(root), minor, scale: None }
    }

    /// Compiles the schema of `.status` alone.
    pub fn of_status(schema: &Value, minor: u32) -> Self {
        Self::compile(&json!({"type": "object", "properties": {"status": schema}}), minor)
    }

    /// The schema of one of `spec.versions` of a CustomResourceDefinition. Without one, it keeps everything, as does a
    /// definition that was created as v1beta1 and says so.
    pub fn of_version(definition: &Value, version: &Value, minor: u32) -> Self {
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_null() || definition["spec"]["preserveUnknownFields"] == true {
            return Self::free();
        }
        let scale = Scale::new(&version["subresources"]["scale"]).map(Arc::new);
        Self { scale, ..Self::compile(schema, minor) }
    }

    /// A schema that keeps everything.
    pub fn free() -> Self {
        Self::compile(&json!({"x-kubernetes-preserve-unknown-fields": true}), NEWEST)
    }

    /// Whether it keeps everything, and declares nothing.
    pub fn is_free(&self) -> bool {
        self.root.preserves_unknown && self.root.properties.is_empty()
    }

    /// How the schema treats the field at a path. Like the API server, it keeps fields that are
    /// declared, that `additionalProperties` allows, or below `x-kubernetes-preserve-unknown-fields`.
    pub fn at(&self, tokens: &[String]) -> FieldSchema<'_> {
        let mut node = &*self.root;
        for token in tokens {
            match node.below(token) {
                FieldSchema::Declared(next) => node = next,
                other => return other,
            }
        }
        FieldSchema::Declared(node)
    }

    /// The first name of a path that the schema prunes, by its position, and the names that it has
    /// there. `None` if the schema keeps the field.
    pub fn pruned(&self, tokens: &[String]) -> Option<(usize, Vec<&str>)> {
        let at =
            (0..tokens.len()).find(|at| matches!(self.at(&tokens[..=*at]), FieldSchema::Pruned))?;
        let FieldSchema::Declared(node) = self.at(&tokens[..at]) else { return None };
        Some((at, node.properties.iter().map(|(name, _)| &**name).collect()))
    }

    /// Whether every object with the parent of a field has the field.
    pub fn requires(&self, tokens: &[String]) -> bool {
        let Some((name, above)) = tokens.split_last() else { return true };
        match self.at(above) {
            FieldSchema::Declared(node) => node.required.iter().any(|of| **of == **name),
            FieldSchema::Free | FieldSchema::Pruned => false,
        }
    }

    /// Whether the API server accepts a value of a webhook's patch at a path where nothing is stored, as far
    /// as the schema of this field decides that. It sets the defaults below. A value that it prunes is
    /// accepted.
    pub fn accepts(&self, pointer: &Pointer, value: &Value) -> Verdict {
        let FieldSchema::Declared(node) = self.at(pointer.tokens()) else {
            return Verdict::Accepted;
        };
        let mut value = value.clone();
        decode::set_defaults(node, &mut value);
        let path = Path::Root { field: pointer.field(), name: pointer.field() };
        let mut check = Check::default();
        check.node(At { node, value: &value, old: None, path: &path });
        let mut causes = Vec::new();
        list::duplicates(node, &value, &path, &mut causes);
        check.faults.extend(causes.into_iter().map(Fault::proven));
        Verdict::new(check.faults)
    }
}

#[cfg(test)]
mod tests;
