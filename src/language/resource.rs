//! `resource`: the plural that the request addresses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::{Glob, OneOrMany, Word};

/// The plural that the request addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceName {
    /// The plural matches one of these; `*` stands for any run of characters.
    pub resource: OneOrMany<Glob>,
}

impl Word for ResourceName {
    const KEYS: &'static [&'static str] = &["resource"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, _: &mut Check<'_>) {}
}
