//! All refusals together leave something over: a status that can be written, and a condition of each
//! type.
//!
//! Both webhooks are asked. What no rule asks about is left out, and a rule comes in only when it
//! refuses what the others let pass: so that a search through all that the rules involved can tell
//! apart stays small, and is a proof when it finds nothing.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::gate::Refused;
use super::rules::MAX_WRITES;
use super::{Kind, Lint};
use crate::explain::{
    Answer, Fact, Left, Question, Scene, Space, Stage, core_of, is_decided, left, space_of,
};
use crate::model::ConditionStatus;
use crate::policy::convention::{ConditionList, ConditionType, Presence, Sanction};
use crate::policy::{Action, Check, ConditionTest, Disposition, Place, Predicate, ValueTest};

/// Types beyond which not each is tried. The longest list of a real system has 15.
const MAX_TYPES: usize = 256;

/// How often facts of more rules are brought in.
const MAX_STEPS: usize = 8;

/// A rule that can refuse, and what its answer depends on.
struct Ruling<'c> {
    id: &'c str,
    asks: Vec<Predicate>,
    list: Option<&'c ConditionList>,
    /// Whether what is tried of it stands for all.
    decided: bool,
}

/// What came of a search.
enum Joint {
    Passes,
    /// Everything is refused, by one of these rules at least.
    Refused(Vec<String>, Scene),
    NotProven(Vec<String>),
}

