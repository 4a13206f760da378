//! Documents of others among those of statusgate: manifests in the same folder, and test cases.

use std::fmt;

use crate::documents::{DocumentKind, GROUP};
use crate::source::tree::{Document, Node};
use crate::source::{Place, Source};

/// A document that is neither a policy nor a convention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where it begins.
    pub place: Place,
    /// What it is: `a Deployment of apps/v1`.
    pub what: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what } = self;
        write!(formatter, "{place}: note: skipped: this is {what}, not a policy or convention")
    }
}

/// The documents of statusgate, and the others. `first` is the number of the first source.
pub(super) fn skip(
    documents: Vec<Document>,
    sources: &[Source],
    first: usize,
) -> (Vec<Document>, Vec<Skipped>) {
    let mut skipped = Vec::new();
    let mut own = documents;
    own.retain(|document| {
        let Some(what) = what(&document.root) else { return true };
        let span = &document.root.span;
        let source = span.source.checked_sub(first).and_then(|index| sources.get(index));
        skipped
            .extend(source.map(|source| Skipped { place: Place::of(source, &span.bytes), what }));
        false
    });
    (own, skipped)
}

/// Describes a document of another program. A StatusPolicy or StatusConvention of another group is `None`: it is a
/// document of statusgate with a mistake.
fn what(root: &Node) -> Option<String> {
    if root.member("apiVersion").is_none() && root.member("cases").is_some() {
        return Some("a file of test cases".to_owned());
    }
    let (version, kind) = (root.text_of("apiVersion")?, root.text_of("kind")?);
    let kinds = [DocumentKind::StatusPolicy.name(), DocumentKind::StatusConvention.name()];
    let is_own = |node: &Node| {
        let group = node.text_of("apiVersion").and_then(|version| version.split_once('/'));
        group.is_some_and(|(group, _)| group == GROUP)
            || node.text_of("kind").is_some_and(|kind| kinds.contains(&kind))
    };
    let is_own = std::iter::once(root).chain(root.items_of("items")).any(is_own);
    (!is_own).then(|| format!("a {kind} of {version}"))
}
