//! The policies and conventions of a request.

use std::sync::Arc;

use serde::Deserialize;

use super::{Failure, unknown};
use statusgate_core::documents::{PolicySpec, ZeroOrMore};
use statusgate_core::policy::convention::Convention;
use statusgate_core::policy::{Diagnostic, Diagnostics, PolicySet, Source};
use statusgate_core::source::Place;

/// Documents in YAML, and the convention to follow.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Documents {
    /// Policies and conventions. Empty: the example policies.
    #[serde(default)]
    documents: String,
    /// Judges every object by this convention only.
    #[serde(default)]
    convention: Option<String>,
}

/// The policy under which a convention judges every object, as in `check --convention`.
const ALL: &str = "all";

impl Documents {
    pub(super) fn sources(&self) -> [Source; 1] {
        [Source::new("documents", self.documents.as_str())]
    }

    /// The documents alone.
    pub(super) fn given(&self) -> Result<PolicySet, Diagnostics> {
        PolicySet::compile(&self.sources())
    }

    /// The named convention.
    pub(super) fn convention(&self) -> Result<Arc<Convention>, Failure> {
        let name = self.convention.as_deref().unwrap_or_default();
        named(&self.given()?, name)
    }

    /// The policies that judge, as in `check`. Documents without a policy judge every object by their first convention.
    pub(super) fn judging(&self) -> Result<PolicySet, Failure> {
        if self.documents.trim().is_empty() && self.convention.is_none() {
            return Ok(PolicySet::compile(&PolicySet::examples())?);
        }
        let given = self.given()?;
        let only = given.given_names().next().filter(|_| given.policies().is_empty());
        let Some(name) = self.convention.as_deref().or(only) else {
            if !given.policies().is_empty() {
                return Ok(given);
            }
            let place = Place::of(&self.sources()[0], &(0..0));
            let message = "there is neither a convention nor a policy in these documents";
            return Err(vec![Diagnostic::at(place, message)].into());
        };
        named(&given, name)?;
        Ok(given.with_policy(ALL, &PolicySpec::for_everything(name))?)
    }

    /// The policies and the convention of a file with test cases, in which the documents have a file of their own.
    pub(super) fn of_suite(
        &self,
        judging: &PolicySet,
    ) -> (Option<ZeroOrMore<String>>, Option<String>) {
        let is_given = !self.documents.trim().is_empty();
        let policies = is_given.then(|| ["policies.yaml".to_owned()].into_iter().collect());
        let only = judging.policies().iter().find(|policy| *policy.name == *ALL);
        (policies, only.map(|policy| policy.convention.name.clone()))
    }
}

/// The convention of this name.
fn named(policies: &PolicySet, name: &str) -> Result<Arc<Convention>, Failure> {
    let known = policies.conventions();
    let found = known.get(name).map(Arc::clone);
    found.ok_or_else(|| unknown(name, known.keys().map(String::as_str)).into())
}