/// What is searched.
struct Search<'s, 'c> {
    stage: Stage<'c>,
    rulings: &'s [Ruling<'c>],
    /// The list whose elements are searched, and the type of the element.
    element: Option<(&'c ConditionList, &'s str)>,
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
            let search = Search { stage, rulings: &rulings, element: None };
            match self.search_jointly(&search) {
                Joint::Passes => return,
                Joint::NotProven(rules) => {
                    return self
                        .not_proven(rules, "the question whether anything passes all rules");
                }
                Joint::Refused(core, scene) => {
                    rulings.retain(|ruling| !core.iter().any(|id| id == ruling.id));
                    let message = match core.len() {
                        1 => "this rule refuses every status",
                        _ => "these rules refuse every status between them",
                    };
                    self.contradiction(core, message, &scene);
                }
            }
        }
    }

    fn rulings_of_status(&self, lists: &[&'c ConditionList]) -> Vec<Ruling<'c>> {
        let convention = self.convention;
        let ruling = |id, asks, list| Ruling { id, asks, list, decided: true };
        let known = |list: &ConditionList| lists.iter().any(|known| std::ptr::eq(*known, list));
        let clauses = self.clauses.iter().filter(|clause| {
            clause.refuses() && !clause.of_element && clause.list.is_none_or(known)
        });
        let mut rulings: Vec<Ruling<'c>> = clauses
            .map(|clause| ruling(clause.id, vec![clause.when.clone().into_owned()], clause.list))
            .collect();
        for list in lists {
            for kind in &list.types.known {
                for sanction in kind.not_true.iter().filter(|sanction| refuses(sanction)) {
                    rulings.push(ruling(&sanction.rule, vec![is_true(kind)], Some(list)));
                }
            }
            if list.max_items.is_some() && refuses(&list.too_long) {
                rulings.push(ruling(&list.too_long.rule, Vec::new(), Some(list)));
            }
        }
        for field in convention.fields.iter().filter(|field| field.check.action == Action::Deny) {
            let checks = convention.fields.iter().filter(|other| other.path == field.path);
            let checks: Vec<&Check> = checks.map(|field| &field.check).collect();
            let place = Place::Field { old: false, path: field.path.clone() };
            // Whether there is a value at all was asked before.
            if let Some(asks) = asks_for_value(&checks, place) {
                let decided = is_decided(&checks);
                rulings.push(Ruling { decided, ..ruling(&field.check.rule, vec![asks], None) });
            }
        }
        if let Some(rules) = &convention.phase {
            let all: Vec<String> = rules.phases.iter().map(|phase| phase.name.clone()).collect();
            for phase in &rules.phases {
                let name = Predicate::Phase(vec![phase.name.clone()]);
                let asks = phase.necessary.iter().cloned().chain([name]).collect();
                rulings.push(ruling(&phase.rule, asks, None));
            }
            for moves in rules.moves.iter().filter(|moves| refuses(&moves.sanction)) {
                rulings.push(ruling(
                    &moves.sanction.rule,
                    vec![Predicate::Phase(all.clone())],
                    None,
                ));
            }
        }
        rulings
    }

    /// A condition of each type can be written.
    fn elements(&mut self, stage: Stage<'c>, list: &'c ConditionList) {
        let rulings = self.rulings_of_element(list);
        if rulings.is_empty() {
            return;
        }
        let other = (!list.types.other.as_ref().is_some_and(refuses)).then(|| "Example".to_owned());
        let named: Vec<(Option<&ConditionType>, String)> = list
            .types
            .known
            .iter()
            .map(|kind| (Some(kind), kind.sample()))
            .chain(other.map(|name| (None, name)))
            .collect();
        let mut refused: Vec<(Option<&ConditionType>, &str, Vec<String>, Scene)> = Vec::new();
        if named.len() > MAX_TYPES {
            self.not_proven(Vec::new(), "the question whether each type can be written");
        }
        for (kind, name) in named.iter().take(MAX_TYPES) {
            let search = Search { stage, rulings: &rulings, element: Some((list, name)) };
            match self.search_jointly(&search) {
                Joint::Passes => {}
                Joint::NotProven(rules) => self.not_proven(
                    rules,
                    &format!("the question whether {name} can be written at all"),
                ),
                Joint::Refused(core, scene) => refused.push((*kind, name, core, scene)),
            }
        }
        let everything = refused.len() == named.len();
        if let Some((_, _, core, scene)) = refused.first().filter(|(_, _, core, _)| {
            everything && refused.iter().all(|(_, _, other, _)| other == core)
        }) {
            let message = match core.len() {
                1 => "this rule refuses every condition",
                _ => "these rules refuse every condition between them",
            };
            return self.contradiction(core.clone(), message, scene);
        }
        for (kind, name, mut core, scene) in refused {
            let always =
                |presence: &&Presence| presence.when.is_none() && refuses(&presence.sanction);
            let missing = kind.and_then(|kind| kind.missing.as_ref().filter(always));
            // One rule by itself says that there should be none, unless another asks for it.
            if core.len() == 1 && missing.is_none() {
                continue;
            }
            let message = format!("these rules refuse every condition {name} between them");
            core.extend(missing.map(|presence| presence.sanction.rule.clone()));
            self.contradiction(core, &message, &scene);
        }
    }

    fn rulings_of_element(&self, list: &'c ConditionList) -> Vec<Ruling<'c>> {
        let ruling = |id, asks| Ruling { id, asks, list: Some(list), decided: true };
        let of_list = self.clauses.iter().filter(|clause| {
            clause.of_element
                && clause.refuses()
                && clause.list.is_some_and(|own| std::ptr::eq(own, list))
        });
        let mut rulings: Vec<Ruling<'c>> = of_list
            .map(|clause| ruling(clause.id, vec![clause.when.clone().into_owned()]))
            .collect();
        for kind in &list.types.known {
            for sanction in kind.not_true.iter().filter(|sanction| refuses(sanction)) {
                rulings.push(ruling(&sanction.rule, Vec::new()));
            }
            let reasons: Vec<&str> = kind.reasons.iter().map(|row| row.reason.as_str()).collect();
            for sanction in kind.other_reasons.iter().filter(|sanction| refuses(sanction)) {
                rulings.push(ruling(&sanction.rule, vec![is_one_of("reason", &reasons)]));
            }
            for row in kind.reasons.iter().filter(|row| refuses(&row.sanction)) {
                let expected = row.expects.iter().map(|(member, texts)| {
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    is_one_of(member, &texts)
                });
                let asks = expected.chain([is_one_of("reason", &reasons)]).collect();
                rulings.push(ruling(&row.sanction.rule, asks));
            }
        }
        for (member, checks) in list.members.iter().filter(|(member, _)| member != "type") {
            for check in checks.iter().filter(|check| check.action == Action::Deny) {
                let place = Place::Member { old: false, name: member.clone() };
                let all: Vec<&Check> = checks.iter().collect();
                let (asks, decided) = (asks_for_value(&all, place), is_decided(&all));
                let of_member = |asks| Ruling { decided, ..ruling(&check.rule, vec![asks]) };
                rulings.extend(asks.map(of_member));
            }
        }
        rulings
    }

    fn search_jointly(&mut self, search: &Search<'_, 'c>) -> Joint {
        let ids: HashSet<&str> = search.rulings.iter().map(|ruling| ruling.id).collect();
        let relevant = |id: &String| ids.contains(id.as_str());
        let mut involved: Vec<String> = Vec::new();
        // Rules that have nothing to do with one another are satisfied one after the other: together
        // they have too many combinations to meet a good one by chance.
        for _ in 0..MAX_STEPS {
            match self.descend(search, &ids, &involved) {
                None => return Joint::Passes,
                Some(rules) => {
                    let known = involved.len();
                    involved.extend(rules);
                    involved.sort();
                    involved.dedup();
                    if involved.len() == known {
                        break;
                    }
                }
            }
        }
        let stuck = std::mem::take(&mut involved);
        loop {
            let Some(space) = search.space(&involved) else { return Joint::Passes };
            let size = space.size();
            let mut refusals: Vec<Vec<String>> = Vec::new();
            let mut least: Option<(usize, Scene)> = None;
            for number in Space::scattered(size.unwrap_or(MAX_WRITES)).take(MAX_WRITES) {
                let scene = search.stage.scene(&space, &space.combination(number));
                let Some(mut scene) = scene else { continue };
                self.combinations += 1;
                search.finish(&space, &mut scene);
                let resource = search.stage.resource(&scene.plural);
                let bare = search.stage.bare();
                // What is refused only for what was filled in is said of what fills it in.
                let Err(Refused(rules)) =
                    self.gate.either(&resource, &bare, &scene.object, relevant)
                else {
                    return Joint::Passes;
                };
                if least.as_ref().is_none_or(|(count, _)| rules.len() < *count) {
                    least = Some((rules.len(), scene));
                }
                if !refusals.contains(&rules) {
                    refusals.push(rules);
                }
            }
            if size.is_none_or(|size| size > MAX_WRITES) {
                return Joint::NotProven(stuck);
            }
            let core = core_of(&refusals);
            let known = involved.len();
            involved.extend(
                core.iter().filter(|id| !involved.contains(id)).cloned().collect::<Vec<_>>(),
            );
            if involved.len() > known {
                continue;
            }
            let decides =
                |ruling: &&Ruling<'_>| core.iter().all(|id| id != ruling.id) || ruling.decided;
            let decided = search.rulings.iter().all(|ruling| decides(&ruling));
            let walked = decided && size.is_some_and(|size| size <= MAX_WRITES);
            let neighbours = search.element.is_some()
                && space.facts.iter().any(|fact| matches!(fact, Fact::Condition { .. }));
            return match least {
                // Other conditions are made up, and may be refused for that.
                Some((_, scene)) if walked && !space.open && !neighbours => {
                    Joint::Refused(core, scene)
                }
                _ => Joint::NotProven(core),
            };
        }
    }

    /// Changes one fact after the other for the better. `None`, where nothing is refused any more;
    /// else the rules that refuse the best of what was tried.
    fn descend(
        &mut self,
        search: &Search<'_, 'c>,
        relevant: &HashSet<&str>,
        involved: &[String],
    ) -> Option<Vec<String>> {
        let space = search.space(involved)?;
        let mut refused = |combination: &[usize]| {
            let mut scene = search.stage.scene(&space, combination)?;
            self.combinations += 1;
            search.finish(&space, &mut scene);
            let resource = search.stage.resource(&scene.plural);
            let is_relevant = |id: &String| relevant.contains(id.as_str());
            let written =
                self.gate.either(&resource, &search.stage.bare(), &scene.object, is_relevant);
            Some(written.map_or_else(|Refused(rules)| rules, |()| Vec::new()))
        };
        let mut best = vec![0; space.facts.len()];
        let mut rules = refused(&best);
        for (at, answers) in space.answers.iter().enumerate() {
            for answer in 0..answers.len() {
                let mut next = best.clone();
                if let Some(place) = next.get_mut(at) {
                    *place = answer;
                }
                let found = refused(&next);
                let better = match (&found, &rules) {
                    (Some(found), Some(rules)) => found.len() < rules.len(),
                    (found, None) => found.is_some(),
                    (None, _) => false,
                };
                if better {
                    (best, rules) = (next, found);
                }
                if rules.as_ref().is_some_and(Vec::is_empty) {
                    return None;
                }
            }
        }
        Some(rules.unwrap_or_default()).filter(|rules| !rules.is_empty() || !space.facts.is_empty())
    }

    /// Once: pairs of rules have been looked at by themselves.
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

impl<'c> Search<'_, 'c> {
    /// What the rules involved ask of an object that has no status yet, and is not being deleted.
    fn space(&self, involved: &[String]) -> Option<Space> {
        let rulings =
            self.rulings.iter().filter(|ruling| involved.iter().any(|id| id == ruling.id));
        let of_element = self.element.is_some();
        let mut questions: Vec<Question<'_>> = rulings
            .flat_map(|ruling| {
                let list = ruling.list;
                ruling.asks.iter().map(move |predicate| Question { predicate, list, of_element })
            })
            .collect();
        let statuses = ["True", "False", "Unknown"];
        let judged = Predicate::All(vec![
            is_one_of("status", &statuses),
            is_one_of("type", &self.element.iter().map(|(_, name)| *name).collect::<Vec<_>>()),
        ]);
        if let Some((list, _)) = self.element {
            questions.push(Question { predicate: &judged, list: Some(list), of_element });
        }
        let mut space = space_of(self.stage.convention, self.stage.version, &questions);
        space.retain(|fact| {
            !matches!(
                fact,
                Fact::Deleting
                    | Fact::Phase { old: true }
                    | Fact::Condition { old: true, .. }
                    | Fact::Field { old: true, .. }
                    | Fact::Member { old: true, .. }
            )
        });
        if let Some((_, name)) = self.element {
            let only = |wanted: &[&str]| {
                let wanted: Vec<Value> = wanted.iter().map(|text| (*text).into()).collect();
                move |answer: &Answer| matches!(answer, Answer::Value { value, .. } if wanted.contains(value))
            };
            space.narrow("type", only(&[name]));
            space.narrow("status", only(&statuses));
        }
        Some(space)
    }

    /// What is not asked for, but has to be there for a write to be one.
    fn finish(&self, space: &Space, scene: &mut Scene) {
        if let Some((list, _)) = self.element {
            self.stage.complete(space, list, scene);
        }
        if scene.object.get("status").and_then(Value::as_object).is_none() {
            scene.object["status"] = json!({"written": true});
        }
    }
}

fn refuses(sanction: &Sanction) -> bool {
    matches!(sanction.action, Disposition::Fixed(Action::Deny) | Disposition::Disagreement)
}

fn is_true(kind: &ConditionType) -> Predicate {
    let test = ConditionTest::Is(vec![ConditionStatus::True]);
    Predicate::Condition { old: false, kind: kind.sample(), test }
}

fn is_one_of(member: &str, texts: &[&str]) -> Predicate {
    let texts = texts.iter().map(|text| Value::from(*text)).collect();
    let place = Place::Member { old: false, name: member.to_owned() };
    Predicate::Value(place, ValueTest::Is(texts))
}

/// Asks for a place, such that a value that passes all its checks is among the answers. `None`, where
/// none is known.
fn asks_for_value(checks: &[&Check], place: Place) -> Option<Predicate> {
    let Left::Value(value) = left(checks) else { return None };
    Some(Predicate::Value(place, ValueTest::Is(vec![value])))
}
