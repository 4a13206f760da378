//! From kinds, which manifests contain, to plurals, which policies select.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{anyhow, bail};

use super::{fail_with, say};
use statusgate_cluster::manifests::resource::CustomResource;
use statusgate_core::language::plural_of_kind;
use statusgate_core::policy::{Defined, PolicySet};
use statusgate_core::request::Served;
use statusgate_core::source::{Diagnostic, Identity, Manifests, one_line, reason};
use statusgate_server::files;

/// The plurals of kinds: from CRDs, otherwise guessed.
#[derive(Debug, Default)]
pub(super) struct Plurals {
    /// By group and kind.
    known: HashMap<(String, String), CustomResource>,
}

impl Plurals {
    /// The plurals of CRDs.
    pub(super) fn of(resources: Vec<CustomResource>) -> Self {
        let known = resources.into_iter().map(|of| ((of.group.clone(), of.kind.clone()), of));
        Self { known: known.collect() }
    }

    /// How the kind of an object is served: by its CRD, otherwise as guessed.
    pub(super) fn served(&self, identity: &Identity, policies: &PolicySet) -> Served {
        let Some(known) = self.find(identity) else { return Served::guessed(identity, policies) };
        let mut versions = known.versions.iter();
        let version = versions.find(|version| version.name == identity.version());
        let has_status = version.map(|version| version.status_subresource);
        Served { plural: known.plural.clone(), has_status }
    }

    /// Says that a policy, not the kind, decided on the plural; `None` where they agree or a CRD decided.
    pub(super) fn doubt(&self, identity: &Identity, policies: &PolicySet) -> Option<String> {
        let derived = Served::guessed(identity, policies).plural;
        let guess = plural_of_kind(&identity.kind);
        let is_doubtful = self.find(identity).is_none() && derived != guess;
        let kind = one_line(&identity.kind);
        is_doubtful.then(|| {
            format!(
                "note: {kind} is judged as {derived}, which a policy names; the kind suggests {guess}: \
                 --crds gives the plural"
            )
        })
    }

    fn find(&self, identity: &Identity) -> Option<&CustomResource> {
        self.known.get(&(identity.group().to_owned(), identity.kind.clone()))
    }
}

/// Reads the CustomResourceDefinitions of files and folders. Other objects are ignored.
///
/// # Errors
/// All mistakes, and files without a definition.
pub(super) fn read_crds(paths: &[PathBuf], recursive: bool) -> anyhow::Result<Vec<CustomResource>> {
    read_definitions(paths, recursive, |resource, _| resource)
}

/// The same, with their versions as an API server with this minor version treats them.
pub(super) fn read_schemas(
    paths: &[PathBuf],
    recursive: bool,
    minor: u32,
) -> anyhow::Result<(Vec<CustomResource>, Vec<Defined>)> {
    let read = read_definitions(paths, recursive, |resource, text| {
        (resource, Defined::served(&serde_json::from_str(text).unwrap_or_default(), minor))
    })?;
    let (resources, versions): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    Ok((resources, versions.concat()))
}

/// The policies for an upgrade to these definitions. Says which phases of the new schemas they do not know:
/// what reads the status by them does not know them either.
pub(super) fn with_new(policies: PolicySet, versions: Vec<Defined>) -> PolicySet {
    for version in &versions {
        for policy in policies.policies().iter().filter(|policy| version.is_selected(policy)) {
            let unknown = version.unknown_phases(policy);
            if !unknown.is_empty() {
                let (names, convention) = (unknown.join(", "), &policy.convention.name);
                say(format_args!(
                    "note: {} has phases that convention {convention} does not know: {names}",
                    version.name
                ));
            }
        }
    }
    policies.with_defined(Arc::new(versions.into_iter().collect()))
}

