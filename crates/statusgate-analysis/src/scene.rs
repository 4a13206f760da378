//! Builds the object of a combination, for the engine to judge.

mod side;

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use side::{Builder, Side};

use crate::facts::{self, Answer, Fact, NOW, Question, Represents, Space, condition, sample_path};
use crate::table::space_of;
use statusgate_core::engine::{Facts, Health, Truth, facts_of, imposed, with_element};
use statusgate_core::language::{Glob, List};
use statusgate_core::model::{ConditionStatus, Json, Object, Pointer, Resource};
use statusgate_core::policy::convention::{
    ConditionList, Convention, Generation, HealthRule, PhaseValue,
};

/// The object of a combination, and the stored object if predicates query it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The written object.
    pub object: Value,
    /// The stored one.
    pub old: Option<Value>,
    /// The resource.
    pub plural: String,
    /// The list with the judged element, which is its last, or the map with it as its only value.
    pub(crate) element_of: Option<Pointer>,
}

/// A convention, an API version and resources: the same in all scenes.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'c> {
    pub(crate) convention: &'c Convention,
    pub(crate) version: &'c str,
    /// The group and the plurals of the objects; `None` for any.
    pub(crate) selected: Option<(&'c Glob, &'c [Glob])>,
}

/// The group and kind of the objects. Rules see only plurals.
pub(crate) const GROUP: &str = "example.com";
const KIND: &str = "Example";

impl<'c> Stage<'c> {
    /// Objects of any resource.
    pub const fn of(convention: &'c Convention, version: &'c str) -> Self {
        Self { convention, version, selected: None }
    }

