//! A JSON deserializer that skips unused values quickly.
//!
//! Nine tenths of a review are `spec`, `managedFields` and labels that no rule reads. serde_json checks
//! each byte of a skipped string for three things, which took three fifths of judging a review. This
//! reader checks for two, and searches the complete text once for control characters, which no string
//! may contain.
//!
//! Values and errors are those of serde_json: it reads a text again if this reader rejects it, whether
//! the text is invalid or only unusual. So this reader needs no error messages.

mod skip;

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use skip::{Skipped, behind, behind_number, behind_string, behind_value, trimmed};

/// The recursion limit, below serde_json's limit of 128.
const MAX_LEVELS: u8 = 100;

/// Reads a value from the complete `text`, with the result of `serde_json::from_str`.
///
/// # Errors
/// Those of serde_json.
pub(crate) fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    quickly(text).or_else(|Unread| serde_json::from_str(text))
}

/// Reads a value from the complete `text`. `None` if the text is invalid or unusual: nested deeply, or too
/// large for the type. It never recurses deeply.
pub(crate) fn read_quickly<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
    quickly(text).ok()
}

fn quickly<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Unread> {
    let mut reader = Reader::new(text);
    let value = T::deserialize(&mut reader)?;
    if reader.next_byte().is_some() { Err(Unread) } else { Ok(value) }
}

/// The text of a JSON value, checked but not parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a>(pub(crate) &'a str);

/// The name by which [`Raw`] requests a text from [`Reader`]. serde has no method for it, and the name in
/// serde_json is private.
const RAW: &str = "statusgate raw text";

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawVisitor;
        impl<'de> Visitor<'de> for RawVisitor {
            type Value = Raw<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any JSON value")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Raw<'de>, E> {
                Ok(Raw(text))
            }
            // serde_json does not know the name and passes itself.
            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Raw<'de>, D::Error> {
                <&RawValue>::deserialize(deserializer).map(|value| Raw(value.get()))
            }
        }
        deserializer.deserialize_newtype_struct(RAW, RawVisitor)
    }
}

/// The text is invalid or unusual: serde_json has to read it.
#[derive(Debug)]
struct Unread;

impl fmt::Display for Unread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not read")
    }
}

impl std::error::Error for Unread {}

impl Error for Unread {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// A text and a position in it.
struct Reader<'de> {
    text: &'de str,
    /// The unread rest of the text.
    rest: &'de [u8],
    /// Whether the text contains control characters, such as line breaks between values. If so, every
    /// string is checked for them.
    controls: bool,
    /// The depth of recursion.
    level: u8,
    skipped: Skipped<'de>,
}

impl<'de> Reader<'de> {
    fn new(text: &'de str) -> Self {
        // `any` could end early and would not be vectorized.
        let least = text.as_bytes().iter().fold(u8::MAX, |least, byte| least.min(*byte));
        let (rest, controls) = (text.as_bytes(), least < b' ');
        Self { text, rest, controls, level: 0, skipped: Skipped::default() }
    }

    /// The next byte after white space.
    #[inline]
    fn next_byte(&mut self) -> Option<u8> {
        self.rest = trimmed(self.rest);
        self.rest.first().copied()
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Unread> {
        self.rest = behind(byte, self.rest).ok_or(Unread)?;
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), Unread> {
        self.rest = self.rest.strip_prefix(word.as_bytes()).ok_or(Unread)?;
        Ok(())
    }

    /// The text from the position where `from` was the rest.
    fn text_since(&self, from: &[u8]) -> Result<&'de str, Unread> {
        let place = |rest: &[u8]| self.text.len() - rest.len();
        self.text.get(place(from)..place(self.rest)).ok_or(Unread)
    }

