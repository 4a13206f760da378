//! The fields that documents name, compared with the schemas of the objects that they are about.

use json_patch::jsonptr::PointerBuf;

use crate::documents::DocumentKind;
use crate::model::Pointer;
use crate::policy::cel::{self, Part};
use crate::policy::{Diagnostics, Policy};
use crate::schema::Schema;
use crate::source::tree::{At, Node, Problems, Value, near};

use super::{PolicySet, Source, envelopes, read_documents};

/// A version of a custom resource, and its schema.
#[derive(Clone, Debug)]
pub struct Defined {
    /// `databases.example.com v1`, for messages.
    pub name: String,
    /// `example.com`.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `databases`.
    pub plural: String,
    /// Which fields its objects have.
    pub schema: Schema,
}

/// Keys with texts that are no pointers.
const TEXTS: [&str; 8] =
    ["differences", "is", "isNot", "meaning", "message", "source", "title", "value"];

impl PolicySet {
    /// The pointers and the members in CEL of these documents that none of their objects has. A policy is
    /// about what it selects, a convention about what its policies select, or about all if it has none.
    /// The built-in conventions are about more than one kind, and are not compared.
    pub fn mistakes_in_pointers(&self, given: &[Source], defined: &[Defined]) -> Diagnostics {
        let (documents, _) = read_documents(given, 0);
        let (found, _) = envelopes(documents);
        let problems = Problems::default();
        for envelope in &found {
            let policies =
                Vec::from_iter(self.policies().iter().filter(|policy| match envelope.kind {
                    DocumentKind::StatusPolicy => *policy.name == *envelope.label,
                    _ => policy.convention.name == envelope.label,
                }));
            let versions = Vec::from_iter(defined.iter().filter(|version| {
                policies.iter().any(|policy| version.is_selected(policy))
                    || (policies.is_empty() && envelope.kind == DocumentKind::StatusConvention)
            }));
            if !versions.is_empty() {
                compare(&envelope.spec, "", &versions, &problems);
            }
        }
        Diagnostics::new(given, problems.into_list())
    }
}

impl Defined {
    fn is_selected(&self, policy: &Policy) -> bool {
        policy.resources.iter().any(|rule| {
            rule.api_groups.iter().any(|glob| glob.matches(&self.group))
                && rule.api_versions.iter().any(|glob| glob.matches(&self.version))
                && rule.resources.iter().any(|glob| glob.matches(&self.plural))
        })
    }
}

/// Compares the pointers below a key with the schemas.
fn compare(node: &Node, key: &str, defined: &[&Defined], problems: &Problems) {
    match &node.value {
        Value::Map(entries) => {
            entries.iter().for_each(|(key, node)| compare(node, &key.name, defined, problems));
        }
        Value::List(items) => items.iter().for_each(|item| compare(item, key, defined, problems)),
        Value::String(text) if key == "expression" => {
            let Ok(expression) = cel::compile(text) else { return };
            let reads = [&expression.reads.written, &expression.reads.stored];
            for path in reads.into_iter().flatten().flat_map(Part::paths) {
                check(&path, At::root(node, problems), defined);
            }
        }
        Value::String(text) if !TEXTS.contains(&key) => {
            if let Ok(pointer) = Pointer::of_list(text) {
                check(pointer.tokens(), At::root(node, problems), defined);
            }
        }
        _ => {}
    }
}

/// Reports a field of the spec or the status that no schema has.
fn check(tokens: &[String], at: At<'_>, defined: &[&Defined]) {
    let Some((root, [_, ..])) = tokens.split_first() else { return };
    let found: Option<Vec<_>> =
        defined.iter().map(|version| version.schema.pruned(tokens)).collect();
    let Some(first) = found.as_ref().and_then(|found| found.first()) else { return };
    if !matches!(root.as_str(), "spec" | "status") {
        return;
    }
    let (place, names) = first;
    let pointer = |tokens: &[String]| PointerBuf::from_tokens(tokens).to_string();
    let of = match defined {
        [one] => format!("the schema of {}", one.name),
        all => format!("the {} schemas of the selected versions", all.len()),
    };
    let message = format!("{} is not in {of}", pointer(tokens));
    let token = tokens.get(*place).map_or("", String::as_str);
    let help = match near(token, names.iter().copied()) {
        Some(name) => {
            let mut meant = tokens.to_vec();
            name.clone_into(&mut meant[*place]);
            format!("did you mean {}?", pointer(&meant))
        }
        None if names.is_empty() => format!("{} has no members", pointer(&tokens[..*place])),
        None => format!("{} has {}", pointer(&tokens[..*place]), names.join(", ")),
    };
    at.report_with_help(message, help);
}
