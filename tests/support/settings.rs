//! The policies of the properties.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::sync::LazyLock;

use statusgate_core::policy::convention::Convention;
use statusgate_core::policy::{Disposition, PolicySet};

use crate::support::{built_in, compile, policy};

/// Policies that are compiled together. Each selects another API group, so one set serves all writes:
/// in a debug build it takes longer to compile a convention than to judge hundreds of statuses.
pub(crate) struct Family {
    pub(crate) settings: Vec<Settings>,
    pub(crate) policies: PolicySet,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Every built-in convention.
    Conventions,
    /// AppCat with every combination of settings and additions.
    AppCat,
    /// Two policies for one resource.
    Pairs,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    /// The place in the family. The API group is `gINDEX`.
    pub(crate) index: usize,
    pub(crate) convention: String,
    pub(crate) disagreement: &'static str,
    pub(crate) enforcement: &'static str,
    /// The action for Crossplane's disagreements.
    pub(crate) crossplane: Option<&'static str>,
    pub(crate) additions: &'static str,
    /// Whether the policy enables every optional rule and default.
    pub(crate) everything: bool,
    /// Whether `everything` has `steady-times`, too, which calls the mutating webhook for every change.
    pub(crate) steady: bool,
    pub(crate) subresource: bool,
    /// The convention of a second policy for the same resources.
    pub(crate) second: Option<String>,
}

impl Kind {
    pub(crate) fn family(self) -> &'static Family {
        static CONVENTIONS: LazyLock<Family> = LazyLock::new(|| Family::of(conventions()));
        static APPCAT: LazyLock<Family> = LazyLock::new(|| Family::of(appcat()));
        static PAIRS: LazyLock<Family> = LazyLock::new(|| Family::of(two_policies()));
        match self {
            Self::Conventions => &CONVENTIONS,
            Self::AppCat => &APPCAT,
            Self::Pairs => &PAIRS,
        }
    }
}

impl Family {
    fn of(settings: Vec<Settings>) -> Self {
        let numbered = settings.into_iter().enumerate();
        let settings: Vec<Settings> =
            numbered.map(|(index, settings)| Settings { index, ..settings }).collect();
        let documents: Vec<String> = settings.iter().flat_map(Settings::documents).collect();
        Self { policies: compile(&documents), settings }
    }
}

fn settings(kind: Kind, convention: &str) -> Settings {
    Settings {
        kind,
        index: 0,
        convention: convention.to_owned(),
        disagreement: "Deny",
        enforcement: "Deny",
        crossplane: None,
        additions: "",
        everything: false,
        steady: false,
        subresource: true,
        second: None,
    }
}

fn conventions() -> Vec<Settings> {
    let mut all = Vec::new();
    for convention in built_in().conventions().keys() {
        for disagreement in ["Deny", "Repair", "Warn"] {
            for (everything, steady) in [(false, false), (true, false), (true, true)] {
                for subresource in [true, false] {
                    let settings = settings(Kind::Conventions, convention);
                    all.push(Settings {
                        disagreement,
                        everything,
                        steady,
                        subresource,
                        ..settings
                    });
                }
            }
        }
    }
    all
}

fn appcat() -> Vec<Settings> {
    let mut all = Vec::new();
    for disagreement in ["Deny", "Repair", "Warn", "Audit"] {
        for enforcement in ["Deny", "Warn", "Audit"] {
            for crossplane in [None, Some("Repair"), Some("Deny")] {
                for additions in ADDITIONS {
                    for subresource in [true, false] {
                        all.push(Settings {
                            disagreement,
                            enforcement,
                            crossplane,
                            additions,
                            subresource,
                            ..settings(Kind::AppCat, "appcat")
                        });
                    }
                }
            }
        }
    }
    all
}

fn two_policies() -> Vec<Settings> {
    let mut all = Vec::new();
    for (convention, _) in built_in().conventions().iter().filter(|(_, c)| c.phase.is_some()) {
        for second in built_in().conventions().keys() {
            all.push(Settings {
                disagreement: "Repair",
                everything: true,
                second: Some(second.clone()),
                ..settings(Kind::Pairs, convention)
            });
        }
    }
    all
}

/// The part that restores the times of a status.
const STEADY: &str = "steady-times";

