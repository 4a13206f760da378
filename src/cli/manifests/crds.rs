//! `statusgate manifests crds`.

use std::io::{self, Write};

use clap::ValueEnum;

use crate::cli::Outcome;
use crate::manifests::crds;
use statusgate_core::documents::DocumentKind;

/// The arguments of `manifests crds`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only the definition of this kind.
    #[arg(value_enum)]
    kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    #[value(name = "StatusPolicy", alias = "statuspolicy")]
    Policy,
    #[value(name = "StatusConvention", alias = "statusconvention")]
    Convention,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let definitions = match args.kind {
        None => crds::crds().to_vec(),
        Some(Kind::Policy) => vec![crds::crd(DocumentKind::StatusPolicy)],
        Some(Kind::Convention) => vec![crds::crd(DocumentKind::StatusConvention)],
    };
    let texts: Result<Vec<String>, _> = definitions.iter().map(serde_saphyr::to_string).collect();
    io::stdout().lock().write_all(texts?.join("---\n").as_bytes())?;
    Ok(Outcome::Clean)
}
