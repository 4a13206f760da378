//! All policies, compiled and indexed.

mod compared;
mod expressions;
mod foreign;
mod pointers;
#[cfg(test)]
mod tests;
mod text;
mod values;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use crate::documents::{self, ConventionSpec, DocumentKind, PolicySpec};
use crate::language::Glob;
use crate::model::Subject;
use crate::source::tree::{self, At, Document, Node, Problems, Span, Value};

use super::claims::Claim;
use super::convention::{self, Convention};
use super::extends::{Absent, Specs, Whole};
use super::known::{KnownConvention, KnownConventions};
use super::{
    Action, Conflict, DefinedVersions, Diagnostic, Diagnostics, Id, Policy, Source, built_in,
    claims, document,
};
pub use foreign::Skipped;

/// Conventions by name.
pub type Conventions = BTreeMap<String, Arc<Convention>>;

/// The compiled policies. Immutable: a reload makes a new one.
#[derive(Clone, Debug)]
pub struct PolicySet {
    policies: Vec<Policy>,
    /// The documents of other API groups.
    skipped: Vec<Skipped>,
    /// The conventions of the documents.
    given: BTreeMap<String, KnownConvention>,
    /// All conventions, once something asks for them.
    conventions: OnceLock<Conventions>,
    by_plural: Index,
    by_group: Index,
    /// What the API server accepts, as far as that is known.
    defined: Arc<DefinedVersions>,
}

/// The policies that may select a name, in order.
#[derive(Clone, Debug, Default)]
struct Index {
    /// Policies that select this name; those with a star are in every list.
    exact: HashMap<String, Vec<u16>>,
    /// The policies with a `*` in one of their names.
    with_star: Vec<u16>,
}

impl PolicySet {
    /// The sources of the example policies.
    pub fn examples() -> Vec<Source> {
        built_in::examples()
    }

    /// Compiles documents: `StatusConvention`s first, so that a policy may use one from any file.
    ///
    /// # Errors
    /// All mistakes in all documents.
    pub fn compile(sources: &[Source]) -> Result<Self, Diagnostics> {
        Self::compile_some(sources, Absent::Nothing, usize::MAX)
    }

    /// Compiles files, and then the documents of a cluster, the oldest first. There, an earlier policy keeps the
    /// phase of a resource that a later one configures too: see [`Self::conflicts`].
    ///
    /// # Errors
    /// All mistakes in all documents.
    pub fn compile_with_cluster(
        files: &[Source],
        documents: &[Source],
    ) -> Result<Self, Diagnostics> {
        Self::compile_some(&[files, documents].concat(), Absent::Nothing, files.len())
    }

    /// All mistakes in documents if other documents could not be read.
    pub fn mistakes_of_some(sources: &[Source]) -> Option<Diagnostics> {
        Self::compile_some(sources, Absent::Unread, usize::MAX).err()
    }

    /// The mistakes in a document that no other document can correct.
    pub fn mistakes_of(document: &Source) -> Option<Diagnostics> {
        let sources = std::slice::from_ref(document);
        Self::compile_some(sources, Absent::Anything, usize::MAX).err()
    }

    /// `files`: how many sources are files.
    fn compile_some(sources: &[Source], absent: Absent, files: usize) -> Result<Self, Diagnostics> {
        let (documents, mut mistakes) = read_documents(sources, built_in::COUNT);
        let (documents, skipped) = foreign::skip(documents, sources, built_in::COUNT);
        let mut known = KnownConventions::default();
        known.specs.absent = match absent {
            Absent::Nothing if !mistakes.is_empty() => Absent::Unread,
            absent => absent,
        };
        let (envelopes, wrong) = envelopes(documents);
        mistakes.extend(wrong);
        mistakes.extend(compile_conventions(&envelopes, &mut known));
        let (policies, more) =
            compile_policies(&envelopes, &known, built_in::COUNT.saturating_add(files));
        mistakes.extend(more);
        if mistakes.is_empty() {
            Ok(Self { skipped, ..Self::index(policies, known.given) })
        } else {
            // An inherited part can be invalid in the convention that extends it. The mistake is then
            // located in the inherited text, which may be built in.
            Err(Diagnostics::new(&[built_in::sources(), sources.to_vec()].concat(), mistakes))
        }
    }

    /// A policy that code has built, under the conventions of this set.
    ///
    /// # Errors
    /// All mistakes in the policy.
    pub fn with_policy(&self, name: &str, spec: &PolicySpec) -> Result<Self, Diagnostics> {
        let source = Source::new("policies built in code", "");
        let node = Node { value: Value::Null, span: Span::default() };
        self.with_policy_of(name, spec, &node)
            .map_err(|mistakes| Diagnostics::new(&[source], mistakes))
    }

