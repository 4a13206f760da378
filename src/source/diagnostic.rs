//! Mistakes in documents: data first, a picture with a caret at the end.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use super::Source;
use super::tree::Span;

/// One mistake in one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong: the source, and the bytes of it.
    pub(crate) span: Span,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it, where that can be known.
    pub help: Option<String>,
    /// The convention that inherits what is wrong, where it is right in the one that it is from.
    pub inherited_by: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, inherited_by: None }
    }

    /// What to do about something that is right where it stands.
    fn inheritance(&self) -> Option<String> {
        let heir = self.inherited_by.as_ref()?;
        Some(format!("\"{heir}\" inherits this, and it does not fit what \"{heir}\" says itself"))
    }
}

/// All mistakes of all documents, with the texts they were found in. Its `Display` draws each with
/// file, line and a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    sources: Vec<Source>,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Bundles mistakes with their sources, in the order in which a reader meets them. What is
    /// inherited comes last: it is wrong because of something else, and may stand where the reader
    /// can change nothing.
    #[must_use]
    pub(crate) fn new(sources: &[Source], mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|diagnostic| {
            let Span { source, bytes } = &diagnostic.span;
            (diagnostic.inherited_by.is_some(), *source, bytes.start)
        });
        list.dedup();
        Self { sources: sources.to_vec(), list }
    }

    /// The mistakes.
    #[must_use]
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// The name of the file a mistake is in, and the line and column (from 1) where it starts.
    #[must_use]
    pub fn place(&self, diagnostic: &Diagnostic) -> (&str, usize, usize) {
        let Some(source) = self.sources.get(diagnostic.span.source) else { return ("", 1, 1) };
        let (line, column) = line_and_column(&source.text, diagnostic.span.bytes.start);
        (&source.name, line, column)
    }

    /// The mistakes as data, in the order in which a reader meets them: a list of `{file, line,
    /// column, endLine, endColumn, message, help}`. Lines and columns count from 1, columns in
    /// characters; the end is behind the last character, and `help` is left out where there is none,
    /// as is `inheritedBy`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let records = self.list.iter().map(|diagnostic| {
            let source = self.sources.get(diagnostic.span.source);
            let text = source.map_or("", |source| source.text.as_str());
            let span = visible(text, &diagnostic.span.bytes);
            let (line, column) = line_and_column(text, span.start);
            let (end_line, end_column) = line_and_column(text, span.end);
            let file = source.map_or("", |source| source.name.as_str());
            let Diagnostic { message, help, inherited_by, .. } = diagnostic;
            let (help, inherited_by) = (help.as_deref(), inherited_by.as_deref());
            Record { file, line, column, end_line, end_column, message, help, inherited_by }
        });
        // A record of numbers and texts always is JSON.
        records.filter_map(|record| serde_json::to_value(record).ok()).collect()
    }
}

/// A mistake as editors and pipelines want it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'d> {
    file: &'d str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    message: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited_by: Option<&'d str>,
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let renderer = Renderer::plain();
        for (index, diagnostic) in self.list.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n\n")?;
            }
            let Some(source) = self.sources.get(diagnostic.span.source) else {
                write!(formatter, "error: {}", diagnostic.message)?;
                continue;
            };
            let snippet = Snippet::source(&source.text).path(source.name.as_str()).annotation(
                AnnotationKind::Primary.span(visible(&source.text, &diagnostic.span.bytes)),
            );
            let mut report =
                vec![Level::ERROR.primary_title(diagnostic.message.as_str()).element(snippet)];
            let inheritance = diagnostic.inheritance();
            for help in diagnostic.help.iter().chain(&inheritance) {
                report.push(Group::with_title(Level::HELP.secondary_title(help.as_str())));
            }
            formatter.write_str(&renderer.render(&report))?;
        }
        Ok(())
    }
}

/// Both from 1, the column in characters.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

/// A span that can be drawn: inside the text, on character boundaries, on one line, never empty.
/// A block mapping has no extent of its own in the YAML events, only a start.
fn visible(text: &str, span: &Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let line = start + text[start..].find('\n').unwrap_or(text.len() - start);
    let mut end = span.end.clamp(start, line.max(start));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end == start {
        end = text[start..line].find([' ', ':']).map_or(line, |length| start + length);
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn diagnostics(text: &str, list: &[(Range<usize>, Option<&str>)]) -> Diagnostics {
        let sources = [
            Source { name: "other.yaml".into(), text: String::new() },
            Source { name: "policy.yaml".into(), text: text.into() },
        ];
        let diagnostic = |(span, help): &(Range<usize>, Option<&str>)| Diagnostic {
            help: help.map(str::to_owned),
            ..Diagnostic::new(Span { source: 1, bytes: span.clone() }, "wrong")
        };
        Diagnostics::new(&sources, list.iter().map(diagnostic).collect())
    }

    #[test]
    fn mistakes_as_data_have_their_place_in_lines_and_characters() {
        let text = "kind: x\nä: öü #\n";
        let at = text.find("öü").unwrap();
        let mistakes = diagnostics(text, &[(at..at + 4, Some("right")), (0..4, None)]);
        assert_eq!(
            mistakes.to_json(),
            json!([
                {"file": "policy.yaml", "line": 1, "column": 1, "endLine": 1, "endColumn": 5, "message": "wrong"},
                {"file": "policy.yaml", "line": 2, "column": 4, "endLine": 2, "endColumn": 6, "message": "wrong", "help": "right"},
            ])
        );
    }

    #[test]
    fn a_place_beyond_the_text_or_inside_a_character_does_no_harm() {
        for span in [99..999, 1..1, 1..2, 0..0, 2..3] {
            let list = diagnostics("äö\n", &[(span.clone(), None)]).to_json();
            let record = &list.as_array().unwrap()[0];
            assert!(record["endColumn"].as_u64() >= record["column"].as_u64(), "{span:?}: {list}");
        }
    }
}
