//! `statusgate export`: what a convention says, for other tools.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{ArgGroup, Subcommand};
use serde_json::json;

use super::action::one_of;
use super::connection::{Connection, block_on};
use super::input::Input;
use super::plurals::read_definitions;
use super::policies::Policies;
use super::{Outcome, fail_with, print, say};
use statusgate_cluster::Definition;
use statusgate_cluster::manifests::resource::CustomResource;
use statusgate_core::model::Resource;
use statusgate_core::policy::PolicySet;
use statusgate_core::policy::convention::Convention;
use statusgate_core::schema::NEWEST;
use statusgate_core::source::Manifests;
use statusgate_pages::dictionary::Dictionary;
use statusgate_pages::readers::{Program, Readable, Reader, Witness, lua};

/// The commands of `export`.
#[derive(Debug, Subcommand)]
pub(super) enum Args {
    /// Print what the status of custom resources means, in the format of a tool that reads it.
    Health(HealthArgs),
    /// Print what the conditions and phases of resources mean, as JSON for portals and dashboards.
    #[command(
        after_help = "For each resource of the policies its convention, and for each convention the polarity, the \
                      meaning and the reasons of its conditions, and the meaning and the health of its phases. \
                      `statusgate schema Dictionary` prints the JSON Schema."
    )]
    Dictionary {
        #[command(flatten)]
        policies: Policies,
    },
}

/// The arguments of `export health`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("kinds").required(true).multiple(true).args(["paths", "files", "crds", "from_cluster"]),
    after_help = "The kinds are those of the objects in FILE, of CustomResourceDefinitions or of a cluster. \
                  Objects have no schemas, which kro needs. Policies name the plurals of their kinds; \
                  otherwise, plurals are guessed.\n\n\
                  Health is that of the first policy with a convention that defines it; kinds without one \
                  are left out and named on stderr. A rule that the format cannot express is left out, too, \
                  with a comment in the output and a line on stderr. Where it may apply, the health is \
                  unknown there.\n\n\
                  Exit code 0: the health of all kinds is printed. 1: something is left out. 2: no kind has \
                  a health, or something cannot be read."
)]
pub(super) struct HealthArgs {
    /// The tool. `argocd`: a ConfigMap with Lua scripts. `flux` and `flux-helmrelease`: `healthCheckExprs` of
    /// a Kustomization or a HelmRelease. `auto-ready`: the input of Crossplane's function-auto-ready. `kro`: `readyWhen` of
    /// resources.
    #[arg(long = "for", value_name = "TOOL", value_parser = one_of(Reader::ALL, Reader::name))]
    reader: Reader,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    policies: Policies,

    /// CustomResourceDefinitions in a file, a folder with its subfolders, or `-` for standard input. May be
    /// repeated.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["paths", "files", "exclude", "from_cluster"])]
    crds: Vec<PathBuf>,

    /// Read the CustomResourceDefinitions of a cluster.
    #[arg(long, conflicts_with = "Input")]
    from_cluster: bool,

    #[command(flatten)]
    connection: Connection,

    /// With argocd: write the files of Argo CD's own folder of scripts here instead, with tests.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Exports.
///
/// # Errors
/// When policies or definitions cannot be read, or no kind has a health.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let args = match args {
        Args::Health(args) => args,
        Args::Dictionary { policies } => {
            let policies = policies.load()?;
            return print(&format!("{:#}\n", json!(Dictionary::of(&policies))));
        }
    };
    if args.out.is_some() && args.reader != Reader::ArgoCd {
        bail!("--out is only for argocd");
    }
    let policies = args.policies.load()?;
    let mut found = args.kinds(&policies)?;
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found.dedup_by(|(one, _), (other, _)| one.name() == other.name());
    let kinds: Vec<Readable> = found.iter().filter_map(|(_, kind)| kind.clone()).collect();
    let others = found.iter().filter(|(_, kind)| kind.is_none());
    let others: Vec<String> = others.map(|(resource, _)| resource.name()).collect();
    if kinds.is_empty() && others.is_empty() {
        bail!("there are no kinds: name objects or definitions that policies select");
    }
    let left_out = format!("no policy with a health selects {}", others.join(", "));
    if kinds.is_empty() {
        bail!(left_out);
    }
    let mut gaps: Vec<String> = kinds
        .iter()
        .flat_map(|kind| {
            args.reader.gaps(kind).into_iter().map(|gap| format!("{}: {gap}", kind.name()))
        })
        .collect();
    match &args.out {
        None => {
            let text = args.reader.export(&kinds);
            if args.reader == Reader::ArgoCd && text.len() > lua::MAX_CONFIG_MAP {
                gaps.push(format!(
                    "the ConfigMap has {} bytes, and an API server accepts {}: export fewer kinds, or use --out",
                    text.len(),
                    lua::MAX_CONFIG_MAP
                ));
            }
            io::stdout().lock().write_all(text.as_bytes())?;
        }
        Some(folder) => {
            for (resource, kind) in &found {
                let Some(kind) = kind else { continue };
                for (path, text) in lua::files(kind, &witnesses(resource, &policies)) {
                    write(&folder.join(path), &text)?;
                }
            }
        }
    }
    gaps.iter().chain((!others.is_empty()).then_some(&left_out)).for_each(say);
    Ok(Outcome::of(!gaps.is_empty()))
}

