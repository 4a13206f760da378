//! All policies, compiled and indexed: what the engine judges by.

mod text;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use crate::model::Subject;

use super::convention::{self, Convention};
use super::extends::Specs;
use super::yaml::{self, Node, Problems};
use super::{Diagnostic, Diagnostics, Policy, document};

/// One document file: what to call it in messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as a person would type it.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// The compiled policies. Immutable: a reload makes a new one.
#[derive(Clone, Debug)]
pub struct PolicySet {
    policies: Vec<Policy>,
    conventions: Conventions,
    /// The policies that may speak of a plural, in order; those with a star are in every list.
    by_plural: HashMap<String, Vec<u16>>,
    /// The policies whose plurals have a star: for plurals that nobody names.
    with_star: Vec<u16>,
}

/// The conventions that are built in: documents like a user's own.
const BUILT_IN: [(&str, &str); 12] = [
    ("built-in/ack.yaml", include_str!("../conventions/ack.yaml")),
    ("built-in/appcat.yaml", include_str!("../conventions/appcat.yaml")),
    ("built-in/aso.yaml", include_str!("../conventions/aso.yaml")),
    ("built-in/capi-v1beta1.yaml", include_str!("../conventions/capi-v1beta1.yaml")),
    ("built-in/capi-v1beta2.yaml", include_str!("../conventions/capi-v1beta2.yaml")),
    ("built-in/crossplane.yaml", include_str!("../conventions/crossplane.yaml")),
    ("built-in/kstatus.yaml", include_str!("../conventions/kstatus.yaml")),
    ("built-in/kstatus-flux.yaml", include_str!("../conventions/kstatus-flux.yaml")),
    ("built-in/metav1.yaml", include_str!("../conventions/metav1.yaml")),
    ("built-in/olm-csv.yaml", include_str!("../conventions/olm-csv.yaml")),
    ("built-in/olm-csv-proposed.yaml", include_str!("../conventions/olm-csv-proposed.yaml")),
    ("built-in/stackable.yaml", include_str!("../conventions/stackable.yaml")),
];

/// The built-in conventions, and their texts for those that extend one.
#[derive(Clone, Debug)]
struct BuiltIn {
    sources: Vec<Source>,
    specs: Specs,
    conventions: Conventions,
    /// The names of those that do not compile: a policy that uses one of these has made no mistake.
    broken: Vec<String>,
}

/// Compiled once a process: a reload, and a test that compiles a thousand policies, share them.
static BUILT_IN_CONVENTIONS: LazyLock<Result<BuiltIn, Diagnostics>> = LazyLock::new(|| {
    let sources = sources(&BUILT_IN);
    let (documents, mut mistakes) = read_documents(&sources, 0);
    let mut built_in = BuiltIn {
        sources,
        specs: Specs::default(),
        conventions: BTreeMap::new(),
        broken: Vec::new(),
    };
    mistakes.extend(compile_conventions(&documents, &mut built_in));
    if mistakes.is_empty() {
        Ok(built_in)
    } else {
        Err(Diagnostics::new(&built_in.sources, mistakes))
    }
});

/// Conventions by name.
type Conventions = BTreeMap<String, Arc<Convention>>;

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

impl PolicySet {
    /// The sources of the example policies.
    #[must_use]
    pub fn examples() -> Vec<Source> {
        sources(&EXAMPLES)
    }

    /// Compiles documents: `StatusConvention`s first, so that a policy may use one from any file.
    ///
    /// # Errors
    /// All mistakes in all documents.
    pub fn compile(sources: &[Source]) -> Result<Self, Diagnostics> {
        let mut known = BUILT_IN_CONVENTIONS.clone()?;
        let (documents, mut mistakes) = read_documents(sources, known.sources.len());
        mistakes.extend(compile_conventions(&documents, &mut known));
        let (policies, more) = compile_policies(&documents, &known);
        mistakes.extend(more);
        if mistakes.is_empty() {
            Ok(Self::index(policies, known.conventions))
        } else {
            // What is inherited can be wrong in its new place: the built-in texts are shown too.
            known.sources.extend_from_slice(sources);
            Err(Diagnostics::new(&known.sources, mistakes))
        }
    }

