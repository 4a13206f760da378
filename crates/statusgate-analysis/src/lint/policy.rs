//! What a policy adds to its convention does not contradict it, as far as that can be proven.
//!
//! Lint proves the same as for a convention, for the resources that the policy selects, and reports what the
//! convention alone does not have. It proves nothing about rules in CEL, because their states cannot be
//! listed; it tries writes.

use indexmap::IndexSet;

use super::cel::of_rules;
use super::fields::of_fields;
use super::gate::Gate;
use super::{
    Kind, Lint, Remark, Report, WRITES, backfill, joint, owners, rules, sorted, usage, values,
};
use crate::facts::versions_of;
use crate::line::Clause;
use crate::scene::{Stage, yaml};
use crate::table::phase_questions;
use statusgate_core::language::{AnyWord, Glob};
use statusgate_core::policy::convention::Convention;
use statusgate_core::policy::{Action, Policy, PolicySet, overlap};

/// Lints one of these policies in addition to its convention, as if `enforcement` were `Deny`.
pub fn lint_policy(policies: &PolicySet, policy: &Policy) -> Report {
    let convention = &policy.convention;
    let mut combinations = 0;
    let mut remarks: Vec<Remark> = Vec::new();
    let gate = Gate::of_policy(policy);
    let versions: IndexSet<String> =
        policy.resources.iter().flat_map(|rule| samples(&rule.api_versions, convention)).collect();
    for version in &versions {
        let all = policy.resources.iter();
        let mut rules = all.filter(|of| of.api_versions.iter().any(|glob| glob.matches(version)));
        let plurals: Vec<Glob> =
            rules.clone().flat_map(|rule| rule.resources.iter().cloned()).collect();
        let Some(group) = rules.find_map(|rule| rule.api_groups.first()) else { continue };
        let lint_of = |plurals| {
            let selected = Some((group, plurals));
            Lint::new(&gate, vec![Stage { convention: gate.convention(), version, selected }])
        };
        let lint = lint_of(&plurals);
        // Some value passes the checks of the policy and those of its convention.
        remarks.extend(of_fields(&lint.stage, Some(&policy.fields)));
        let by_resource = distinguishes_resources(&lint);
        let adds = !policy.fields.is_empty()
            || !policy.preserve.is_empty()
            || policy.backfill.iter().any(|default| default.of_policy);
        let mut found: Vec<Remark> = match adds || by_resource {
            true => WRITES.iter().flat_map(|check| check(&lint)).collect(),
            // Nothing is proven about rules in CEL, but writes are tried.
            false if policy.rules.is_empty() => continue,
            false => backfill::patched_writes_pass(&lint),
        };
        combinations += lint.combinations.get();
        if by_resource {
            // Some status of each resource is accepted.
            let each = plurals.iter().map(|plural| lint_of(std::slice::from_ref(plural)));
            found.extend(each.flat_map(|lint| joint::statuses_can_be_written(&lint)));
        }
        found.retain(|remark| remark.kind != Kind::NotProven);
        if !found.is_empty() {
            let gate = Gate::of_policy(&without_additions(policy));
            let stage = Stage { convention: gate.convention(), ..lint.stage };
            let any = Lint::new(&gate, vec![Stage::of(stage.convention, version)]);
            let known: Vec<Remark> = WRITES.iter().flat_map(|check| check(&any)).collect();
            // A phase that is only for other resources is no fault.
            let selected = rules::phases_can_be_written(&Lint::new(&gate, vec![stage]));
            found
                .retain(|remark| !known.iter().chain(&selected).any(|known| remark.repeats(known)));
        }
        remarks.extend(found);
    }
    remarks.extend(of_rules(policy, &versions, policies.defined()));
    remarks.extend(policy.rules.iter().flat_map(|rule| values::constants_can_occur(policy, rule)));
    remarks.extend(usage::undeclared(&policy.undeclared));
    remarks.extend(usage::similar_fields(&policy.paths, &convention.paths));
    remarks.extend(repairs_nothing(policy, versions.first()));
    let earlier = policies.policies().iter().take_while(|earlier| *earlier.name != *policy.name);
    remarks.extend(earlier.clone().filter_map(|earlier| second_owner(earlier, policy)));
    let others = earlier.filter(|earlier| overlap(earlier, policy));
    remarks.extend(owners::of_policies(policy, others, versions.first()));
    Report { name: policy.name.to_string(), remarks: sorted(remarks.into_iter()), combinations }
}

/// Whether a convention distinguishes resources.
fn distinguishes_resources(lint: &Lint<'_>) -> bool {
    let phase = lint.convention.phase.iter().flat_map(|rules| phase_questions(rules));
    let clauses = lint.clauses.iter().map(Clause::question);
    let mut words = phase.chain(clauses).flat_map(|question| question.predicate.questions());
    words.any(|word| matches!(word, AnyWord::ResourceName(_)))
}

/// The policy without what it adds to its convention.
fn without_additions(policy: &Policy) -> Policy {
    Policy {
        backfill: policy.convention.backfill.clone(),
        fields: Vec::new(),
        preserve: Vec::new(),
        rules: Vec::new(),
        ..policy.clone()
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
    let stage = Stage::of(&policy.convention, version?);
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
    let mut known = versions_of(convention);
    known.retain(|version| globs.iter().any(|glob| glob.matches(version)));
    globs.iter().map(Glob::sample).chain(known).collect()
}
