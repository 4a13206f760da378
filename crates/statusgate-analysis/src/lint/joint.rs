//! All rules together leave something: a status that can be written, and a condition of each type.

use super::proof::{Decision, Proof, Search};
use super::rulings::{EMPTY, Ruling, rejects};
use super::{Kind, Lint, Remark, each_once};
use crate::scene::{Scene, Stage};
use statusgate_core::language::any_of;
use statusgate_core::policy::convention::{ConditionList, ConditionType, Presence};

/// At most this many condition types are tried for each list. The longest list of a real system has 15.
const MAX_TYPES: usize = 256;

/// What came of a search.
pub(super) enum Joint {
    /// This passes.
    Passes(Scene),
    /// These rules together reject everything, for example this.
    Rejected(Vec<String>, Scene),
    /// These rules reject every status that was tried, but not every status can be tried.
    Open(Vec<String>),
    /// The search gave up.
    TooMany,
}

impl Joint {
    /// What it means for a status or a condition.
    fn remark(&self, what: &str) -> Option<Remark> {
        Some(match self {
            Self::Passes(_) => return None,
            Self::TooMany => {
                Remark::not_proven(Vec::new(), &format!("the search for a valid {what}"))
            }
            Self::Open(core) => {
                let what = format!("{what} was found that passes these rules");
                Remark::open(core.clone(), &what)
            }
            Self::Rejected(core, scene) => contradiction(core.clone(), what, scene),
        })
    }
}

/// Some first status of an object is accepted.
pub(super) fn statuses_can_be_written(lint: &Lint<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for stage in lint.stages.iter().copied() {
        let mut rulings = lint.rulings_of_status(&lint.lists(stage));
        loop {
            let search =
                Search { stage, gate: lint.gate, element: None, phase: None, filled: None };
            let joint = lint.jointly(&search, &rulings);
            remarks.extend(joint.remark("status"));
            let (Joint::Open(core) | Joint::Rejected(core, _)) = joint else { break };
            // The other rules may reject everything, too.
            let before = rulings.len();
            rulings.retain(|ruling| !core.iter().any(|id| id == ruling.id));
            if rulings.len() == before {
                break;
            }
        }
    }
    remarks
}

/// Some condition of each type is accepted, and some status with a condition in each list.
pub(super) fn conditions_can_be_written(lint: &Lint<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for stage in lint.stages.iter().copied() {
        let lists = lint.lists(stage);
        for list in &lists {
            lint.elements(stage, list, &mut remarks);
            if list.outer.is_none() {
                let (element, phase, filled) = (None, None, Some(*list));
                let search = Search { stage, gate: lint.gate, element, phase, filled };
                let rulings = lint.rulings_of_filled(&lists, list);
                if let Joint::Rejected(mut core, scene) = lint.jointly(&search, &rulings) {
                    core.retain(|rule| rule != EMPTY);
                    remarks.push(contradiction(core, list.noun(), &scene));
                }
            }
        }
    }
    remarks
}