    /// The space of the facts that some questions query about these objects.
    pub(crate) fn space(&self, questions: &[Question<'_>]) -> Space {
        let mut space = space_of(self.convention, self.version, questions);
        if let (Some((_, plurals)), Some(answers)) =
            (self.selected, space.facts.get_mut(&Fact::Resource))
        {
            let samples = plurals.iter().map(|glob| Answer::named(glob.sample().into()));
            let known = answers.drain(..).filter(|answer| {
                let plural = answer.value().and_then(Value::as_str).unwrap_or_default();
                plurals.iter().any(|glob| glob.matches(plural))
            });
            let all: Vec<Answer> = known.chain(samples).collect();
            for answer in all {
                if !answers.iter().any(|known| known.value() == answer.value()) {
                    answers.push(answer);
                }
            }
        }
        space
    }

    /// The scene of a combination; `None` if its facts exclude each other, such as a list of length 0 and its
    /// last element.
    pub fn scene(&self, space: &Space, combination: &[usize]) -> Option<Scene> {
        let facts: Vec<(&Fact, &Answer)> = space.chosen(combination).collect();
        let mut builder = Builder::default();
        for (fact, answer) in &facts {
            self.place(fact, answer, space.touched, &mut builder)?;
        }
        if builder.plural.is_empty() {
            let plural = self.selected.and_then(|(_, plurals)| plurals.first());
            builder.plural = plural.map(Glob::sample).unwrap_or_default();
        }
        builder.object.sort(self.convention, self.version);
        if let Some(list) = &space.element_of {
            self.place_element(list, &facts, &mut builder)?;
        }
        for (fact, answer) in &facts {
            if let (Fact::Length(path), Answer::Count(count)) = (fact, answer) {
                builder.object.stretch(path, *count, |number| {
                    let kind = format!("Example{number}");
                    match self.list_at(path) {
                        Some(list) => self.condition(list, &kind, "True"),
                        None => json!({"type": kind}),
                    }
                })?;
            }
        }
        // After the lengths, because a length changes which element is the last.
        for (fact, answer) in &facts {
            if let (Fact::Field { old, path }, Answer::Value { value, .. }) = (fact, answer) {
                let lengths = facts.iter().any(|(fact, _)| matches!(fact, Fact::Length(_)));
                builder.side(*old).set(path, value.clone(), !lengths)?;
            }
        }
        for (fact, answer) in &facts {
            if let Fact::OfCondition { list: Some(list), of } = fact {
                let list = self.sample(list);
                builder.object.set_member(&list, &of.condition, &of.member, answer)?;
            }
        }
        let observed = facts.iter().find(|(fact, _)| **fact == Fact::Observed);
        let generation = match &self.convention.generation {
            Some(rules) => self.generation(rules, space, observed, &mut builder.object)?,
            None => None,
        };
        let deleting = builder.deleting;
        let object = self.finish(builder.object, deleting, generation);
        let old = builder.old.map(|old| self.finish(old, deleting, generation));
        Some(Scene { object, old, plural: builder.plural, element_of: space.element_of.clone() })
    }

    /// The scenes of the combinations with these numbers.
    pub(crate) fn scenes<'s>(
        &'s self,
        space: &'s Space,
        numbers: impl Iterator<Item = usize> + 's,
    ) -> impl Iterator<Item = Scene> + 's {
        numbers.filter_map(|number| self.scene(space, &space.combination(number)))
    }

    fn place(
        &self,
        fact: &Fact,
        answer: &Answer,
        touched: bool,
        builder: &mut Builder,
    ) -> Option<()> {
        match (fact, answer) {
            (Fact::Deleting, Answer::Flag(deleting)) => builder.deleting = *deleting,
            (Fact::Resource, Answer::Value { value, .. }) => {
                builder.plural = value.as_str()?.to_owned();
            }
            (Fact::Phase { old }, answer) => {
                let side = builder.side(*old);
                if let (Some(rules), Answer::Value { value, .. }) = (&self.convention.phase, answer)
                {
                    side.set(&rules.path, value.clone(), true)?;
                }
            }
            (Fact::Condition { old, list: Some(list), kind }, answer) => {
                let side = builder.side(*old);
                if let Answer::Condition { status, reason, represents } = answer {
                    let rules = self.list_at(list);
                    let mut item = condition(rules, kind, status.name(), reason, facts::PAST);
                    if let (true, Some(members)) = (reason.is_empty(), item.as_object_mut()) {
                        members.remove("reason");
                    } else if *represents != Represents::Anything {
                        item["reason"] = reason.as_str().into();
                    }
                    if *old && touched {
                        item["message"] = "before".into();
                    }
                    side.push(&self.sample(list), item)?;
                }
            }
            (Fact::Gates(path), Answer::Gate(good)) => {
                let list = self.convention.primary_conditions(self.version);
                let kind = list.map_or_else(|| facts::GATE.to_owned(), facts::gate);
                builder.object.push(path, json!({"conditionType": kind}))?;
                if let Some(list) = list {
                    // A declared type may be another fact.
                    if kind != facts::GATE
                        && builder.object.has(&list.path, Some(&kind.as_str().into()))
                    {
                        return None;
                    }
                    if let Some(good) = good {
                        let status = if *good { "True" } else { "False" };
                        let item = condition(Some(list), &kind, status, "Example", facts::PAST);
                        builder.object.push(&list.path, item)?;
                    }
                }
            }
            // A stored object without any of the queried values is still a stored object.
            (Fact::Field { old: true, .. } | Fact::Member { old: true, .. }, _) => {
                builder.side(true);
            }
            _ => {}
        }
        Some(())
    }

    /// The newest generation. Without a query, it is the largest that is observed.
    fn generation(
        &self,
        rules: &Generation,
        space: &Space,
        observed: Option<&(&Fact, &Answer)>,
        object: &mut Side,
    ) -> Option<Option<i64>> {
        match (observed, rules.own_path()) {
            (Some((_, Answer::Observed(observed))), Some(path)) => {
                let field = Fact::Field { old: false, path: path.clone() };
                let own = facts::generation(self.convention, path);
                let own = Some(own).filter(|_| !space.facts.contains_key(&field));
                object.observe(path, own, *observed).map(Some)
            }
            (Some(_), Some(path)) if object.number(path).is_some() => Some(None),
            _ => {
                let paths = rules.paths.iter().flatten();
                let largest = paths.filter_map(|path| object.number(path)).max();
                Some(Some(largest.unwrap_or(1).max(1)))
            }
        }
    }

    /// Whether the object of a scene has a generation, as every object in a cluster.
    pub(crate) fn is_real(&self, scene: &Scene) -> bool {
        self.convention.generation.is_none()
            || scene.object.pointer("/metadata/generation").is_some()
    }

    /// Adds the judged element at the end of its list, or as the value of its map.
    fn place_element(
        &self,
        list: &Pointer,
        facts: &[(&Fact, &Answer)],
        builder: &mut Builder,
    ) -> Option<()> {
        let member = |wanted: bool| {
            let members = facts.iter().filter_map(move |(fact, answer)| match (fact, answer) {
                (Fact::Member { old, name }, Answer::Value { value, .. }) if *old == wanted => {
                    Some((name.clone(), value.clone()))
                }
                _ => None,
            });
            members.collect::<Map<String, Value>>()
        };
        let item = member(false);
        let before = facts
            .iter()
            .any(|(fact, _)| matches!(fact, Fact::Member { old: true, .. }))
            .then(|| member(true));
        let place = self.sample(list);
        if self.list_at(list).is_some_and(ConditionList::is_map) {
            if let Some(before) = before {
                builder.side(true).set(&place, before.into(), true)?;
            }
            return builder.object.set(&place, item.into(), true);
        }
        let kind = item.get("type").cloned();
        // The element may be a condition that is already in the list.
        if builder.object.has(&place, kind.as_ref()) {
            return None;
        }
        if let Some(mut before) = before {
            before.extend(kind.map(|kind| ("type".to_owned(), kind)));
            builder.side(true).push(&place, before.into())?;
        }
        builder.object.push(&place, item.into())?;
        for path in self.list_at(list).map(|list| &list.polarity_from).into_iter().flatten() {
            for (kind, polarity) in facts::GATES {
                builder.object.push(path, json!({"conditionType": kind, "polarity": polarity}))?;
            }
        }
        Some(())
    }

    fn list_at(&self, path: &Pointer) -> Option<&'c ConditionList> {
        self.convention.list_at(path, self.version)
    }

    /// The path of a list, or of a value of a map, in a scene.
    fn sample(&self, path: &Pointer) -> Pointer {
        self.list_at(path).map_or_else(|| path.clone(), sample_path)
    }

    fn finish(&self, side: Side, deleting: bool, generation: Option<i64>) -> Value {
        let mut object = side.0;
        // There may be labels and annotations.
        let metadata = &mut object["metadata"];
        metadata["name"] = "example".into();
        if let Some(generation) = generation {
            metadata["generation"] = generation.into();
        }
        if deleting {
            metadata["deletionTimestamp"] = facts::PAST.into();
        }
        object["apiVersion"] = format!("{}/{}", self.group(), self.version).into();
        object["kind"] = KIND.into();
        object
    }

    /// Calls `ask` with the engine's facts of the scene, including its element if it has one.
    pub fn look<T>(
        &self,
        scene: &Scene,
        list: Option<&ConditionList>,
        ask: impl FnOnce(&Facts<'_, '_>) -> T,
    ) -> Option<T> {
        let text = scene.object.to_string();
        let old_text = scene.old.as_ref().map(Value::to_string);
        let object = Object::parse(&text).ok()?;
        let old = old_text.as_deref().map(Object::parse).transpose().ok()?;
        let resource = self.resource(&scene.plural);
        let now = NOW.parse::<Timestamp>().ok()?.as_second();
        let facts = facts_of(self.convention, &object, old.as_ref(), &resource);
        let mut facts = Facts { now: Some(now), ..facts };
        let list = list.filter(|list| !list.is_map());
        let sample = list.map(sample_path);
        if let (Some(list), Some(path)) = (list, &sample) {
            facts = facts.reading(List { path, ..list.for_predicates() });
        }
        if let Some(path) = &scene.element_of {
            let place = self.sample(path);
            let item = element_at(&object, &place)?;
            let before = old.as_ref().and_then(|old| element_at(old, &place));
            let kind = self.list_at(path).and_then(|list| list.find(item.get("type")?.as_str()?));
            facts = with_element(facts, item, before, kind);
        }
        Some(ask(&facts))
    }

    /// The health of a scene, and the rule that decides it.
    pub fn health(&self, scene: &Scene) -> Option<(Option<&'c HealthRule>, Health)> {
        let text = scene.object.to_string();
        let object = Object::parse(&text).ok()?;
        Health::decide(self.convention, &object, &self.resource(&scene.plural))
    }

    /// The phase that is imposed in a scene instead of this one.
    pub(crate) fn replaced(&self, scene: &Scene, phase: &str) -> Option<&'c PhaseValue> {
        let rules = self.convention.phase.as_ref()?;
        let by = self.look(scene, None, |facts| imposed(rules, facts))??;
        Some(by).filter(|by| by.name != phase)
    }

    /// Whether a predicate definitely holds in a scene.
    pub fn holds(&self, scene: &Scene, question: &Question<'_>) -> bool {
        self.look(scene, question.list, |facts| facts.ask(question.predicate)) == Some(Truth::True)
    }

    /// An object without a status.
    pub(crate) fn bare(&self) -> Value {
        self.finish(Side::default(), false, None)
    }

    /// A condition with all members that its list requires.
    pub(crate) fn condition(&self, list: &ConditionList, kind: &str, status: &str) -> Value {
        let read = ConditionStatus::parse(status).unwrap_or(ConditionStatus::Unknown);
        let reason = facts::reason(Some(list), kind, read, &[]);
        condition(Some(list), kind, status, &reason, facts::PAST)
    }

    /// Adds to the element of a scene the members that its list requires and that are no facts of the space.
    pub(crate) fn complete(&self, space: &Space, list: &ConditionList, scene: &mut Scene) {
        let item = match scene.object.pointer_mut(&sample_path(list).to_string()) {
            Some(Value::Array(items)) => items.last_mut(),
            value => value,
        };
        let Some(Value::Object(item)) = item else { return };
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        let Value::Object(whole) = self.condition(list, text("type"), text("status")) else {
            return;
        };
        for (name, value) in whole {
            let asked = Fact::Member { old: false, name: name.clone() };
            if !space.facts.contains_key(&asked) {
                item.insert(name, value);
            }
        }
    }

    /// Writes a phase into an object.
    pub(crate) fn set_phase(&self, object: &mut Value, phase: &str) {
        let Some(rules) = &self.convention.phase else { return };
        put(object, &rules.path, phase.into());
    }

    /// The elements of a list in an object, or the value of a map, with their JSON pointers.
    pub(crate) fn elements<'o>(
        &self,
        list: &ConditionList,
        object: &'o Value,
    ) -> Vec<(String, &'o Value)> {
        let path = sample_path(list).to_string();
        match object.pointer(&path) {
            Some(value) if list.is_map() => vec![(path, value)],
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(at, item)| (format!("{path}/{at}"), item)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Writes an element into an object, as the only one of its list or map.
    pub(crate) fn set_element(&self, object: &mut Value, list: &ConditionList, element: Value) {
        let value = if list.is_map() { element } else { json!([element]) };
        put(object, &sample_path(list), value);
    }

    /// The phase in an object.
    pub(crate) fn phase_of<'o>(&self, object: &'o Value) -> Option<&'o str> {
        let rules = self.convention.phase.as_ref()?;
        let phase = rules.path.tokens().iter().try_fold(object, |place, token| match place {
            Value::Array(items) if token == "-1" => items.last(),
            other => other.get(token),
        });
        phase?.as_str()
    }

    pub(crate) fn resource<'r>(&self, plural: &'r str) -> Resource<'r>
    where
        'c: 'r,
    {
        Resource {
            group: self.group().into(),
            version: self.version.into(),
            resource: plural.into(),
        }
    }

    fn group(&self) -> String {
        self.selected.map_or_else(|| GROUP.to_owned(), |(group, _)| group.sample())
    }
}

