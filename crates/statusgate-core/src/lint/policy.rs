//! What a policy adds to its convention does not contradict it, as far as that can be proven.
//!
//! Lint proves whether a check rejects a phase, because the check reads nothing else. It also shows writes
//! that are rejected only because of what the mutating webhook changes. It proves nothing about rules in
//! CEL, because their states cannot be listed; it tries writes.

use std::cell::Cell;

use indexmap::IndexSet;

use super::backfill::{UNDONE, add_field, patched};
use super::cel::of_rules;
use super::fields::of_fields;
use super::gate::Write;
use super::rules::MAX_WRITES;
use super::{Kind, Remark, Report, one_per_cause, sorted};
use crate::explain::{Question, Scene, Space, Stage, space_of, versions_of, yaml};
use crate::language::Glob;
use crate::model::Resource;
use crate::policy::convention::{Convention, PhaseRules};
use crate::policy::{Action, Policy, PolicySet, overlap};

/// Lints one of these policies in addition to its convention, as if `enforcement` were `Deny`.
pub fn lint_policy(policies: &PolicySet, policy: &Policy) -> Report {
    let mut strict = policy.clone();
    strict.enforcement = Action::Deny;
    // The rules are the same with and without a status subresource.
    strict.resources.iter_mut().for_each(|rule| rule.status_subresource = true);
    let (convention, combinations) = (&policy.convention, Cell::new(0));
    let strict = PolicySet::of(vec![strict]);
    let mut remarks: Vec<Remark> = Vec::new();
    for rule in &policy.resources {
        let sample = |globs: &[Glob]| globs.first().map(Glob::sample);
        let (Some(group), Some(plural)) = (sample(&rule.api_groups), sample(&rule.resources))
        else {
            continue;
        };
        for version in samples(&rule.api_versions, convention) {
            let (group, plural, combinations) = (group.as_str(), plural.as_str(), &combinations);
            let stage = Stage { convention, version: &version };
            let lint = Lint { policy, strict: &strict, stage, group, plural, combinations };
            // Some value passes the checks of the policy and those of its convention.
            remarks.extend(of_fields(&stage, &convention.fields, Some(&policy.fields)));
            remarks.extend(convention.phase.iter().flat_map(|rules| lint.phases(rules)));
            remarks.extend(lint.patches());
        }
    }
    let versions: IndexSet<String> =
        policy.resources.iter().flat_map(|rule| samples(&rule.api_versions, convention)).collect();
    remarks.extend(of_rules(policy, &versions));
    remarks.extend(repairs_nothing(policy, versions.first()));
    let earlier = policies.policies().iter().take_while(|earlier| *earlier.name != *policy.name);
    remarks.extend(earlier.filter_map(|earlier| second_owner(earlier, policy)));
    Report {
        name: policy.name.to_string(),
        remarks: sorted(remarks.into_iter()),
        combinations: combinations.get(),
    }
}

/// A policy that repairs, with a convention that gives Repair nothing to choose.
fn repairs_nothing(policy: &Policy, version: Option<&String>) -> Option<Remark> {
    let rules = policy.convention.phase.as_ref().filter(|rules| !rules.can_repair())?;
    let by_writer = policy.writers.iter().map(|writer| writer.disagreement);
    if !by_writer.chain([policy.disagreement]).any(|action| action == Action::Repair) {
        return None;
    }
    let phase = rules.phases.iter().find(|phase| phase.necessary.is_some())?;
    let stage = Stage { convention: &policy.convention, version: version? };
    let mut object = stage.bare();
    stage.set_phase(&mut object, &phase.name);
    let name = &policy.convention.name;
    let message = format!(
        "convention {name} has no default, no sufficient evidence and no repair steps, so Repair never finds a phase"
    );
    Some(Remark::new(Kind::RepairFindsNothing, Vec::new(), message, Some(yaml(&object))))
}

/// Two policies with globs may both have a phase: the first owns it if both select an object.
fn second_owner(earlier: &Policy, policy: &Policy) -> Option<Remark> {
    let configures = |policy: &Policy| policy.convention.phase.is_some();
    if !configures(earlier) || !configures(policy) || !overlap(earlier, policy) {
        return None;
    }
    let message = format!(
        "policy {} may select the same objects and comes first: then it owns phase and defaults",
        earlier.name
    );
    Some(Remark { kind: Kind::SecondOwner, rules: Vec::new(), message, witness: None })
}

