//! `statusgate draft`: a first convention from recorded writes.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};

use super::input::Input;
use super::plurals::{Plurals, read_schemas};
use super::report::plural;
use super::{Outcome, explain, print, say};
use statusgate_core::policy::PolicySet;
use statusgate_core::schema::{NEWEST, Schema};
use statusgate_core::source::{Manifests, one_line};
use statusgate_draft::{Against, Draft, Recording};
use statusgate_server::files;

/// The arguments of `draft`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What was recorded becomes a rule, also if it is a bug of the controller: compare each rule with its code. \
                  Exit code 0: at least one draft. 2: some documents could not be read, or no write has a status."
)]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,

    /// Each object is the stored object of the next one with the same group, kind, namespace, name and
    /// uid. A watch and an audit log are sequences without this flag.
    #[arg(long)]
    sequence: bool,

    /// CustomResourceDefinitions, for the plurals of kinds, enums, required fields and the keys of lists. May be repeated.
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,

    /// Compare the recording with this convention: print the rules that it lacks, the values that it does not know and the
    /// rules that never fired.
    #[arg(long, value_name = "NAME")]
    against: Option<String>,

    /// With --against: where the convention is, if it is not built in. May be repeated.
    #[arg(long, value_name = "PATH", requires = "against")]
    policies: Vec<PathBuf>,

    /// Write a file for each resource, DIR/PLURAL.GROUP.yaml, which --policies DIR reads. An existing file is an error.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints or writes drafts.
///
/// # Errors
/// When a document cannot be read, nothing was recorded, or a file cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    args.input.check_stdin(&[&args.crds])?;
    let sources = files::load_policies(&args.policies)?;
    if let Some(name) = &args.against {
        let known = PolicySet::compile(&sources)?;
        if !known.conventions().contains_key(name) {
            bail!("{}", explain::unknown(name, known.conventions().keys().map(String::as_str)));
        }
    }
    let (resources, defined) = read_schemas(&args.crds, args.input.recursive, NEWEST)?;
    let plurals = Plurals::of(resources);
    let (files, unread) = args.input.open(None)?;
    let mut manifests = Manifests::read(&files);
    manifests.take_others();
    let mistakes: Vec<_> = unread.iter().chain(manifests.mistakes()).collect();
    mistakes.iter().for_each(say);
    let examples = PolicySet::compile(&[])?;
    let recordings =
        Recording::all(&manifests, args.sequence, |identity| plurals.served(identity, &examples));
    if recordings.is_empty() {
        bail!("no write has a status: nothing to draft from");
    }
    if recordings.len() > 1 && args.out.is_none() {
        let names: Vec<String> = recordings.iter().map(Recording::name).collect();
        bail!(
            "{} resources were recorded; write a file for each with --out DIR: {}",
            names.len(),
            names.join(", ")
        );
    }
    let against =
        args.against.as_deref().map(|convention| Against { convention, sources: &sources });
    let mut drafts = Vec::with_capacity(recordings.len());
    for recording in &recordings {
        let Recording { group, plural, versions, .. } = recording;
        let mut known = defined.iter().filter(|of| of.group == *group && of.plural == *plural);
        let of_version = known.clone().find(|of| versions.last() == Some(&of.version));
        let schema =
            of_version.or_else(|| known.next()).map_or_else(Schema::free, |of| of.schema.clone());
        drafts.push((recording.name(), statusgate_draft::draft(recording, &schema, against)?));
    }
    let outcome = match &args.out {
        Some(folder) => write(folder, &drafts)?,
        None => print(&drafts.iter().map(|(_, draft)| draft.to_yaml()).collect::<String>())?,
    };
    if !mistakes.is_empty() {
        bail!("{} could not be used", plural(mistakes.len(), "document"));
    }
    Ok(outcome)
}

fn write(folder: &PathBuf, drafts: &[(String, Draft)]) -> anyhow::Result<Outcome> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, draft) in drafts {
        // The name comes from the recording.
        if name.contains(['/', '\\']) {
            bail!("\"{}\" is not the name of a resource", one_line(name));
        }
        let path = folder.join(format!("{name}.yaml"));
        let mut file = fs::File::create_new(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        std::io::Write::write_all(&mut file, draft.to_yaml().as_bytes())?;
        say(format_args!("{}: {}", path.display(), plural(draft.questions.len(), "question")));
    }
    Ok(Outcome::Clean)
}
