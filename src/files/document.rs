//! The documents of a file, each as JSON text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use serde_json::value::RawValue;

use super::locate::Tree;
use super::{File, Mistake, Place, json_text};
use crate::policy::yaml::content;

/// One document: its bytes in the file and its JSON.
#[derive(Debug)]
pub(super) struct Document<'f> {
    pub(super) file: &'f File,
    /// The bytes of the file.
    pub(super) range: Range<usize>,
    /// Borrowed where the document is JSON already.
    pub(super) json: Cow<'f, str>,
    /// Where everything in it stands, once somebody has asked. `None` inside: it cannot be known.
    pub(super) tree: OnceLock<Option<Tree>>,
}

/// The documents of one part: one of YAML, any number of JSON. Mistakes stand between them.
pub(super) fn read(file: &File, part: Range<usize>) -> Vec<Result<Document<'_>, Mistake>> {
    let start = content(&file.text, &part);
    let text = &file.text[start..part.end];
    let is_json = text.starts_with(['{', '[']) || file.is_named_json();
    if !is_json {
        return vec![read_yaml(file, part)];
    }
    let documents = read_json(file, start..part.end);
    // `{kind: Thing}` is a YAML mapping. If it is no YAML either, JSON was meant.
    if matches!(documents.first(), Some(Err(_)))
        && !file.is_named_json()
        && let yaml @ Ok(_) = read_yaml(file, part)
    {
        return vec![yaml];
    }
    documents
}

/// A document of YAML, or an item that was cut out of one.
pub(super) fn read_yaml(file: &File, range: Range<usize>) -> Result<Document<'_>, Mistake> {
    let text = &file.text[range.clone()];
    match json_text::from_yaml(text) {
        Ok(json) => Ok(Document { file, range, json: Cow::Owned(json), tree: OnceLock::new() }),
        Err(error) => {
            let span = error.location().map_or_else(
                || content(text, &(0..text.len()))..text.len(),
                |location| super::locate::bytes(text, &location),
            );
            let full = error.to_string();
            // The location is drawn as a caret; said twice it only distracts.
            let message = full.split(" at line ").next().unwrap_or(&full);
            let message = message.strip_prefix("error: ").unwrap_or(message);
            let span = range.start + span.start..range.start + span.end;
            Err(mistake(file, &span, format!("not YAML: {message}")))
        }
    }
}

/// JSON values one after another. After a mistake reading goes on at the next line that begins an
/// object, which is where the next of several values begins in JSON lines and in what `jq` prints.
fn read_json(file: &File, range: Range<usize>) -> Vec<Result<Document<'_>, Mistake>> {
    let mut documents = Vec::new();
    let mut start = range.start;
    loop {
        let text = &file.text[start..range.end];
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let error = loop {
            match values.next() {
                None => return documents,
                Some(Ok(value)) => {
                    let value = value.get();
                    let end = start + values.byte_offset();
                    let range = end - value.len()..end;
                    let (json, tree) = (Cow::Borrowed(value), OnceLock::new());
                    documents.push(Ok(Document { file, range, json, tree }));
                }
                Some(Err(error)) => break error,
            }
        };
        // serde_json counts columns in bytes, and the end of a text as a place behind it.
        let lines = text.split_inclusive('\n').map(str::len);
        let before: usize = lines.take(error.line().saturating_sub(1)).sum();
        let at = (start + before + error.column().saturating_sub(1)).min(range.end);
        let full = error.to_string();
        let message = full.split(" at line ").next().unwrap_or(&full);
        documents.push(Err(mistake(file, &(at..at + 1), format!("not JSON: {message}"))));
        let value = start + values.byte_offset();
        match file.text[value..range.end].find("\n{") {
            Some(next) => start = value + next + 1,
            None => return documents,
        }
    }
}

pub(super) fn mistake(file: &File, span: &Range<usize>, message: String) -> Mistake {
    Mistake { file: file.name.clone(), place: Some(Box::new(Place::of(file, span))), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::yaml::parts;

    fn read_all(name: &str, text: &str) -> Vec<Result<String, String>> {
        let file = File::new(name, text);
        let documents = parts(&file.text).into_iter().flat_map(|part| read(&file, part));
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
    fn a_broken_document_leaves_the_others_alone() {
        let read = read_all("a.yaml", "a: 1\n---\nb: [1\nc: 2\n---\nd: 3\n");
        assert_eq!((read.len(), &read[2]), (3, &Ok("{\"d\":3}".to_owned())));
        assert!(read[1].as_ref().is_err_and(|said| said.contains("not YAML")), "{read:?}");
        let read = read_all("a.json", "{\"a\":1}\n{\"b\":\n{\"c\":3}\n oh\n{\n\"d\":4}");
        assert_eq!(read[0], Ok("{\"a\":1}".to_owned()));
        assert_eq!(read.last(), Some(&Ok("{\n\"d\":4}".to_owned())), "{read:?}");
    }
}
