//! The checks of a single field: presence, type, enum, pattern, length, range, format.

use serde_json::Value;

use super::compile::Compiler;
use super::rules::Declarer;
use super::{Check, Disposition, Field, FieldType, Format};
use crate::language::Scalar;
use crate::model::Pointer;
use crate::source::tree::At;

impl Check {
    /// What happens on a violation.
    pub fn action(&self) -> Disposition {
        self.action.unwrap_or(Disposition::Deny)
    }

    /// Whether a value can violate it.
    const fn has_constraint(&self) -> bool {
        self.required
            || self.forbidden
            || !self.nullable
            || self.kind.is_some()
            || !self.values.is_empty()
            || self.pattern.is_some()
            || self.min_length.is_some()
            || self.max_length.is_some()
            || self.max_bytes.is_some()
            || self.minimum.is_some()
            || self.maximum.is_some()
            || self.format.is_some()
    }

    /// Whether this says something about keys, which are texts that are always there.
    pub(super) fn fits_keys(&self) -> bool {
        let about_presence =
            self.required || self.forbidden || !self.nullable || self.empty_is_absent;
        let about_numbers = self.minimum.is_some() || self.maximum.is_some();
        !about_presence
            && !about_numbers
            && self.kind.is_none_or(|kind| kind == FieldType::String)
            && self.values.iter().all(|value| value.value().is_string())
    }
}

impl Compiler<'_> {
    /// Compiles a list of `{path: …, type: …, enum: …}`.
    pub(crate) fn fields(&self, documents: &[Field], at: At<'_>) -> Vec<Field> {
        let mut wanted: Vec<(&Pointer, bool)> = Vec::new();
        let mut ids = FieldIds::default();
        let fields = at.each(documents).map(|(at, Field { path, check })| {
            if check.required != check.forbidden {
                if wanted.contains(&(&**path, !check.required)) {
                    at.report(format!("{path} is both required and forbidden"));
                }
                wanted.push((path, check.required));
            }
            let default_id = if check.id.is_none() { ids.id(path) } else { String::new() };
            let check = self.check(check, &default_id, "", at);
            Field { path: path.clone(), check }
        });
        fields.collect()
    }

    /// Compiles one check.
    pub(crate) fn check(&self, check: &Check, default_id: &str, source: &str, at: At<'_>) -> Check {
        let id: &str = check.id.as_ref().map_or(default_id, |id| id);
        let rules = self.tables(&[&check.source, source]).by(Declarer::Check);
        let rule = rules.rule(id, check.action());
        if check.required && check.forbidden {
            at.report("a field cannot be both required and forbidden");
        }
        // A member with an empty check is a known member.
        let is_member = check.id.is_none() && check.action.is_none() && check.message.is_none();
        if self.complete && !check.has_constraint() && !(is_member && at.position("path").is_none())
        {
            at.report_with_help(
                "this check accepts every value",
                "add a constraint, such as \"type\"; the id of an inherited check can be in \"without\"",
            );
        }
        reject_the_impossible(check, at);
        Check { rule, ..check.clone() }
    }
}

/// A check that no value could pass would reject every write.
fn reject_the_impossible(check: &Check, at: At<'_>) {
    let mut kinds = check.values.iter().map(kind_of);
    if let Some(first) = kinds.next() {
        if let Some(other) = kinds.find(|other| *other != first) {
            let message = format!("these values have several types: {first} and {other}");
            at.key("enum").report_with_help(message, "quote those that are strings");
        } else if !check.values.iter().any(|value| fits(check, value)) {
            at.key("enum").report("none of these values passes the other checks");
        }
    }
    if let (Some(least), Some(most)) = (check.minimum, check.maximum)
        && least > most
    {
        at.key("maximum").report(format!("no number is at least {least} and at most {most}"));
    }
    for (key, most) in [("maxLength", check.max_length), ("maxBytes", check.max_bytes)] {
        if let (Some(least), Some(most)) = (check.min_length, most)
            && least > most
        {
            let message = format!("no text has at least {least} characters and {key} {most}");
            at.key(key).report(message);
        }
    }
    if check.message.is_some() && check.pattern.is_none() {
        at.key("message").report_with_help(
            "this describes a pattern, but there is no \"pattern\"",
            "set \"message\" to null, too, or leave the whole check out with \"without\"",
        );
    }
    let Some(kind) = check.kind else { return };
    let is_number = matches!(kind, FieldType::Integer | FieldType::Number);
    let of_texts = [
        ("pattern", check.pattern.is_some()),
        ("minLength", check.min_length.is_some()),
        ("maxLength", check.max_length.is_some()),
        ("maxBytes", check.max_bytes.is_some()),
        // A plain number is a quantity.
        ("format", check.format.is_some_and(|format| !is_number || format != Format::Quantity)),
    ];
    for (at, value) in at.key("enum").each(&check.values) {
        if !has_kind(value, kind) {
            at.report(format!("{} is {}, but the type is {kind}", value.value(), kind_of(value)));
        }
    }
    if kind != FieldType::String {
        for (key, _) in of_texts.into_iter().filter(|(_, has)| *has) {
            at.key(key).report(format!("this is a check of strings, but the type is {kind}"));
        }
    }
    let of_numbers = [("minimum", check.minimum.is_some()), ("maximum", check.maximum.is_some())];
    for (key, _) in of_numbers.into_iter().filter(|(_, has)| *has && !is_number) {
        at.key(key).report(format!("this is a check of numbers, but the type is {kind}"));
    }
}