/// The same, for callers that also need something of their text.
pub(super) fn read_definitions<T>(
    paths: &[PathBuf],
    recursive: bool,
    of: impl Fn(CustomResource, &str) -> T,
) -> anyhow::Result<Vec<T>> {
    let (files, mistakes) = files::open(paths, recursive, &[]);
    let manifests = Manifests::read(&files);
    manifests.warnings().iter().for_each(say);
    let (resources, more) = custom_resources(&manifests, of);
    let mut templates: HashSet<&str> = HashSet::new();
    let all = mistakes.iter().chain(manifests.mistakes()).chain(&more).filter_map(|mistake| {
        let file = &*mistake.file;
        if !files.iter().any(|known| *known.name == *file && known.text.contains("{{")) {
            return Some(anyhow!("{mistake}"));
        }
        let hint = "a template must be rendered first, for example with `helm template`";
        let mut mistake = mistake.clone();
        (mistake.message, mistake.help) = (hint.to_owned(), None);
        templates.insert(file).then(|| anyhow!("{mistake}"))
    });
    fail_with(all.collect::<Vec<_>>().into_iter())?;
    if resources.is_empty() && !paths.is_empty() {
        bail!("--crds names no CustomResourceDefinition");
    }
    Ok(resources)
}

/// The custom resources that objects define, and the mistakes in their definitions.
fn custom_resources<T>(
    manifests: &Manifests<'_>,
    of: impl Fn(CustomResource, &str) -> T,
) -> (Vec<T>, Vec<Diagnostic>) {
    let (mut resources, mut mistakes) = (Vec::new(), Vec::new());
    let crds = manifests.iter().filter(|of| of.identity.kind == "CustomResourceDefinition");
    for manifest in crds.filter(|of| of.identity.group() == "apiextensions.k8s.io") {
        match CustomResource::read(manifest.text.as_bytes()) {
            Ok(resource) => resources.push(of(resource, manifest.text)),
            Err(error) => {
                let message = format!("not a valid CustomResourceDefinition: {}", reason(&error));
                mistakes.push(manifest.mistake("spec", message));
            }
        }
    }
    (resources, mistakes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statusgate_core::policy::Source;

    fn identity(api_version: &str, kind: &str) -> Identity {
        let (namespace, name) = (String::new(), String::new());
        Identity { api_version: api_version.into(), kind: kind.into(), namespace, name }
    }

    #[test]
    fn a_policy_that_names_a_candidate_wins_over_the_guess() {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let plural = |api_version, kind| {
            Plurals::default().served(&identity(api_version, kind), &policies).plural
        };
        assert_eq!(plural("vshn.appcat.vshn.io/v1", "VSHNRedis"), "vshnredis");
        assert_eq!(plural("vshn.appcat.vshn.io/v1", "XVSHNPostgreSQL"), "xvshnpostgresqls");
        // Another group or version is another resource.
        assert_eq!(plural("example.com/v1", "VSHNRedis"), "vshnredises");
        assert_eq!(plural("vshn.appcat.vshn.io/v9", "VSHNRedis"), "vshnredises");
        let doubt =
            |kind| Plurals::default().doubt(&identity("vshn.appcat.vshn.io/v1", kind), &policies);
        assert_eq!(
            doubt("VSHNRedis").unwrap(),
            "note: VSHNRedis is judged as vshnredis, which a policy names; the kind suggests \
             vshnredises: --crds gives the plural"
        );
        assert_eq!(doubt("XVSHNPostgreSQL"), None);
    }

    #[test]
    fn crds_have_plurals_and_subresources_by_version() {
        let text = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: g.io\n  names: {kind: Mouse, plural: mice}\n  versions:\n  - {name: v1, subresources: {status: {}}}\n  - {name: v2}\n---\n\
            apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nspec: {group: g.io, version: v1, names: {kind: Ox, plural: oxen}, subresources: {status: {}}}\n---\n\
            apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: g.io}\n---\n{apiVersion: v1, kind: Secret}";
        let files = [Source::new("crds.yaml", text)];
        let (resources, mistakes) =
            custom_resources(&Manifests::read(&files), |resource, _| resource);
        let plurals = Plurals::of(resources);
        let policies = PolicySet::compile(&[] as &[Source]).unwrap();
        let (v1, v2) = (identity("g.io/v1", "Mouse"), identity("g.io/v2", "Mouse"));
        let served = |identity: &Identity| plurals.served(identity, &policies);
        assert_eq!(served(&v1), Served { plural: "mice".into(), has_status: Some(true) });
        assert_eq!(served(&v2).has_status, Some(false));
        assert_eq!(served(&identity("g.io/v3", "Mouse")).has_status, None);
        assert_eq!(served(&identity("g.io/v1", "Ox")).has_status, Some(true));
        assert_eq!(mistakes.len(), 1);
        assert!(mistakes[0].to_string().contains("missing field `names`"), "{}", mistakes[0]);
    }
}
