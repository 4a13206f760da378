//! The objects of some files, one by one.

use std::rc::Rc;

use super::document::{self, ManifestDocument};
use super::fields::{Part, Places};
use super::objects::{Object, Objects};
use super::record::Record;
use super::text::Lines;
use super::tree;
use super::{Diagnostic, Identity, Place, STDIN, Source, Warning};

/// All objects of some files, and the mistakes in them.
#[derive(Debug, Default)]
pub struct Manifests<'f> {
    documents: Vec<ManifestDocument<'f>>,
    entries: Vec<NumberedObject>,
    references: Vec<NumberedObject>,
    mistakes: Vec<Diagnostic>,
    /// The mistakes that are about no manifest, by their index.
    others: Vec<usize>,
    warnings: Vec<Warning>,
}

/// An object, and the index and the number of its document.
#[derive(Debug)]
struct NumberedObject {
    document: usize,
    number: usize,
    object: Object,
}

/// One object of one file.
#[derive(Clone, Copy, Debug)]
pub struct Manifest<'m> {
    /// The file's name.
    pub file: &'m str,
    /// The number of the document in the file, from 1. Empty documents do not count.
    pub document: usize,
    /// The index of the item, if the document is a list.
    pub item: Option<usize>,
    /// The kind and name of the object.
    pub identity: &'m Identity,
    /// The object as JSON text, as an API server sends it.
    pub text: &'m str,
    /// How it was written, if the document records this.
    pub record: Option<&'m Record>,
    part: &'m Part,
    old: Option<&'m Part>,
    source: &'m ManifestDocument<'m>,
}

impl<'f> Manifests<'f> {
    /// Reads all objects of all files, in their order.
    pub fn read(files: &'f [Source]) -> Self {
        let mut all = Self::default();
        for file in files {
            let lines = Rc::new(Lines::of(file));
            let mut number = 0;
            let (entries, mistakes) = (all.entries.len(), all.mistakes.len());
            let (mut templates, mut values) = (Vec::new(), Vec::new());
            for part in tree::parts(&file.text) {
                let is_template = file.text[part.clone()].contains("{{");
                for document in document::read(&lines, part) {
                    match document {
                        Err(mistake) => {
                            templates.extend(is_template.then_some(all.mistakes.len()));
                            all.mistakes.push(mistake);
                        }
                        // `null`, as an empty document reads.
                        Ok(document) if document.json == "null" => continue,
                        Ok(document) => {
                            let index = all.mistakes.len();
                            values.extend(all.add(document, number + 1).then_some(index));
                        }
                    }
                    number += 1;
                }
            }
            // In a file that also has objects, a document that is no object is a mistake.
            let has_objects = all.entries.len() > entries
                || all.mistakes.len() - mistakes > templates.len() + values.len();
            // What arrives through a pipe is meant.
            if file.name != STDIN {
                all.others.extend(templates);
                all.others.extend(values.into_iter().filter(|_| !has_objects));
            }
        }
        all
    }

    /// Adds the objects of a document. Returns whether it is none, and does not look like one.
    fn add(&mut self, mut document: ManifestDocument<'f>, number: usize) -> bool {
        let Objects { found, references, mistakes, is_other, .. } = Objects::of(&document);
        let entry = |object| NumberedObject { document: self.documents.len(), number, object };
        self.entries.extend(found.into_iter().map(entry));
        self.references.extend(references.into_iter().map(entry));
        self.mistakes.extend(mistakes);
        self.warnings.append(&mut document.warnings);
        self.documents.push(document);
        is_other
    }

    /// Takes the mistakes about files that hold no manifests, such as the values and templates of a chart: a file
    /// without any object, and documents with `{{` that cannot be read.
    pub fn take_others(&mut self) -> Vec<Diagnostic> {
        let others = std::mem::take(&mut self.others);
        let mut is_other = (0..self.mistakes.len()).map(|index| others.contains(&index));
        self.mistakes.extract_if(.., |_| is_other.next() == Some(true)).collect()
    }

