//! `-o table` and `-o json`: the formats of most commands.

use clap::ValueEnum;

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    Table,
    Json,
}
