//! A field that a document names, compared with the schemas of the objects that it is about.

use serde_json::Value as Json;

use crate::model::Pointer;
use crate::policy::Defined;
use crate::schema::{FieldSchema, Node as Declared, Verdict};
use crate::source::tree::{At, Value, did_you_mean};

/// A field in the schemas of the selected versions.
pub(super) struct Compared<'d> {
    pub(super) pointer: Pointer,
    pub(super) defined: &'d [&'d Defined],
}

impl Compared<'_> {
    /// A member, or the elements of a list ([`ELEMENT`](crate::policy::cel::ELEMENT)).
    pub(super) fn below(&self, name: &str) -> Self {
        let pointer = Pointer::from_tokens([self.pointer.tokens(), &[name.to_owned()]].concat());
        Self { pointer, ..*self }
    }

    /// The schemas that declare the field. The others keep any value, or prune it, which another check reports.
    pub(super) fn declared(&self) -> impl Iterator<Item = (&Defined, &Declared)> {
        self.defined.iter().filter_map(|version| match version.schema.at(self.pointer.tokens()) {
            FieldSchema::Declared(node) => Some((*version, node)),
            FieldSchema::Free | FieldSchema::Pruned => None,
        })
    }

    /// Reports a value that the webhook sets and that a version rejects.
    pub(super) fn each_accepts(&self, at: At<'_>, is_set: bool) {
        let rejecting = value_at(at).map(|value| self.rejecting(&value)).unwrap_or_default();
        if let Some((version, cause)) = rejecting.into_iter().next().filter(|_| is_set) {
            let help =
                "the API server would reject each write in which the webhook sets this default";
            at.report_with_help(format!("the schema of {version} rejects this: {cause}"), help);
        }
    }

    /// Reports the values of a list, or one value, that every version rejects.
    pub(super) fn some_accept(&self, at: At<'_>) {
        match &at.node().value {
            Value::List(items) => {
                (0..items.len()).for_each(|index| self.some_accepts(at.item(index)))
            }
            _ => self.some_accepts(at),
        }
    }

    /// Reports a value that every version rejects.
    pub(super) fn some_accepts(&self, at: At<'_>) {
        value_at(at).into_iter().for_each(|value| self.some_accepts_value(&value, at));
    }

    /// The empty text asks whether the field is set.
    pub(super) fn some_accepts_value(&self, value: &Json, at: At<'_>) {
        let rejecting = self.rejecting(value);
        let Some((version, cause)) = rejecting.first() else { return };
        if rejecting.len() < self.defined.len() || value == "" {
            return;
        }
        let message = format!("the schema of {version} rejects this: {cause}");
        let members = self.declared().flat_map(|(_, node)| node.members());
        let texts: Vec<&str> = members.filter_map(Json::as_str).collect();
        match value.as_str().filter(|_| !texts.is_empty()) {
            Some(found) => at.report_with_help(message, did_you_mean(found, texts.into_iter())),
            None => at.report(message),
        }
    }

    /// The versions that reject a value, each with the API server's cause.
    pub(super) fn rejecting(&self, value: &Json) -> Vec<(String, String)> {
        let rejected = self.defined.iter().filter_map(|version| {
            match version.schema.accepts(&self.pointer, value) {
                Verdict::Rejected(causes) => {
                    Some((version.name.clone(), causes.first()?.message.clone()))
                }
                Verdict::Accepted | Verdict::NotProven(_) => None,
            }
        });
        rejected.collect()
    }

    /// Reports a member that every version prunes. Returns whether some version keeps it.
    pub(super) fn exists(&self, at: At<'_>) -> bool {
        let pruned =
            self.defined.iter().filter_map(|version| version.schema.pruned(self.pointer.tokens()));
        let pruned: Vec<_> = pruned.collect();
        let Some((place, names)) = pruned.first().filter(|_| pruned.len() == self.defined.len())
        else {
            return true;
        };
        let name = self.pointer.tokens().get(*place).map_or("", String::as_str);
        let message =
            format!("{} is not in the schema of {}", self.pointer.field(), self.defined[0].name);
        at.report_with_help(message, did_you_mean(name, names.iter().copied()));
        false
    }

    /// Whether every version rejects each of these values.
    pub(super) fn rejects_all(&self, values: &[Json]) -> bool {
        values.iter().all(|value| self.rejecting(value).len() == self.defined.len())
    }

    /// Reports a field that no time fits.
    pub(super) fn has_times(&self, at: At<'_>) {
        let rejecting = self.rejecting(&"2024-01-01T00:00:00Z".into());
        if let Some((version, cause)) = rejecting.first()
            && rejecting.len() == self.defined.len()
        {
            at.report(format!("the schema of {version} rejects every time: {cause}"));
        }
    }

    /// Reports a least or largest number, length or count that no value of the schema reaches.
    pub(super) fn reaches(&self, at: At<'_>, extent: Extent, keys: [&str; 2]) {
        let [least, most] = keys.map(|key| {
            let number = at.node().member(key).and_then(|_| value_at(at.key(key)));
            number.and_then(|number| number.as_f64())
        });
        let extents: Vec<_> =
            self.declared().map(|(_, node)| node.extents()[extent as usize]).collect();
        if extents.len() < self.defined.len() {
            return;
        }
        let name = &self.defined[0].name;
        // The widest of the schemas.
        let most_of = extents.iter().map(|(_, most)| most.unwrap_or(f64::INFINITY));
        let largest = most_of.fold(f64::NEG_INFINITY, f64::max);
        if least.is_some_and(|least| least > largest) {
            at.key(keys[0]).report(format!("the schema of {name} allows at most {largest}"));
        }
        let least_of = extents.iter().map(|(least, _)| least.unwrap_or(f64::NEG_INFINITY));
        let smallest = least_of.fold(f64::INFINITY, f64::min);
        if most.is_some_and(|most| most < smallest) {
            at.key(keys[1]).report(format!("the schema of {name} allows at least {smallest}"));
        }
    }

    /// Reports two fields of which no value can be equal.
    pub(super) fn has_type_of(&self, other: &Self, at: At<'_>) {
        let types: Vec<&str> = other.declared().flat_map(|(_, node)| node.types).copied().collect();
        let is_typed = other.declared().count() == self.defined.len()
            && other.declared().all(|(_, node)| !node.types.is_empty());
        let wanted = match types.iter().any(|kind| ["integer", "number"].contains(kind)) {
            true => [&types[..], &["integer", "number"]].concat(),
            false => types,
        };
        if let Some(own) = self.types_without(&wanted).filter(|_| is_typed) {
            let (field, types) = (self.pointer.field(), wanted[0]);
            at.report(format!(
                "the type of this in the schema is {types}, and that of {field} is {own}"
            ));
        }
    }

    /// The members that versions require below this field.
    pub(super) fn required(&self) -> impl Iterator<Item = (&str, &str)> {
        self.declared().flat_map(|(version, node)| {
            let names = node.required.iter().filter(|name| {
                node.properties.iter().any(|(known, of)| known == *name && of.default.is_none())
            });
            names.map(|name| (version.name.as_str(), &**name))
        })
    }

    /// Reports the members of a value that every version prunes.
    pub(super) fn keeps(&self, value: &Json, at: At<'_>) {
        let Json::Object(members) = value else { return };
        for (name, value) in members {
            let (member, at) = (self.below(name), at.key(name));
            if member.exists(at) {
                member.keeps(value, at);
            }
        }
    }

    /// Reports a field that is no list.
    pub(super) fn has_items(&self, at: At<'_>) {
        if let Some(types) = self.types_without(&["array"]) {
            at.report(format!("this must be a list, but its type in the schema is {types}"));
        }
    }

    /// Reports a test of texts or numbers about a field of another type.
    pub(super) fn types(&self, at: At<'_>) {
        let node = at.node();
        for (keys, wanted, what) in [
            (
                &["pattern", "minLength", "maxLength", "maxBytes", "matches", "format"][..],
                &["string"][..],
                "strings",
            ),
            (&["minimum", "maximum", "atLeast", "atMost"], &["integer", "number"], "numbers"),
        ] {
            let key = keys.iter().find(|key| node.member(key).is_some());
            // A plain number is a quantity, and times are compared below.
            let is_other = matches!(node.text_of("format"), Some("quantity" | "date-time"));
            if let Some((key, types)) = key.zip(self.types_without(wanted)).filter(|_| !is_other) {
                let message =
                    format!("this is a test of {what}, but the type in the schema is {types}");
                at.key(key).report(message);
            }
        }
        let format = node.text_of("format").filter(|format| *format == "date-time");
        let mut tests = ["before", "future", "past", "decreased"].into_iter();
        // A number or a time can decrease.
        let of_times = tests.find(|key| node.member(key).is_some()).filter(|key| {
            *key != "decreased" || self.types_without(&["integer", "number"]).is_some()
        });
        if let Some(key) = format.map(|_| "format").or(of_times) {
            self.has_times(at.key(key));
        }
        self.reaches(at, Extent::Number, ["minimum", "maximum"]);
        self.reaches(at, Extent::Length, ["minLength", "maxLength"]);
        let Some(kind) = node.text_of("type") else { return };
        // The schema may be stricter or wider: each integer is a number.
        let wanted = if matches!(kind, "integer" | "number") {
            vec!["integer", "number"]
        } else {
            vec![kind]
        };
        if let Some(types) = self.types_without(&wanted) {
            at.key("type").report(format!("the type in the schema is {types}"));
        }
    }

    /// The types of the field, if no version has one of these types, and each has a type.
    pub(super) fn types_without(&self, wanted: &[&str]) -> Option<String> {
        let nodes: Vec<&Declared> = self.declared().map(|(_, node)| node).collect();
        let all = !nodes.is_empty()
            && nodes.len() == self.defined.len()
            && nodes.iter().all(|node| {
                !node.types.is_empty() && !node.types.iter().any(|kind| wanted.contains(kind))
            });
        all.then(|| nodes[0].types.join(" or "))
    }
}

/// What has a least and a largest value, in the order of [`Declared::extents`].
#[derive(Clone, Copy)]
pub(super) enum Extent {
    Number,
    Length,
    Count,
}

pub(super) fn value_at(at: At<'_>) -> Option<Json> {
    serde_json::to_value(at.node()).ok()
}
