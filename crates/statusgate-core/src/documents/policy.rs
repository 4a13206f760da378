//! `StatusPolicy`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Action, ApiVersion, Backfill, Disposition, Field, FixedAction, Metadata, Name, Sentence,
    StatusOrBelow, StatusPointer, Trigger,
};
use crate::language::Glob;

/// The kind of this document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PolicyKind {
    /// The only one.
    #[default]
    StatusPolicy,
}

document! {
    /// Which resources follow which convention, how strictly, and with which local additions.
    pub struct StatusPolicy {
        /// The version of this kind of document.
        api_version: ApiVersion,
        /// The kind of document.
        kind: PolicyKind,
        /// The name of the document.
        metadata: Metadata,
        /// Its content.
        spec: PolicySpec,
    }

    /// What the policy configures.
    #[derive(Default)]
    pub struct PolicySpec {
        /// The name of a convention: a built-in one, or a StatusConvention.
        convention: String,
        /// The optional rules and defaults of the convention to enable, by name.
        enable = Vec<String>,
        /// The resources that follow the convention.
        #[schemars(length(min = 1), extend("x-empty" = "a policy without resources would judge nothing"))]
        resources: Vec<Resources>,
        /// The strongest action that any rule of this policy may have. Default: Deny.
        #[schemars(with = "Option<FixedAction>")]
        enforcement?: Action,
        /// What happens when a write introduces a disagreement. Default: Deny.
        disagreement?: Action,
        /// Writers for whom `disagreement` has another value. The first entry that names a writer counts.
        writers = Vec<Writer>,
        /// Defaults in addition to those of the convention.
        backfill = Vec<Backfill>,
        /// Checks of status fields.
        fields = Vec<Field>,
        /// Who may set a field or a condition. Changes by other users are rejected.
        owners = Vec<Owner>,
        /// Fields that are restored when a writer who is not an owner removes them. The path of a list of conditions
        /// restores those that `owners` gives to others.
        preserve = Vec<StatusPointer>,
        /// Rules in CEL, for what the convention cannot express.
        rules = Vec<CelRule>,
    }

    /// Resources, in the terms of webhook rules. `*` stands for any run of characters.
    pub struct Resources {
        /// API groups, for example `*.services.k8s.aws`.
        #[schemars(length(min = 1), extend("x-empty" = "\"apiGroups\" is empty: nothing would match"))]
        api_groups: Vec<Glob>,
        /// API versions.
        #[schemars(length(min = 1), extend("x-empty" = "\"apiVersions\" is empty: nothing would match"))]
        api_versions: Vec<Glob>,
        /// Plural names, without a subresource.
        #[schemars(length(min = 1), extend("x-empty" = "\"resources\" is empty: nothing would match"))]
        resources: Vec<Glob>,
        /// Whether the resources have the status subresource. Default: true.
        #[serde(default = "super::yes", skip_serializing_if = "super::is_yes")]
        status_subresource: bool,
    }

    /// Writers by name or group.
    #[derive(Default)]
    pub struct Writers {
        /// User names. `*` stands for any run of characters.
        users = Vec<Glob>,
        /// Group names. `*` stands for any run of characters.
        groups = Vec<Glob>,
    }

    /// Writers, and what happens when they introduce a disagreement.
    pub struct Writer {
        /// Who.
        #[serde(flatten)]
        writers: Writers,
        /// What happens when one of them introduces a disagreement.
        disagreement: Action,
    }

    /// A field or some conditions, and who may set them.
    pub struct Owner {
        /// The field, with everything inside it.
        path?: StatusPointer,
        /// Or types of conditions, in the list that predicates read.
        #[schemars(length(min = 1), extend("x-empty" = "an empty list: nothing would be owned"))]
        conditions = Vec<String>,
        /// Its owners.
        #[serde(flatten)]
        writers: Writers,
    }

    /// A rule in CEL.
    pub struct CelRule {
        /// The second half of the rule id.
        name: Name,
        /// What must hold, in CEL, over `self`, `oldSelf` and `writer`.
        expression: String,
        /// The sentence in the response.
        message: Sentence,
        /// What happens on a violation. Default: Deny.
        #[schemars(with = "Option<FixedAction>")]
        action?: Disposition,
        /// The field that the response names. Default: /status.
        path?: StatusOrBelow,
        /// Which writes the rule judges. Default: introduced.
        trigger?: Trigger,
        /// Where the rule comes from.
        source = String,
    }
}

impl PolicySpec {
    /// All resources follow a convention.
    pub fn for_everything(convention: &str) -> Self {
        let all = || vec![Glob::from("*")];
        let resources = Resources {
            api_groups: all(),
            api_versions: all(),
            resources: all(),
            status_subresource: true,
        };
        Self { convention: convention.to_owned(), resources: vec![resources], ..Self::default() }
    }
}
