//! JSON that stays text: the members of an object, the items of a list, and where they are.

use std::borrow::Cow;
use std::ops::Range;

use crate::model::{Reader, read};

/// The members of an object in the order of the text, borrowed from it. The values are not parsed, so
/// that finding the kind of an object of megabytes is cheap.
#[derive(Default)]
pub struct Members<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Members<'a> {
    /// `None` for what is not an object.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut list = Vec::new();
        let member = |reader: &mut Reader<'a>, name| {
            list.push((name, reader.skip()?));
            Some(())
        };
        read(text, |reader| reader.object(member)).ok()?;
        Some(Self(list))
    }

    /// The text of a member; of the last if there are several, as in Go.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let member = self.0.iter().rev().find(|(key, _)| key == name);
        member.map(|(_, value)| *value)
    }

    /// The text of a member that is a string.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        read(self.get(name)?, Reader::text).ok()
    }
}

/// The items of a list, each as text; `None` for what is not a list.
pub(crate) fn items<'t>(text: &'t str) -> Option<Vec<&'t str>> {
    let mut items = Vec::new();
    let item = |reader: &mut Reader<'t>| {
        items.push(reader.skip()?);
        Some(())
    };
    read(text, |reader| reader.list(item)).ok()?;
    Some(items)
}

/// The error of a JSON text without its location: a caret shows that, or the text was never in a file.
pub fn reason(error: &serde_json::Error) -> String {
    let full = error.to_string();
    full.rsplit_once(" at line ").map_or(full.as_str(), |(said, _)| said).to_owned()
}

/// What a JSON text is, for messages.
pub fn kind_of(json: &str) -> &'static str {
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
