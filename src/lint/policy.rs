//! What a policy adds to its convention does not contradict it, as far as that can be proven.
//!
//! Lint proves whether a check rejects a phase, because the check reads nothing else. It also shows writes
//! that are rejected only because of what the mutating webhook changes. It proves nothing about CEL rules:
//! their states cannot be listed.

use super::backfill::{UNDONE, patched, write};
use super::fields::of_fields;
use super::gate::{refusing, undone};
use super::rules::{MAX_WRITES, plain, stored};
use super::{Kind, Remark, Report};
use crate::explain::{Question, Scene, Space, Stage, space_of, versions_of};
use crate::language::Glob;
use crate::model::Resource;
use crate::policy::convention::{Convention, PhaseRules};
use crate::policy::{Action, Diagnostics, Policy, PolicySet, Resources, Source, overlap};

/// Lints one policy from `sources` in addition to its convention, as if `enforcement` were `Deny`.
/// Returns `None` if there is no policy of this name.
///
/// # Errors
/// All errors in the documents.
pub fn lint_policy(sources: &[Source], name: &str) -> Result<Option<Report>, Diagnostics> {
    let all = PolicySet::compile(sources)?;
    let Some(selected) = all.policies().iter().find(|policy| *policy.name == *name) else {
        return Ok(None);
    };
    let mut policy = selected.clone();
    policy.enforcement = Action::Deny;
    // The rules are the same with and without a status subresource.
    policy.resources.iter_mut().for_each(|rule| rule.status_subresource = true);
    let convention = policy.convention.clone();
    let mut report = Report { name: name.to_owned(), remarks: Vec::new(), combinations: 0 };
    let mut at = |rule: &Resources, look: &mut dyn FnMut(&mut Lint<'_, '_>)| {
        let sample = |globs: &[Glob]| globs.first().map(Glob::sample);
        let (Some(group), Some(plural)) = (sample(&rule.api_groups), sample(&rule.resources))
        else {
            return;
        };
        for version in samples(&rule.api_versions, &convention) {
            let stage = Stage { convention: &convention, version: &version };
            let policies = PolicySet::of(vec![policy.clone()]);
            let (group, plural, report) = (group.clone(), plural.clone(), &mut report);
            look(&mut Lint { policy: &policy, policies, stage, group, plural, report });
        }
    };
    for rule in &policy.resources {
        at(rule, &mut |lint| {
            lint.checks();
            if let Some(rules) = &convention.phase {
                lint.phases(rules);
            }
            lint.patches();
        });
    }
    let earlier = all.policies().iter().take_while(|earlier| *earlier.name != *name);
    report.remarks.extend(earlier.filter_map(|earlier| second_owner(earlier, selected)));
    report.remarks.sort_by_key(|remark| remark.kind);
    Ok(Some(report))
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
fn samples(globs: &[Glob], convention: &Convention) -> Vec<String> {
    let known = versions_of(convention);
    let known = known.into_iter().filter(|version| globs.iter().any(|glob| glob.matches(version)));
    let mut versions: Vec<String> = globs.iter().map(Glob::sample).chain(known).collect();
    let mut said: Vec<String> = Vec::new();
    versions.retain(|version| {
        let new = !said.contains(version);
        said.push(version.clone());
        new
    });
    versions
}

/// The policy to check, at one of its resources.
pub(super) struct Lint<'p, 'r> {
    pub(super) policy: &'p Policy,
    policies: PolicySet,
    pub(super) stage: Stage<'p>,
    group: String,
    plural: String,
    report: &'r mut Report,
}

impl Lint<'_, '_> {
    /// Some value passes the checks of the policy and those of its convention.
    fn checks(&mut self) {
        let fields = &self.stage.convention.fields;
        for remark in of_fields(&self.stage, fields, Some(&self.policy.fields)) {
            if !self.report.remarks.contains(&remark) {
                self.report.remarks.push(remark);
            }
        }
    }

    /// No check of the policy rejects a phase of the convention. A check reads the same in every state.
    fn phases(&mut self, rules: &PhaseRules) {
        let checks = self.policy.fields.iter().filter(|field| field.path == rules.path);
        let checks: Vec<&str> = checks.map(|field| field.check.rule.as_str()).collect();
        if checks.is_empty() {
            return;
        }
        for phase in &rules.phases {
            let questions: Vec<Question<'_>> = phase.necessary.iter().map(plain).collect();
            let space = space_of(self.stage.convention, self.stage.version, &questions);
            let mut refused: Option<(Scene, Vec<String>)> = None;
            let name = &phase.name;
            for mut scene in self.scenes(&space) {
                self.stage.set_phase(&mut scene.object, name);
                let rules = refusing(
                    &self.policies,
                    &self.resource(&scene),
                    &stored(&scene),
                    &scene.object,
                );
                // The best witness is a state that nothing else rejects.
                if refused.as_ref().is_none_or(|(_, least)| rules.len() < least.len()) {
                    refused = Some((scene, rules));
                }
            }
            let Some((scene, refusing)) = refused else { continue };
            let own = refusing.into_iter().filter(|rule| checks.contains(&rule.as_str()));
            let own: Vec<String> = own.collect();
            if !own.is_empty() {
                let message = format!("a check of this policy rejects phase {name} in every state");
                self.say(Kind::PhaseNeverWritten, own, message, &scene);
            }
        }
    }

    /// The validating webhook does not reject a write because of what the mutating webhook changes.
    fn patches(&mut self) {
        let spaces = patched(self.stage.convention, self.stage.version, &self.policy.backfill);
        for space in spaces {
            for mut scene in self.scenes(&space) {
                let old = stored(&scene);
                write(&mut scene);
                let rules = undone(&self.policies, &self.resource(&scene), &old, &scene.object);
                if !rules.is_empty() {
                    self.say(Kind::PatchRefused, rules, UNDONE, &scene);
                }
            }
        }
    }

    pub(super) fn scenes(&mut self, space: &Space) -> Vec<Scene> {
        let size = space.size().unwrap_or(MAX_WRITES);
        let tried = Space::scattered(size).take(MAX_WRITES);
        self.report.combinations += size.min(MAX_WRITES);
        let scenes = tried.filter_map(|number| {
            let mut scene = self.stage.scene(space, &space.combination(number))?;
            // Empty if no predicate asks for it.
            if scene.plural.is_empty() {
                scene.plural.clone_from(&self.plural);
            }
            for object in std::iter::once(&mut scene.object).chain(&mut scene.old) {
                object["apiVersion"] = format!("{}/{}", self.group, self.stage.version).into();
            }
            Some(scene)
        });
        let globs = self.policy.resources.iter().flat_map(|rule| &rule.resources);
        let globs: Vec<&Glob> = globs.collect();
        scenes.filter(|scene| globs.iter().any(|glob| glob.matches(&scene.plural))).collect()
    }

    pub(super) fn resource<'s>(&'s self, scene: &'s Scene) -> Resource<'s> {
        Resource {
            group: self.group.as_str().into(),
            version: self.stage.version.into(),
            resource: scene.plural.as_str().into(),
        }
    }

    /// Reports the same rules once, with the first witness.
    pub(super) fn say(
        &mut self,
        kind: Kind,
        rules: Vec<String>,
        message: impl Into<String>,
        scene: &Scene,
    ) {
        let message = message.into();
        let same =
            |known: &Remark| known.kind == kind && known.rules == rules && known.message == message;
        if !self.report.remarks.iter().any(same) {
            let witness = Some(scene.to_yaml());
            self.report.remarks.push(Remark { kind, rules, message, witness });
        }
    }
}
