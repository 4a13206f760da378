//! Examples of a rule: a write that violates it, and a similar write that satisfies it.
//!
//! No example is stored. The search begins with small writes, changes one place after another, and the
//! engine judges each write. It prefers a write without findings of other rules, then a short one.

mod changes;
mod edit;
mod seeds;

pub(super) use changes::Variation;
pub(super) use edit::{replaced, without_one};

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use serde::Serialize;
use serde_json::Value;

use super::each_once;
use super::gate::{Write, with_all_parts};
use crate::facts::versions_of;
use crate::line::{Clause, clauses};
use crate::scene::{Scene, Stage};
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::{Cause, Found};
use statusgate_core::policy::{Diagnostics, Policy, PolicySet};

/// A write that shows a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// The plural of the resource, if rules ask for it.
    pub resource: String,
    /// The stored object; `None` if it has no status.
    pub stored: Option<Value>,
    /// The written object.
    pub written: Value,
    /// What the validating webhook reports about the write.
    pub findings: Vec<Found>,
}

/// The examples of one rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pair {
    /// The only finding is that of the rule, if there is such a write. `None` if the search found no
    /// violation.
    pub violating: Option<Example>,
    /// A write without findings, as similar as possible to the violation.
    pub satisfying: Option<Example>,
}

/// The examples of the rules of a convention, or of a policy's own rules.
#[derive(Debug)]
pub struct Examples {
    /// One policy for all resources.
    plain: PolicySet,
    /// The same with all optional parts, for the optional rules.
    complete: PolicySet,
    /// For each rule the best writes among all that were tried at first.
    pool: OnceCell<BTreeMap<String, Vec<Candidate>>>,
}

/// A write and its version. Smaller is better: fewer other rules with findings, then no value of another
/// type, which is a rare mistake, then a shorter text.
#[derive(Clone, Debug)]
struct Candidate {
    cost: (usize, bool, usize),
    version: String,
    scene: Scene,
}

/// Writes that are kept for each rule, to continue the search with.
const KEPT: usize = 3;

/// Writes that a search judges before it gives up.
const MAX_JUDGED: usize = 1500;

impl Examples {
    /// The examples of a convention's rules.
    ///
    /// # Errors
    /// If there is no convention of this name.
    pub fn of_convention(policies: &PolicySet, name: &str) -> Result<Self, Diagnostics> {
        let with = |spec: PolicySpec| policies.with_policy("example", &spec);
        Ok(Self {
            plain: with(PolicySpec::for_everything(name))?,
            complete: with(with_all_parts(policies, name))?,
            pool: OnceCell::new(),
        })
    }

    /// The examples of a policy's own rules, for all resources.
    pub fn of_policy(policy: &Policy) -> Self {
        let resources = PolicySpec::for_everything("").resources;
        let plain = PolicySet::of(vec![Policy { resources, ..policy.clone() }]);
        Self { complete: plain.clone(), plain, pool: OnceCell::new() }
    }

    /// The examples of a rule.
    pub fn of_rule(&self, id: &str) -> Pair {
        let optional = policy_of(&self.plain).rule(id).is_some_and(|rule| rule.optional);
        let policies = if optional { &self.complete } else { &self.plain };
        let versions = versions_of(&policy_of(policies).convention);
        let searches: Vec<Search<'_>> =
            versions.iter().map(|version| Search::new(id, policies, version)).collect();
        let mut best: Option<(Candidate, &Search<'_>)> = None;
        for search in &searches {
            // The pool is only made if it is needed.
            let pooled = std::iter::once_with(|| self.pool().get(id)).flatten().flatten();
            let of_version = pooled.filter(|found| found.version == search.stage.version).cloned();
            for seed in search.asked_writes().into_iter().chain(of_version).take(KEPT) {
                if best.as_ref().is_some_and(|(best, _)| best.cost.0 == 0) {
                    break;
                }
                let found = search.tidy(seed.scene, true);
                if let Some(found) = found.map(|scene| search.shrunk(scene))
                    && best.as_ref().is_none_or(|(best, _)| found.cost < best.cost)
                {
                    best = Some((found, search));
                }
            }
        }
        let Some((violating, search)) = best else { return Pair::default() };
        let similar = search.tidy(violating.scene.clone(), false);
        let satisfying = similar.filter(|scene| search.rules(scene).is_empty()).or_else(|| {
            // Any clean write satisfies the rule.
            let mut clean = self.pool().get(CLEAN)?.iter();
            Some(clean.find(|clean| clean.version == violating.version)?.scene.clone())
        });
        Pair {
            violating: Some(search.example(violating.scene)),
            satisfying: satisfying.map(|scene| search.example(scene)),
        }
    }

    /// Writes with few conditions, each with all changes that may violate a rule.
    fn pool(&self) -> &BTreeMap<String, Vec<Candidate>> {
        self.pool.get_or_init(|| {
            let mut pool: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
            for version in versions_of(&policy_of(&self.plain).convention) {
                let search = Search::new(CLEAN, &self.plain, &version);
                let mut known = HashSet::new();
                for scene in search.simple_writes() {
                    if !known.insert(text_of(&scene)) {
                        continue;
                    }
                    let findings = search.findings(&scene);
                    let rules = rules_of(&findings);
                    let ids = rules.iter().map(String::as_str);
                    for id in ids.chain(rules.is_empty().then_some(CLEAN)) {
                        let candidate = Candidate::new(id, &findings, &version, scene.clone());
                        keep_best(pool.entry(id.to_owned()).or_default(), candidate);
                    }
                }
            }
            pool
        })
    }
}

/// The name under which the pool keeps writes without findings. No rule has it.
const CLEAN: &str = "";

/// Each set of this module has one policy.
fn policy_of(policies: &PolicySet) -> &Policy {
    &policies.policies()[0]
}

fn text_of(scene: &Scene) -> String {
    let old = scene.old.as_ref().map(Value::to_string).unwrap_or_default();
    scene.object.to_string() + &old
}

fn rules_of(findings: &[Found]) -> Vec<String> {
    each_once(findings.iter().map(|found| found.rule.clone()))
}

impl Candidate {
    /// A write with these findings, for the search for an example of a rule.
    fn new(id: &str, findings: &[Found], version: &str, scene: Scene) -> Self {
        let others = rules_of(findings).iter().filter(|other| *other != id).count();
        let is_odd =
            findings.iter().any(|found| found.rule == id && found.cause == Cause::TypeInvalid);
        let cost = (others, is_odd, text_of(&scene).len());
        Self { cost, version: version.to_owned(), scene }
    }
}

/// Adds a candidate, if it is one of the best.
fn keep_best(kept: &mut Vec<Candidate>, candidate: Candidate) {
    kept.push(candidate);
    kept.sort_by_key(|kept| kept.cost);
    kept.truncate(KEPT);
}

/// The search for the examples of one rule in one version.
pub(super) struct Search<'s> {
    id: &'s str,
    policies: &'s PolicySet,
    policy: &'s Policy,
    pub(super) stage: Stage<'s>,
    /// The clause of the rule, if it is one.
    clause: Option<Clause<'s>>,
    /// The fields that the rule asks for.
    asked: Vec<Variation>,
}