    /// The same for a policy from this node of a document.
    ///
    /// # Errors
    /// All mistakes in the policy.
    pub fn with_policy_of(
        &self,
        name: &str,
        spec: &PolicySpec,
        node: &Node,
    ) -> Result<Self, Vec<Diagnostic>> {
        let problems = Problems::default();
        let known = KnownConventions { given: self.given.clone(), ..KnownConventions::default() };
        let policy = document::compile(name, spec, &known, At::root(node, &problems));
        match problems.into_list() {
            mistakes if mistakes.is_empty() => {
                Ok(Self::index(policy.into_iter().collect(), known.given))
            }
            mistakes => Err(mistakes),
        }
    }

    /// The same for resources with these definitions: what their schemas reject is not set.
    #[must_use]
    pub fn with_defined(self, defined: Arc<DefinedVersions>) -> Self {
        Self { defined, ..self }
    }

    /// The versions of custom resources that are known.
    pub fn defined(&self) -> &DefinedVersions {
        &self.defined
    }

    /// The policies, in the order of their documents.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// The names of the policies, in the order of their documents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().map(|policy| policy.name.as_str())
    }

    /// The documents of other API groups, such as a CustomResourceDefinition next to a policy.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The policy with this place in [`Self::policies`].
    pub fn get(&self, index: u16) -> Option<&Policy> {
        self.policies.get(usize::from(index))
    }

    /// The policies that may select objects of which an earlier one owns the phase, and configure it too. `about`:
    /// only those with this policy.
    pub fn conflicts(&self, about: Option<&str>) -> Vec<Conflict<'_>> {
        claims::conflicts(&self.policies, about)
    }

    /// The names of the policies with these places.
    pub fn names_of(&self, indices: &[u16]) -> impl Iterator<Item = &str> {
        indices.iter().filter_map(|index| Some(self.get(*index)?.name.as_str()))
    }

    /// All conventions, built in and given, by name.
    pub fn conventions(&self) -> &Conventions {
        self.conventions.get_or_init(|| {
            let given = self.given.iter();
            let given = given.map(|(name, found)| (name.clone(), found.convention.clone()));
            let built_in = |name: &str| Some((name.to_owned(), built_in::convention(name)?));
            given.chain(built_in::names().filter_map(built_in)).collect()
        })
    }

    /// The names of the built-in conventions.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> + Clone {
        built_in::names()
    }

    /// The names of the conventions in the documents.
    pub fn given_names(&self) -> impl Iterator<Item = &str> {
        self.given.keys().map(String::as_str)
    }

    /// Whether this is a convention of the documents that no policy of the documents follows, directly or as a base.
    pub fn is_unused(&self, name: &str) -> bool {
        let is_unused = self.policies.iter().all(|policy| policy.convention.name != name);
        let known = self.given.get(name).is_some_and(|known| !known.inherited);
        known && is_unused && !self.policies.is_empty()
    }

    /// The policies that judge a subject, with their place in [`Self::policies`].
    pub fn select<'p>(&'p self, subject: &Subject<'_>) -> impl Iterator<Item = (u16, &'p Policy)> {
        let by_plural = self.by_plural.find(&subject.resource.resource);
        let by_group = self.by_group.find(&subject.resource.group);
        // Many policies can name one group, and many with `*` can follow one convention.
        let candidates = if by_plural.len() <= by_group.len() { by_plural } else { by_group };
        candidates
            .iter()
            .filter_map(|index| Some((*index, self.get(*index)?)))
            .filter(|(_, policy)| policy.selects(subject))
    }

    /// Whether a policy may judge a resource with this name, `xvshnredis.vshn.appcat.vshn.io`, in some
    /// version.
    pub fn may_select(&self, resource: &str) -> bool {
        let Some((plural, group)) = resource.split_once('.') else { return false };
        let mut rules = self.policies.iter().flat_map(|policy| &policy.resources);
        rules.any(|rule| {
            rule.api_groups.iter().any(|glob| glob.matches(group))
                && rule.resources.iter().any(|glob| glob.matches(plural))
        })
    }

    /// The same policies, which repair every disagreement of every writer, also a stored one. `enforcement`
    /// stays a ceiling: a policy that only warns repairs nothing.
    pub fn repairing(mut self) -> Self {
        for policy in &mut self.policies {
            (policy.disagreement, policy.repairs_stored) = (Action::Repair, true);
            policy.writers.clear();
        }
        self
    }

    /// A set of some policies.
    pub fn of(policies: Vec<Policy>) -> Self {
        Self::index(policies, BTreeMap::new())
    }

    fn index(mut policies: Vec<Policy>, given: BTreeMap<String, KnownConvention>) -> Self {
        let (mut by_plural, mut by_group) = (Index::default(), Index::default());
        for (index, policy) in (0..).zip(&mut policies) {
            policy.name = Id::new(policy.name.to_string(), usize::from(index));
            by_plural.add(index, policy.resources.iter().flat_map(|rule| &rule.resources));
            by_group.add(index, policy.resources.iter().flat_map(|rule| &rule.api_groups));
        }
        let (skipped, conventions) = (Vec::new(), OnceLock::new());
        let defined = Arc::default();
        Self { policies, skipped, given, conventions, by_plural, by_group, defined }
    }
}