/// A version for each name, and all versions that the convention names for a glob.
fn samples(globs: &[Glob], convention: &Convention) -> IndexSet<String> {
    let known = versions_of(convention);
    let known = known.into_iter().filter(|version| globs.iter().any(|glob| glob.matches(version)));
    globs.iter().map(Glob::sample).chain(known).collect()
}

/// The policy to check, at one of its resources.
struct Lint<'p> {
    policy: &'p Policy,
    /// The policy alone, with `enforcement: Deny`.
    strict: &'p PolicySet,
    stage: Stage<'p>,
    group: &'p str,
    plural: &'p str,
    combinations: &'p Cell<usize>,
}

impl Lint<'_> {
    /// No check of the policy rejects a phase of the convention. A check reads the same in every state.
    fn phases(&self, rules: &PhaseRules) -> Vec<Remark> {
        let checks = self.policy.fields.iter().filter(|field| *field.path == rules.path);
        let checks: Vec<&str> = checks.map(|field| field.check.rule.as_str()).collect();
        if checks.is_empty() {
            return Vec::new();
        }
        let rejected = rules.phases.iter().filter_map(|phase| {
            let questions: Vec<Question<'_>> =
                phase.necessary.iter().map(Question::plain).collect();
            let space = space_of(self.stage.convention, self.stage.version, &questions);
            let name = &phase.name;
            let rejected = self.scenes(&space).into_iter().map(|mut scene| {
                self.stage.set_phase(&mut scene.object, name);
                (self.write(&scene).rejecting(self.strict), scene)
            });
            // The best witness is a state that nothing else rejects.
            let (rules, scene) = rejected.min_by_key(|(rules, _)| rules.len())?;
            let own = rules.into_iter().filter(|rule| checks.contains(&rule.as_str()));
            let own: Vec<String> = own.collect();
            (!own.is_empty()).then(|| (own, name.clone(), scene))
        });
        one_per_cause(rejected, |rules, phases, scene| {
            let message = format!("a check of this policy rejects phase {phases} in every state");
            Remark::new(Kind::PhaseNeverWritten, rules, message, Some(scene.to_yaml()))
        })
    }

    /// The validating webhook does not reject a write because of what the mutating webhook changes.
    fn patches(&self) -> Vec<Remark> {
        let spaces = patched(self.stage.convention, self.stage.version, &self.policy.backfill);
        let mut scenes: Vec<Scene> = spaces.iter().flat_map(|space| self.scenes(space)).collect();
        scenes.iter_mut().for_each(add_field);
        let remarks = scenes.iter().filter_map(|scene| {
            let rules = self.write(scene).undone(self.strict);
            let witness = || Some(scene.to_yaml());
            (!rules.is_empty()).then(|| Remark::new(Kind::PatchRefused, rules, UNDONE, witness()))
        });
        remarks.collect()
    }

    fn scenes(&self, space: &Space) -> Vec<Scene> {
        let size = space.size().unwrap_or(MAX_WRITES);
        self.combinations.set(self.combinations.get() + size.min(MAX_WRITES));
        let mut scenes: Vec<Scene> =
            self.stage.scenes(space, space.scattered(MAX_WRITES)).collect();
        for scene in &mut scenes {
            // Empty if no predicate queries it.
            if scene.plural.is_empty() {
                self.plural.clone_into(&mut scene.plural);
            }
            for object in std::iter::once(&mut scene.object).chain(&mut scene.old) {
                object["apiVersion"] = format!("{}/{}", self.group, self.stage.version).into();
            }
        }
        let selects = |plural: &str| {
            let mut globs = self.policy.resources.iter().flat_map(|rule| &rule.resources);
            globs.any(|glob| glob.matches(plural))
        };
        scenes.retain(|scene| selects(&scene.plural));
        scenes
    }

    fn write<'s>(&'s self, scene: &'s Scene) -> Write<'s> {
        let resource = scene.plural.as_str().into();
        let (group, version) = (self.group.into(), self.stage.version.into());
        Write::of(scene, Resource { group, version, resource })
    }
}
