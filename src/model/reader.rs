//! A JSON reader for text in memory that skips unused values quickly.
//!
//! Nine tenths of a review are `spec`, `managedFields` and labels that no rule reads. serde_json checks each byte of a skipped string
//! for three things, which took three fifths of judging a review. This reader checks for two, and searches the complete text once for
//! control characters, which no string may contain.
//!
//! It accepts the texts that serde_json accepts, up to the depth that the API server accepts. serde_json explains invalid texts.

mod skip;
#[cfg(test)]
mod tests;
mod tree;

use std::borrow::Cow;

use serde::de::{Error as _, IgnoredAny};
use serde_json::Number;

#[cfg(test)]
pub(super) use tree::{MAX_DEPTH, MAX_VALUES};

use skip::{Skipped, behind, behind_number, behind_string, behind_value, trimmed};

/// Why a text was not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is not JSON.
    NotJson(serde_json::Error),
    /// This value has another type than expected, is nested too deeply, or a tree has too many values. Counted
    /// from one.
    Unexpected { line: usize, column: usize },
}

impl From<ReadError> for serde_json::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotJson(error) => error,
            ReadError::Unexpected { line, column } => Self::custom(format!(
                "an unexpected value, or too many values, at line {line} column {column}"
            )),
        }
    }
}

/// Reads the complete `text` with a function that returns `None` for an unexpected value.
///
/// # Errors
/// Text that is not JSON, text after the value, or an unexpected value.
pub(crate) fn read<'de, T>(
    text: &'de str,
    value: impl FnOnce(&mut Reader<'de>) -> Option<T>,
) -> Result<T, ReadError> {
    let mut reader = Reader::new(text);
    match value(&mut reader) {
        Some(value) if reader.next_byte().is_none() => Ok(value),
        _ => Err(reader.error()),
    }
}

/// A text and a position in it. Its methods read the next value and return `None` if there is another one.
pub(crate) struct Reader<'de> {
    text: &'de str,
    /// The unread rest of the text.
    rest: &'de [u8],
    /// Whether the text contains control characters, such as line breaks between values. If so, every
    /// string is checked for them.
    controls: bool,
    /// How many values the current tree may still have; `None` if it had too many.
    left: Option<u32>,
    /// Whether no list stays text.
    reads_all: bool,
    skipped: Skipped<'de>,
}

impl<'de> Reader<'de> {
    fn new(text: &'de str) -> Self {
        // `any` could end early and would not be vectorized.
        let least = text.as_bytes().iter().fold(u8::MAX, |least, byte| least.min(*byte));
        let (rest, controls) = (text.as_bytes(), least < b' ');
        Self { text, rest, controls, left: Some(0), reads_all: false, skipped: Skipped::default() }
    }

    /// An object: calls `member` for each name, to read the value.
    #[inline]
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'de, str>) -> Option<()>,
    ) -> Option<()> {
        let one = |reader: &mut Self| {
            let name = reader.text()?;
            reader.expect(b':')?;
            member(reader, name)
        };
        self.enclosed(b'{', b'}', one)
    }

    /// A list: calls `item` to read each item.
    pub(crate) fn list(&mut self, item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.enclosed(b'[', b']', item)
    }

    #[inline]
    fn enclosed(
        &mut self,
        start: u8,
        end: u8,
        mut part: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.expect(start)?;
        if let Some(rest) = behind(end, self.rest) {
            self.rest = rest;
            return Some(());
        }
        loop {
            part(self)?;
            if let Some(rest) = behind(b',', self.rest) {
                self.rest = rest;
            } else {
                return self.expect(end);
            }
        }
    }

    /// A string, borrowed if it has no escapes.
    #[inline(always)]
    pub(crate) fn text(&mut self) -> Option<Cow<'de, str>> {
        let start = trimmed(self.rest);
        self.rest = start;
        let (rest, escapes) = behind_string(start, self.controls)?;
        let text = if escapes {
            Cow::Owned(serde_json::from_str(self.text_between(start, rest)?).ok()?)
        } else {
            let quotes = self.text.len() - start.len()..self.text.len() - rest.len();
            Cow::Borrowed(self.text.get(quotes.start + 1..quotes.end - 1)?)
        };
        self.rest = rest;
        Some(text)
    }

    /// The same, and `None` inside for null.
    pub(crate) fn optional<T>(
        &mut self,
        value: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.next_byte() == Some(b'n') {
            return self.literal("null").map(|()| None);
        }
        value(self).map(Some)
    }

    /// `true` or `false`.
    pub(crate) fn bool(&mut self) -> Option<bool> {
        if self.next_byte() == Some(b't') {
            return self.literal("true").map(|()| true);
        }
        self.literal("false").map(|()| false)
    }

    fn literal(&mut self, word: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(word.as_bytes())?;
        Some(())
    }

    /// A number that fits a 64-bit integer or a finite float.
    pub(crate) fn number(&mut self) -> Option<Number> {
        let start = trimmed(self.rest);
        self.rest = start;
        let rest = behind_number(start)?;
        let text = self.text_between(start, rest)?;
        let number = match text.parse::<u64>() {
            Ok(number) => number.into(),
            Err(_) => serde_json::from_str(text).ok()?,
        };
        self.rest = rest;
        Some(number)
    }

    /// The text of any value. A list is skipped by element, because only one entry of managedFields differs
    /// between the old and the new object.
    pub(crate) fn skip(&mut self) -> Option<&'de str> {
        let start = trimmed(self.rest);
        self.rest = start;
        if start.first() == Some(&b'[') {
            self.list(Self::skip_element)?;
        } else {
            self.skip_element()?;
        }
        self.text_between(start, self.rest)
    }

    fn skip_element(&mut self) -> Option<()> {
        let start = trimmed(self.rest);
        if let Some((rest, _)) = self.skipped.behind(start) {
            self.rest = rest;
            return Some(());
        }
        let (rest, count) = behind_value(start, self.controls)?;
        self.rest = rest;
        self.skipped.remember(start.get(..start.len() - rest.len())?, count);
        Some(())
    }

    /// The next byte after white space.
    #[inline]
    pub(crate) fn next_byte(&mut self) -> Option<u8> {
        self.rest = trimmed(self.rest);
        self.rest.first().copied()
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        self.rest = trimmed(self.rest);
        self.rest = behind(byte, self.rest)?;
        Some(())
    }

    /// The text between two rests.
    #[inline]
    fn text_between(&self, from: &[u8], to: &[u8]) -> Option<&'de str> {
        let place = |rest: &[u8]| self.text.len() - rest.len();
        self.text.get(place(from)..place(to))
    }

    fn error(&self) -> ReadError {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(self.text) {
            return ReadError::NotJson(error);
        }
        let before = &self.text.as_bytes()[..self.text.len() - self.rest.len()];
        let of_line = before.rsplit(|byte| *byte == b'\n').next();
        ReadError::Unexpected {
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: of_line.map_or(0, <[u8]>::len) + 1,
        }
    }
}