impl Index {
    fn add<'g>(&mut self, policy: u16, globs: impl Iterator<Item = &'g Glob> + Clone) {
        if globs.clone().any(|glob| glob.exact().is_none()) {
            let lists = self.exact.values_mut().chain([&mut self.with_star]);
            lists.for_each(|list| list.push(policy));
        }
        for name in globs.filter_map(Glob::exact) {
            let list = self.exact.entry(name.to_owned()).or_insert_with(|| self.with_star.clone());
            if list.last() != Some(&policy) {
                list.push(policy);
            }
        }
    }

    fn find(&self, name: &str) -> &[u16] {
        self.exact.get(name).unwrap_or(&self.with_star)
    }
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

/// A document, after the check of everything but its spec.
struct CheckedEnvelope {
    kind: DocumentKind,
    /// Its name, valid or not.
    label: String,
    /// The location of a valid name.
    name: Option<Span>,
    spec: Node,
    /// All of it.
    span: Span,
}

/// The name under which a document is compiled to find its mistakes if its own name is invalid or already
/// used. No document can have this name.
const UNNAMED: &str = "(unnamed)";

/// Checks the envelopes of all documents.
fn envelopes(documents: Vec<Document>) -> (Vec<CheckedEnvelope>, Vec<Diagnostic>) {
    let problems = Problems::default();
    let envelopes = documents.into_iter().filter_map(|Document { mut root, span }| {
        let name = root.member("metadata").and_then(|metadata| metadata.text_of("name"));
        let label = name.unwrap_or_default().to_owned();
        let kind = documents::envelope(&mut root, &problems)?;
        // An invalid name was replaced by a placeholder.
        let name = root.member("metadata")?.member("name")?.span.clone();
        let name = (name != Span::NOWHERE).then_some(name);
        Some(CheckedEnvelope { kind, label, name, spec: root.member("spec")?.clone(), span })
    });
    (envelopes.collect(), problems.into_list())
}

/// Compiles the conventions among the documents: names first, then what each extends, then each.
fn compile_conventions(
    envelopes: &[CheckedEnvelope],
    known: &mut KnownConventions,
) -> Vec<Diagnostic> {
    let problems = Problems::default();
    let mut named: Vec<&CheckedEnvelope> = Vec::new();
    let mut unnamed = Vec::new();
    for envelope in envelopes.iter().filter(|found| found.kind == DocumentKind::StatusConvention) {
        let label = envelope.label.as_str();
        let is_taken = built_in::names().any(|name| name == label)
            || named.iter().any(|other| other.label == label);
        match &envelope.name {
            Some(span) if is_taken => {
                let message = format!("there is a convention \"{label}\" already");
                let help = Some("give this one another name".to_owned());
                problems.report_with_help(span, message, help);
                unnamed.push(envelope);
            }
            Some(_) => named.push(envelope),
            None => {
                known.specs.invalid_names.push(envelope.label.clone());
                unnamed.push(envelope);
            }
        }
    }
    let specs = named.iter().map(|envelope| (envelope.label.as_str(), &envelope.spec));
    known.specs.add(specs, &problems);
    let mut mistakes = problems.into_list();
    for envelope in named {
        let problems = Problems::default();
        if let Some(found) = compile_convention(&envelope.label, &known.specs, &problems) {
            known.given.insert(envelope.label.clone(), found);
        }
        mistakes.extend(with_heir(
            problems,
            &envelope.span,
            &envelope.label,
            known.specs.get(&envelope.label).as_ref(),
        ));
    }
    for envelope in unnamed {
        let problems = Problems::default();
        let mut specs = known.specs.clone();
        specs.add(std::iter::once((UNNAMED, &envelope.spec)), &problems);
        compile_convention(UNNAMED, &specs, &problems);
        let label = if envelope.label.is_empty() { UNNAMED } else { &envelope.label };
        mistakes.extend(with_heir(problems, &envelope.span, label, specs.get(UNNAMED).as_ref()));
    }
    without_repetition(mistakes)
}

