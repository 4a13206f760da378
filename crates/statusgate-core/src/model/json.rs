//! A JSON tree with strings borrowed from the request.
//!
//! `serde_json::Value` copies every string and key, which took most of the time of a review. This
//! tree is built in one pass and borrows every string without escapes. Only status and metadata
//! become trees; `spec` and `managedFields` are skipped, and a long list in an object is parsed when it is first read.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::members::Members;
use super::reader::{Reader, read};
use super::{Index, Pointer, same_instant};

/// A JSON value, borrowed from the text it was read from.
///
/// Equality ignores spelling: manifests have their members in any order, and `5` equals `5.0`.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number that fits a 64-bit integer or a finite float.
    Number(serde_json::Number),
    /// A string, owned only when it has escapes.
    String(Cow<'a, str>),
    /// A list.
    Array(Vec<Self>),
    /// An object.
    Object(Members<'a>),
    /// A skipped value below the maximum depth. It never equals a value of a rule.
    Deep,
    /// The text of a tree with too many values, or with one that Go cannot decode. Rules find nothing in it, but can
    /// compare it.
    Large(Cow<'a, str>),
}

impl<'a> Json<'a> {
    /// Reads one JSON value from the complete `text`.
    ///
    /// # Errors
    /// Invalid JSON, text after the value, or too many values.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        Ok(read(text, Reader::json)?)
    }

    /// Reads one JSON value of any size from the complete `text`.
    ///
    /// # Errors
    /// Invalid JSON, or text after the value.
    pub fn parse_any_size(text: &'a str) -> Result<Self, serde_json::Error> {
        Ok(read(text, Reader::json_of_any_size)?)
    }

    /// The member of an object with this name.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    /// The value at a path of member names and list indices.
    pub fn at(&self, tokens: &[String]) -> Option<&Self> {
        tokens.iter().try_fold(self, |value, token| match value {
            Self::Array(items) => match Index::of(token)? {
                Index::At(index) => items.get(index),
                Index::Last => items.last(),
            },
            value => value.get(token),
        })
    }

    /// The value at a path, to change it.
    pub(crate) fn at_mut(&mut self, tokens: &[String]) -> Option<&mut Self> {
        tokens.iter().try_fold(self, |value, token| match value {
            Self::Array(items) => match Index::of(token)? {
                Index::At(index) => items.get_mut(index),
                Index::Last => items.last_mut(),
            },
            Self::Object(members) => members.get_mut(token),
            _ => None,
        })
    }

    /// Sets or removes the value at a path. Creates missing parents. Changes nothing if a parent is not an
    /// object, or a list has no such item.
    pub(crate) fn put(&mut self, tokens: &[String], value: Option<Self>) {
        let Some((name, rest)) = tokens.split_first() else {
            *self = value.unwrap_or(Self::Null);
            return;
        };
        if self.is_null() && value.is_some() {
            *self = Self::Object(Members::default());
        }
        match (self, value) {
            (Self::Object(members), None) if rest.is_empty() => members.remove(name),
            (Self::Object(members), value) => {
                if value.is_some() && members.get(name).is_none() {
                    members.insert(Cow::Owned(name.clone()), Self::Null);
                }
                if let Some(inner) = members.get_mut(name) {
                    inner.put(rest, value);
                }
            }
            (list, value) => {
                if let Some(inner) = list.at_mut(std::slice::from_ref(name)) {
                    inner.put(rest, value);
                }
            }
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number if it is a 64-bit integer. `3.0` is an integer, as in JSON Schema.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            _ => None,
        }
    }

    /// The number if Go decodes it as `int64`. `3.0` is not.
    pub fn as_int64(&self) -> Option<i64> {
        match self {
            // serde_json reads `-0` as a float.
            Self::Number(number) => number.as_i64().or_else(|| {
                let zero =
                    number.as_f64().is_some_and(|zero| zero == 0.0 && zero.is_sign_negative());
                zero.then_some(0)
            }),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether this is `null`, `""`, `[]` or `{}`. Go clients with `omitempty` cannot distinguish these
    /// from absence.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::String(text) => text.is_empty(),
            Self::Array(items) => items.is_empty(),
            Self::Object(members) => members.is_empty(),
            Self::Bool(_) | Self::Number(_) | Self::Deep | Self::Large(_) => false,
        }
    }

    /// The JSON type, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
            Self::Deep => "a deeply nested value",
            Self::Large(_) => "a value of too many parts",
        }
    }

    /// An owned copy for a patch. Skipped values become `null`; a patch never contains them.
    pub fn to_value(&self) -> serde_json::Value {
        match self {
            Self::Null | Self::Deep | Self::Large(_) => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(number) => serde_json::Value::Number(number.clone()),
            Self::String(text) => text.as_ref().into(),
            Self::Array(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(members) => serde_json::Value::Object(
                members.iter().map(|(key, value)| (key.to_owned(), value.to_value())).collect(),
            ),
        }
    }

    /// An owned tree.
    pub fn into_owned(self) -> Json<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(value),
            Self::Number(number) => Json::Number(number),
            Self::String(text) => Json::String(owned(text)),
            Self::Array(items) => Json::Array(items.into_iter().map(Self::into_owned).collect()),
            Self::Object(members) => Json::Object(members.into_owned()),
            Self::Deep => Json::Deep,
            Self::Large(text) => Json::Large(owned(text)),
        }
    }

    /// Whether no value was skipped.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Deep | Self::Large(_) => false,
            Self::Array(items) => items.iter().all(Self::is_whole),
            Self::Object(members) => members.iter().all(|(_, value)| value.is_whole()),
            _ => true,
        }
    }
}

