//! `StatusConvention`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ApiVersion, Backfill, ConditionList, Field, Generation, Health, Metadata, Name, Phase, Rule,
    Sentence, ZeroOrMore,
};

/// The kind of this document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConventionKind {
    /// The only one.
    #[default]
    StatusConvention,
}

document! {
    /// The rules about `.status` that one system follows.
    pub struct StatusConvention {
        /// The version of this kind of document.
        api_version: ApiVersion,
        /// The kind of document.
        kind: ConventionKind,
        /// The name of the document.
        metadata: Metadata,
        /// Its content.
        spec: ConventionSpec,
    }

    /// The rules. Null removes what is inherited.
    #[derive(Default)]
    #[schemars(extend("x-merge" = "keys"))]
    pub struct ConventionSpec {
        /// What the convention is, in one line.
        #[schemars(extend("x-own" = true))]
        title?: Sentence,
        /// Where its rules come from.
        #[schemars(extend("x-own" = true))]
        source = String,
        /// Where the system differs from its documentation, one sentence each.
        #[schemars(extend("x-own" = true))]
        differences = ZeroOrMore<String>,
        /// This convention inherits the rules of that one.
        #[schemars(extend("x-own" = true))]
        extends?: String,
        /// Inherited rules and defaults to leave out, by name.
        #[schemars(extend("x-own" = true))]
        without = Vec<String>,
        /// Whether the writers send metadata.resourceVersion.
        resource_version?: ResourceVersion,
        /// How the writers send the phase and the conditions. Default: perhaps in two requests.
        writes?: Writes,
        /// The lists of conditions. Lists that are not named here are not judged.
        #[schemars(extend("x-merge" = "items"))]
        conditions = Vec<ConditionList>,
        /// How observedGeneration relates to metadata.generation. Null: the object has none, so its health does not
        /// depend on one. Default: health compares /status/observedGeneration.
        #[serde(deserialize_with = "super::present")]
        #[schemars(with = "Option<Generation>", extend("x-off" = true))]
        generation?: Option<Generation>,
        /// The phase and its evidence.
        phase?: Phase,
        /// What a status means for its readers.
        health?: Health,
        /// Checks of other status fields.
        #[schemars(extend("x-merge" = "items"))]
        fields = Vec<Field>,
        /// Rules with a predicate.
        #[schemars(extend("x-merge" = "items"))]
        rules = Vec<Rule>,
        /// Defaults for absent fields, and members to remove.
        #[schemars(extend("x-merge" = "defaults"))]
        backfill = Vec<Backfill>,
    }

    /// Whether the writers send `metadata.resourceVersion`. Without it, a writer with a stale cache may
    /// repeat any status that it wrote shortly before.
    #[derive(Default)]
    #[schemars(extend("x-merge" = "keys"))]
    pub struct ResourceVersion {
        /// Every status write has the resourceVersion of the object that the status was computed from, so the API
        /// server rejects a stale one (409 Conflict). Then `backwardsUnchanged` is Deny by default. Default:
        /// false.
        always = bool,
        /// How the writers send it, one sentence with its source.
        source = String,
    }
}

/// How writers send the phase and the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Writes {
    /// In one request, always.
    Together,
}

impl StatusConvention {
    /// A document with this name.
    pub fn new(name: Name, spec: ConventionSpec) -> Self {
        Self {
            api_version: ApiVersion::default(),
            kind: ConventionKind::default(),
            metadata: Metadata { name, namespace: None, labels: None, annotations: None },
            spec,
        }
    }
}
