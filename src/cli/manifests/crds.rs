//! `statusgate manifests crds`.

use std::io::{self, Write};

use crate::cli::Outcome;
use crate::cli::schema::Kind;
use crate::manifests::crds;

/// The arguments of `manifests crds`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only the definition of this kind.
    #[arg(value_enum)]
    kind: Option<Kind>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let definitions = match args.kind {
        None => crds::crds().to_vec(),
        Some(kind) => vec![crds::crd(kind.document())],
    };
    let texts: Result<Vec<String>, _> = definitions.iter().map(serde_saphyr::to_string).collect();
    io::stdout().lock().write_all(texts?.join("---\n").as_bytes())?;
    Ok(Outcome::Clean)
}