impl From<&serde_json::Value> for Json<'_> {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => Self::Number(number.clone()),
            serde_json::Value::String(text) => Self::String(text.clone().into()),
            serde_json::Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(members) => {
                let owned = members.iter().map(|(name, value)| (name.clone().into(), value.into()));
                Self::Object(owned.collect())
            }
        }
    }
}

impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) | (Self::Deep, Self::Deep) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Number(one), Self::Number(other)) => same_number(one, other),
            (Self::String(one), Self::String(other)) => one == other,
            // These are texts.
            (Self::Large(one), Self::Large(other)) => one == other,
            (Self::Array(one), Self::Array(other)) => one == other,
            (Self::Object(one), Self::Object(other)) => one == other,
            _ => false,
        }
    }
}

/// Whether two values are equal. Null equals absence, and times are compared as times.
pub(crate) fn same(one: Option<&Json<'_>>, other: Option<&Json<'_>>) -> bool {
    let present = |value: &&Json<'_>| !value.is_null();
    match (one.filter(present), other.filter(present)) {
        (Some(Json::String(one)), Some(Json::String(other))) => same_instant(one, other),
        (one, other) => one == other,
    }
}

/// Whether two numbers are equal. Two integers are not compared as floats, which cannot distinguish
/// integers above 2^53.
pub(crate) fn same_number(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
}

/// How two numbers compare.
pub(crate) fn order(one: &serde_json::Number, other: &serde_json::Number) -> Option<Ordering> {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// A float as a 64-bit integer, if it is one.
fn whole(number: f64) -> Option<i64> {
    // 2^63, the first value out of range.
    const END: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "an integer in range")]
    let found = number as i64;
    (number.fract() == 0.0 && (-END..END).contains(&number)).then_some(found)
}

/// The value at a `pointer` below `/status`.
pub(crate) fn in_status<'j, 'a>(
    status: Option<&'j Json<'a>>,
    pointer: &Pointer,
) -> Option<&'j Json<'a>> {
    status.and_then(|status| status.at(pointer.below_status()))
}

#[cfg(test)]
mod tests {
    use super::super::reader::{MAX_DEPTH, MAX_VALUES, count_values};
    use super::*;

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let json = Json::parse(r#"{"a":"x","b":"x\n\u00e9"}"#).unwrap();
        assert!(matches!(json.get("a"), Some(Json::String(Cow::Borrowed("x")))));
        assert_eq!(json.get("b").and_then(Json::as_str), Some("x\né"));
    }

