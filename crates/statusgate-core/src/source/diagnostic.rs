//! Mistakes in texts: data first, a picture with carets at the end.

use std::collections::HashMap;
use std::fmt;

use annotate_snippets::renderer::{AnsiColor, Style};
use annotate_snippets::{Group, Level, Origin, Renderer};
use serde::Serialize;
use serde_json::json;

use super::place::renderer;
use super::text::Lines;
use super::tree::Span;
use super::{Place, Source, one_line};

/// One mistake in one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The source, and the bytes of it.
    #[serde(skip)]
    pub(crate) span: Span,
    /// The name of the source. [`Diagnostics::new`] sets it.
    pub file: Box<str>,
    /// The error, in one sentence without a full stop.
    pub message: String,
    /// The fix, if it is known.
    #[serde(skip)]
    pub help: Option<String>,
    /// The convention that inherits the mistake, if the text is right in its own convention.
    #[serde(skip)]
    pub inherited_by: Option<String>,
    /// The location. `None` if nothing of the source could be read. [`Diagnostics::new`] sets it.
    #[serde(flatten)]
    pub place: Option<Box<Place>>,
}

impl Diagnostic {
    /// A mistake that [`Diagnostics::new`] locates.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { span, message, help: None, inherited_by: None, file: Box::default(), place: None }
    }

    /// A mistake in a source that was read already.
    pub fn at(place: Place, message: impl Into<String>) -> Self {
        let file = place.file.as_str().into();
        Self { file, place: Some(Box::new(place)), ..Self::new(Span::default(), message) }
    }

    /// A file or folder that cannot be read.
    pub fn unread(file: impl Into<Box<str>>, message: impl Into<String>) -> Self {
        Self { file: file.into(), ..Self::new(Span::default(), message) }
    }

    /// The same with its location.
    pub(super) fn located(self, lines: &Lines<'_>) -> Self {
        let place = Some(Box::new(Place::with_line(lines, &self.span.bytes, MAX_LINE)));
        Self { file: lines.source.name.as_str().into(), place, ..self }
    }

    fn write(
        &self,
        level: &str,
        color: AnsiColor,
        formatter: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let message = one_line(&self.message);
        let is_colored = formatter.alternate();
        let style = if is_colored { color.on_default().bold() } else { Style::new() };
        match &self.place {
            None => write!(formatter, "{}: ", one_line(&self.file)),
            Some(place) => write!(formatter, "{place}: "),
        }?;
        write!(formatter, "{style}{level}{style:#}: {message}")?;
        let pictures = self.place.iter().map(|place| place.picture(is_colored));
        pictures.into_iter().try_for_each(|picture| write!(formatter, "\n{picture}"))?;
        self.help.iter().try_for_each(|help| write!(formatter, "\nhelp: {help}"))
    }

    fn draw(&self, renderer: &Renderer) -> String {
        let Some(place) = &self.place else {
            return format!("error: {}: {}", one_line(&self.file), one_line(&self.message));
        };
        let title = Level::ERROR.primary_title(self.message.as_str());
        let mut groups = vec![if place.is_cut() {
            // The column of an excerpt is not that of its line.
            let origin = Origin::path(place.file.as_str()).line(place.line);
            title.element(origin.char_column(place.column)).element(place.snippet(MAX_LINE))
        } else {
            title.element(place.snippet(MAX_LINE).path(place.file.as_str()))
        }];
        let inheritance = self.inherited_by.as_ref().map(|heir| {
            format!("\"{heir}\" inherits this, and it conflicts with what \"{heir}\" declares")
        });
        for help in self.help.iter().chain(&inheritance) {
            groups.push(Group::with_title(Level::HELP.secondary_title(help.as_str())));
        }
        renderer.render(&groups)
    }
}

/// `FILE:LINE:COLUMN: error: MESSAGE` and the picture, without a line break at the end: the form that
/// editors and pipelines parse. `{:#}` adds the codes of colors.
impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write("error", AnsiColor::Red, formatter)
    }
}

/// A mistake in a source that can be used nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(pub Diagnostic);

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write("warning", AnsiColor::Yellow, formatter)
    }
}

/// Bytes kept on each side of a mistake. The renderer fits them into the width of a terminal.
const MAX_LINE: usize = 1 << 12;

/// The mistakes of a source that are kept. Each keeps up to [`MAX_LINE`] bytes twice: without a limit, the
/// 130,000 mistakes in a line of 260 KB need 1.2 GB.
const MAX_MISTAKES: usize = 1000;