const ADDITIONS: [&str; 10] = [
    "",
    "backfill: [{path: /status/billing, value: null, nullable: true}]",
    "backfill: [{path: /status/billing, value: {unit: GiB}}], preserve: [/status/billing]",
    "preserve: [/status/billing], owners: [{path: /status/billing, users: [biller]}]",
    "preserve: [/status/billing/unit, /status/lastTransitionTime], owners: [{path: /status/billing/unit, users: [biller]}]",
    "backfill: [{path: /status/a~1b/m~0n, copyOf: [/status/instanceNamespace, /status/reason]}], fields: [{path: /status/billing/unit, enum: [GiB, minutes]}]",
    // Defaults that remove members, and that read what others set, restore and own.
    "backfill: [
        {name: a, list: /status/conditions, member: observedGeneration, absentWhere: {any: [{member: status, isNot: 'True'}, {member: severity, set: true}]}},
        {name: b, list: /status/conditions, member: message, absentWhere: {any: [{member: observedGeneration, is: 1}, {phase: Failed}]}, when: {condition: Synced, present: true}},
        {name: c, list: /status/conditions, member: severity, value: Info, when: {phase: Unknown}}],
      preserve: [/status/conditions], owners: [{path: /status/conditions, users: [biller]}]",
    "backfill: [{list: /status/conditions, uniqueElements: true}], preserve: [/status/conditions],
      owners: [{conditions: [Ready], users: [biller]}, {conditions: [Synced, PodReady], users: [operator]}]",
    // Rules that would deny the default phase if they could, and rules that often cannot be evaluated.
    r#"backfill: [{path: /status/billing, value: {unit: GiB}}], rules: [
        {name: not-unknown, message: m, expression: "self.status.phase != 'Unknown'"},
        {name: always-ready, message: m, trigger: state, expression: "self.status.phase == 'Ready'"},
        {name: billed-late, message: m, expression: "!has(self.status.billing)"},
        {name: never-deleting, message: m, expression: "self.status.phase != 'Deleting'"}]"#,
    r#"rules: [
        {name: never, message: m, trigger: {moved: /status/phase}, expression: "false"},
        {name: both, message: m, trigger: {coWritten: [/status/phase, condition Ready]}, expression: "1 / 0 == 1"},
        {name: moves, message: m, expression: "oldSelf.status.phase == self.status.phase"},
        {name: conditions, message: m, expression: "self.status.conditions.all(c, c.status == 'True' || c.reason.matches('^[A-Z]'))"},
        {name: pairs, message: m, expression: "self.status.conditions.all(a, self.status.conditions.exists_one(b, a.type == b.type))"},
        {name: unit, message: m, action: Warn, expression: "self.status.billing.unit.size() + self.status.observedGeneration > 2"},
        {name: whole, message: m, action: Audit, expression: "self == oldSelf || writer.user == 'operator' && self.status.map(k, k) != []"}]"#,
];

impl Settings {
    pub(crate) fn documents(&self) -> Vec<String> {
        let Self { index, disagreement, enforcement, additions, subresource, .. } = self;
        let writers = self.crossplane.map_or_else(String::new, |action| {
            format!("{{users: ['system:serviceaccount:*:crossplane'], disagreement: {action}}}")
        });
        let document = |name: String, convention: &String| {
            let optional = built_in().conventions()[convention].optional_parts();
            let is_enabled = |name: &&str| self.everything && (self.steady || *name != STEADY);
            let enabled: Vec<&str> = optional.filter(is_enabled).collect();
            policy(
                &name,
                format!(
                    "convention: {convention}, disagreement: {disagreement}, enforcement: {enforcement}, \
                     writers: [{writers}], enable: [{}], resources: [{{apiGroups: [g{index}], \
                     apiVersions: ['*'], resources: ['*'], statusSubresource: {subresource}}}], {additions}",
                    enabled.join(", ")
                ),
            )
        };
        let first = document(format!("p{index}"), &self.convention);
        let second =
            self.second.as_ref().map(|second| document(format!("p{index}-second"), second));
        std::iter::once(first).chain(second).collect()
    }

    pub(crate) fn convention(&self) -> &'static Convention {
        &built_in().conventions()[&self.convention]
    }

    /// The same settings without `steady-times`.
    pub(crate) fn without_steady(&self) -> &'static Self {
        let same = |other: &&Self| {
            let Self { convention, disagreement, everything, subresource, .. } = other;
            (convention, *disagreement) == (&self.convention, self.disagreement)
                && (*everything, *subresource) == (self.everything, self.subresource)
                && !other.steady
        };
        self.kind.family().settings.iter().find(same).unwrap()
    }

    /// The rules that compare the phase with its evidence.
    pub(crate) fn phase_rules(&self) -> Vec<&'static str> {
        let phases = self.convention().phase.iter().flat_map(|rules| &rules.phases);
        phases.filter(|phase| phase.necessary.is_some()).map(|phase| phase.rule.as_str()).collect()
    }

    /// All rules about parts of a status that disagree.
    pub(crate) fn agreement_rules(&self) -> Vec<&'static str> {
        let rules = self.convention().rules.iter().map(|rule| (rule.rule.as_str(), rule.action));
        let lists = self.convention().conditions.iter().flat_map(|list| &list.each);
        let rules = rules.chain(lists.map(|rule| (rule.rule.as_str(), rule.action)));
        let rules = rules.filter(|(_, action)| *action == Disposition::Disagreement);
        self.phase_rules().into_iter().chain(rules.map(|(id, _)| id)).collect()
    }
}