    #[test]
    fn the_last_of_duplicate_members_counts_as_in_go() {
        let json = Json::parse(r#"{"phase":"Ready","phase":"Failed"}"#).unwrap();
        assert_eq!(json.get("phase").and_then(Json::as_str), Some("Failed"));
    }

    #[test]
    fn nesting_beyond_the_limit_is_skipped_without_recursion() {
        let text = format!("{}1{}", "[".repeat(9_000), "]".repeat(9_000));
        let json = Json::parse(&text).unwrap();
        assert!(!json.is_whole());
    }

    #[test]
    fn the_size_of_a_tree_is_limited() {
        let list = |length: usize| format!("[0{}]", ",0".repeat(length - 1));
        assert!(Json::parse(&list(MAX_VALUES as usize - 1)).is_ok());
        let large = list(MAX_VALUES as usize);
        assert!(Json::parse(&large).is_err());
        assert_eq!(Json::parse_any_size(&large).unwrap(), Json::Large(large.as_str().into()));
        assert_eq!(count_values(&large), MAX_VALUES as usize + 1);
        for (text, count) in [
            ("1", 1),
            ("[]", 1),
            ("{ }", 1),
            ("[[], {}]", 3),
            (r#"{"a,[": "b,\",{", "c": [1, {"d": null}]}"#, 6),
        ] {
            assert_eq!(count_values(text), count, "{text}");
        }
        assert!(Json::parse_any_size(&format!("{large}x")).is_err());
    }

    #[test]
    fn values_that_go_cannot_decode_are_rejected() {
        assert!(Json::parse("1e999").is_err());
        assert!(Json::parse(r#""\ud800""#).is_err());
        assert!(Json::parse("{} {}").is_err());
    }

    #[test]
    fn equality_ignores_order_and_spelling_of_numbers() {
        let same =
            |one: &str, other: &str| Json::parse(one).unwrap() == Json::parse(other).unwrap();
        assert!(same(r#"{"a":1,"b":{"c":[5],"d":2}}"#, r#"{"b":{"d":2.0,"c":[5.0]},"a":1}"#));
        assert!(same(r#"{"a":0,"a":1,"b":2}"#, r#"{"b":2,"a":1}"#));
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":2}"#),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            (r#"{"a":1,"b":2}"#, r#"{"b":1,"a":2}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":1}"#),
            (r#"{"a":1,"b":null}"#, r#"{"a":1}"#),
            ("[1,2]", "[2,1]"),
            ("9007199254740993", "9007199254740992"),
            ("5", r#""5""#),
        ] {
            assert!(!same(one, other) && !same(other, one), "{one} {other}");
        }
    }

    #[test]
    fn comparing_nested_objects_in_another_order_is_fast() {
        let deep = |start: &str, end: &str| {
            let levels = usize::from(MAX_DEPTH) - 2;
            format!("{}1{}", start.repeat(levels), end.repeat(levels))
        };
        let one = deep(r#"{"a":"#, r#","b":1,"c":2}"#);
        let other = deep(r#"{"a":"#, r#","c":2,"b":1}"#);
        assert!(Json::parse(&one).unwrap() == Json::parse(&other).unwrap());
    }

    #[test]
    fn a_float_without_a_fraction_is_an_integer() {
        let whole = |text: &str| Json::parse(text).unwrap().as_i64();
        assert_eq!(whole("3.0"), Some(3));
        assert_eq!(whole("-9223372036854775808.0"), Some(i64::MIN));
        for odd in ["3.5", "9223372036854775808", "9223372036854775808.0", "1e30", "-1e19"] {
            assert_eq!(whole(odd), None, "{odd}");
        }
        let written = |text: &str| Json::parse(text).unwrap().as_int64();
        for (text, number) in [("-0", Some(0)), ("0", Some(0)), ("3", Some(3)), ("3.0", None)] {
            assert_eq!(written(text), number, "{text}");
        }
    }

    #[test]
    fn a_path_walks_members_and_indices() {
        let json = Json::parse(r#"{"a/b":[{"c~d":7}]}"#).unwrap();
        let pointer: Pointer = "/status/a~1b/0/c~0d".parse().unwrap();
        assert_eq!(in_status(Some(&json), &pointer).and_then(Json::as_i64), Some(7));
        let last: Pointer = "/status/a~1b/-1/c~0d".parse().unwrap();
        assert_eq!(in_status(Some(&json), &last).and_then(Json::as_i64), Some(7));
    }
}