    /// The text of the next value. A list is skipped by element, because only one entry of managedFields
    /// differs between the old and the new object.
    fn skip(&mut self) -> Result<&'de str, Unread> {
        let is_list = self.next_byte() == Some(b'[');
        let start = self.rest;
        if is_list {
            self.rest = trimmed(start.get(1..).ok_or(Unread)?);
            if self.next_byte() != Some(b']') {
                self.skip_element()?;
                while self.next_byte() == Some(b',') {
                    self.expect(b',')?;
                    self.skip_element()?;
                }
            }
            self.expect(b']')?;
        } else {
            self.skip_element()?;
        }
        self.text_since(start)
    }

    fn skip_element(&mut self) -> Result<(), Unread> {
        let start = trimmed(self.rest);
        if let Some(rest) = self.skipped.behind(start) {
            self.rest = rest;
            return Ok(());
        }
        self.rest = behind_value(start, self.controls).ok_or(Unread)?;
        let length = start.len() - self.rest.len();
        self.skipped.remember(start.get(..length).unwrap_or_default());
        Ok(())
    }

    fn visit_string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unread> {
        let start = self.rest;
        let (rest, escapes) = behind_string(start, self.controls).ok_or(Unread)?;
        self.rest = rest;
        let quoted = self.text_since(start)?;
        if escapes {
            return visitor.visit_string(serde_json::from_str(quoted).map_err(|_| Unread)?);
        }
        visitor.visit_borrowed_str(quoted.get(1..quoted.len() - 1).ok_or(Unread)?)
    }

    fn visit_number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unread> {
        let start = self.rest;
        self.rest = behind_number(start).ok_or(Unread)?;
        let text = self.text_since(start)?;
        if let Ok(number) = text.parse() {
            return visitor.visit_u64(number);
        }
        let number: serde_json::Number = serde_json::from_str(text).map_err(|_| Unread)?;
        match number.as_i64() {
            Some(number) => visitor.visit_i64(number),
            None => visitor.visit_f64(number.as_f64().ok_or(Unread)?),
        }
    }

    /// Reads the content of a list or an object, and its closing bracket.
    fn nested<T>(
        &mut self,
        end: u8,
        visit: impl FnOnce(Inside<'_, 'de>) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        if self.level == MAX_LEVELS {
            return Err(Unread);
        }
        self.rest = self.rest.get(1..).ok_or(Unread)?;
        self.level += 1;
        let value = visit(Inside { reader: &mut *self, end, first: true })?;
        self.level -= 1;
        self.expect(end)?;
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Unread;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        match self.next_byte().ok_or(Unread)? {
            b'"' => self.visit_string(visitor),
            b'{' => self.nested(b'}', |members| visitor.visit_map(members)),
            b'[' => self.nested(b']', |items| visitor.visit_seq(items)),
            b'n' => {
                self.literal("null")?;
                visitor.visit_unit()
            }
            b't' => {
                self.literal("true")?;
                visitor.visit_bool(true)
            }
            b'f' => {
                self.literal("false")?;
                visitor.visit_bool(false)
            }
            _ => self.visit_number(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        if self.next_byte() == Some(b'n') {
            self.literal("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unread> {
        if name != RAW {
            return visitor.visit_newtype_struct(self);
        }
        visitor.visit_borrowed_str(self.skip()?)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.skip()?;
        visitor.visit_unit()
    }

    // The visitor rejects a value of the wrong type.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

/// The items of a list or the members of an object.
struct Inside<'r, 'de> {
    reader: &'r mut Reader<'de>,
    end: u8,
    first: bool,
}

impl Inside<'_, '_> {
    /// Moves to the next one, if there is one.
    #[inline]
    fn has_next(&mut self) -> Result<bool, Unread> {
        let next = self.reader.next_byte().ok_or(Unread)?;
        if next == self.end {
            return Ok(false);
        }
        if !std::mem::replace(&mut self.first, false) {
            self.reader.expect(b',')?;
        }
        Ok(true)
    }
}

impl<'de> SeqAccess<'de> for Inside<'_, 'de> {
    type Error = Unread;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unread> {
        if self.has_next()? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> MapAccess<'de> for Inside<'_, 'de> {
    type Error = Unread;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unread> {
        if !self.has_next()? {
            return Ok(None);
        }
        if self.reader.next_byte() != Some(b'"') {
            return Err(Unread);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Unread> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;
    use crate::model::{Json, Object};

    /// Checks that this reader returns the result of serde_json or rejects the text.
    fn agrees(text: &str) -> bool {
        fn one<'a, T: Deserialize<'a> + fmt::Debug>(text: &'a str) -> bool {
            let own = quickly::<T>(text).ok().map(|value| format!("{value:?}"));
            let theirs = serde_json::from_str::<T>(text).ok().map(|value| format!("{value:?}"));
            assert!(own.is_none() || own == theirs, "{text}: {own:?} for {theirs:?}");
            own.is_some() == theirs.is_some()
        }
        // An array, so that every type is checked.
        [
            one::<IgnoredAny>(text),
            one::<Raw<'_>>(text),
            one::<Json<'_>>(text),
            one::<Object<'_>>(text),
            one::<serde_json::Value>(text),
            one::<Option<BTreeMap<String, Option<f64>>>>(text),
        ]
        .iter()
        .all(|agrees| *agrees)
    }

    #[test]
    fn usual_texts_are_read_without_serde_json() {
        for text in [
            r#"{"a":[1,-2,3.5e-7,true,false,null,"x"],"b":{},"c":[]}"#,
            " {\t\"a\" :\r\n[ 1 , {\"b\" : \"\" } ] } \n",
            r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 é😀""#,
            r#"{"apiVersion":"v1","metadata":{"name":"a\nb","generation":3},"spec":{"a":"{"},"status":{"phase":"x"}}"#,
            "0",
            "-0",
            "18446744073709551615",
            "-9223372036854775808",
            "18446744073709551616",
            "1e3",
            "null",
        ] {
            assert!(agrees(text), "{text}");
            assert!(quickly::<Raw<'_>>(text).is_ok_and(|raw| raw.0 == text.trim()), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_rejected() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[",
            "]",
            "[}",
            "{]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "[1,]",
            "[,1]",
            "{,}",
            "[1 2]",
            "{\"a\" 1}",
            "{a:1}",
            "{1:1}",
            "nul",
            "nulll",
            "truefalse",
            "True",
            "01",
            "-",
            "+1",
            ".5",
            "1.",
            "1.e1",
            "1e",
            "1e+",
            "--1",
            "0x1",
            "NaN",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12",
            "\"\\",
            "\"a\nb\"",
            "\"a\u{0}\"",
            "1 1",
            "[] []",
            "{}x",
            "[\"a\tb\"]",
            "\u{feff}1",
            "\u{a0}1",
            "{\"a\":1 \"b\":2}",
            "[[1]",
            "{\"a\":[}",
        ] {
            assert!(quickly::<IgnoredAny>(text).is_err(), "{text}");
            assert!(agrees(text), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_left_to_serde_json() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(quickly::<IgnoredAny>(&nested(63)).is_ok());
        for levels in [64, 100, 101, 127, 128, 129, 5_000] {
            agrees(&nested(levels));
            assert!(read::<IgnoredAny>(&nested(levels)).is_ok());
        }
        // Both skip a lone surrogate, but reject it as a string.
        assert!(quickly::<IgnoredAny>(r#""\ud800""#).is_ok() && agrees(r#""\ud800""#));
    }

    #[test]
    fn repeated_values_are_skipped_by_comparison() {
        let long = &format!(r#"{{"a":"{}"}}"#, "0123456789".repeat(7));
        let other = long.replace('9', "8");
        for text in [
            format!(r#"{{"a":{long},"b":{long},"c":{other},"d":{long}}}"#),
            format!("[{long},{long} , {other},[{long}]]"),
            format!("[{long},{long}{long}]"),
            format!("[{long},{long}x]"),
            format!("[{long},{}]", &long[..long.len() - 1]),
            format!("[[{long}],{long},[{long}],[{long},1]]"),
            format!(
                r#"{{"spec":{long},"x":{long},"metadata":{{"labels":{long}}},"status":{long}}}"#
            ),
        ] {
            assert!(agrees(&text), "{text}");
        }
    }

    #[test]
    fn errors_are_those_of_serde_json() {
        for text in ["{\"a\":\n tru}", "[1,", "5", ""] {
            let own = read::<Object<'_>>(text).map(|_| ()).unwrap_err();
            let theirs = serde_json::from_str::<Object<'_>>(text).map(|_| ()).unwrap_err();
            assert_eq!(own.to_string(), theirs.to_string());
        }
    }

    fn value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|value| value.to_string()),
            any::<i64>().prop_map(|value| value.to_string()),
            any::<f64>().prop_map(|value| serde_json::json!(value).to_string()),
            any::<String>().prop_map(|value| serde_json::json!(value).to_string()),
            r#""(\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]|[a-z])*""#,
        ];
        let name = prop_oneof![
            any::<String>().prop_map(|value| serde_json::json!(value).to_string()),
            prop::sample::select(vec![r#""metadata""#, r#""spec""#, r#""status""#, r#""kind""#])
                .prop_map(str::to_owned),
        ];
        leaf.prop_recursive(6, 64, 6, move |inner| {
            let space = "[ \n\t]{0,1}";
            let member = (space, name.clone(), space, inner.clone(), space)
                .prop_map(|(a, name, b, value, c)| format!("{a}{name}{b}:{b}{value}{c}"));
            let join = |parts: Vec<String>| parts.join(",");
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(move |all| format!("[{}]", join(all))),
                prop::collection::vec(member, 0..6)
                    .prop_map(move |all| format!("{{{}}}", join(all))),
            ]
        })
    }

    proptest! {
        #[test]
        fn random_json_is_read_as_serde_json_reads_it(text in value()) {
            prop_assert!(agrees(&text), "{}", text);
        }

        #[test]
        fn repeated_json_is_read_as_serde_json_reads_it(
            one in value(), other in value(), order in prop::collection::vec(any::<bool>(), 0..8),
        ) {
            let parts: Vec<&str> =
                order.iter().map(|first| if *first { one.as_str() } else { &other }).collect();
            let list = format!("[{}]", parts.join(","));
            prop_assert!(agrees(&list), "{}", list);
            agrees(&parts.concat());
        }

        #[test]
        fn damaged_json_is_read_as_serde_json_reads_it(
            text in value(), at in any::<prop::sample::Index>(),
            with in prop_oneof![Just(None), prop::sample::select(b"{}[],:\"\\0-.eE+ntu \n\x01".to_vec()).prop_map(Some)],
        ) {
            let mut chars: Vec<char> = text.chars().collect();
            let at = at.index(chars.len());
            match with {
                None => { chars.remove(at); }
                Some(byte) => chars[at] = char::from(byte),
            }
            agrees(&chars.into_iter().collect::<String>());
        }
    }
}
