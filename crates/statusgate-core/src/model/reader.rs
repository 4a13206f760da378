//! A JSON reader for text in memory that skips unused values quickly.
//!
//! Nine tenths of a review are `spec`, `managedFields` and labels that no rule reads. serde_json checks each byte of a skipped string
//! for three things, which took three fifths of judging a review. This reader checks for two, and searches the complete text once for
//! control characters, which no string may contain.
//!
//! It accepts the texts that serde_json accepts, up to the depth that the API server accepts. serde_json explains invalid texts.

mod cursor;
mod skipped;
#[cfg(test)]
mod tests;
mod tree;

use std::borrow::Cow;

use serde::de::{Deserialize, Error as _, IgnoredAny};
use serde_json::Number;

#[cfg(test)]
pub(super) use tree::MAX_DEPTH;
pub(super) use tree::MAX_VALUES;

use cursor::Cursor;
use skipped::Skipped;

/// Why a text was not read.
#[derive(Debug)]
pub enum ReadError {
    /// It is not JSON.
    NotJson(serde_json::Error),
    /// This value has another type than expected, is nested too deeply, or a tree has too many values. Counted
    /// from one.
    Unexpected {
        /// The line.
        line: usize,
        /// The column, in bytes.
        column: usize,
    },
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
pub fn read<'de, T>(
    text: &'de str,
    value: impl FnOnce(&mut Reader<'de>) -> Option<T>,
) -> Result<T, ReadError> {
    let mut reader = Reader::new(text);
    match value(&mut reader) {
        Some(value) if reader.is_at_end() => Ok(value),
        _ => Err(reader.error()),
    }
}

/// How many values a JSON text has, with those inside. An invalid text has none.
pub(super) fn count_values(text: &str) -> usize {
    Cursor::new(text.as_bytes()).behind_value().map_or(0, |(_, count)| count as usize)
}

/// A text and a place in it. Its methods read the next value and return `None` if there is another one.
pub struct Reader<'de> {
    text: &'de str,
    cursor: Cursor<'de>,
    /// How many values the current tree may still have; `None` if it had too many.
    left: Option<u32>,
    /// Whether no list stays text.
    reads_all: bool,
    skipped: Skipped<'de>,
}

impl<'de> Reader<'de> {
    fn new(text: &'de str) -> Self {
        let cursor = Cursor::new(text.as_bytes());
        Self { text, cursor, left: Some(0), reads_all: false, skipped: Skipped::default() }
    }

    /// An object: calls `member` for each name, to read the value.
    #[inline]
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'de, str>) -> Option<()>,
    ) -> Option<()> {
        let one = |reader: &mut Self| {
            let name = reader.text()?;
            reader.cursor.take(b':')?;
            member(reader, name)
        };
        self.enclosed(b'{', b'}', one)
    }

    /// A list: calls `item` to read each item.
    pub fn list(&mut self, item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.enclosed(b'[', b']', item)
    }

    #[inline]
    fn enclosed(
        &mut self,
        start: u8,
        end: u8,
        mut part: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.cursor.take(start)?;
        if self.cursor.take(end).is_some() {
            return Some(());
        }
        loop {
            part(self)?;
            if self.cursor.take(b',').is_none() {
                return self.cursor.take(end);
            }
        }
    }

    /// A string, borrowed if it has no escapes.
    #[inline(always)]
    pub fn text(&mut self) -> Option<Cow<'de, str>> {
        let start = self.start();
        if self.cursor.string()? {
            return self.decoded(start).map(Cow::Owned);
        }
        self.text.get(start + 1..self.cursor.place - 1).map(Cow::Borrowed)
    }

    /// The same, and `None` inside for null.
    pub fn optional<T>(&mut self, value: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.next_byte() == b'n' {
            return self.cursor.word("null").map(|()| None);
        }
        value(self).map(Some)
    }

    /// `true` or `false`.
    pub fn bool(&mut self) -> Option<bool> {
        if self.next_byte() == b't' {
            return self.cursor.word("true").map(|()| true);
        }
        self.cursor.word("false").map(|()| false)
    }

    /// A number that fits a 64-bit integer or a finite float.
    pub(crate) fn number(&mut self) -> Option<Number> {
        let start = self.start();
        self.cursor.number()?;
        match self.text_from(start)?.parse::<u64>() {
            Ok(number) => Some(number.into()),
            Err(_) => self.decoded(start),
        }
    }

    /// What serde_json decodes from a token that starts here. If it cannot, that is the place of the error.
    fn decoded<T: Deserialize<'de>>(&mut self, start: usize) -> Option<T> {
        let value = serde_json::from_str(self.text_from(start)?).ok();
        if value.is_none() {
            self.cursor.place = start;
        }
        value
    }

    /// The text of any value. A list is skipped by element, because only one entry of managedFields differs
    /// between the old and the new object.
    pub fn skip(&mut self) -> Option<&'de str> {
        let start = self.start();
        if self.next_byte() == b'[' {
            self.list(Self::skip_element)?;
        } else {
            self.skip_element()?;
        }
        self.text_from(start)
    }

    fn skip_element(&mut self) -> Option<()> {
        (self.cursor, _) = self.behind_value(Skipped::MIN_BYTES)?;
        Some(())
    }

    /// Behind the next value, and how many values it has, with those inside. One of so many bytes is remembered.
    fn behind_value(&mut self, min_bytes: usize) -> Option<(Cursor<'de>, u32)> {
        let start = self.start();
        if let Some((length, count)) = self.skipped.find(self.text.as_bytes().get(start..)?) {
            return Some((self.cursor.behind(length), count));
        }
        let (behind, count) = self.cursor.behind_value()?;
        if behind.place - start >= min_bytes {
            self.skipped.remember(self.text.as_bytes().get(start..behind.place)?, count);
        }
        Some((behind, count))
    }

    /// The next byte after white space; 0 at the end.
    #[inline]
    pub(crate) fn next_byte(&mut self) -> u8 {
        self.cursor.next()
    }

    fn is_at_end(&mut self) -> bool {
        self.start() == self.text.len()
    }

    /// Where the next value starts.
    #[inline]
    fn start(&mut self) -> usize {
        self.cursor.next();
        self.cursor.place
    }

    /// The text from a place to here.
    #[inline]
    fn text_from(&self, start: usize) -> Option<&'de str> {
        self.text.get(start..self.cursor.place)
    }

    fn error(&self) -> ReadError {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(self.text) {
            return ReadError::NotJson(error);
        }
        let before = &self.text.as_bytes()[..self.cursor.place];
        let of_line = before.rsplit(|byte| *byte == b'\n').next();
        ReadError::Unexpected {
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: of_line.map_or(0, <[u8]>::len) + 1,
        }
    }
}
