//! `gates`: the conditions that a list in the spec asks for, such as `spec.readinessGates`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::{AnyPointer, Word};

/// Every condition that a list in the spec asks for is good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gates {
    /// A list of {conditionType, polarity}. Every condition that it asks for is good.
    pub gates: AnyPointer,
}

impl Word for Gates {
    const KEYS: &'static [&'static str] = &["gates"];
    const TESTS: &'static [&'static str] = &[];
    const OF_ELEMENT: &'static [&'static str] = &[];

    fn check(&self, _: &mut Check<'_>) {}
}