impl HealthArgs {
    /// The kinds, and their health.
    fn kinds(
        &self,
        policies: &PolicySet,
    ) -> anyhow::Result<Vec<(CustomResource, Option<Readable>)>> {
        let of = |resource, definition: &[u8]| readable(resource, definition, policies);
        if self.from_cluster {
            return block_on(async {
                Ok(self.connection.open().await?.custom_resources(policies, of).await?)
            });
        }
        if !self.crds.is_empty() {
            return read_definitions(&self.crds, true, |resource, text| {
                of(resource, text.as_bytes())
            });
        }
        let objects = self.objects(policies)?;
        Ok(objects.into_iter().map(|resource| of(resource, &[])).collect())
    }

    /// The kinds of objects, each with the versions of its objects.
    fn objects(&self, policies: &PolicySet) -> anyhow::Result<Vec<CustomResource>> {
        self.input.check_stdin(&[])?;
        let (files, unread) = self.input.open(None)?;
        let manifests = Manifests::read(&files);
        manifests.warnings().iter().for_each(say);
        let mistakes = unread.iter().chain(manifests.mistakes());
        fail_with(mistakes.map(|mistake| anyhow!("{mistake}")))?;
        let mut kinds: Vec<CustomResource> = Vec::new();
        for manifest in manifests.iter() {
            let new = CustomResource::of_object(manifest.identity, policies);
            let mut of_group = kinds.iter_mut().filter(|known| known.group == new.group);
            let Some(known) = of_group.find(|known| known.kind == new.kind) else {
                kinds.push(new);
                continue;
            };
            for version in new.versions {
                if !known.versions.contains(&version) {
                    known.versions.push(version);
                }
            }
        }
        Ok(kinds)
    }
}

/// A kind and its health, with the schemas in its definition.
fn readable(
    resource: CustomResource,
    definition: &[u8],
    policies: &PolicySet,
) -> (CustomResource, Option<Readable>) {
    let mut versions: Vec<(String, Program)> = programs(&resource, policies)
        .map(|(resource, _, program)| (resource.version.into(), program))
        .collect();
    for (version, program) in &mut versions {
        if let Definition::Custom(defined) = Definition::read(definition, version, NEWEST) {
            program.schema = defined.schema;
        }
    }
    if versions.is_empty() {
        return (resource, None);
    }
    let readable = Readable {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        // Objects do not say which other versions there are.
        complete: !definition.is_empty() && versions.len() == resource.versions.len(),
        versions,
    };
    (resource, Some(readable))
}

/// An object for each clause of the programs of a kind.
fn witnesses(kind: &CustomResource, policies: &PolicySet) -> Vec<Witness> {
    let mut known: Vec<Program> = Vec::new();
    let mut witnesses = Vec::new();
    for (resource, convention, program) in programs(kind, policies) {
        let is_known = known.iter().any(|other| {
            other.convention == program.convention && other.clauses == program.clauses
        });
        if !is_known {
            witnesses.extend(program.witnesses(convention, &resource, &kind.kind));
            known.push(program);
        }
    }
    witnesses
}

/// The program of each version with the convention of the first policy that defines health.
fn programs<'p>(
    kind: &'p CustomResource,
    policies: &'p PolicySet,
) -> impl Iterator<Item = (Resource<'p>, &'p Convention, Program)> {
    kind.versions.iter().filter_map(move |version| {
        let subject = kind.subject(version);
        policies.select(&subject).find_map(|(_, policy)| {
            let program = Program::of(&policy.convention, &subject.resource)?;
            Some((subject.resource.clone(), &*policy.convention, program))
        })
    })
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let error = || format!("cannot write {}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).with_context(error)?;
    fs::write(path, text).with_context(error)
}