fn compile_convention(name: &str, specs: &Specs, problems: &Problems) -> Option<KnownConvention> {
    let Whole { spec, complete } = specs.get(name)?;
    let mut whole = (*spec).clone();
    let spec: ConventionSpec = documents::spec(&mut whole, complete, problems)?;
    let convention = convention::compile(name, &spec, complete, At::root(&whole, problems));
    let sound = complete && problems.count() == 0;
    let inherited = specs.bases.contains(name);
    Some(KnownConvention { convention: Arc::new(convention), sound, complete, inherited })
}

/// The mistakes of a convention. Those outside of its own document name the convention as heir, and how it leaves
/// the inherited part out.
fn with_heir(problems: Problems, own: &Span, name: &str, whole: Option<&Whole>) -> Vec<Diagnostic> {
    let mut mistakes = problems.into_list();
    for mistake in &mut mistakes {
        let Span { source, bytes } = &mistake.span;
        if *source != own.source || !(own.bytes.start..=own.bytes.end).contains(&bytes.start) {
            mistake.inherited_by = Some(name.to_owned());
            if let Some(part) = whole.and_then(|whole| part_at(&whole.spec, &mistake.span)?) {
                let help =
                    mistake.help.take().map(|help| format!("{help}, or ")).unwrap_or_default();
                mistake.help = Some(format!("{help}leave this part out with `without: [{part}]`"));
            }
        }
    }
    mistakes
}

/// The name of the innermost part with a name, or an id, around the node at a location. The outer `None`: there is no such
/// node; a mapping has the location of its start only.
fn part_at<'n>(node: &'n Node, span: &Span) -> Option<Option<&'n str>> {
    let inner = match &node.value {
        _ if node.span == *span => Some(None),
        Value::List(items) => items.iter().find_map(|item| part_at(item, span)),
        Value::Map(entries) => entries.iter().find_map(|(key, node)| {
            if key.span == *span { Some(None) } else { part_at(node, span) }
        }),
        _ => None,
    };
    inner.map(|name| name.or_else(|| node.text_of("name")).or_else(|| node.text_of("id")))
}

/// The same without inherited mistakes that the base or another heir already has.
fn without_repetition(mistakes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let (inherited, mut all): (Vec<_>, Vec<_>) =
        mistakes.into_iter().partition(|mistake| mistake.inherited_by.is_some());
    for mistake in inherited {
        if !all.iter().any(|other| other.span == mistake.span && other.message == mistake.message) {
            all.push(mistake);
        }
    }
    all
}

fn compile_policies(
    envelopes: &[CheckedEnvelope],
    known: &KnownConventions,
    cluster: usize,
) -> (Vec<Policy>, Vec<Diagnostic>) {
    let (mut claims, mut mistakes) = (Vec::new(), Vec::new());
    let mut names: HashSet<&str> = HashSet::new();
    for envelope in envelopes.iter().filter(|found| found.kind == DocumentKind::StatusPolicy) {
        let problems = Problems::default();
        let label = envelope.label.as_str();
        let name = envelope.name.as_ref().and_then(|span| {
            if names.contains(label) {
                problems.report(span, format!("there is a policy \"{label}\" already"));
                return None;
            }
            if names.len() > usize::from(u16::MAX) {
                problems.report(span, "more than 65,536 policies");
                return None;
            }
            names.insert(label);
            Some(label)
        });
        let mut node = envelope.spec.clone();
        if let Some(spec) = documents::spec::<PolicySpec>(&mut node, true, &problems) {
            let at = At::root(&node, &problems);
            let policy = document::compile(name.unwrap_or(UNNAMED), &spec, known, at);
            let resources = envelope.spec.items_of("resources");
            let valid = policy.filter(|_| name.is_some() && problems.count() == 0);
            claims.extend(valid.map(|policy| Claim { policy, resources }));
        }
        mistakes.extend(problems.into_list());
    }
    mistakes.extend(claims::check(&claims, cluster));
    (claims.into_iter().map(|claim| claim.policy).collect(), mistakes)
}
