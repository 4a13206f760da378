//! Nobody is refused for what the mutating webhook fills in, imposes or takes out; and what it takes out is
//! there somewhere.

use serde_json::{Value, json};

use super::gate::{MODES, Mode};
use super::rules::{MAX_SEARCH, MAX_WRITES, plain, stored};
use super::{Kind, Lint};
use crate::explain::{Clause, Question, Scene, Space, space_of};
use crate::language::{self, Asks, Place, Predicate};
use crate::model::Pointer;
use crate::policy::convention::{Backfill, Convention, Filling};

impl Lint<'_> {
    pub(super) fn backfill(&mut self) {
        for fill in &self.convention.backfill {
            if let Filling::AbsentMember { list, member, of } = &fill.filling {
                self.taken_out(fill, list, member, of);
            }
        }
        self.undone();
        self.waiting();
    }

    /// What the mutating webhook makes of a write is not refused where the write itself is not, whatever
    /// a disagreement leads to.
    fn undone(&mut self) {
        for scene in self.patched() {
            let resource = self.stage.resource(&scene.plural);
            for (mode, _) in MODES {
                let rules = self.gate.undone(mode, &resource, &stored(&scene), &scene.object);
                let mut known =
                    self.remarks.iter().filter(|remark| remark.kind == Kind::PatchRefused);
                if !rules.is_empty() && !known.any(|known| known.rules == rules) {
                    self.say(Kind::PatchRefused, rules, UNDONE, Some(scene.to_yaml()));
                }
            }
        }
    }

    /// Phases beside which a default is left out, because it would contradict them.
    fn waiting(&mut self) {
        let Some(rules) = &self.convention.phase else { return };
        if self.convention.backfill.is_empty() {
            return;
        }
        // By default: the phases beside which it waits, and the first state in which it does.
        let mut waiting: Vec<(String, Vec<&str>, String)> = Vec::new();
        for mut scene in self.patched() {
            for phase in &rules.phases {
                self.stage.set_phase(&mut scene.object, &phase.name);
                let resource = self.stage.resource(&scene.plural);
                for name in self.gate.withheld(&resource, &stored(&scene), &scene.object) {
                    match waiting.iter_mut().find(|(known, ..)| *known == name) {
                        Some((_, phases, _)) if phases.contains(&phase.name.as_str()) => {}
                        Some((_, phases, _)) => phases.push(&phase.name),
                        None => waiting.push((name, vec![&phase.name], scene.to_yaml())),
                    }
                }
            }
        }
        for (name, phases, witness) in waiting {
            let message = format!(
                "backfill {name} waits where it would contradict phase {}: it is not filled in here",
                phases.join(" or ")
            );
            self.say(Kind::DefaultWaits, Vec::new(), message, Some(witness));
        }
    }

    /// Writes in the states in which the mutating webhook does something.
    fn patched(&mut self) -> Vec<Scene> {
        let spaces = patched(self.convention, self.stage.version, &self.convention.backfill);
        let mut scenes = Vec::new();
        for space in spaces {
            let size = space.size().unwrap_or(MAX_WRITES);
            let tried = Space::scattered(size).take(MAX_WRITES);
            self.combinations += size.min(MAX_WRITES);
            let scene = |number| self.stage.scene(&space, &space.combination(number));
            scenes.extend(tried.filter_map(scene));
        }
        scenes.iter_mut().for_each(write);
        scenes
    }

    fn taken_out(&mut self, fill: &Backfill, list: &Pointer, member: &str, of: &Predicate) {
        let list = self.convention.conditions.iter().find(|known| known.path == *list);
        let taken = taken(fill, member, of);
        let question = Question { predicate: &taken, list, of_element: true };
        let name = &fill.name;
        if self.somewhere(question) == Some(false) {
            let message = format!("backfill {name} takes {member} out of no element");
            let (_, nearest) = self.nearest(question);
            self.say(Kind::NeverFires, Vec::new(), message, nearest);
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
                let rules = self.gate.undone(Mode::Deny, &resource, &stored(&scene), &scene.object);
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

/// What is said of a write that is undone.
pub(super) const UNDONE: &str = "this write is refused for what the mutating webhook makes of it";

/// The states in which the mutating webhook has something to do: nothing is there, or what imposed phases
/// and defaults ask for.
pub(super) fn patched(convention: &Convention, version: &str, backfill: &[Backfill]) -> Vec<Space> {
    let space = |questions: &[Question<'_>]| space_of(convention, version, questions);
    let phases = convention.phase.iter().flat_map(|rules| &rules.phases);
    let imposed = phases.filter_map(|phase| phase.imposed.as_ref());
    let mut spaces = vec![space(&[])];
    spaces.extend(imposed.map(|imposed| space(&[plain(&imposed.when)])));
    for fill in backfill {
        spaces.extend(fill.when.as_ref().map(|when| space(&[plain(when)])));
        let known = |list: &Pointer| convention.conditions.iter().find(|known| known.path == *list);
        match &fill.filling {
            Filling::AbsentMember { list, member, of } => {
                let predicate = &taken(fill, member, of);
                spaces.push(space(&[Question { predicate, list: known(list), of_element: true }]));
            }
            // Into an element: it has to be there.
            Filling::Member { list, member, .. } => {
                let predicate = &Predicate::all(["type", "status", member].map(has));
                spaces.push(space(&[Question { predicate, list: known(list), of_element: true }]));
            }
            _ => {}
        }
    }
    spaces
}

/// A write that changes nothing by itself is never refused: this one does.
pub(super) fn write(scene: &mut Scene) {
    if scene.object.get("status").and_then(Value::as_object).is_none() {
        scene.object["status"] = json!({});
    }
    scene.object["status"]["written"] = true.into();
}

/// Where a member is taken out: it is there, and may not be.
fn taken(fill: &Backfill, member: &str, of: &Predicate) -> Predicate {
    Predicate::all([of.clone(), has(member)].into_iter().chain(fill.when.clone()))
}

/// The element has a member.
fn has(member: &str) -> Predicate {
    let place = Place::Member(member.to_owned());
    language::Value { set: Some(true), ..language::Value::of(place) }.into()
}

/// Whether a predicate asks for a member of the element.
fn reads(predicate: &Predicate, member: &str) -> bool {
    struct Reads<'m>(&'m str, bool);
    impl<'p> Asks<'p> for Reads<'_> {
        fn value(&mut self, value: &'p language::Value) {
            self.1 |= matches!(&value.place, Place::Member(name) if name == self.0);
        }
    }
    let mut reads = Reads(member, false);
    predicate.asks(&mut reads);
    reads.1
}
