//! A list of conditions: the shape of its elements, its key, and the rules about each of them.

use std::sync::Arc;

use super::super::checks::member_id;
use super::super::compile::{Compiler, Purpose};
use super::super::rules::{DeclaredRule, Declarer};
use super::super::{Check, Disposition};
use super::times::ANYTHING;
use super::{ConditionList, ConditionType, ElementRule, OuterList};
use crate::documents::{ConventionSpec, PLACEHOLDER_POINTER};
use crate::language::{Glob, List, Polarity};
use crate::model::{ConditionStatus, Conditions, Json, Members, Object, Pointer};
use crate::source::tree::{At, near};

/// Where an element is in an outer list or map.
#[derive(Clone, Copy, Debug)]
pub enum Position<'o> {
    /// Its index in a list.
    Index(usize),
    /// Its key in a map.
    Key(&'o str),
    /// Its key in a map that is in the value of a map: the key of that value, the names to the map, its key.
    Inner(&'o str, &'o [String], &'o str),
}

impl OuterList {
    /// Whether the elements are the values of a map.
    fn is_map(&self) -> bool {
        self.inner.is_empty() || self.nested
    }

    /// The elements of a list, or the values of a map. `None` if this is not what is expected.
    pub(crate) fn elements<'o, 'a>(
        &'o self,
        outer: &'o Json<'a>,
    ) -> Option<impl Iterator<Item = (Position<'o>, &'o Json<'a>)> + use<'o, 'a>> {
        let (items, members) = match outer {
            Json::Array(items) if !self.key.is_empty() => (items.as_slice(), None),
            Json::Object(members) if self.key.is_empty() => (&[][..], Some(members)),
            _ => return None,
        };
        let items = items.iter().enumerate().map(|(index, item)| (Position::Index(index), item));
        let values = members.into_iter().flat_map(Members::iter);
        Some(items.chain(values.flat_map(|(key, value)| self.inside(key, value))))
    }

    /// A value of the map, or the values of the map in it. What is no map is an element of another shape.
    fn inside<'o, 'a>(
        &'o self,
        key: &'o str,
        value: &'o Json<'a>,
    ) -> impl Iterator<Item = (Position<'o>, &'o Json<'a>)> + use<'o, 'a> {
        let inner = value.at(&self.inner).filter(|inner| self.nested && !inner.is_null());
        let (members, whole) = match inner {
            Some(Json::Object(members)) => (Some(members), None),
            Some(other) => (None, Some((Position::Inner(key, &self.inner, ""), other))),
            None if self.nested && matches!(value, Json::Object(_)) => (None, None),
            None => (None, Some((Position::Key(key), value))),
        };
        let members = members.into_iter().flat_map(Members::iter);
        members
            .map(move |(name, value)| (Position::Inner(key, &self.inner, name), value))
            .chain(whole)
    }
}

impl ConditionList {
    /// Whether objects of this version have the list.
    pub fn applies_to(&self, version: &str) -> bool {
        self.api_versions.is_empty() || self.api_versions.iter().any(|glob| glob.matches(version))
    }

    /// Whether the elements are the values of a map.
    pub fn is_map(&self) -> bool {
        self.outer.as_ref().is_some_and(OuterList::is_map)
    }

    /// The path of the list, or of the outer list or map.
    pub fn root(&self) -> &Pointer {
        self.outer.as_ref().map_or(&self.path, |outer| &outer.path)
    }

    /// The elements of the list; with an outer list or map, of the lists of all its elements.
    pub fn items<'o, 'a>(&'o self, object: &'o Object<'a>) -> Vec<&'o [Json<'a>]> {
        let Some(root) = object.at_status(self.root()) else { return Vec::new() };
        let Some(outer) = &self.outer else { return root.as_array().into_iter().collect() };
        let elements = outer.elements(root).into_iter().flatten();
        let items = elements.filter_map(|(_, element)| match self.is_map() {
            true => Some(std::slice::from_ref(element)),
            false => element.at(&outer.inner)?.as_array(),
        });
        items.collect()
    }

    /// The noun with its article.
    pub fn a_noun(&self) -> String {
        let noun = self.noun();
        let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {noun}")
    }

    /// What messages call an element.
    pub fn noun(&self) -> &str {
        self.element.as_ref().map_or("condition", |name| name.as_str())
    }

    /// The member with the transition time: that of the convention, otherwise that of metav1.
    pub fn time_member(&self) -> &str {
        match &self.transition_time {
            Some(times) if !times.member.is_empty() => &times.member,
            _ => "lastTransitionTime",
        }
    }

    /// Whether the status of a condition is not good. A type that is not declared by its own name counts as
    /// positive.
    pub fn is_bad(&self, condition: &Json<'_>) -> bool {
        let Some(kind) = condition.get("type").and_then(Json::as_str) else { return false };
        match (
            self.types.get(kind).and_then(|known| known.polarity),
            Conditions::status_of(condition),
        ) {
            (Some(Polarity::Neutral), _) | (_, None) => false,
            (Some(Polarity::Negative), Some(status)) => status != ConditionStatus::False,
            (_, Some(status)) => status != ConditionStatus::True,
        }
    }

    /// The members that identify an element; none in a history or a map.
    pub fn key(&self) -> &[String] {
        self.key.as_deref().unwrap_or_default()
    }

    /// The checks of a member of an element.
    pub fn checks(&self, member: &str) -> &[Check] {
        self.members.get(member).map(|checks| &**checks).unwrap_or_default()
    }

    /// The first entry that matches a type: a family comes after its exceptions. Tables have up to two
    /// dozen types, so comparing short names costs less than hashing one.
    pub fn find(&self, name: &str) -> Option<&ConditionType> {
        self.types.values().find(|known| known.matches(name))
    }

    /// The place of a type in the order of types.
    pub fn rank(&self, name: &str) -> Option<usize> {
        self.types.values().position(|known| known.matches(name))
    }

    /// Whether some type has a key of its own.
    pub fn has_keys_of_types(&self) -> bool {
        self.types.values().any(|kind| kind.key.is_some())
    }

    /// What predicates need to know of it.
    pub fn for_predicates(&self) -> List<'_> {
        List { path: &self.path, polarity_from: &self.polarity_from }
    }
}

/// The usual names of members.
pub const MEMBERS: [&str; 7] =
    ["type", "status", "reason", "message", "severity", "lastTransitionTime", "observedGeneration"];

/// The keys of a list that mean nothing for the values of a map.
const NOT_OF_MAPS: [&str; 8] =
    ["parentKey", "key", "duplicate", "history", "types", "otherTypes", "order", "polarityFrom"];

impl Compiler<'_> {
    /// All lists. Of two at one path an object has one, by its version.
    pub(super) fn condition_lists(
        &self,
        spec: &ConventionSpec,
        at: At<'_>,
    ) -> Vec<Arc<ConditionList>> {
        let mut lists: Vec<Arc<ConditionList>> = Vec::new();
        for (at, document) in at.key("conditions").each(&spec.conditions) {
            let always = spec.resource_version.as_ref().is_some_and(|version| version.always);
            let list = self.condition_list(document, always, at);
            let mut others = lists.iter().filter(|other| other.path == list.path);
            if others.any(|other| Glob::any_overlap(&other.api_versions, &list.api_versions)) {
                at.key("path").report_with_help(
                    format!("{} is listed twice for one version", list.path),
                    "give each its own \"apiVersions\"",
                );
            }
            lists.push(Arc::new(list));
        }
        lists
    }

    fn condition_list(
        &self,
        document: &ConditionList,
        resource_version: bool,
        at: At<'_>,
    ) -> ConditionList {
        let element = document.element.as_ref();
        let rules = self.tables(&[&document.source]).of_list(element);
        let mut list = document.clone();
        // Without a limit the list would grow forever, because no writer may shorten it.
        if list.history.is_some() && list.max_items.is_none() && self.complete {
            at.report_with_help(
                "a history forgets its oldest elements at some length",
                "add \"maxItems\"",
            );
        }
        self.check_member_names(document, at);
        list.outer = self.outer_list(document, at);
        if list.key.is_none() && list.history.is_none() && !list.is_map() {
            list.key = Some("type".to_owned().into());
        }
        list.shape_rule = rules.rule("condition-shape", Disposition::Deny);
        list.duplicate.take_if(|_| list.key.is_none());
        rules.name("condition-duplicate", list.duplicate.as_mut());
        list.too_long.take_if(|_| list.max_items.is_none());
        rules.name("conditions-length", list.too_long.as_mut());
        if let Some(history) = &mut list.history {
            rules.name("history-rewritten", history.rewritten.as_mut());
            rules.name("history-repeated", history.repeated.as_mut());
        }
        for (at, check) in at.key("keys").each(&mut list.keys.0) {
            *check = self.check_of_keys(check, document, list.outer.as_ref(), at);
        }
        for (name, checks) in &mut list.members {
            for (at, check) in at.key("members").key(name).each(&mut checks.0) {
                check.empty_is_absent |= document.empty_is_absent;
                let id = member_id(name, element.map(|name| name.as_str()));
                *check = self.check(check, &id, &document.source, at);
            }
        }
        rules.name("condition-member-unknown", list.other_members.as_mut());
        let compares = !list.is_map() && list.history.is_none();
        list.misspelled.take_if(|_| !compares);
        rules.name("condition-misspelled", list.misspelled.as_mut());
        list.reason_kept.take_if(|_| !compares);
        rules.name("condition-reason-kept", list.reason_kept.as_mut());
        self.condition_types(&mut list, at);
        if let Some(times) = &mut list.transition_time {
            self.transition_times(times, document, resource_version, at.key("transitionTime"));
        }
        list
    }

    fn check_of_keys(
        &self,
        check: &Check,
        document: &ConditionList,
        outer: Option<&OuterList>,
        at: At<'_>,
    ) -> Check {
        if !outer.is_some_and(OuterList::is_map) {
            at.report_with_help(
                "only the values of a map have keys",
                "a path to them ends with \"*\": /status/instances/*",
            );
        } else if !check.fits_keys() {
            at.report("a key is a text: this check is for other values");
        }
        let id = member_id("keys", document.element.as_ref().map(|name| name.as_str()));
        self.check(check, &id, &document.source, at)
    }

    /// Without a `parentKey`, the outer one is a map.
    fn outer_list(&self, document: &ConditionList, at: At<'_>) -> Option<OuterList> {
        let key: Vec<String> = document.parent_key.iter().flat_map(|key| key.to_vec()).collect();
        let Some((path, inner)) = document.path.outer_list() else {
            if !key.is_empty() && document.path.to_string() != PLACEHOLDER_POINTER {
                at.key("parentKey").report("the path has no '*', so there is no outer list");
            }
            return None;
        };
        let (names, nested) = match inner.split_last() {
            Some((last, names)) if last == "*" => (names, true),
            _ => (inner, false),
        };
        if names.is_empty() || nested {
            for key in NOT_OF_MAPS.into_iter().filter(|key| at.position(key).is_some()) {
                let message = format!("\"{key}\" is only for lists");
                let help = format!("{} is a map: its keys identify its values", path.field());
                at.key(key).name().report_with_help(message, help);
            }
        }
        Some(OuterList { path, inner: names.to_vec(), nested, key })
    }

    /// The rules about each element.
    pub(super) fn element_rules(&self, each: &[ElementRule], at: At<'_>) -> Vec<ElementRule> {
        let rules = at.key("each").each(each).enumerate().map(|(index, (at, rule))| {
            if each[..index].iter().any(|other| other.id == rule.id) {
                at.key("id").report(format!("rule {} is listed twice", *rule.id));
            }
            self.report(rule.when.check(), Purpose::of(rule.action), at.key("when"));
            let rules = self.tables(&[&rule.source]).by(Declarer::ElementRule);
            let (message, optional) = (Some(rule.message.to_string()), rule.optional);
            let declared = DeclaredRule { message, optional, ..rules.declared(rule.action) };
            ElementRule { rule: self.declare_written(&rule.id, declared, at), ..rule.clone() }
        });
        rules.collect()
    }

    /// Reports misspelled names of members. A list may have other members, so only a name that is similar to a
    /// known one is an error.
    fn check_member_names(&self, document: &ConditionList, at: At<'_>) {
        let Some(times) = document.transition_time.as_ref().filter(|_| self.complete) else {
            return;
        };
        let known = document.members.keys().map(String::as_str).chain(MEMBERS).chain([ANYTHING]);
        for (at, name) in at.key("transitionTime").key("mayMoveOn").each(&times.may_move_on.0) {
            let is_known = known.clone().any(|known| known == name);
            if !is_known && near(name, known.clone()).is_some() {
                at.unknown("member", name, known.clone());
            }
        }
    }
}
