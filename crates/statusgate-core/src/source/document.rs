//! The documents of a manifest, each as JSON text.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use serde_json::value::RawValue;

use super::export;
use super::json::{reason, with_sent_numbers};
use super::text::Lines;
use super::tree::{self, Node, content};
use super::{Diagnostic, Place, Source, Warning};

/// One document: its bytes in the file and its JSON.
#[derive(Debug)]
pub(super) struct ManifestDocument<'f> {
    pub(super) lines: Rc<Lines<'f>>,
    /// The bytes of the file.
    pub(super) range: Range<usize>,
    /// Borrowed if the document is JSON.
    pub(super) json: Cow<'f, str>,
    /// Its duplicate keys.
    pub(super) warnings: Vec<Warning>,
    /// The tree of YAML, if it is a list or a location was asked for. Most documents have no findings, and a
    /// tree is many times as large as its text. In a list, even the start of an object needs the tree.
    tree: OnceCell<Option<Node>>,
}

impl<'f> ManifestDocument<'f> {
    fn new(lines: &Rc<Lines<'f>>, range: Range<usize>, json: Cow<'f, str>) -> Self {
        let (warnings, tree) = (Vec::new(), OnceCell::new());
        Self { lines: Rc::clone(lines), range, json, warnings, tree }
    }

    /// The tree of a document that is YAML.
    pub(super) fn tree(&self) -> Option<&Node> {
        let text = &self.lines.source.text;
        self.tree.get_or_init(|| Some(tree::manifest(text, &self.range).ok()?.0)).as_ref()
    }
}

/// The documents of one part: one of YAML, or any number of JSON.
pub(super) fn read<'f>(
    lines: &Rc<Lines<'f>>,
    part: Range<usize>,
) -> Vec<Result<ManifestDocument<'f>, Diagnostic>> {
    let file = lines.source;
    let start = content(&file.text, &part);
    let text = &file.text[start..part.end];
    // Two braces begin a template, which is neither. The message of the YAML reader is better.
    let is_json = text.starts_with(['{', '[']) && !text.starts_with("{{") || file.is_named_json();
    if !is_json {
        return vec![read_yaml(lines, part)];
    }
    let documents = read_json(lines, start..part.end);
    // `{kind: Thing}` is a YAML mapping. If it is not valid YAML either, JSON was meant.
    if matches!(documents.first(), Some(Err(_)))
        && !file.is_named_json()
        && let yaml @ Ok(_) = read_yaml(lines, part)
    {
        return vec![yaml];
    }
    documents
}

fn read_yaml<'f>(
    lines: &Rc<Lines<'f>>,
    range: Range<usize>,
) -> Result<ManifestDocument<'f>, Diagnostic> {
    let text = &lines.source.text;
    let (root, warnings) = tree::manifest(text, &range).map_err(|found| {
        let first = text[range.clone()].trim_start().lines().next().unwrap_or_default();
        let start = content(text, &range);
        match export::prefixed(first) {
            Some(message) => mistake(lines, &(start..start + 1), message),
            None => found.located(lines),
        }
    })?;
    let warnings = warnings.into_iter().map(|warning| Warning(warning.located(lines))).collect();
    let json =
        serde_json::to_string(&root).map_err(|error| mistake(lines, &range, reason(&error)))?;
    let is_list = !root.items_of("items").is_empty();
    let tree = if is_list { OnceCell::from(Some(root)) } else { OnceCell::new() };
    Ok(ManifestDocument { warnings, tree, ..ManifestDocument::new(lines, range, Cow::Owned(json)) })
}

/// JSON values one after another. After a mistake, reading continues at the next line that begins an
/// object: in JSON lines and in the output of `jq` the next value begins there.
///
/// Reading ends at a value that has no end, because it contains the rest of the text. It also ends
/// after many mistakes far behind the start of their values, because the text in between is read again
/// for each.
fn read_json<'f>(
    lines: &Rc<Lines<'f>>,
    range: Range<usize>,
) -> Vec<Result<ManifestDocument<'f>, Diagnostic>> {
    let file = lines.source;
    let mut documents = Vec::new();
    let mut start = range.start;
    let mut again = 0;
    loop {
        let text = &file.text[start..range.end];
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let error = loop {
            match values.next() {
                None => return documents,
                Some(Ok(value)) => {
                    let (json, end) = (value.get(), start + values.byte_offset());
                    let range = end - json.len()..end;
                    documents.push(Ok(ManifestDocument::new(lines, range, Cow::Borrowed(json))));
                }
                Some(Err(error)) => break error,
            }
        };
        // serde_json counts columns in bytes, and reports the end of a text as a column behind it.
        let lengths = text.split_inclusive('\n').map(str::len);
        let before: usize = lengths.take(error.line().saturating_sub(1)).sum();
        let at = (start + before + error.column().saturating_sub(1)).min(range.end);
        let message = format!("not JSON: {}", reason(&error));
        documents.push(Err(mistake(lines, &(at..at + 1), message)));
        let value = start + values.byte_offset();
        let next = file.text[value..range.end].find("\n{").map(|next| value + next + 1);
        match next.filter(|_| !error.is_eof()) {
            Some(next) => start = next,
            None => return documents,
        }
        again += at.saturating_sub(start);
        if again > MAX_AGAIN * range.len().max(MIN_LENGTH) {
            let message = "too much is broken here: the rest of this file is not read".to_owned();
            documents.push(Err(mistake(lines, &(start..start + 1), message)));
            return documents;
        }
    }
}