fn fits(check: &Check, value: &Scalar) -> bool {
    if let Some(number) = value.value().as_f64() {
        return check.minimum.is_none_or(|least| number >= least)
            && check.maximum.is_none_or(|most| number <= most);
    }
    let Some(value) = value.value().as_str() else { return true };
    let length = value.chars().count();
    check.pattern.as_ref().is_none_or(|pattern| pattern.is_match(value))
        && check.min_length.is_none_or(|least| length >= least)
        && check.max_length.is_none_or(|most| length <= most)
        && check.max_bytes.is_none_or(|most| value.len() <= most)
}

/// The JSON type of a value of an enum.
fn kind_of(value: &Scalar) -> FieldType {
    match value.value() {
        Value::Bool(_) => FieldType::Boolean,
        Value::Number(_) => FieldType::Number,
        _ => FieldType::String,
    }
}

fn has_kind(value: &Scalar, kind: FieldType) -> bool {
    match kind {
        FieldType::Integer => value.value().is_i64(),
        kind => kind_of(value) == kind,
    }
}

/// The default ids of the checks of fields: the last name of the path, with as many names before it as distinguish it
/// from the paths above.
#[derive(Default)]
pub(crate) struct FieldIds {
    known: Vec<(Pointer, String)>,
}

impl FieldIds {
    pub(crate) fn id(&mut self, path: &Pointer) -> String {
        if let Some((_, id)) = self.known.iter().find(|(known, _)| known == path) {
            return id.clone();
        }
        let names = path.tokens();
        let mut ids =
            (0..names.len()).rev().map(|at| format!("field-{}", kebab(&names[at..].join("-"))));
        let id = ids.find(|id| self.known.iter().all(|(_, known)| known != id));
        let id = id.unwrap_or_else(|| format!("field-{}", kebab(path.field())));
        self.known.push((path.clone(), id.clone()));
        id
    }
}

/// The default id of a check of a member of the elements of a list.
pub(crate) fn member_id(name: &str, element: Option<&str>) -> String {
    of_element(element, &format!("condition-{}", kebab(name)))
}

/// The id of a rule of a list. If its elements have a name, that name is in the place of `condition`.
pub(crate) fn of_element(element: Option<&str>, rule: &str) -> String {
    let Some(element) = element else { return rule.to_owned() };
    let rest = ["conditions-", "condition-"].iter().find_map(|head| rule.strip_prefix(head));
    let mut id = format!("{element}-{}", rest.unwrap_or(rule));
    id.truncate(MAX_ID);
    id
}

/// `lastTransitionTime` or `ACK.Terminal` as a part of a rule id: `last-transition-time`,
/// `ack-terminal`.
pub fn kebab(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut id = String::with_capacity(name.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            id.push('-');
            continue;
        }
        let before = index.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(index + 1);
        // A word begins at a capital after a small letter, and at the last of several capitals.
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if begins {
            id.push('-');
        }
        id.push(letter.to_ascii_lowercase());
    }
    if id.len() > MAX_PART {
        id.truncate(MAX_PART);
        id.truncate(id.rfind('-').unwrap_or(MAX_PART));
    }
    id
}

/// The longest id that a document can have.
const MAX_ID: usize = 63;

/// The longest part of a rule id that is made from a name. With `condition-` or `-not-true` it has at most
/// 63 characters, as an id that a document has.
const MAX_PART: usize = 53;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_rule_ids() {
        for (name, id) in [
            ("lastTransitionTime", "last-transition-time"),
            ("PodReady", "pod-ready"),
            ("ACK.ResourceSynced", "ack-resource-synced"),
            ("IAMRole", "iam-role"),
            ("Ready", "ready"),
            (
                "Waiting for the instances to become active after an online upgrade",
                "waiting-for-the-instances-to-become-active-after-an",
            ),
        ] {
            assert_eq!(kebab(name), id);
        }
    }
}
