//! The built-in conventions and the example policies: embedded documents like a user's own.
//!
//! Each convention is compiled when something names it, once per process: reloads share it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::Source;
use super::convention::{self, Convention};
use super::extends::Specs;
use crate::documents::ConventionSpec;
use crate::source::tree::{self, At, Document, Node, Problems};

/// Declares a table of documents: the name, the file and the text of each.
macro_rules! documents {
    ($table:ident, $files:literal, $folder:literal, $($name:literal)*) => {
        const $table: [(&str, &str, &str); [$($name),*].len()] = [$((
            $name,
            concat!($files, $name, ".yaml"),
            include_str!(concat!($folder, $name, ".yaml")),
        )),*];
    };
}

documents! {
    CONVENTIONS, "built-in/", "../conventions/",
    "ack" "appcat" "argo-rollouts" "argo-workflows" "aso" "capi-v1beta1" "capi-v1beta2" "cert-manager"
    "cloudnative-pg" "crossplane" "gateway-api" "helmetica" "knative" "kro" "kstatus" "kstatus-flux"
    "kubevirt" "kueue" "metav1" "olm-csv" "olm-csv-proposed" "olm-v1" "openshift-clusteroperator" "stackable"
    "tekton"
}

// The policies that are used when no others are named: one for each system that a built-in convention
// describes.
documents! {
    EXAMPLES, "built-in/policies/", "../../../../deploy/policies/",
    "ack" "appcat" "argo-rollouts" "argo-workflows" "aso" "cert-manager" "cloudnative-pg" "cluster-api"
    "crossplane" "gateway-api" "helmetica" "knative" "kro" "kstatus" "kstatus-flux" "kubevirt" "kueue" "metav1"
    "olm-csv" "olm-csv-proposed" "olm-v1" "openshift-clusteroperator" "stackable" "tekton"
}

/// The specs that documents have extended so far, with everything that they extend themselves. The other
/// specs are parsed again when they are needed: a tree is larger than the convention compiled from it.
static SPECS: [OnceLock<Option<Arc<Node>>>; COUNT] = [const { OnceLock::new() }; COUNT];

/// Those that were compiled so far.
static COMPILED: [OnceLock<Option<Arc<Convention>>>; COUNT] = [const { OnceLock::new() }; COUNT];

/// The names of the conventions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    CONVENTIONS.iter().map(|(name, _, _)| *name)
}

/// The texts of the conventions. Their place in this list is the number of their source.
pub(crate) fn sources() -> Vec<Source> {
    CONVENTIONS.iter().map(|(_, file, text)| Source::new(*file, *text)).collect()
}

/// How many texts there are.
pub(crate) const COUNT: usize = CONVENTIONS.len();

/// The texts of the example policies.
pub(crate) fn examples() -> Vec<Source> {
    EXAMPLES.iter().map(|(_, file, text)| Source::new(*file, *text)).collect()
}

/// The spec of a convention, with everything that it extends.
pub(crate) fn spec(name: &str) -> Option<Arc<Node>> {
    SPECS.get(position(name)?)?.get_or_init(|| resolve(name)).clone()
}

fn resolve(name: &str) -> Option<Arc<Node>> {
    let documents = related(name);
    let specs =
        documents.iter().filter_map(|(name, document)| Some((name.as_str(), spec_of(document)?)));
    let mut resolved = Specs::default();
    resolved.add(specs, &Problems::default());
    resolved.resolved.remove(name).map(|whole| whole.spec)
}

/// The documents of a convention and of all that it refers to. They are resolved in one go, because two
/// conventions may have each other's list of conditions.
fn related(name: &str) -> BTreeMap<String, Document> {
    let (mut related, mut open) = (BTreeMap::new(), vec![name.to_owned()]);
    while let Some(name) = open.pop() {
        if related.contains_key(&name) {
            continue;
        }
        let Some(document) = parse(&name) else { continue };
        if let Some(spec) = spec_of(&document) {
            let likes = spec.items_of("conditions").iter().filter_map(|list| list.text_of("like"));
            open.extend(likes.chain(spec.text_of("extends")).map(str::to_owned));
        }
        related.insert(name, document);
    }
    related
}

fn parse(name: &str) -> Option<Document> {
    let source = position(name)?;
    let (_, _, text) = CONVENTIONS.get(source)?;
    tree::parse(source, text).0.into_iter().next()
}

fn spec_of(document: &Document) -> Option<&Node> {
    document.root.member("spec")
}

/// A convention. Its document is not checked again: tests prove that each of them is valid.
pub fn convention(name: &str) -> Option<Arc<Convention>> {
    let convention = COMPILED.get(position(name)?)?.get_or_init(|| {
        let whole = resolve(name)?;
        let problems = Problems::default();
        let spec = ConventionSpec::deserialize(&*whole).ok()?;
        let convention = convention::compile(name, &spec, true, At::root(&whole, &problems));
        (problems.count() == 0).then(|| Arc::new(convention))
    });
    convention.clone()
}

fn position(name: &str) -> Option<usize> {
    names().position(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents;

    #[test]
    fn each_convention_is_valid() {
        for name in names() {
            let mut whole = (*spec(name).unwrap()).clone();
            let problems = Problems::default();
            documents::spec::<ConventionSpec>(&mut whole, true, &problems);
            assert_eq!(problems.count(), 0, "{name}");
            assert!(convention(name).is_some(), "{name}");
        }
    }
}