/// The JSON of the document that contains a byte of a file, and its duplicate keys: unit tests are policies in their
/// dialect, but contain objects.
///
/// # Errors
/// When that document is not a valid manifest.
pub fn json_at(file: &Source, offset: usize) -> Result<(String, Vec<Warning>), Diagnostic> {
    let lines = Rc::new(Lines::of(file));
    let part = tree::parts(&file.text).into_iter().find(|part| part.contains(&offset));
    let documents = part.map(|part| read(&lines, part)).unwrap_or_default();
    let found = documents
        .into_iter()
        .find(|read| read.as_ref().map_or(true, |document| document.range.contains(&offset)));
    match found {
        Some(document) => document.map(|document| {
            let json = with_sent_numbers(&document.json).into_owned();
            (json, document.warnings)
        }),
        None => Err(mistake(&lines, &(offset..offset), "no document begins here".to_owned())),
    }
}

pub(super) fn mistake(lines: &Lines<'_>, span: &Range<usize>, message: String) -> Diagnostic {
    Diagnostic::at(Place::in_lines(lines, span), message)
}

/// How often a broken text may be read again. A typical mistake costs a line or two.
const MAX_AGAIN: usize = 8;

/// The least length of a text for this limit.
const MIN_LENGTH: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tree::parts;

    fn read_all(name: &str, text: &str) -> Vec<Result<String, String>> {
        let file = Source::new(name, text);
        let lines = Rc::new(Lines::of(&file));
        let documents = parts(&file.text).into_iter().flat_map(|part| read(&lines, part));
        documents
            .map(|document| match document {
                Ok(document) => Ok(document.json.into_owned()),
                Err(mistake) => {
                    let place = mistake.place.map(|place| place.to_string()).unwrap_or_default();
                    Err(format!("{place}: {}", mistake.message))
                }
            })
            .collect()
    }

    #[test]
    fn documents_end_at_markers_and_empty_ones_do_not_count() {
        let text = "\u{feff}%YAML 1.1\n# first\n---\na: |\n  text\n  --- text\n---\n---\r\n# nothing\n--- {b: 1}\n...\n\n--- # c\nc: --- d\n---";
        assert_eq!(
            read_all("a.yaml", text),
            [
                Ok(r#"{"a":"text\n--- text\n"}"#.to_owned()),
                Ok(r#"{"b":1}"#.to_owned()),
                Ok(r#"{"c":"--- d"}"#.to_owned())
            ]
        );
        assert!(read_all("a.yaml", " \n# only this\n").is_empty());
    }

    #[test]
    fn json_values_follow_one_another_in_every_usual_way() {
        for text in ["{\"a\":1}{\"b\":2}", "{\"a\":1}\n{\"b\":2}\n", "{\"a\":1}\n---\n{\"b\":2}"] {
            let read = read_all("stdin", text);
            assert_eq!(read, [Ok("{\"a\":1}".to_owned()), Ok("{\"b\":2}".to_owned())], "{text}");
        }
        assert_eq!(read_all("a.yaml", "{a: 1}"), [Ok("{\"a\":1}".to_owned())]);
        assert!(read_all("a.json", "{a: 1}")[0].is_err());
    }

    #[test]
    fn a_text_that_is_broken_all_over_is_not_read_for_ever() {
        // Each line begins a value that ends nowhere, or in the last line: about 15 GB to read.
        let lines = "{\"a\":[\n".repeat(64 << 10);
        assert_eq!(read_all("a.json", &lines).len(), 1);
        let read = read_all("a.json", &format!("{lines}}}"));
        assert!(read.len() < 100, "{}", read.len());
        let last = read.last().and_then(|last| last.as_ref().err()).unwrap();
        assert!(last.contains("the rest of this file is not read"), "{last}");
        // Many mistakes alone are no reason to stop.
        let lines = "{\"a\":}\n{\"b\":1}\n".repeat(10_000);
        let read = read_all("a.json", &lines);
        assert_eq!(read.iter().filter(|read| read.is_ok()).count(), 10_000);
    }

    #[test]
    fn a_broken_document_leaves_the_others_alone() {
        let read = read_all("a.yaml", "a: 1\n---\nb: [1\nc: 2\n---\nd: 3\n");
        assert_eq!((read.len(), &read[2]), (3, &Ok("{\"d\":3}".to_owned())));
        assert!(read[1].as_ref().is_err_and(|said| said.contains("invalid YAML")), "{read:?}");
        let read = read_all("a.json", "{\"a\":1}\n{\"b\":\n{\"c\":3}\n oh\n{\n\"d\":4}");
        assert_eq!(read[0], Ok("{\"a\":1}".to_owned()));
        assert_eq!(read.last(), Some(&Ok("{\n\"d\":4}".to_owned())), "{read:?}");
    }
}