/// Writes a value into an object. Replaces values on its path that are of another type.
pub(crate) fn put(object: &mut Value, path: &Pointer, value: Value) {
    let mut place = object;
    for token in path.tokens() {
        if matches!(token.as_str(), "0" | "-1") {
            if place.as_array().is_none_or(Vec::is_empty) {
                *place = json!([{}]);
            }
            let last = if token == "0" { 0 } else { place.as_array().map_or(0, Vec::len) - 1 };
            place = &mut place[last];
            continue;
        }
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[token.as_str()];
    }
    *place = value;
}

/// The last element of a list, or the value of a map.
fn element_at<'o, 'a>(object: &'o Object<'a>, place: &Pointer) -> Option<&'o Json<'a>> {
    match object.at_status(place)? {
        Json::Array(items) => items.last(),
        value => Some(value),
    }
}

impl Scene {
    /// The scene of given objects of any resource.
    pub(crate) const fn of(object: Value, old: Option<Value>) -> Self {
        Self { object, old, plural: String::new(), element_of: None }
    }

    /// The stored object. Without one, it is the new object without a status.
    pub(crate) fn stored(&self) -> Cow<'_, Value> {
        if let Some(old) = &self.old {
            return Cow::Borrowed(old);
        }
        let mut object = self.object.clone();
        object.as_object_mut().map(|members| members.remove("status"));
        Cow::Owned(object)
    }

    /// The object, below the stored object if there is one.
    pub(crate) fn to_yaml(&self) -> String {
        match &self.old {
            Some(old) => format!("# stored\n{}---\n# written\n{}", yaml(old), yaml(&self.object)),
            None => yaml(&self.object),
        }
    }
}

/// A value as YAML.
pub fn yaml(value: &impl Serialize) -> String {
    serde_saphyr::to_string(value).unwrap_or_default()
}
