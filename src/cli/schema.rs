//! `statusgate schema`: the documents and the dictionary as JSON Schemas.

use clap::ValueEnum;

use super::{Outcome, print};
use statusgate_core::documents::DocumentKind;
use statusgate_pages::dictionary::Dictionary;

/// The arguments of `schema`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Editors that speak to yaml-language-server read the first line of a document:\n  \
                        # yaml-language-server: $schema=docs/schemas/statuspolicy.json"
)]
pub(super) struct Args {
    /// The kind of document, or what `export dictionary` prints.
    #[arg(value_enum)]
    kind: Format,
}

/// What has a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Which resources follow which convention.
    #[value(name = "StatusPolicy", alias = "statuspolicy")]
    Policy,
    /// The rules of .status in one system.
    #[value(name = "StatusConvention", alias = "statusconvention")]
    Convention,
    /// What conditions and phases mean.
    #[value(name = "Dictionary", alias = "dictionary")]
    Dictionary,
}

/// A kind of document as an argument.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum SchemaKind {
    /// Which resources follow which convention.
    #[value(name = "StatusPolicy", alias = "statuspolicy")]
    Policy,
    /// The rules of .status in one system.
    #[value(name = "StatusConvention", alias = "statusconvention")]
    Convention,
}

impl SchemaKind {
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
    let schema = match args.kind {
        Format::Policy => DocumentKind::StatusPolicy.json_schema(),
        Format::Convention => DocumentKind::StatusConvention.json_schema(),
        Format::Dictionary => Dictionary::schema(),
    };
    print(&format!("{schema:#}\n"))
}