    /// The policies, in the order of their documents.
    #[must_use]
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// The names of the policies, in the order of their documents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().map(|policy| policy.name.as_str())
    }

    /// All conventions, built in and given, by name.
    #[must_use]
    pub const fn conventions(&self) -> &Conventions {
        &self.conventions
    }

    /// The policies that judge a subject, with their place in [`Self::policies`].
    pub fn select<'p>(&'p self, subject: &Subject<'_>) -> impl Iterator<Item = (u16, &'p Policy)> {
        let plural: &str = &subject.resource.resource;
        let candidates = self.by_plural.get(plural).unwrap_or(&self.with_star);
        candidates
            .iter()
            .filter_map(|index| Some((*index, self.policies.get(usize::from(*index))?)))
            .filter(|(_, policy)| policy.selects(subject))
    }

    /// A set of some policies, for those who ask the engine about one at a time.
    pub(crate) fn of(policies: Vec<Policy>) -> Self {
        Self::index(policies, BTreeMap::new())
    }

    fn index(policies: Vec<Policy>, conventions: BTreeMap<String, Arc<Convention>>) -> Self {
        let plurals = |policy: &Policy| -> Vec<Option<String>> {
            let globs = policy.resources.iter().flat_map(|rule| &rule.resources);
            globs.map(|glob| glob.exact().map(str::to_owned)).collect()
        };
        let mut by_plural: HashMap<String, Vec<u16>> = policies
            .iter()
            .flat_map(plurals)
            .flatten()
            .map(|plural| (plural, Vec::new()))
            .collect();
        let mut with_star = Vec::new();
        for (index, policy) in (0..).zip(&policies) {
            let plurals = plurals(policy);
            let star = plurals.contains(&None);
            if star {
                with_star.push(index);
            }
            for (plural, list) in &mut by_plural {
                if star || plurals.iter().flatten().any(|own| own == plural) {
                    list.push(index);
                }
            }
        }
        Self { policies, conventions, by_plural, with_star }
    }
}

fn sources(embedded: &[(&str, &str)]) -> Vec<Source> {
    let source =
        |(name, text): &(&str, &str)| Source { name: (*name).to_owned(), text: (*text).to_owned() };
    embedded.iter().map(source).collect()
}

/// A document with its envelope read: what it is, what it is called, and its spec.
struct Document {
    root: Node,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Policy,
    Convention,
}

/// Reads all documents. `first` is the number of the first source among all that are known.
fn read_documents(sources: &[Source], first: usize) -> (Vec<Document>, Vec<Diagnostic>) {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    for (source, Source { text, .. }) in (first..).zip(sources) {
        match yaml::parse(source, text) {
            Ok(nodes) => documents.extend(nodes.into_iter().map(|root| Document { root })),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    (documents, mistakes)
}

impl Document {
    /// The kind, the name and the spec. Reports mistakes in the envelope only when `report` is
    /// given: each document passes here twice, once for each kind.
    fn envelope<'n>(&'n self, problems: &'n Problems) -> Option<(Kind, &'n Node, &'n Node)> {
        let map = problems.map(&self.root)?;
        if let Some(node) = map.required("apiVersion") {
            problems.word(node, &[("statusgate.dev/v1alpha1", ())]);
        }
        let kind = map.required("kind").and_then(|node| {
            problems.word(
                node,
                &[("StatusPolicy", Kind::Policy), ("StatusConvention", Kind::Convention)],
            )
        });
        let name = map.required("metadata").and_then(|node| {
            let metadata = problems.map(node)?;
            let name = metadata.required("name");
            // Files that also live in a cluster carry these; they mean nothing here.
            for ignored in ["labels", "annotations", "namespace"] {
                metadata.get(ignored);
            }
            metadata.close();
            name
        });
        let spec = map.required("spec");
        map.close();
        Some((kind?, name?, spec?))
    }
}

/// Compiles the conventions among the documents: names first, then what each extends, then each.
fn compile_conventions(documents: &[Document], known: &mut BuiltIn) -> Vec<Diagnostic> {
    let (quiet, problems) = (Problems::default(), Problems::default());
    let mut specs: Vec<(&str, &Node)> = Vec::new();
    for document in documents {
        let Some((Kind::Convention, name, spec)) = document.envelope(&quiet) else { continue };
        let Some(text) = problems.identifier(name) else { continue };
        let taken = |(other, _): &(&str, &Node)| *other == text;
        if known.conventions.contains_key(text) || specs.iter().any(taken) {
            let message = format!("there is a convention \"{text}\" already");
            let help = Some("give this one a name of its own".to_owned());
            problems.report_with_help(&name.span, message, help);
        } else {
            specs.push((text, spec));
        }
    }
    known.specs.add(specs.iter().copied(), &problems);
    for (name, _) in &specs {
        let whole = known.specs.get(name);
        match whole.and_then(|whole| convention::read(name, whole, &problems)) {
            Some(convention) => {
                known.conventions.insert((*name).to_owned(), Arc::new(convention));
            }
            None => known.broken.push((*name).to_owned()),
        }
    }
    problems.into_list()
}

fn compile_policies(documents: &[Document], known: &BuiltIn) -> (Vec<Policy>, Vec<Diagnostic>) {
    let (mut policies, mut mistakes) = (Vec::<Policy>::new(), Vec::new());
    for document in documents {
        let problems = Problems::default();
        if let Some((Kind::Policy, name, spec)) = document.envelope(&problems)
            && let Some(text) = problems.identifier(name)
        {
            if policies.iter().any(|policy| policy.name == text) {
                problems.report(&name.span, format!("there is a policy \"{text}\" already"));
            } else if policies.len() > usize::from(u16::MAX) {
                problems.report(&name.span, "more than 65,536 policies");
            } else if let Some(policy) =
                document::read(text, spec, &problems, &known.conventions, &known.broken)
            {
                policies.push(policy);
            }
        }
        mistakes.extend(problems.into_list());
    }
    (policies, mistakes)
}
