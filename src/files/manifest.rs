//! The objects of some files, one by one.

use std::borrow::Cow;
use std::ops::Range;

use super::document::{self, Document, mistake};
use super::locate::{self, Part};
use super::members::{Members, items};
use super::{File, Mistake, Place, in_parallel};

/// All objects of some files, and what could not be read as one.
#[derive(Debug)]
pub struct Manifests<'f> {
    documents: Vec<Document<'f>>,
    entries: Vec<Entry>,
    mistakes: Vec<Mistake>,
}

/// An object as it is kept: its document lives beside it, and it borrows only when asked for.
#[derive(Debug)]
struct Entry {
    document: usize,
    number: usize,
    part: Part,
    identity: Identity,
}

/// What an object is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// `group/version`, or a version alone for the core group.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Empty for what is cluster-scoped, or gets its namespace from elsewhere.
    pub namespace: String,
    /// Empty where the server is still to generate it.
    pub name: String,
}

/// One object of one file.
#[derive(Clone, Copy, Debug)]
pub struct Manifest<'m> {
    /// The file's name.
    pub file: &'m str,
    /// Which document of the file, from 1. Empty ones do not count.
    pub document: usize,
    /// Which item, from 0, where the document is a list.
    pub item: Option<usize>,
    /// What the object is called.
    pub identity: &'m Identity,
    /// The object as JSON text.
    pub text: &'m str,
    part: &'m Part,
    source: &'m Document<'m>,
}

impl<'f> Manifests<'f> {
    /// Reads all objects of all files, in their order, on several threads.
    #[must_use]
    pub fn read(files: &'f [File]) -> Self {
        let parts: Vec<(usize, Range<usize>)> = (0..)
            .zip(files)
            .flat_map(|(at, file)| document::parts(file).into_iter().map(move |part| (at, part)))
            .collect();
        let parts_read = in_parallel(&parts, |(at, part)| {
            let documents = document::read(&files[*at], part.clone());
            let read = |document: Result<Document<'f>, Mistake>| document.map(Objects::of);
            (*at, documents.into_iter().map(read).collect::<Vec<_>>())
        });
        let (mut documents, mut entries, mut mistakes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut current, mut number) = (0, 0);
        for (file, part) in parts_read {
            if file != current {
                (current, number) = (file, 0);
            }
            for read in part {
                number += 1;
                match read {
                    Err(mistake) => mistakes.push(mistake),
                    // `null`, as an empty document reads.
                    Ok(objects) if objects.document.json == "null" => number -= 1,
                    Ok(objects) => {
                        let document = documents.len();
                        entries.extend(objects.found.into_iter().map(|entry| Entry {
                            document,
                            number,
                            ..entry
                        }));
                        mistakes.extend(objects.mistakes);
                        documents.push(objects.document);
                    }
                }
            }
        }
        Self { documents, entries, mistakes }
    }

    /// The objects, in the order of the files.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Manifest<'_>> {
        self.entries.iter().map(|entry| {
            let source = &self.documents[entry.document];
            Manifest {
                file: &source.file.name,
                document: entry.number,
                item: entry.part.item,
                identity: &entry.identity,
                text: &source.json[entry.part.range.clone()],
                part: &entry.part,
                source,
            }
        })
    }

    /// What could not be read as an object, in the order of the files.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

impl Manifest<'_> {
    /// Where a field stands: `status.conditions[0].type`, a JSON pointer, or nothing for the object
    /// itself. Of a field that is not there, the nearest parent.
    ///
    /// The first question about a YAML document parses it once more, with places.
    #[must_use]
    pub fn place(&self, field: &str) -> Place {
        let span = locate::find(self.source, self.part, &locate::tokens(field));
        Place::of(self.source.file, &span)
    }

    /// The document that holds the object, as it is written.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.source.file.text[self.source.range.clone()]
    }

    /// A mistake at a field of this object.
    #[must_use]
    pub fn mistake(&self, field: &str, message: String) -> Mistake {
        Mistake { file: self.file.to_owned(), place: Some(Box::new(self.place(field))), message }
    }
}