impl<'s> Search<'s> {
    pub(super) fn new(id: &'s str, policies: &'s PolicySet, version: &'s str) -> Self {
        let policy = policy_of(policies);
        let stage = Stage::of(&policy.convention, version);
        let clause = clauses(stage.convention).into_iter().find(|clause| clause.id == id);
        let search = Self { id, policies, policy, stage, clause, asked: Vec::new() };
        Self { asked: search.asked_variations(), ..search }
    }

    fn findings(&self, scene: &Scene) -> Vec<Found> {
        Write::of(&self.stage, scene).findings(self.policies)
    }

    /// The rules with findings, each once.
    pub(super) fn rules(&self, scene: &Scene) -> Vec<String> {
        rules_of(&self.findings(scene))
    }

    /// How far a write is from what is wanted: the number of rules that should have no finding, and whether
    /// the rule itself is as it is wanted.
    fn wrong(&self, scene: &Scene, violated: bool) -> (usize, bool) {
        let rules = self.rules(scene);
        let others = rules.iter().filter(|rule| *rule != self.id).count();
        (others, (others < rules.len()) == violated)
    }

    /// Changes a write until the rule is violated, or satisfied, and no other rule has a finding. Returns the
    /// best write if the search gives up; `None` if the rule is never as it is wanted.
    fn tidy(&self, start: Scene, violated: bool) -> Option<Scene> {
        let mut best: Option<(usize, Scene)> = None;
        let mut known: HashSet<String> = HashSet::new();
        let mut queue: BinaryHeap<Reverse<(usize, usize, usize)>> = BinaryHeap::new();
        let mut scenes: Vec<Scene> = vec![start];
        let (mut next, mut steps) = (0, vec![0]);
        loop {
            // Judges what was added.
            while let Some(scene) = scenes.get(next) {
                let (others, as_wanted) = self.wrong(scene, violated);
                if as_wanted && best.as_ref().is_none_or(|(least, _)| others < *least) {
                    best = Some((others, scene.clone()));
                    if others == 0 {
                        return Some(self.with_a_change(scene));
                    }
                }
                // A violation is kept while other findings are removed.
                if as_wanted || !violated {
                    let cost = others + usize::from(!as_wanted);
                    queue.push(Reverse((cost, steps[next], next)));
                }
                next += 1;
            }
            if next > MAX_JUDGED {
                return best.map(|(_, scene)| scene);
            }
            let Some(Reverse((_, step, at))) = queue.pop() else {
                return best.map(|(_, scene)| scene);
            };
            let scene = scenes[at].clone();
            for changed in self.changes(&scene, false) {
                if known.insert(text_of(&changed)) {
                    scenes.push(changed);
                    steps.push(step + 1);
                }
            }
        }
    }

    /// A write that changes nothing satisfies every rule. So it gets another change, if possible.
    fn with_a_change(&self, scene: &Scene) -> Scene {
        let is_change = |scene: &Scene| {
            scene.old.as_ref().is_none_or(|old| old.get("status") != scene.object.get("status"))
        };
        if is_change(scene) {
            return scene.clone();
        }
        let changed = self.changes(scene, false).into_iter();
        let mut clean =
            changed.filter(|changed| is_change(changed) && self.rules(changed).is_empty());
        clean.next().unwrap_or_else(|| scene.clone())
    }

    /// Removes everything that the violation does not need.
    fn shrunk(&self, mut scene: Scene) -> Candidate {
        let (mut others, _) = self.wrong(&scene, true);
        loop {
            let smaller = self.removals(&scene).into_iter().find_map(|smaller| {
                let (count, violated) = self.wrong(&smaller, true);
                (violated && count <= others).then_some((count, smaller))
            });
            match smaller {
                Some(smaller) => (others, scene) = smaller,
                None => break,
            }
        }
        self.candidate(scene)
    }

    fn candidate(&self, scene: Scene) -> Candidate {
        Candidate::new(self.id, &self.findings(&scene), self.stage.version, scene)
    }

    fn example(&self, scene: Scene) -> Example {
        let findings = self.findings(&scene);
        Example { resource: scene.plural, stored: scene.old, written: scene.object, findings }
    }
}