impl<'c> Lint<'c> {
    pub(super) fn lists(&self, stage: Stage<'c>) -> Vec<&'c ConditionList> {
        self.convention.lists(stage.version).collect()
    }

    fn elements(&self, stage: Stage<'c>, list: &'c ConditionList, remarks: &mut Vec<Remark>) {
        let other = (!list.other_types.as_ref().is_some_and(rejects)).then(|| "Example".to_owned());
        let known = list.types.values().map(|kind| (Some(kind), kind.sample()));
        let named: Vec<(Option<&ConditionType>, String)> =
            known.chain(other.map(|name| (None, name))).collect();
        let mut rejected: Vec<(Option<&ConditionType>, &str, Vec<String>, Scene)> = Vec::new();
        if named.len() > MAX_TYPES {
            let what = "the search for a valid condition of each type";
            remarks.push(Remark::not_proven(Vec::new(), what));
        }
        for (kind, name) in named.iter().take(MAX_TYPES) {
            let rulings = self.rulings_of_element(list, name);
            let element = Some((list, name.as_str()));
            let search = Search { stage, gate: self.gate, element, phase: None, filled: None };
            match self.jointly(&search, &rulings) {
                Joint::Rejected(core, scene) => rejected.push((*kind, name, core, scene)),
                joint => remarks.extend(joint.remark(&format!("{} {name}", list.noun()))),
            }
        }
        if let Some((_, _, _, scene)) = rejected.first()
            && rejected.len() == named.len()
        {
            let others = list.other_types.iter().filter(|sanction| rejects(sanction));
            let rules = rejected.iter().flat_map(|(_, _, core, _)| core.iter().cloned());
            let rules = each_once(rules.chain(others.map(|sanction| sanction.rule.to_string())));
            return remarks.push(contradiction(rules, list.noun(), scene));
        }
        // Types with overlapping rules have one cause.
        let mut causes: Vec<(Vec<String>, Vec<String>, Scene)> = Vec::new();
        for (kind, name, mut core, scene) in rejected {
            let missing = kind.and_then(|kind| match kind.missing.as_ref()? {
                Presence::Always(sanction) => Some(sanction).filter(|sanction| rejects(sanction)),
                Presence::Guarded(_) => None,
            });
            // A single rule may reject a type on purpose, unless another rule requires that type.
            if core.len() == 1 && missing.is_none() {
                continue;
            }
            core.extend(missing.map(|sanction| sanction.rule.to_string()));
            let shared =
                causes.iter_mut().find(|(rules, ..)| core.iter().any(|rule| rules.contains(rule)));
            if let Some((rules, names, _)) = shared {
                core.retain(|rule| !rules.contains(rule));
                rules.extend(core);
                names.push(name.to_owned());
            } else {
                causes.push((core, vec![name.to_owned()], scene));
            }
        }
        remarks.extend(causes.into_iter().map(|(rules, names, scene)| {
            let what = format!("{} {}", list.noun(), any_of(names.into_iter()));
            contradiction(rules, &what, &scene)
        }));
    }

    /// Whether something passes these rules.
    pub(super) fn jointly(&self, search: &Search<'_, 'c>, rulings: &[Ruling<'c>]) -> Joint {
        let mut proof = Proof::new(search, rulings.iter().collect());
        let decision = proof.core();
        self.count(proof.judged);
        let core = match decision {
            Decision::Rejected(core) => core,
            Decision::Accepted(scene) => return Joint::Passes(scene),
            Decision::Unknown => return Joint::TooMany,
        };
        // Search again with the rules of the core only: the first search space also contains the facts of the
        // other rules.
        let ids: Vec<&str> = core.iter().filter_map(|at| proof.rules.get(*at).copied()).collect();
        let of_core = rulings.iter().filter(|ruling| ids.contains(&ruling.id));
        let mut proof = Proof::new(search, of_core.clone().collect());
        let decision = proof.core();
        self.count(proof.judged);
        let open = of_core
            .into_iter()
            .any(|ruling| !ruling.decided || search.is_stretched(&proof.space, ruling))
            || proof.space.open
            || search.has_neighbours(&proof.space);
        match (decision, proof.least) {
            (Decision::Rejected(core), Some((_, scene))) if !open => {
                let ids = core.iter().filter_map(|at| proof.rules.get(*at));
                Joint::Rejected(ids.map(|id| (*id).to_owned()).collect(), scene)
            }
            _ => Joint::Open(ids.into_iter().map(str::to_owned).collect()),
        }
    }
}

fn contradiction(rules: Vec<String>, what: &str, scene: &Scene) -> Remark {
    let message = match rules.len() {
        1 => format!("this rule rejects every {what}"),
        _ => format!("these rules together reject every {what}"),
    };
    Remark::new(Kind::Contradiction, rules, message, Some(scene.to_yaml()))
}
