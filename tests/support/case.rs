//! A random write under one of the policies.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use statusgate_core::policy::PolicySet;

use crate::settings::{Kind, Settings};
use crate::statuses::{pairs, specs};
use crate::support::{CROSSPLANE, Outcome, Write};

/// A write under one of the policies.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) settings: &'static Settings,
    pub(crate) user: &'static str,
    pub(crate) deleting: bool,
    pub(crate) write: Write,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    prop_oneof![of_kind(Kind::Conventions, |_| true), of_kind(Kind::AppCat, |_| true)]
}

pub(crate) fn of_kind(
    kind: Kind,
    filter: impl Fn(&Settings) -> bool,
) -> impl Strategy<Value = Case> {
    let settings: Vec<&'static Settings> =
        kind.family().settings.iter().filter(|settings| filter(settings)).collect();
    select(settings).prop_flat_map(|settings| {
        let circumstances = (
            select(vec!["v1", "v1beta1", "v1beta2"]),
            select(vec!["things", "xthings", "machines", "clusters", "machinesets"]),
            select(vec![CROSSPLANE, "operator", "biller"]),
            prop::bool::weighted(0.2),
            specs(),
            pairs(settings.convention()),
        );
        circumstances.prop_map(move |(version, plural, user, deleting, spec, (old, new))| {
            let group = format!("g{}", settings.index);
            let mut write = Write::to(plural).group(&group).version(version).by(user);
            if let Some(spec) = spec {
                write = write.both("/spec", spec);
            }
            if deleting {
                write = write.deleting();
            }
            if !settings.subresource {
                write = write.on_the_main_resource();
            }
            let write = write.stored(old.clone()).sent(new.clone());
            Case { settings, user, deleting, write, old, new }
        })
    })
}

impl Case {
    pub(crate) fn policies(&self) -> &'static PolicySet {
        &self.settings.kind.family().policies
    }

    /// This write with another new status.
    pub(crate) fn with(&self, new: Option<Value>) -> Self {
        Self { write: self.write.clone().sent(new.clone()), new, ..self.clone() }
    }

    pub(crate) fn at(&self, now: &str) -> Self {
        Self { write: self.write.clone().at(now), ..self.clone() }
    }

    pub(crate) fn mutate(&self) -> Outcome {
        self.write.mutate(self.policies())
    }

    pub(crate) fn validate(&self) -> Outcome {
        self.write.validate(self.policies())
    }

    /// This write after the mutating webhook.
    pub(crate) fn mutated(&self) -> Self {
        self.with(self.mutate().object().get("status").cloned())
    }

    /// The denials with and without the mutating webhook.
    pub(crate) fn denials(&self) -> Vec<String> {
        [self.validate().denials(), self.mutated().validate().denials()].concat()
    }

    pub(crate) fn disagreement(&self) -> &str {
        let own = self.settings.crossplane.filter(|_| self.user == CROSSPLANE);
        own.unwrap_or(self.settings.disagreement)
    }
}
