//! A location in a source, and its picture with carets.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use super::Source;
use super::text::Lines;

/// A location: enough to name it and to draw it, without the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file's name.
    #[serde(skip)]
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column of the first character, from 1.
    pub column: usize,
    /// The column behind the last character, on the same line.
    #[serde(rename = "endColumn")]
    pub end_column: usize,
    /// The text of the line, or a part of a long line.
    #[serde(skip)]
    excerpt: String,
    /// The bytes of the excerpt that carets mark.
    #[serde(skip)]
    within: Range<usize>,
}

impl Place {
    /// The location of some bytes of a source, cut to one line, and empty on an empty line only.
    pub fn of(source: &Source, span: &Range<usize>) -> Self {
        Self::in_lines(&Lines::of(source), span)
    }

    /// The same, for several places of one source.
    pub(super) fn in_lines(lines: &Lines<'_>, span: &Range<usize>) -> Self {
        Self::with_line(lines, span, MAX_AROUND)
    }

    /// The same, with more of a long line: at most `around` bytes on each side.
    pub(super) fn with_line(lines: &Lines<'_>, span: &Range<usize>, around: usize) -> Self {
        let Source { name, text } = lines.source;
        let start = floor(text, span.start.min(text.len()));
        let (line, bytes) = lines.line_at(start);
        let start = start.min(bytes.end);
        let mut end = floor(text, span.end.clamp(start, bytes.end));
        if end == start {
            // A block mapping has no extent of its own in the YAML events, only a start.
            let rest = &text[start..bytes.end];
            end = start + rest.find([' ', ':']).filter(|length| *length > 0).unwrap_or(rest.len());
        }
        // JSON often is one line of megabytes; the picture needs the text around the location.
        let from = floor(text, start.saturating_sub(around).max(bytes.start));
        let to = floor(text, (start + around).clamp(start, bytes.end)).max(start);
        let end_drawn = end.min(to);
        let column = lines.characters(&(bytes.start..start)) + 1;
        Self {
            file: name.clone(),
            line: line + 1,
            column,
            end_column: column + lines.characters(&(start..end)),
            excerpt: text[from..to].to_owned(),
            within: start - from..end_drawn - from,
        }
    }

    /// Whether the picture begins behind the start of the line.
    pub(super) fn is_cut(&self) -> bool {
        self.excerpt[..self.within.start].chars().count() + 1 != self.column
    }

    /// The line with carets under the bytes, without a title.
    pub fn picture(&self, is_colored: bool) -> String {
        let snippet = self.snippet(MAX_AROUND);
        renderer(is_colored).render(&[Group::with_level(Level::NOTE).element(snippet)])
    }

    /// The same, as a part of a drawing.
    pub(super) fn snippet(&self, around: usize) -> Snippet<'_, Annotation<'_>> {
        let Range { start, end } = self.within;
        let from = floor(&self.excerpt, start.saturating_sub(around));
        let to = floor(&self.excerpt, start.saturating_add(around).min(self.excerpt.len()));
        Snippet::source(&self.excerpt[from..to])
            .line_start(self.line)
            .annotation(AnnotationKind::Primary.span(start - from..end.min(to) - from))
    }
}

/// `FILE:LINE:COLUMN`: what editors and terminals make a link of.
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", one_line(&self.file), self.line, self.column)
    }
}

/// With or without the codes of colors.
pub(super) const fn renderer(is_colored: bool) -> Renderer {
    if is_colored { Renderer::styled() } else { Renderer::plain() }
}

/// Foreign text as part of a line. Names of objects and files and messages of rules must not steer a
/// terminal, or begin a line that a pipeline reads as a command. Invisible letters and those that change the order of
/// the text are escapes: they can make one name look like another. The page does the same (`dom.js`).
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            hidden if is_hidden(hidden) => push_escape(&mut line, hidden),
            _ => line.push(if letter.is_control() { ' ' } else { letter }),
        }
    }
    line
}

/// JSON as YAML. YAML allows some characters only escaped, and reads others as line breaks:
/// <https://yaml.org/spec/1.1/#id868524>. What people cannot see is also escaped.
pub fn json_as_yaml(json: &str) -> String {
    let mut yaml = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' => push_escape(&mut yaml, letter),
            hidden if is_hidden(hidden) => push_escape(&mut yaml, hidden),
            _ => yaml.push(letter),
        }
    }
    yaml
}

/// Letters that are invisible or change the order of the text, and what is no character.
const fn is_hidden(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fffe}'..='\u{ffff}'
    )
}

fn push_escape(text: &mut String, letter: char) {
    text.push_str(&format!("\\u{:04x}", u32::from(letter)));
}

/// The nearest character boundary at or before a byte.
const fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset;
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Bytes drawn on each side of a location: with the gutter about the width of a terminal.
const MAX_AROUND: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_steer_a_terminal_or_hide_letters() {
        assert_eq!(one_line("a\u{202e}b\u{1b}[2J\nc\u{200b}ä"), "a\\u202eb [2J c\\u200bä");
        assert_eq!(json_as_yaml("\"a\u{202e}\u{85}ä\u{fffe}\""), r#""a\u202e\u0085ä\ufffe""#);
    }

    #[test]
    fn a_place_is_counted_in_characters_and_cut_to_its_line() {
        let file = Source::new("a.yaml", "a: b\r\nöä: x\r\nlast");
        let place = Place::of(&file, &(6..999));
        assert_eq!(place.to_string(), "a.yaml:2:1");
        assert_eq!((place.end_column, place.excerpt.as_str()), (6, "öä: x"));
        assert_eq!(Place::of(&file, &(99..99)).to_string(), "a.yaml:3:5");
    }

    #[test]
    fn of_a_long_line_only_the_surroundings_are_kept() {
        let file =
            Source::new("a.json", format!("{}ß\"here\"{}", "x".repeat(5000), "y".repeat(5000)));
        let place = Place::of(&file, &(5002..5008));
        assert_eq!((place.column, place.end_column), (5002, 5008));
        assert!(place.excerpt.len() <= 2 * MAX_AROUND + 1);
        assert_eq!(&place.excerpt[place.within.clone()], "\"here\"");
        assert!(place.picture(false).contains("^^^^^^"), "{}", place.picture(false));
    }
}
