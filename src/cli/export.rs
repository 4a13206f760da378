//! `statusgate export`: what a convention says, for other tools.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::connection::{Connection, block_on};
use super::plurals::read_definitions;
use super::policies::Policies;
use super::{Outcome, say};
use crate::cluster::Definition;
use crate::manifests::resource::CustomResource;
use statusgate_core::policy::PolicySet;
use statusgate_core::readers::{Readable, Reader, lua};

/// The arguments of `export`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Print what the status of custom resources means, in the format of a tool that reads it.
    Health(HealthArgs),
}

/// The arguments of `export health`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Health is that of the first policy with a convention that defines it; kinds without one \
                  are left out. A rule that the format cannot express is left out, too, with a comment in \
                  the output and a line on stderr.\n\n\
                  Exit code 0: the health of all kinds is printed. 1: with --strict, a rule is left out. 2: \
                  no kind has a health, or something cannot be read."
)]
struct HealthArgs {
    /// The tool. `argocd`: a ConfigMap with a Lua script for each kind. `flux`: `healthCheckExprs` of a
    /// Kustomization. `auto-ready`: the input of Crossplane's function-auto-ready. `kro`: `readyWhen` of
    /// resources. `wait`: commands of kubectl.
    #[arg(long = "for", value_name = "TOOL",
          value_parser = PossibleValuesParser::new(Reader::ALL.map(Reader::name)).try_map(|name| reader(&name)))]
    reader: Reader,

    #[command(flatten)]
    policies: Policies,

    /// The kinds: CustomResourceDefinitions in a file, a folder, or `-` for standard input. May be repeated.
    #[arg(long, value_name = "PATH", required_unless_present = "from_cluster")]
    crds: Vec<PathBuf>,

    /// Read the definitions from a cluster.
    #[arg(long, conflicts_with = "crds")]
    from_cluster: bool,

    #[command(flatten)]
    connection: Connection,

    /// With argocd: write the files of Argo CD's own folder of scripts here instead, with tests.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Exit with code 1 if a rule is left out.
    #[arg(long)]
    strict: bool,
}

/// Exports.
///
/// # Errors
/// When policies or definitions cannot be read, or no kind has a health.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let Which::Health(args) = &args.which;
    if args.out.is_some() && args.reader != Reader::ArgoCd {
        bail!("--out is only for argocd");
    }
    let policies = args.policies.load()?;
    let mut definitions = if args.from_cluster {
        block_on(args.served(&policies))?
    } else {
        read_definitions(&args.crds, true, |resource, text| (resource, text.to_owned()))?
    };
    definitions.sort();
    definitions.dedup_by(|(one, _), (other, _)| one.name() == other.name());
    let kinds: Vec<Readable> = definitions
        .iter()
        .filter_map(|(resource, definition)| readable(resource, definition, &policies))
        .collect();
    if kinds.is_empty() {
        bail!("no policy with a health selects one of these kinds");
    }
    match &args.out {
        None => io::stdout().lock().write_all(args.reader.export(&kinds).as_bytes())?,
        Some(folder) => {
            for (resource, _) in &definitions {
                let Some(kind) = resource.readable(&policies) else { continue };
                for (path, text) in lua::files(&kind, &resource.witnesses(&policies)) {
                    write(&folder.join(path), &text)?;
                }
            }
        }
    }
    let gaps: Vec<String> = kinds
        .iter()
        .flat_map(|kind| {
            args.reader.gaps(kind).into_iter().map(|gap| format!("{}: {gap}", kind.name()))
        })
        .collect();
    gaps.iter().for_each(say);
    Ok(Outcome::of(args.strict && !gaps.is_empty()))
}

impl HealthArgs {
    async fn served(&self, policies: &PolicySet) -> anyhow::Result<Vec<(CustomResource, String)>> {
        let cluster = self.connection.open().await?;
        let resources = cluster.custom_resources(policies).await?.into_iter();
        Ok(resources.map(|resource| (resource, String::new())).collect())
    }
}

/// The health of a kind, with the schemas in its definition.
fn readable(resource: &CustomResource, definition: &str, policies: &PolicySet) -> Option<Readable> {
    let mut kind = resource.readable(policies)?;
    for (version, program) in &mut kind.versions {
        let definition = Definition::read(definition.as_bytes(), version);
        if let Definition::Custom { schema, .. } = definition {
            program.schema = schema;
        }
    }
    Some(kind)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let error = || format!("cannot write {}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).with_context(error)?;
    fs::write(path, text).with_context(error)
}

fn reader(name: &str) -> anyhow::Result<Reader> {
    let found = Reader::ALL.into_iter().find(|reader| reader.name() == name);
    found.ok_or_else(|| anyhow!("unknown tool"))
}
