//! A text, its name in messages, and its lines.

use std::cell::OnceCell;
use std::ops::Range;

use super::tree::without_byte_order_mark;

/// The name of standard input.
pub const STDIN: &str = "stdin";

/// A text that was read, and its name in messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The path as a person would type it; [`STDIN`] for standard input.
    pub name: String,
    /// The whole text, without a byte order mark.
    pub text: String,
}

impl Source {
    /// A text under a name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: without_byte_order_mark(text.into()) }
    }

    /// Whether the file name is that of JSON.
    pub(super) fn is_named_json(&self) -> bool {
        std::path::Path::new(&self.name).extension().is_some_and(|extension| extension == "json")
    }
}

/// Where the lines of a source begin. Counted at the first question: most sources have no mistakes.
#[derive(Debug)]
pub(super) struct Lines<'s> {
    pub(super) source: &'s Source,
    starts: OnceCell<Vec<usize>>,
    /// The characters before every [`STEP`]th byte. Only texts with long lines are counted.
    counts: OnceCell<Vec<usize>>,
}

impl<'s> Lines<'s> {
    pub(super) const fn of(source: &'s Source) -> Self {
        Self { source, starts: OnceCell::new(), counts: OnceCell::new() }
    }

    /// The line (from 0) that holds a byte, and the bytes of that line without its end.
    pub(super) fn line_at(&self, offset: usize) -> (usize, Range<usize>) {
        let text = &self.source.text;
        let starts = self.starts.get_or_init(|| {
            let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect()
        });
        let line = starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = starts.get(line).copied().unwrap_or(0);
        let end = starts.get(line + 1).map_or(text.len(), |next| next - 1);
        let end = if text[start..end].ends_with('\r') { end - 1 } else { end };
        (line, start..end)
    }

    /// The characters that begin in a range of bytes.
    ///
    /// A `List` of thousands of objects may be one line, as the API server writes it. Counting that line
    /// from its start for each finding would take quadratic time.
    pub(super) fn characters(&self, range: &Range<usize>) -> usize {
        let text = self.source.text.as_bytes();
        if range.len() <= 2 * STEP {
            return characters(&text[range.clone()]);
        }
        let counts = self.counts.get_or_init(|| {
            let mut before = 0;
            let steps = text.chunks(STEP).map(|step| {
                let count = before;
                before += characters(step);
                count
            });
            steps.collect()
        });
        let before = |at: usize| {
            let step = (at / STEP).min(counts.len().saturating_sub(1));
            counts.get(step).copied().unwrap_or(0) + characters(&text[step * STEP..at])
        };
        before(range.end) - before(range.start)
    }
}

/// Characters by their first bytes, so that a text may be cut anywhere.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

/// Bytes that are counted anew for each location: about the length of a long line.
const STEP: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_alike_in_long_lines_and_short_ones() {
        let text = "aß😀".repeat(5000);
        let source = Source::new("a.json", text.as_str());
        let lines = Lines::of(&source);
        for (count, (at, _)) in text.char_indices().enumerate() {
            assert_eq!(lines.characters(&(0..at)), count, "{at}");
        }
        for start in [0, 7, 4095, 4096, 7000, 8190] {
            let start = floor(&text, start);
            for end in [start, 8192, 12_288, 16_001, text.len()] {
                let end = floor(&text, end);
                let expected = text[start..end].chars().count();
                assert_eq!(lines.characters(&(start..end)), expected, "{start}..{end}");
            }
        }
        assert_eq!(Lines::of(&Source::new("", "")).characters(&(0..0)), 0);
    }

    fn floor(text: &str, mut at: usize) -> usize {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}
