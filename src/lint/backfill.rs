//! What the mutating webhook takes out is there somewhere, and nobody is refused for its absence.

use super::rules::{MAX_SEARCH, stored};
use super::{Kind, Lint};
use crate::explain::{Clause, Question, space_of};
use crate::model::Pointer;
use crate::policy::convention::{Backfill, Filling};
use crate::policy::{Place, Predicate, ValueTest};

impl Lint<'_> {
    pub(super) fn backfill(&mut self) {
        for fill in &self.convention.backfill {
            if let Filling::AbsentMember { list, member, of } = &fill.filling {
                self.taken_out(fill, list, member, of);
            }
        }
    }

    fn taken_out(&mut self, fill: &Backfill, list: &Pointer, member: &str, of: &Predicate) {
        let list = self.convention.conditions.iter().find(|known| known.path == *list);
        let taken = taken(fill, member, of);
        let question = Question { predicate: &taken, list, of_element: true };
        let name = &fill.name;
        if self.somewhere(question) == Some(false) {
            let message = format!("backfill {name} takes {member} out of no element");
            self.say(Kind::NeverFires, Vec::new(), message, None);
        }
        // Only a rule that asks for the member can miss it. With each of them by itself: all
        // together have too many combinations.
        let clauses = self.clauses.clone();
        let asks = |clause: &&Clause<'_>| {
            clause.of_element
                && clause.refuses()
                && clause.list.map(|own| &own.path) == list.map(|own| &own.path)
                && reads(&clause.when, member)
        };
        for clause in clauses.iter().filter(asks) {
            let space =
                space_of(self.convention, self.stage.version, &[question, clause.question()]);
            let size = space.size().unwrap_or(MAX_SEARCH).min(MAX_SEARCH);
            self.combinations += size;
            let refused = (0..size).find_map(|number| {
                let scene = self.stage.scene(&space, &space.combination(number))?;
                let resource = self.stage.resource(&scene.plural);
                let rules = self.gate.undone(&resource, &stored(&scene), &scene.object);
                (!rules.is_empty()).then_some((scene, rules))
            });
            if let Some((scene, rules)) = refused {
                let message =
                    format!("backfill {name} takes {member} out, and what is left is refused");
                self.say(Kind::PatchRefused, rules, message, Some(scene.to_yaml()));
            }
        }
    }
}

/// Where a member is taken out: it is there, and may not be.
pub(super) fn taken(fill: &Backfill, member: &str, of: &Predicate) -> Predicate {
    let place = Place::Member { old: false, name: member.to_owned() };
    let there = Predicate::Value(place, ValueTest::Set);
    Predicate::All([of.clone(), there].into_iter().chain(fill.when.clone()).collect())
}

/// Whether a predicate asks for a member of the element.
fn reads(predicate: &Predicate, member: &str) -> bool {
    match predicate {
        Predicate::All(parts) | Predicate::Any(parts) => {
            parts.iter().any(|part| reads(part, member))
        }
        Predicate::Not(part) => reads(part, member),
        Predicate::Value(Place::Member { old: false, name }, _) => name == member,
        _ => false,
    }
}
