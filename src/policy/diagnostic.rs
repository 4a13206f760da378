//! Mistakes in documents: data first, a picture with a caret at the end.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::Source;
use super::yaml::Span;

/// One mistake in one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong: the source, and the bytes of it.
    pub(crate) span: Span,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it, where that can be known.
    pub help: Option<String>,
}

/// All mistakes of all documents, with the texts they were found in. Its `Display` draws each with
/// file, line and a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    sources: Vec<Source>,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Bundles mistakes with their sources, in the order in which a reader meets them.
    #[must_use]
    pub(crate) fn new(sources: &[Source], mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|diagnostic| (diagnostic.span.source, diagnostic.span.bytes.start));
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
        let before = source.text.get(..diagnostic.span.bytes.start).unwrap_or(&source.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (&source.name, line, column)
    }
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
            if let Some(help) = &diagnostic.help {
                report.push(Group::with_title(Level::HELP.secondary_title(help.as_str())));
            }
            formatter.write_str(&renderer.render(&report))?;
        }
        Ok(())
    }
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