impl Identity {
    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The API version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }
}

/// `Kind namespace/name`.
impl std::fmt::Display for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = if self.name.is_empty() { "(no name)" } else { &self.name };
        match self.namespace.as_str() {
            "" => write!(formatter, "{} {name}", self.kind),
            namespace => write!(formatter, "{} {namespace}/{name}", self.kind),
        }
    }
}

/// The objects of one document.
struct Objects<'f> {
    document: Document<'f>,
    found: Vec<Entry>,
    mistakes: Vec<Mistake>,
}

impl<'f> Objects<'f> {
    fn of(document: Document<'f>) -> Self {
        let (mut found, mut mistakes) = (Vec::new(), Vec::new());
        let json: &str = &document.json;
        let part = |item, text: &str| {
            let start = text.as_ptr().addr() - json.as_ptr().addr();
            Part { item, range: start..start + text.len() }
        };
        let Some(members) = Members::parse(json) else {
            if json != "null" {
                let message = format!("this is {}, not a Kubernetes object", kind_of(json));
                let span = locate::find(&document, &part(None, json), &[]);
                mistakes.push(mistake(document.file, &span, message));
            }
            return Self { document, found, mistakes };
        };
        let mut add = |item: Option<usize>, text: &str, members: &Members<'_>, outer: Outer<'_>| {
            let part = part(item, text);
            match identity(members, outer) {
                Ok(identity) => found.push(Entry { document: 0, number: 0, part, identity }),
                Err(message) => {
                    let span = locate::find(&document, &part, &[]);
                    mistakes.push(mistake(document.file, &span, message));
                }
            }
        };
        match list(&members) {
            None => add(None, json, &members, None),
            Some((api_version, kind, texts)) => {
                // What a typed list of the API itself holds has no kinds of its own.
                let outer = kind.strip_suffix("List").filter(|kind| !kind.is_empty());
                let outer = outer.map(|kind| (api_version.as_ref(), kind));
                for (index, text) in texts.into_iter().enumerate() {
                    let members = Members::parse(text).unwrap_or_default();
                    add(Some(index), text, &members, outer);
                }
            }
        }
        Self { document, found, mistakes }
    }
}

/// apiVersion and kind of the items of a typed list.
type Outer<'a> = Option<(&'a str, &'a str)>;

/// apiVersion, kind and items of a `List` or of any `…List` with items.
fn list<'a>(members: &Members<'a>) -> Option<(Cow<'a, str>, Cow<'a, str>, Vec<&'a str>)> {
    let kind = members.string("kind").filter(|kind| kind.ends_with("List"))?;
    let items = items(members.get("items")?)?;
    Some((members.string("apiVersion").unwrap_or_default(), kind, items))
}

fn identity(members: &Members<'_>, outer: Outer<'_>) -> Result<Identity, String> {
    let needed = |name: &str, inherited: Option<&str>| match members.string(name) {
        Some(text) if !text.is_empty() => Ok(text.into_owned()),
        _ if members.get(name).is_some() => Err(format!("\"{name}\" of this object is no name")),
        _ => inherited.map(str::to_owned).ok_or_else(|| {
            format!("\"{name}\" is missing: without it this is not a Kubernetes object")
        }),
    };
    let metadata = members.get("metadata").and_then(Members::parse).unwrap_or_default();
    let text = |name| metadata.string(name).unwrap_or_default().into_owned();
    Ok(Identity {
        api_version: needed("apiVersion", outer.map(|(api_version, _)| api_version))?,
        kind: needed("kind", outer.map(|(_, kind)| kind))?,
        namespace: text("namespace"),
        name: text("name"),
    })
}

fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let files = [File::new("a.yaml", text)];
        let manifests = Manifests::read(&files);
        let found = manifests.iter().map(|manifest| {
            let Manifest { document, item, identity, .. } = manifest;
            format!("{document}.{item:?} {} {identity}", identity.api_version)
        });
        let mistakes = manifests
            .mistakes()
            .iter()
            .map(|mistake| format!("{}: {}", mistake.place.as_ref().unwrap(), mistake.message));
        (found.collect(), mistakes.collect())
    }

    #[test]
    fn objects_come_out_of_documents_and_lists_in_order() {
        let (found, mistakes) = read(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: s}}\n---\n---\n\
             apiVersion: v1\nkind: List\nitems:\n- {apiVersion: g/v1, kind: B}\n- {apiVersion: g/v1, kind: C}\n---\n\
             {apiVersion: g/v2, kind: ThingList, items: [{metadata: {name: d}}, {apiVersion: h/v1, kind: E}]}\n---\n\
             {apiVersion: v1, kind: List, items: []}\n---\n{apiVersion: g/v1, kind: AllowList}",
        );
        assert_eq!(
            found,
            [
                "1.None v1 ConfigMap s/a",
                "2.Some(0) g/v1 B (no name)",
                "2.Some(1) g/v1 C (no name)",
                "3.Some(0) g/v2 Thing d",
                "3.Some(1) h/v1 E (no name)",
                "5.None g/v1 AllowList (no name)",
            ]
        );
        assert_eq!(mistakes, [""; 0]);
    }

    /// Whatever a text holds: it is read or it is a mistake with a place that can be drawn.
    #[test]
    fn no_text_is_too_odd() {
        use proptest::prelude::*;
        let parts = [
            "---",
            "...",
            "\n",
            "\r\n",
            " ",
            "\t",
            "- ",
            "? ",
            ": ",
            "a",
            "status",
            "{",
            "}",
            "[",
            "]",
            ",",
            "\"",
            "'",
            "|",
            ">",
            "&x ",
            "*x",
            "<<",
            "!!str ",
            "#",
            "%TAG",
            "\u{e9}",
            "\u{1f600}",
            "\u{0}",
            "\u{feff}",
            "\\",
            "1e999",
            "true",
            "~",
            "{\"kind\":\"List\",\"items\":[{}]}",
            "apiVersion: v1\nkind: A\n",
            "apiVersion: v1\nkind: List\nitems:\n- ",
        ];
        let texts = prop::collection::vec(prop::sample::select(parts.to_vec()), 0..24);
        let config = ProptestConfig {
            cases: 2000,
            rng_seed: proptest::test_runner::RngSeed::Fixed(0x6f64_6421),
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        proptest!(config, |(text in texts, name in prop::sample::select(vec!["a.yaml", "a.json"]))| {
            let files = [File::new(name, text.concat())];
            let manifests = Manifests::read(&files);
            for manifest in manifests.iter() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(manifest.text).is_ok());
                for field in ["", "status", "status.a[0]", "/a/b"] {
                    prop_assert!(!super::super::picture(&manifest.place(field)).is_empty());
                }
            }
            for mistake in manifests.mistakes() {
                prop_assert!(!mistake.to_string().is_empty());
            }
        });
    }

    #[test]
    fn what_is_no_object_is_named_with_its_place() {
        let (found, mistakes) = read(
            "- 1\n---\nhello\n---\n# c\na: 1\n---\napiVersion: v1\nkind: 5\n---\napiVersion: v1\nkind: List\nitems:\n- kind: A\n- 7\n---\n{apiVersion: g/v1, kind: K}",
        );
        assert_eq!(found, ["6.None g/v1 K (no name)"]);
        assert_eq!(
            mistakes,
            [
                "a.yaml:1:1: this is a list, not a Kubernetes object",
                "a.yaml:3:1: this is a text, not a Kubernetes object",
                "a.yaml:6:1: \"apiVersion\" is missing: without it this is not a Kubernetes object",
                "a.yaml:8:1: \"kind\" of this object is no name",
                "a.yaml:14:3: \"apiVersion\" is missing: without it this is not a Kubernetes object",
                "a.yaml:15:3: \"apiVersion\" is missing: without it this is not a Kubernetes object",
            ]
        );
    }
}
