//! JSON that stays text: the members of an object, the items of a list, and where they are.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in the order of the text, borrowed from it. The values are not parsed, so
/// that finding the kind of an object of megabytes is cheap.
#[derive(Default)]
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// `None` for what is not an object.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The text of a member; of the last if there are several, as in Go.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let member = self.0.iter().rev().find(|(key, _)| key == name);
        member.map(|(_, value)| value.get())
    }

    /// The text of a member that is a string.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        serde_json::from_str::<Text<'a>>(self.get(name)?).ok().map(|text| text.0)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut members: A,
            ) -> Result<Members<'de>, A::Error> {
                let mut list = Vec::new();
                while let Some((Text(key), value)) = members.next_entry()? {
                    list.push((key, value));
                }
                Ok(Members(list))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A string that is borrowed if it has no escapes. serde's `Cow` always copies inside containers.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(value)))
            }
            fn visit_str<E>(self, value: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(value.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// The items of a list, each as text; `None` for what is not a list.
pub(crate) fn items(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// The error of a JSON text without its location: a caret shows that, or the text was never in a file.
pub fn reason(error: &serde_json::Error) -> String {
    let full = error.to_string();
    full.rsplit_once(" at line ").map_or(full.as_str(), |(said, _)| said).to_owned()
}

pub(crate) fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "nothing",
        _ => "a number",
    }
}

/// A value that is opened one level: the values in it borrow from its text, so that their addresses
/// are locations.
pub(super) enum Opened<'t> {
    Object(Members<'t>),
    List(Vec<&'t str>),
    Scalar,
}

impl<'t> Opened<'t> {
    pub(super) fn of(value: &'t str) -> Self {
        match value.as_bytes().first() {
            Some(b'{') => Members::parse(value).map_or(Self::Scalar, Self::Object),
            Some(b'[') => items(value).map_or(Self::Scalar, Self::List),
            _ => Self::Scalar,
        }
    }

    pub(super) fn get(&self, token: &str) -> Option<&'t str> {
        match self {
            Self::Object(members) => members.get(token),
            Self::List(items) => items.get(token.parse::<usize>().ok()?).copied(),
            Self::Scalar => None,
        }
    }
}

/// The bytes of a part in its text.
pub(super) fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}
