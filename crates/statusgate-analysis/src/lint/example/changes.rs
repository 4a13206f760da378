//! The changes of a write that a search tries.

use indexmap::IndexSet;
use serde_json::{Value, json};

use super::Search;
use super::edit::{replaced, without_one};
use super::seeds::{GENERATION, OTHER};
use crate::facts::{FUTURE, LATER, NOW, PAST, STATUSES, sample_path, values};
use crate::scene::{Scene, put};
use statusgate_core::model::Pointer;
use statusgate_core::policy::Check;
use statusgate_core::policy::convention::{ConditionList, ConditionType};

/// A field, as a JSON pointer, and the values to try there. `None` removes it.
pub(in super::super) type Variation = (String, Vec<Option<Value>>);

/// The members of a condition that the engine knows, in addition to the type.
const MEMBERS: [&str; 4] = ["status", "reason", "message", "observedGeneration"];

impl Search<'_> {
    /// Writes that differ in one place, those with another value in the written object first. `wrong` also
    /// tries values that some rule may reject; otherwise each change may help to satisfy the rules.
    pub(super) fn changes(&self, scene: &Scene, wrong: bool) -> Vec<Scene> {
        let with = |object: Value| Scene { object, ..scene.clone() };
        let with_old = |old: Value| Scene { old: Some(old), ..scene.clone() };
        let (object, old) = (&scene.object, scene.old.as_ref());
        let mut changed: Vec<Scene> = Vec::new();
        changed.extend(self.varied(scene, wrong));
        changed.extend(self.additions(object, old).into_iter().map(with));
        changed.extend(without_one(object, true).into_iter().map(with));
        if let Some(old) = old {
            changed.extend(self.variants(old, None, false).into_iter().map(with_old));
            changed.extend(self.additions(old, Some(object)).into_iter().map(with_old));
            changed.extend(without_one(old, true).into_iter().map(with_old));
            changed.push(Scene { old: None, ..scene.clone() });
        }
        if wrong {
            changed.extend(self.wrong_lists(object).into_iter().map(with));
            changed.extend(replaced(object, "/status", Some(json!([]))).map(with));
        }
        changed
    }

    /// Writes with another value at one place of the written object.
    pub(super) fn varied(&self, scene: &Scene, wrong: bool) -> impl Iterator<Item = Scene> {
        let variants = self.variants(&scene.object, scene.old.as_ref(), wrong);
        variants.into_iter().map(|object| Scene { object, ..scene.clone() })
    }

    /// The same write without a stored status, or without one member or condition. Conditions keep their
    /// members, so that they stay realistic.
    pub(super) fn removals(&self, scene: &Scene) -> Vec<Scene> {
        let mut smaller: Vec<Scene> = Vec::new();
        if scene.old.is_some() {
            smaller.push(Scene { old: None, ..scene.clone() });
        }
        for object in without_one(&scene.object, false) {
            smaller.push(Scene { object, ..scene.clone() });
        }
        for old in scene.old.iter().flat_map(|old| without_one(old, false)) {
            smaller.push(Scene { old: Some(old), ..scene.clone() });
        }
        smaller
    }

    /// The object with another value at one place. If there is a stored object, the time of a condition may
    /// have to change as well.
    fn variants(&self, object: &Value, old: Option<&Value>, wrong: bool) -> Vec<Value> {
        let mut variants = Vec::new();
        for (place, values) in &self.asked {
            let stored = old.and_then(|old| old.pointer(place)).cloned().map(Some);
            let values = stored.into_iter().chain(values.iter().cloned());
            variants.extend(values.filter_map(|value| replaced(object, place, value)));
        }
        for list in self.lists() {
            let time = list.time_member();
            for (at, item) in self.stage.elements(list, object) {
                for (place, values) in self.element(list, &at, item, wrong) {
                    for value in values {
                        let Some(changed) = replaced(object, &place, value) else { continue };
                        let time = format!("{at}/{time}");
                        let may_move = old.is_some() && !wrong && place != time;
                        if may_move && changed.pointer(&time).is_some() {
                            variants.extend(replaced(&changed, &time, Some(LATER.into())));
                        }
                        variants.push(changed);
                    }
                }
            }
        }
        for (place, values) in self.other_variations(wrong) {
            variants.extend(values.into_iter().filter_map(|value| replaced(object, &place, value)));
        }
        variants
    }

    /// The variations of an element of a list.
    fn element(
        &self,
        list: &ConditionList,
        path: &str,
        item: &Value,
        wrong: bool,
    ) -> Vec<Variation> {
        let known = item.get("type").and_then(Value::as_str).and_then(|kind| list.find(kind));
        let time = list.time_member();
        // The type last: another type is another condition.
        let own = list.members.iter().map(|(name, _)| name.as_str());
        let names: IndexSet<&str> =
            MEMBERS.into_iter().chain([time]).chain(own).chain(["type"]).collect();
        let mut variations: Vec<Variation> = Vec::new();
        for name in names {
            let checks: Vec<&Check> = list.checks(name).iter().collect();
            // Members that the list does not know would be findings.
            if checks.is_empty() && !list.members.is_empty() && !wrong {
                continue;
            }
            let mut values = self.values_of_member(list, known, name, name == time);
            values.extend(good(&checks));
            if wrong {
                values.extend(bad(&checks));
            }
            variations.push((format!("{path}/{name}"), unique(values)));
        }
        if wrong {
            variations.push((format!("{path}/example"), vec![Some("text".into())]));
            variations.push((path.to_owned(), vec![Some(5.into())]));
        }
        variations
    }

    fn values_of_member(
        &self,
        list: &ConditionList,
        known: Option<&ConditionType>,
        name: &str,
        is_time: bool,
    ) -> Vec<Value> {
        let texts = |texts: &[&str]| texts.iter().map(|text| Value::from(*text)).collect();
        match name {
            "status" => texts(&STATUSES),
            "type" => {
                let known = list.types.values().map(|kind| kind.sample().into());
                known.chain([OTHER.into()]).collect()
            }
            "reason" => {
                let reasons = known.iter().filter_map(|known| known.reasons.as_ref());
                let reasons = reasons.flat_map(|reasons| reasons.all());
                reasons.chain(["Example"]).map(Value::from).collect()
            }
            "observedGeneration" => [0, -1, 1].map(|more| (GENERATION + more).into()).to_vec(),
            _ if is_time => texts(&[PAST, LATER, NOW]),
            _ => Vec::new(),
        }
    }

    /// The variations outside of the lists.
    fn other_variations(&self, wrong: bool) -> Vec<Variation> {
        let convention = self.stage.convention;
        let mut variations: Vec<Variation> = Vec::new();
        for path in self.paths() {
            let mut values = self.values(path);
            if wrong {
                values.extend(bad(&self.checks(path)));
            }
            variations.push((path.to_string(), unique(values)));
        }
        if let Some(rules) = &convention.phase {
            let names = rules.phases.iter().map(|phase| Value::from(phase.name.as_str()));
            let wrong: Vec<Value> = if wrong { bad(&[]) } else { Vec::new() };
            variations.push((rules.path.to_string(), unique(names.chain(wrong).collect())));
            if let Some(time) = &rules.transition_time {
                let times = [PAST, LATER, NOW].map(Value::from);
                variations.push((time.path.to_string(), unique(times.to_vec())));
            }
            if let Some(reason) = &rules.reason {
                let own = rules.phases.iter().flat_map(|phase| phase.reasons.iter());
                let reasons = own.chain(reason.always.iter()).map(String::as_str);
                let values = reasons.chain(["Example"]).map(Value::from).collect();
                variations.push((reason.path.to_string(), unique(values)));
            }
        }
        variations.push(("/metadata/deletionTimestamp".to_owned(), vec![Some(PAST.into())]));
        variations
    }

    /// Fields with checks, generations and owned fields.
    pub(super) fn paths(&self) -> Vec<&Pointer> {
        let convention = self.stage.convention;
        let fields = convention.fields.iter().chain(&self.policy.fields).map(|field| &*field.path);
        let generations =
            convention.generation.iter().flat_map(|rules| rules.paths.iter().flatten());
        let paths: IndexSet<&Pointer> = fields.chain(generations.map(|path| &**path)).collect();
        let owned = self.policy.owners.iter().filter_map(|owner| owner.path.as_deref());
        paths.into_iter().chain(owned).collect()
    }

    fn checks(&self, path: &Pointer) -> Vec<&Check> {
        let fields = self.stage.convention.fields.iter().chain(&self.policy.fields);
        fields.filter(|field| *field.path == *path).map(|field| &field.check).collect()
    }

    /// Values for one of [`Self::paths`].
    pub(super) fn values(&self, path: &Pointer) -> Vec<Value> {
        let generation = self.stage.convention.generation.as_ref();
        if generation
            .is_some_and(|rules| rules.paths.iter().flatten().any(|known| **known == *path))
        {
            return [GENERATION, GENERATION - 1, GENERATION + 1, 0, -1, -2]
                .map(Value::from)
                .to_vec();
        }
        good(&self.checks(path))
    }

    /// The object with one more condition: one that the other object has, or a known type.
    fn additions(&self, object: &Value, other: Option<&Value>) -> Vec<Value> {
        let mut larger = Vec::new();
        for list in self.lists() {
            let path = sample_path(list).to_string();
            let empty = Vec::new();
            let items = object.pointer(&path).and_then(Value::as_array).unwrap_or(&empty);
            let taken: Vec<_> = items.iter().map(|item| item.get("type")).chain([None]).collect();
            let others = other.and_then(|other| other.pointer(&path)?.as_array());
            let copied = others.into_iter().flatten().cloned();
            let known = list.types.values().flat_map(|kind| {
                STATUSES.map(|status| self.stage.condition(list, &kind.sample(), status))
            });
            for item in copied.chain(known).filter(|item| !taken.contains(&item.get("type"))) {
                let mut more = object.clone();
                put(&mut more, &sample_path(list), items.iter().cloned().chain([item]).collect());
                larger.push(more);
            }
            // In the order of the convention.
            let mut sorted = items.clone();
            sorted.sort_by_key(|item| {
                let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
                list.rank(kind)
            });
            if !sorted.is_empty() {
                larger.extend(replaced(object, &path, Some(sorted.into())));
            }
        }
        larger
    }

    /// Two values of a member.
    fn turns(list: &ConditionList, member: &str) -> Vec<Value> {
        let checks: Vec<&Check> = list.checks(member).iter().collect();
        let good = good(&checks).into_iter().chain([json!("One"), json!("Two")]);
        good.filter(|value| *value != json!("")).take(2).collect()
    }

    /// Lists and maps that are invalid as a whole: no list, the same element twice, too many elements, another
    /// order.
    fn wrong_lists(&self, object: &Value) -> Vec<Value> {
        let mut wrong = Vec::new();
        for list in self.lists() {
            let path = sample_path(list).to_string();
            if let Some(value) = object.pointer(&path).filter(|_| list.is_map()) {
                let values = list.max_items.map(|most| {
                    (0..=most).map(|number| (format!("example{number}"), value.clone())).collect()
                });
                let wrongs = [Some(5.into()), values].into_iter().flatten();
                let root = list.root().to_string();
                wrong.extend(wrongs.filter_map(|value| replaced(object, &root, Some(value))));
                continue;
            }
            let Some(items) = object.pointer(&path).and_then(Value::as_array) else { continue };
            let mut with = |items: Value| wrong.extend(replaced(object, &path, Some(items)));
            with(5.into());
            with(json!([]));
            let twice: Vec<Value> = items.iter().chain(items).cloned().collect();
            with(twice.into());
            if let (Some(most), Some(first)) = (list.max_items, items.first()) {
                // The members that distinguish the elements: two values in turn, or names.
                let history = list
                    .history
                    .iter()
                    .flat_map(|history| history.distinct.iter().flat_map(|names| names.first()));
                let turns: Vec<(&String, Vec<Value>)> =
                    history.map(|member| (member, Self::turns(list, member))).collect();
                let all = (0..=most).map(|number| {
                    let mut item = first.clone();
                    if item.is_object() && !list.key().is_empty() {
                        item["type"] = format!("{OTHER}{number}").into();
                    }
                    for (member, values) in &turns {
                        if let Some(value) = values.get(number % 2) {
                            item[member.as_str()] = value.clone();
                        }
                    }
                    item
                });
                with(all.collect());
            }
            for kind in list.types.values() {
                for status in ["True", "False"] {
                    let more = self.stage.condition(list, &kind.sample(), status);
                    with(std::iter::once(&more).chain(items).cloned().collect());
                    with(items.iter().chain([&more]).cloned().collect());
                }
            }
        }
        wrong
    }
}

/// A value that passes all checks, and others at their limits.
fn good(checks: &[&Check]) -> Vec<Value> {
    values(checks).take(8).collect()
}

/// Values of wrong types, forms and sizes.
fn bad(checks: &[&Check]) -> Vec<Value> {
    let bad = json!([5, "no name!", "", "example", FUTURE, true, null, -1, [], {}]);
    let mut bad = bad.as_array().cloned().unwrap_or_default();
    for check in checks {
        let most = [check.max_length, check.max_bytes].into_iter().flatten();
        bad.extend(most.map(|most| "a".repeat(most + 1).into()));
        let least = check.min_length.and_then(|least| least.checked_sub(1));
        bad.extend(least.map(|least| Value::from("a".repeat(least))));
        let below = check.minimum.map(|end| end - 1.0);
        let ends = below.into_iter().chain(check.maximum.map(|end| end + 1.0));
        let whole = ends.filter_map(|end| format!("{end:.0}").parse::<i64>().ok());
        bad.extend(whole.map(Value::from));
    }
    bad
}

fn unique(values: Vec<Value>) -> Vec<Option<Value>> {
    let unique: IndexSet<Value> = values.into_iter().collect();
    unique.into_iter().map(Some).collect()
}
