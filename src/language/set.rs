//! `set`: a field that holds something. Short for `{field: …, set: true}`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::{AnyPointer, Word};

/// A field that is present and not null, "", [] or {}.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Set {
    /// The field.
    pub set: AnyPointer,
}

impl Word for Set {
    const KEYS: &'static [&'static str] = &["set"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, _: &mut Check<'_>) {}
}