/// All mistakes of all sources. Its `Display` draws each with file, line and a caret; `{:#}` adds the codes of colors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Locates mistakes in their sources, and sorts them as a reader meets them. Inherited mistakes
    /// come last: something else causes them, perhaps where the reader can change nothing.
    pub fn new(sources: &[Source], mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|diagnostic| {
            let Span { source, bytes } = &diagnostic.span;
            (diagnostic.inherited_by.is_some(), *source, bytes.start)
        });
        list.dedup();
        let files: Vec<Lines<'_>> = sources.iter().map(Lines::of).collect();
        let located =
            limited(list).into_iter().map(|diagnostic| match files.get(diagnostic.span.source) {
                Some(lines) => diagnostic.located(lines),
                None => diagnostic,
            });
        Self { list: located.collect() }
    }

    /// The mistakes.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Whether it has no diagnostics.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Some of the mistakes.
    #[must_use]
    pub fn filter(&self, wanted: impl Fn(&Diagnostic) -> bool) -> Self {
        Self { list: self.list.iter().filter(|one| wanted(one)).cloned().collect() }
    }

    /// Adds mistakes that are located already.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(more);
    }

    /// The name of the file, and the line and column (from 1) where a mistake starts.
    pub fn place<'d>(&self, diagnostic: &'d Diagnostic) -> (&'d str, usize, usize) {
        let (line, column) = diagnostic.place.as_ref().map_or((1, 1), |at| (at.line, at.column));
        (&diagnostic.file, line, column)
    }

    /// The mistakes as data, in the order in which a reader meets them: a list of `{file, line,
    /// column, endLine, endColumn, message, help}`. Lines and columns count from 1, columns in
    /// characters; the end is behind the last character. `help` and `inheritedBy` are left out if
    /// there is none.
    pub fn to_json(&self) -> serde_json::Value {
        let records = self.list.iter().map(|diagnostic| {
            let (file, line, column) = self.place(diagnostic);
            let end_column = diagnostic.place.as_ref().map_or(1, |place| place.end_column);
            let Diagnostic { message, help, inherited_by, .. } = diagnostic;
            let mut record = json!({
                "file": file, "line": line, "column": column, "endLine": line, "endColumn": end_column,
                "message": message,
            });
            for (key, text) in [("help", help), ("inheritedBy", inherited_by)] {
                if let Some(text) = text {
                    record[key] = text.as_str().into();
                }
            }
            record
        });
        records.collect()
    }
}

/// Keeps the first mistakes of each source and of each convention that inherits them. Callers filter by both,
/// so no limit may drop all mistakes of one.
fn limited(list: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut kept: Vec<Diagnostic> = Vec::new();
    // For each of them, the number of mistakes and the index of the last one that is kept.
    let mut groups: HashMap<(usize, Option<String>), (usize, usize)> = HashMap::new();
    for diagnostic in list {
        let group = (diagnostic.span.source, diagnostic.inherited_by.clone());
        let (count, last) = groups.entry(group).or_default();
        *count += 1;
        if *count <= MAX_MISTAKES {
            *last = kept.len();
            kept.push(diagnostic);
        }
    }
    for (count, last) in groups.into_values().filter(|(count, _)| *count > MAX_MISTAKES) {
        if let Some(diagnostic) = kept.get_mut(last) {
            diagnostic.message = format!("{} more mistakes from here on", count - MAX_MISTAKES + 1);
            diagnostic.help = None;
        }
    }
    kept
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let renderer = renderer(formatter.alternate());
        let drawn: Vec<String> = self.list.iter().map(|one| one.draw(&renderer)).collect();
        formatter.write_str(&drawn.join("\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

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
    fn of_thousands_of_mistakes_in_a_text_the_first_are_kept() {
        let text = "x,".repeat(5000);
        let mistakes: Vec<_> = (0..5000).map(|at| (2 * at..2 * at + 1, Some("help"))).collect();
        let kept = diagnostics(&text, &mistakes);
        assert_eq!(kept.list().len(), MAX_MISTAKES);
        let last: Vec<_> = kept.list().iter().rev().take(2).collect();
        assert_eq!((&*last[0].message, &last[0].help), ("4001 more mistakes from here on", &None));
        assert_eq!(kept.place(last[0]), ("policy.yaml", 1, 1999));
        assert_eq!((&*last[1].message, last[1].help.as_deref()), ("wrong", Some("help")));
    }

    /// Otherwise the invalid documents of a cluster are not found one by one.
    #[test]
    fn each_text_and_each_heir_keeps_mistakes() {
        let sources = ["a.yaml", "b.yaml"].map(|name| Source::new(name, "x"));
        let mistake = |source, number: usize, heir: Option<&str>| Diagnostic {
            inherited_by: heir.map(str::to_owned),
            ..Diagnostic::new(Span { source, bytes: 0..1 }, number.to_string())
        };
        let groups = [(0, None), (0, Some("one")), (0, Some("two")), (1, None)];
        let list = groups.iter().flat_map(|(source, heir)| {
            (0..MAX_MISTAKES + 2).map(move |number| mistake(*source, number, *heir))
        });
        let kept = Diagnostics::new(&sources, list.collect());
        for (source, heir) in groups {
            let of_group =
                kept.filter(|one| one.span.source == source && one.inherited_by.as_deref() == heir);
            assert_eq!(of_group.list().len(), MAX_MISTAKES, "{source} {heir:?}");
        }
        assert_eq!(kept.list().len(), 4 * MAX_MISTAKES);
    }

    #[test]
    fn a_place_beyond_the_text_or_inside_a_character_is_handled() {
        for span in [99..999, 1..1, 1..2, 0..0, 2..3] {
            let list = diagnostics("äö\n", &[(span.clone(), None)]).to_json();
            let record = &list.as_array().unwrap()[0];
            assert!(record["endColumn"].as_u64() >= record["column"].as_u64(), "{span:?}: {list}");
        }
    }
}
