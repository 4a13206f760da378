//! `statusgate schema`: the documents as JSON Schemas, for editors.

use clap::ValueEnum;

use super::{Outcome, print};
use statusgate_core::documents::DocumentKind;

/// The arguments of `schema`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Editors that speak to yaml-language-server read the first line of a document:\n  \
                        # yaml-language-server: $schema=docs/schemas/statuspolicy.json"
)]
pub(super) struct Args {
    /// The kind of document.
    #[arg(value_enum)]
    kind: Kind,
}

/// A kind of document as an argument.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Kind {
    /// Which resources follow which convention.
    #[value(name = "StatusPolicy", alias = "statuspolicy")]
    Policy,
    /// The rules of .status in one system.
    #[value(name = "StatusConvention", alias = "statusconvention")]
    Convention,
}

impl Kind {
    pub(super) const fn document(self) -> DocumentKind {
        match self {
            Self::Policy => DocumentKind::StatusPolicy,
            Self::Convention => DocumentKind::StatusConvention,
        }
    }
}

/// Prints a schema.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    print(&format!("{:#}\n", args.kind.document().json_schema()))
}
