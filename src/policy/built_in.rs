//! The built-in conventions and the example policies: embedded documents like a user's own.
//!
//! A convention is read when something names it, and once a process: a process with one policy is ready
//! sooner, and reloads share what was compiled.

use std::sync::{Arc, OnceLock};

use super::Source;
use super::convention::{self, Convention};
use super::extends::built_in_spec;
use crate::documents::{self, ConventionSpec};
use crate::source::tree::{self, At, Node, Problems};

/// Declares the built-in conventions, by name.
macro_rules! conventions {
    ($($name:literal),* $(,)?) => {
        /// The name, the file and the text of each.
        const CONVENTIONS: [(&str, &str, &str); [$($name),*].len()] = [$((
            $name,
            concat!("built-in/", $name, ".yaml"),
            include_str!(concat!("../conventions/", $name, ".yaml")),
        )),*];
    };
}

conventions!(
    "ack",
    "appcat",
    "aso",
    "capi-v1beta1",
    "capi-v1beta2",
    "crossplane",
    "kstatus",
    "kstatus-flux",
    "metav1",
    "olm-csv",
    "olm-csv-proposed",
    "stackable",
);

/// What was made of each, so far.
static PARTS: [Parts; CONVENTIONS.len()] = [const { Parts::new() }; CONVENTIONS.len()];

struct Parts {
    document: OnceLock<Option<Node>>,
    spec: OnceLock<Option<Arc<Node>>>,
    convention: OnceLock<Option<Arc<Convention>>>,
}

impl Parts {
    const fn new() -> Self {
        Self { document: OnceLock::new(), spec: OnceLock::new(), convention: OnceLock::new() }
    }
}

/// The policies that are used when nobody names any: one for each system that a built-in convention
/// speaks of.
const EXAMPLES: [(&str, &str); 11] = [
    ("built-in/policies/ack.yaml", include_str!("../../deploy/policies/ack.yaml")),
    ("built-in/policies/appcat.yaml", include_str!("../../deploy/policies/appcat.yaml")),
    ("built-in/policies/aso.yaml", include_str!("../../deploy/policies/aso.yaml")),
    ("built-in/policies/cluster-api.yaml", include_str!("../../deploy/policies/cluster-api.yaml")),
    ("built-in/policies/crossplane.yaml", include_str!("../../deploy/policies/crossplane.yaml")),
    ("built-in/policies/kstatus.yaml", include_str!("../../deploy/policies/kstatus.yaml")),
    (
        "built-in/policies/kstatus-flux.yaml",
        include_str!("../../deploy/policies/kstatus-flux.yaml"),
    ),
    ("built-in/policies/metav1.yaml", include_str!("../../deploy/policies/metav1.yaml")),
    ("built-in/policies/olm-csv.yaml", include_str!("../../deploy/policies/olm-csv.yaml")),
    (
        "built-in/policies/olm-csv-proposed.yaml",
        include_str!("../../deploy/policies/olm-csv-proposed.yaml"),
    ),
    ("built-in/policies/stackable.yaml", include_str!("../../deploy/policies/stackable.yaml")),
];

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
    EXAMPLES.iter().map(|(file, text)| Source::new(*file, *text)).collect()
}

/// The spec of a convention as it is written.
pub(crate) fn own_spec(name: &str) -> Option<&'static Node> {
    let (source, parts) = find(name)?;
    let document = parts.document.get_or_init(|| {
        let (_, _, text) = CONVENTIONS.get(source)?;
        tree::parse(source, text).0.pop().map(|document| document.root)
    });
    document.as_ref()?.member("spec")
}

/// The spec of a convention, with everything that it extends.
pub(crate) fn spec(name: &str) -> Option<Arc<Node>> {
    let (source, parts) = find(name)?;
    let (name, _, _) = CONVENTIONS.get(source)?;
    parts.spec.get_or_init(|| built_in_spec(name)).clone()
}

/// A convention. Tests prove that each of them compiles.
pub(crate) fn convention(name: &str) -> Option<Arc<Convention>> {
    let (_, parts) = find(name)?;
    let convention = parts.convention.get_or_init(|| {
        let mut whole = (*spec(name)?).clone();
        let problems = Problems::default();
        let spec = documents::spec::<ConventionSpec>(&mut whole, true, &problems)?;
        let convention = convention::compile(name, &spec, true, At::root(&whole, &problems));
        (problems.count() == 0).then(|| Arc::new(convention))
    });
    convention.clone()
}

fn find(name: &str) -> Option<(usize, &'static Parts)> {
    let source = names().position(|known| known == name)?;
    Some((source, PARTS.get(source)?))
}
