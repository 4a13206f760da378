//! All policies, compiled and indexed: what the engine judges by.

mod text;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::model::Subject;

use super::convention;
use super::known::{Broken, Conventions, Known};
use super::owner::Claim;
use super::{Diagnostic, Diagnostics, Policy, Source, document, order, owner};
use crate::source::tree::{self, Document, Node, Problems, Span, Value};

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
pub(super) const BUILT_IN: [(&str, &str); 12] = [
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
    known: Known,
}

/// Compiled once a process: a reload, and a test that compiles a thousand policies, share them.
static BUILT_IN_CONVENTIONS: LazyLock<Result<BuiltIn, Diagnostics>> = LazyLock::new(|| {
    let sources = sources(&BUILT_IN);
    let (documents, mut mistakes) = read_documents(&sources, 0);
    let mut known = Known::default();
    mistakes.extend(compile_conventions(&documents, &mut known));
    if mistakes.is_empty() {
        Ok(BuiltIn { sources, known })
    } else {
        Err(Diagnostics::new(&sources, mistakes))
    }
});

/// The policies that are used when nobody names any: one for each system that a built-in convention
/// speaks of.
pub(super) const EXAMPLES: [(&str, &str); 11] = [
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
        Self::compile_some(sources, false)
    }

    /// All mistakes in documents beside which there are others that could not be read.
    #[must_use]
    pub fn mistakes_of_some(sources: &[Source]) -> Option<Diagnostics> {
        Self::compile_some(sources, true).err()
    }

    fn compile_some(sources: &[Source], incomplete: bool) -> Result<Self, Diagnostics> {
        let BuiltIn { sources: mut all, mut known } = BUILT_IN_CONVENTIONS.clone()?;
        let (documents, mut mistakes) = read_documents(sources, all.len());
        known.specs.incomplete = incomplete || !mistakes.is_empty();
        mistakes.extend(compile_conventions(&documents, &mut known));
        let (policies, more) = compile_policies(&documents, &known);
        mistakes.extend(more);
        if mistakes.is_empty() {
            Ok(Self::index(policies, known.conventions))
        } else {
            // What is inherited can be wrong in its new place: the built-in texts are shown too.
            all.extend_from_slice(sources);
            Err(Diagnostics::new(&all, mistakes))
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

    /// The policies of some documents in the place of these, under the same conventions.
    ///
    /// # Errors
    /// All mistakes in the documents.
    pub(crate) fn only(&self, sources: &[Source]) -> Result<Self, Diagnostics> {
        let (documents, mut mistakes) = read_documents(sources, 0);
        let known = Known { conventions: self.conventions.clone(), ..Known::default() };
        let (policies, more) = compile_policies(&documents, &known);
        mistakes.extend(more);
        if mistakes.is_empty() {
            Ok(Self::index(policies, known.conventions))
        } else {
            Err(Diagnostics::new(sources, mistakes))
        }
    }

    /// A set of some policies, for those who ask the engine about one at a time.
    pub(crate) fn of(mut policies: Vec<Policy>) -> Self {
        order::rank(&mut policies);
        Self::index(policies, Conventions::new())
    }

    fn index(policies: Vec<Policy>, conventions: Conventions) -> Self {
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Policy,
    Convention,
}

/// Reads all documents. `first` is the number of the first source among all that are known.
fn read_documents(sources: &[Source], first: usize) -> (Vec<Document>, Vec<Diagnostic>) {
    let (mut documents, mut mistakes) = (Vec::new(), Vec::new());
    for (source, Source { text, .. }) in (first..).zip(sources) {
        let (more, wrong) = tree::parse(source, text);
        documents.extend(more);
        mistakes.extend(wrong);
    }
    (documents, mistakes)
}

/// What a document is, what it is called, where that could be read, and its spec.
struct Envelope<'n> {
    kind: Kind,
    name: Option<&'n Node>,
    spec: &'n Node,
}

/// What a document is called while it is read for its mistakes alone, because its own name is none or
/// is another's. No document can have this name.
const STAND_IN: &str = "(unnamed)";

impl<'n> Envelope<'n> {
    /// Each document is read here twice, once for each kind: `problems` are those of one of them.
    fn read(document: &'n Document, problems: &'n Problems) -> Option<Self> {
        let map = problems.map(&document.root)?;
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
        Some(Self { kind: kind?, name, spec: spec? })
    }

    /// What the document is called, whether that is a name or not.
    fn label(&self) -> Option<&'n str> {
        match &self.name?.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The name, if it is one.
    fn name(&self, problems: &Problems) -> Option<(&'n str, &'n Node)> {
        let node = self.name?;
        Some((problems.identifier(node)?, node))
    }
}

/// Compiles the conventions among the documents: names first, then what each extends, then each.
fn compile_conventions(documents: &[Document], known: &mut Known) -> Vec<Diagnostic> {
    let (quiet, problems) = (Problems::default(), Problems::default());
    let mut specs: Vec<(&str, &Node)> = Vec::new();
    let mut spans = Vec::new();
    let mut nameless = Vec::new();
    for document in documents {
        let Some(envelope) = Envelope::read(document, &quiet) else { continue };
        if envelope.kind != Kind::Convention {
            continue;
        }
        let taken = |text| {
            known.conventions.contains_key(text) || specs.iter().any(|(name, _)| *name == text)
        };
        match envelope.name(&problems) {
            Some((text, node)) if taken(text) => {
                let message = format!("there is a convention \"{text}\" already");
                let help = Some("give this one a name of its own".to_owned());
                problems.report_with_help(&node.span, message, help);
                nameless.push((envelope, &document.span));
            }
            Some((text, _)) => {
                specs.push((text, envelope.spec));
                spans.push(&document.span);
            }
            None => {
                known.specs.misnamed.extend(envelope.label().map(str::to_owned));
                nameless.push((envelope, &document.span));
            }
        }
    }
    known.specs.add(specs.iter().copied(), &problems);
    let mut mistakes = problems.into_list();
    for ((name, _), span) in specs.iter().zip(spans) {
        let problems = Problems::default();
        let whole = known.specs.get(name);
        match whole.and_then(|whole| convention::read(name, whole, &problems)) {
            Some(convention) => {
                known.conventions.insert((*name).to_owned(), Arc::new(convention));
            }
            None => {
                let broken = whole.map(|(spec, complete)| Broken::of(spec, complete));
                known.broken.insert((*name).to_owned(), broken.unwrap_or_default());
            }
        }
        mistakes.extend(told_apart(problems, span, name));
    }
    for (envelope, span) in nameless {
        let problems = Problems::default();
        let mut specs = known.specs.clone();
        specs.add(std::iter::once((STAND_IN, envelope.spec)), &problems);
        if let Some(whole) = specs.get(STAND_IN) {
            convention::read(STAND_IN, whole, &problems);
        }
        mistakes.extend(told_apart(problems, span, envelope.label().unwrap_or(STAND_IN)));
    }
    without_repetition(mistakes)
}

/// The mistakes of a convention; of those outside of its own document it is said who inherits them.
fn told_apart(problems: Problems, own: &Span, name: &str) -> Vec<Diagnostic> {
    let mut mistakes = problems.into_list();
    for mistake in &mut mistakes {
        let Span { source, bytes } = &mistake.span;
        if *source != own.source || !(own.bytes.start..=own.bytes.end).contains(&bytes.start) {
            mistake.inherited_by = Some(name.to_owned());
        }
    }
    mistakes
}

/// The same without what is inherited and wrong already where it is from, or in another heir.
fn without_repetition(mistakes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let (inherited, mut told): (Vec<_>, Vec<_>) =
        mistakes.into_iter().partition(|mistake| mistake.inherited_by.is_some());
    for mistake in inherited {
        let same =
            |other: &Diagnostic| other.span == mistake.span && other.message == mistake.message;
        if !told.iter().any(same) {
            told.push(mistake);
        }
    }
    told
}

fn compile_policies(documents: &[Document], known: &Known) -> (Vec<Policy>, Vec<Diagnostic>) {
    let (mut claims, mut mistakes) = (Vec::new(), Vec::new());
    let mut names: Vec<String> = Vec::new();
    for document in documents {
        let problems = Problems::default();
        if let Some(envelope) = Envelope::read(document, &problems)
            && envelope.kind == Kind::Policy
        {
            let name = envelope.name(&problems).and_then(|(text, node)| {
                if names.iter().any(|known| known == text) {
                    problems.report(&node.span, format!("there is a policy \"{text}\" already"));
                    return None;
                }
                if names.len() > usize::from(u16::MAX) {
                    problems.report(&node.span, "more than 65,536 policies");
                    return None;
                }
                names.push(text.to_owned());
                Some(text)
            });
            let policy = document::read(name.unwrap_or(STAND_IN), envelope.spec, &problems, known);
            let spec = |key| document.root.member("spec")?.member(key);
            let (resources, backfill) = (spec("resources"), spec("backfill"));
            let resources = resources.map(Node::items).unwrap_or_default();
            let claim = |policy| Claim { policy, resources, backfill };
            claims.extend(policy.filter(|_| name.is_some()).map(claim));
        }
        mistakes.extend(problems.into_list());
    }
    mistakes.extend(owner::check(&claims));
    let nodes: Vec<Option<&Node>> =
        claims.iter().map(|claim| claim.backfill.or_else(|| claim.resources.first())).collect();
    let mut policies: Vec<Policy> = claims.into_iter().map(|claim| claim.policy).collect();
    if let Some((last, message)) = order::rank(&mut policies)
        && let Some(Some(node)) = nodes.get(last)
    {
        let problems = Problems::default();
        order::report(node, message, &problems);
        mistakes.extend(problems.into_list());
    }
    (policies, mistakes)
}
