//! Files with the test cases of policies.

use std::sync::LazyLock;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::{self, Spec};
use super::schema::Schema;
use super::{Action, FixedAction, PolicySpec, ZeroOrMore};
use crate::model::Operation;
use crate::source::tree::{Node, Problems};

/// An expected verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Word {
    /// Allowed without warnings.
    Allow,
    /// Allowed with warnings.
    Warn,
    /// Rejected.
    Deny,
}

document! {
    /// The policies, and the cases.
    pub struct Suite {
        /// Files and folders with policies, relative to this file.
        policies?: ZeroOrMore<String>,
        /// The convention for every object.
        convention?: String,
        /// The time of the cases without their own.
        now?: String,
        /// The cases.
        cases: Vec<Case>,
    }

    /// One write with its expected result.
    pub struct Case {
        /// The name of the case.
        name: String,
        /// Where the write comes from.
        source?: String,
        /// Settings of the policy of `convention`.
        policy?: CasePolicy,
        /// The object that is written.
        object: Value,
        /// The stored object.
        old?: Value,
        /// New values in `object` and `old`, by pointers that begin with these words.
        with = IndexMap<String, Value>,
        /// Pointers to values that are removed, after `with`.
        without = Vec<String>,
        /// The user.
        writer?: CaseWriter,
        /// The operation. Default: the one of a status write.
        operation?: Operation,
        /// The subresource. Default: the one of a status write.
        subresource?: String,
        /// The time of the write.
        now?: String,
        /// Whether the mutating webhook is called first. Default: true.
        mutate?: bool,
        /// The expected result.
        expect: Expectation,
    }

    /// Settings of the policy of a case, as in a StatusPolicy.
    pub struct CasePolicy {
        /// The optional rules and defaults of the convention to enable.
        enable = Vec<String>,
        /// The strongest action.
        #[schemars(with = "Option<FixedAction>")]
        enforcement?: Action,
        /// What happens when the write introduces a disagreement.
        disagreement?: Action,
    }

    /// The user of a write.
    #[derive(Default)]
    pub struct CaseWriter {
        /// The user name.
        user?: String,
        /// The groups.
        groups?: Vec<String>,
    }

    /// The expected result of a write. An absent part is not compared.
    #[derive(Default)]
    #[schemars(extend("minProperties" = 1, "x-empty" = "a case that expects nothing cannot fail"))]
    pub struct Expectation {
        /// The verdict.
        verdict?: Word,
        /// All findings, in any order.
        findings?: Vec<ExpectedFinding>,
        /// All operations of the patch, in order, or `none`.
        patch?: Value,
        /// The whole status after the mutating webhook.
        status?: Value,
    }

    /// An expected finding. An absent part is not compared.
    pub struct ExpectedFinding {
        /// The rule id.
        rule: String,
        /// The field.
        field?: String,
        /// The action.
        action?: Action,
        /// A part of the message.
        message?: String,
    }
}

static SUITE: LazyLock<Schema> = LazyLock::new(Schema::of::<Suite>);

impl Suite {
    /// Checks and reads a document; `None` if it cannot be read.
    pub fn read(document: &mut Node, problems: &Problems) -> Option<Self> {
        check::spec(document, true, problems)
    }
}

impl CasePolicy {
    /// The policy for every object.
    pub fn of(&self, convention: &str) -> PolicySpec {
        let Self { enable, enforcement, disagreement } = self.clone();
        let all = PolicySpec::for_everything(convention);
        PolicySpec { enable, enforcement, disagreement, ..all }
    }
}

impl Spec for Suite {
    const SCHEMA: &'static LazyLock<Schema> = &SUITE;
}
