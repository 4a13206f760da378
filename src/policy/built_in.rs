//! The built-in conventions and the example policies: embedded documents like a user's own.
//!
//! All are read when something names one of them. Each is compiled when something names it, and once a
//! process: reloads share what was compiled.

use std::sync::{Arc, LazyLock, OnceLock};

use super::Source;
use super::convention::{self, Convention};
use super::extends::Specs;
use crate::documents::{self, ConventionSpec};
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
    "ack" "appcat" "aso" "capi-v1beta1" "capi-v1beta2" "crossplane" "kstatus" "kstatus-flux" "metav1"
    "olm-csv" "olm-csv-proposed" "stackable"
}

// The policies that are used when no others are named: one for each system that a built-in convention
// describes.
documents! {
    EXAMPLES, "built-in/policies/", "../../deploy/policies/",
    "ack" "appcat" "aso" "cluster-api" "crossplane" "kstatus" "kstatus-flux" "metav1"
    "olm-csv" "olm-csv-proposed" "stackable"
}

/// The specs of all of them. They are put together in one go, because two of them may have each other's
/// list of conditions.
static SPECS: LazyLock<Specs> = LazyLock::new(|| {
    let texts = CONVENTIONS.iter().enumerate();
    let documents: Vec<(&str, Vec<Document>)> =
        texts.map(|(source, (name, _, text))| (*name, tree::parse(source, text).0)).collect();
    let specs = documents
        .iter()
        .filter_map(|(name, parsed)| Some((*name, parsed.first()?.root.member("spec")?)));
    let mut whole = Specs::default();
    whole.add(specs, &Problems::default());
    whole
});

/// Those that were compiled so far.
static COMPILED: [OnceLock<Option<Arc<Convention>>>; CONVENTIONS.len()] =
    [const { OnceLock::new() }; CONVENTIONS.len()];

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
    // A name that is not built in must not ask for the specs while they are put together.
    names().find(|known| *known == name)?;
    SPECS.resolved.get(name).map(|whole| Arc::clone(&whole.spec))
}

/// A convention. Tests prove that each of them compiles.
pub(crate) fn convention(name: &str) -> Option<Arc<Convention>> {
    let source = names().position(|known| known == name)?;
    let convention = COMPILED.get(source)?.get_or_init(|| {
        let mut whole = (*spec(name)?).clone();
        let problems = Problems::default();
        let spec = documents::spec::<ConventionSpec>(&mut whole, true, &problems)?;
        let convention = convention::compile(name, &spec, true, At::root(&whole, &problems));
        (problems.count() == 0).then(|| Arc::new(convention))
    });
    convention.clone()
}