    /// The objects, in the order of the files.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Manifest<'_>> {
        self.entries.iter().map(|entry| self.manifest(entry))
    }

    /// The writes of which the audit log has only the reference to the object. Their kind is the plural.
    pub fn references(&self) -> impl ExactSizeIterator<Item = Manifest<'_>> {
        self.references.iter().map(|entry| self.manifest(entry))
    }

    fn manifest<'m>(&'m self, entry: &'m NumberedObject) -> Manifest<'m> {
        let source = &self.documents[entry.document];
        let Object { part, sent, identity, record, old } = &entry.object;
        Manifest {
            file: &source.lines.source.name,
            document: entry.number,
            item: part.item,
            identity,
            text: sent.as_deref().unwrap_or_else(|| &source.json[part.range.clone()]),
            record: record.as_ref(),
            part,
            old: old.as_ref(),
            source,
        }
    }

    /// The mistakes, in the order of the files.
    pub fn mistakes(&self) -> &[Diagnostic] {
        &self.mistakes
    }

    /// The duplicate keys, in the order of the files. The last value counts.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl<'m> Manifest<'m> {
    /// The stored object, if the document has it, too.
    pub fn old(&self) -> Option<Self> {
        let part = self.old?;
        let text = &self.source.json[part.range.clone()];
        Some(Self { text, part, old: None, ..*self })
    }

    /// The locations of its fields.
    ///
    /// The first question about a YAML document parses it once more.
    pub fn places(&self) -> Places<'m> {
        Places::of(self.source, self.part)
    }

    /// The location of one field; [`Manifest::places`] is for several.
    pub fn place(&self, field: &str) -> Place {
        self.places().at(field)
    }

    /// The line where the object begins, from 1.
    pub fn line(&self) -> usize {
        self.place("").line
    }

    /// The document that holds the object, as it is written.
    pub fn written(&self) -> &str {
        &self.source.lines.source.text[self.source.range.clone()]
    }

    /// A mistake at a field of this object.
    pub fn mistake(&self, field: &str, message: String) -> Diagnostic {
        Diagnostic::at(self.place(field), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let files = [Source::new("a.yaml", text)];
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

    #[test]
    fn a_list_without_items_is_empty_and_one_of_something_else_is_a_mistake() {
        let (found, mistakes) = read(
            "{apiVersion: v1, kind: List}\n---\n{apiVersion: v1, kind: List, items: null}\n---\n\
             {kind: List, items:}\n---\n{apiVersion: g/v1, kind: ThingList, items: null}\n---\n\
             apiVersion: v1\nkind: List\nitems:\n---\n\
             {apiVersion: g/v1, kind: AllowList, metadata: {name: a}}\n---\n\
             {apiVersion: g/v1, kind: AllowList, metadata: {name: b}, items: all}\n---\n\
             {apiVersion: g/v1, kind: List}\n---\n{apiVersion: v1, kind: Thing, items: foo}",
        );
        assert_eq!(
            found,
            [
                "6.None g/v1 AllowList a",
                "7.None g/v1 AllowList b",
                "8.None g/v1 List (no name)",
                "9.None v1 Thing (no name)",
            ]
        );
        assert_eq!(mistakes, [""; 0]);
        let (found, mistakes) = read(
            "apiVersion: v1\nkind: List\nitems: foo\n---\n\
             apiVersion: v1\nkind: List\nitems:\n  a: {apiVersion: g/v1, kind: K}\n---\n\
             {\"apiVersion\": \"g/v1\", \"kind\": \"ThingList\", \"items\": 3}",
        );
        assert_eq!(found, [""; 0]);
        assert_eq!(
            mistakes,
            [
                "a.yaml:3:8: \"items\" of this List is a text, not a list",
                "a.yaml:7:1: \"items\" of this List is an object, not a list",
                "a.yaml:10:54: \"items\" of this ThingList is a number, not a list",
            ]
        );
    }

    #[test]
    fn a_duplicate_key_is_a_warning_at_its_location() {
        let item = |name: &str, more: &str| {
            format!("- apiVersion: g/v1\n  kind: K\n  metadata: {{name: {name}}}\n{more}")
        };
        let list = format!(
            "apiVersion: v1\nkind: List\nitems:\n{}{}",
            item("a", ""),
            item("b", "  status: {phase: A, phase: B}\n")
        );
        for (text, line, column) in [
            ("apiVersion: g/v1\nkind: K\nstatus:\n  phase: A\n  phase: B\n".to_owned(), 5, 3),
            (list.clone(), 10, 22),
            (format!("{list}kind: List\n"), 10, 22),
        ] {
            let files = [Source::new("a.yaml", text)];
            let manifests = Manifests::read(&files);
            assert_eq!(manifests.mistakes(), []);
            let last = manifests.iter().last().unwrap();
            assert!(last.text.ends_with(r#""status":{"phase":"B"}}"#), "{}", last.text);
            let warning = &manifests.warnings()[0];
            assert!(
                warning.to_string().starts_with(&format!(
                    "a.yaml:{line}:{column}: warning: the key \"phase\" is here twice: the last value counts\n"
                )),
                "{warning}"
            );
            assert_eq!(last.place("status.phase").line, line);
        }
    }

    /// Any text gives objects, or errors with a location in the text.
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
            "\n- ",
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
        proptest!(ProptestConfig::with_cases(2000), |(text in texts, name in prop::sample::select(vec!["a.yaml", "a.json"]))| {
            let files = [Source::new(name, text.concat())];
            let manifests = Manifests::read(&files);
            for manifest in manifests.iter() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(manifest.text).is_ok());
                for field in ["", "status", "status.a[0]", "/a/b"] {
                    prop_assert!(!manifest.place(field).picture(false).is_empty());
                }
            }
            for mistake in manifests.mistakes() {
                prop_assert!(!mistake.to_string().is_empty());
            }
        });
    }

    #[test]
    fn files_without_manifests_and_templates_are_told_from_broken_manifests() {
        let others = |name: &str, text: &str| {
            let files = [Source::new(name, text)];
            let mut manifests = Manifests::read(&files);
            let others = manifests.take_others().len();
            (others, manifests.mistakes().len(), manifests.iter().len())
        };
        let object = "{apiVersion: v1, kind: A}";
        for (text, expected) in [
            ("replicas: 3\nimage: {tag: v1}\n", (1, 0, 0)),
            ("apiVersion: v2\nname: chart\nversion: 1.0.0\n", (1, 0, 0)),
            ("- 1\n---\na text\n", (2, 0, 0)),
            ("apiVersion: v1\nkind: A\nmetadata:\n  name: {{ .Release.Name }}\n", (1, 0, 0)),
            // A kind or a version is missing, or there are objects in the file.
            ("kind: A\nmetadata: {name: a}\n", (0, 1, 0)),
            ("apiVersion: v1\nkind:\n", (0, 1, 0)),
            ("a: [\n", (0, 1, 0)),
            (&format!("{object}\n---\na: 1\n"), (0, 1, 1)),
            (&format!("{object}\n---\n{{{{ if .Values.b }}}}\nb: 1\n{{{{ end }}}}\n"), (1, 0, 1)),
            ("a: [\n---\nb: 1\n---\n{{ x }}: {{ y }}\n", (1, 2, 0)),
        ] {
            assert_eq!(others("a.yaml", text), expected, "{text}");
        }
        assert_eq!(others(STDIN, "replicas: 3\n"), (0, 1, 0));
    }

    #[test]
    fn a_document_without_an_object_is_reported_with_its_location() {
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
