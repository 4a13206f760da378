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
        read(text, |reader| {
            reader.object(|reader, name| reader.skip().map(|value| list.push((name, value))))
        })
        .ok()?;
        Some(Self(list))
    }

    /// The text of a member; of the last if there are several, as in Go.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let member = self.0.iter().rev().find(|(key, _)| key == name);
        member.map(|(_, value)| *value)
    }

    /// The members in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// The text of a member that is a string.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        read(self.get(name)?, Reader::text).ok()
    }
}

/// The items of a list, each as text; `None` for what is not a list.
pub(crate) fn items(text: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    read(text, |reader| reader.list(|reader| reader.skip().map(|item| items.push(item)))).ok()?;
    Some(items)
}

/// A JSON text with its numbers as an API server sends them. It decodes a number as a 64-bit integer or as a float, and Go
/// writes a float below 1e21 without an exponent (`floatEncoder` in encoding/json): `1.0`, `1e0` and YAML's `08` arrive as
/// integers, and the integer `-0` as 0.
pub(super) fn with_sent_numbers(json: &str) -> Cow<'_, str> {
    let (bytes, mut text, mut copied, mut at) = (json.as_bytes(), String::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let parts = bytes[at..].iter().take_while(|byte| {
                    matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')
                });
                let end = at + parts.count();
                let number = &json[at..end];
                if let Some(sent) = sent_number(number).filter(|sent| sent != number) {
                    text.push_str(&json[copied..at]);
                    text.push_str(&sent);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    text.push_str(&json[copied..]);
    Cow::Owned(text)
}

/// A number that is sent as an integer.
fn sent_number(number: &str) -> Option<String> {
    if let Ok(integer) = number.parse::<i64>() {
        return Some(integer.to_string());
    }
    let float = number.parse::<f64>().ok()?;
    // Of the two zeros, the negative one is 0 for every reader.
    (float.fract() == 0.0 && float.abs() < 1e21).then(|| format!("{}", float + 0.0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_an_api_server_sends() {
        for (text, sent) in [
            ("1.0", "1"),
            ("1e0", "1"),
            ("-1.50e2", "-150"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1e20", "100000000000000000000"),
            ("18446744073709551615", "18446744073709552000"),
            ("9223372036854775807", "9223372036854775807"),
            ("1e21", "1e21"),
            ("1.5", "1.5"),
            ("1e-7", "1e-7"),
            (
                r#"{"1.0":["1.0",2.0,"\"3.0",{"a\\":4.0}],"b":5}"#,
                r#"{"1.0":["1.0",2,"\"3.0",{"a\\":4}],"b":5}"#,
            ),
        ] {
            assert_eq!(with_sent_numbers(text), sent, "{text}");
        }
    }
}
