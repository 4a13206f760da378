//! All rules together leave something: a status that can be written, and a condition of each type.

use super::proof::{Decision, Proof, Search};
use super::rulings::{Ruling, rejects};
use super::{Kind, Lint};
use crate::explain::{Scene, Stage};
use crate::policy::convention::{ConditionList, ConditionType, Presence};

/// Types beyond which not each is tried. The longest list of a real system has 15.
const MAX_TYPES: usize = 256;

/// What came of a search.
enum Joint {
    Passes,
    /// These rules together reject everything, for example this.
    Rejected(Vec<String>, Scene),
    /// These rules reject everything that was tried, but that does not stand for all there is.
    Open(Vec<String>),
    /// The search gave up.
    TooMany,
}

impl<'c> Lint<'c> {
    pub(super) fn joint(&mut self) {
        for stage in self.stages(&[]) {
            let lists: Vec<&ConditionList> = self
                .convention
                .conditions
                .iter()
                .filter(|list| list.applies_to(stage.version))
                .collect();
            self.statuses(stage, &lists);
            for list in lists {
                self.elements(stage, list);
            }
        }
    }

    /// An object can get a first status.
    fn statuses(&mut self, stage: Stage<'c>, lists: &[&'c ConditionList]) {
        let mut rulings = self.rulings_of_status(lists);
        loop {
            let search = Search { stage, gate: self.gate, element: None };
            let core = match self.jointly(&search, &rulings) {
                Joint::Passes => return,
                Joint::TooMany => return self.gave_up("any status passes all rules"),
                Joint::Open(core) => {
                    self.open("any status passes these rules", core.clone());
                    core
                }
                Joint::Rejected(core, scene) => {
                    let message = match core.len() {
                        1 => "this rule rejects every status",
                        _ => "these rules together reject every status",
                    };
                    self.contradiction(core.clone(), message, &scene);
                    core
                }
            };
            // The other rules may leave nothing, too.
            let before = rulings.len();
            rulings.retain(|ruling| !core.iter().any(|id| id == ruling.id));
            if rulings.len() == before {
                return;
            }
        }
    }

    /// A condition of each type can be written.
    fn elements(&mut self, stage: Stage<'c>, list: &'c ConditionList) {
        let rulings = self.rulings_of_element(list);
        if rulings.is_empty() {
            return;
        }
        let other = (!list.types.other.as_ref().is_some_and(rejects)).then(|| "Example".to_owned());
        let known = list.types.known.iter().map(|kind| (Some(kind), kind.sample()));
        let named: Vec<(Option<&ConditionType>, String)> =
            known.chain(other.map(|name| (None, name))).collect();
        let mut rejected: Vec<(Option<&ConditionType>, &str, Vec<String>, Scene)> = Vec::new();
        if named.len() > MAX_TYPES {
            self.gave_up("each type can be written");
        }
        for (kind, name) in named.iter().take(MAX_TYPES) {
            let search = Search { stage, gate: self.gate, element: Some((list, name)) };
            match self.jointly(&search, &rulings) {
                Joint::Passes => {}
                Joint::TooMany => self.gave_up(&format!("a condition {name} can be written")),
                Joint::Open(core) => {
                    self.open(&format!("a condition {name} passes these rules"), core);
                }
                Joint::Rejected(core, scene) => rejected.push((*kind, name, core, scene)),
            }
        }
        let everything = rejected.len() == named.len();
        if let Some((_, _, core, scene)) = rejected.first().filter(|(_, _, core, _)| {
            everything && rejected.iter().all(|(_, _, other, _)| other == core)
        }) {
            let message = match core.len() {
                1 => "this rule rejects every condition",
                _ => "these rules together reject every condition",
            };
            return self.contradiction(core.clone(), message, scene);
        }
        for (kind, name, mut core, scene) in rejected {
            let always =
                |presence: &&Presence| presence.when.is_none() && rejects(&presence.sanction);
            let missing = kind.and_then(|kind| kind.missing.as_ref().filter(always));
            // A single rule may reject a type on purpose, unless another rule requires that type.
            if core.len() == 1 && missing.is_none() {
                continue;
            }
            let message = format!("these rules together reject every condition {name}");
            core.extend(missing.map(|presence| presence.sanction.rule.clone()));
            self.contradiction(core, &message, &scene);
        }
    }

    fn gave_up(&mut self, what: &str) {
        let message = format!("whether {what} is not proven: there are too many combinations");
        self.say(Kind::NotProven, Vec::new(), message, None);
    }

    fn open(&mut self, what: &str, rules: Vec<String>) {
        let message = format!(
            "whether {what} is not proven: not all values that they tell apart can be listed"
        );
        self.say(Kind::NotProven, rules, message, None);
    }

    fn jointly(&mut self, search: &Search<'_, 'c>, rulings: &[Ruling<'c>]) -> Joint {
        let mut proof = Proof::new(search, rulings.iter().collect());
        let decision = proof.core();
        self.combinations += proof.judged;
        let core = match decision {
            Decision::Accepted => return Joint::Passes,
            Decision::Unknown => return Joint::TooMany,
            Decision::Rejected(core) => core,
        };
        // The rest of the rules must not have kept the search from anything.
        let ids: Vec<&str> = core.iter().filter_map(|at| proof.rules.get(*at).copied()).collect();
        let of_core = rulings.iter().filter(|ruling| ids.contains(&ruling.id));
        let mut proof = Proof::new(search, of_core.clone().collect());
        let decision = proof.core();
        self.combinations += proof.judged;
        let open = of_core.into_iter().any(|ruling| !ruling.decided)
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

    /// Reports each contradiction once. Pairs of rules were checked before.
    fn contradiction(&mut self, rules: Vec<String>, message: &str, scene: &Scene) {
        let known = |rule: &String| rules.contains(rule);
        let said = self
            .remarks
            .iter()
            .any(|remark| remark.kind == Kind::Contradiction && remark.rules.iter().all(known));
        if !said {
            self.say(Kind::Contradiction, rules, message, Some(scene.to_yaml()));
        }
    }
}
