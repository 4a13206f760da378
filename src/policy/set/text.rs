//! Conventions as text again: as somebody wrote them, and with all that they extend.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{BUILT_IN, BUILT_IN_CONVENTIONS, BuiltIn, Envelope, Kind, PolicySet, Problems};
use super::{Source, read_documents, sources};
use crate::source::tree::{self, Node, Value};

impl PolicySet {
    /// The document of a convention, built in or in one of `given`, to the letter: with its comments,
    /// and without the other documents of its file. `None` where there is none of this name.
    #[must_use]
    pub fn document(given: &[Source], name: &str) -> Option<String> {
        let built_in = sources(&BUILT_IN);
        let texts = built_in.iter().chain(given).map(|source| source.text.as_str());
        let document = texts.flat_map(documents).find(|text| declares(text, name))?;
        Some(format!("{}\n", document.trim_end()))
    }

    /// The same with everything that it extends, and so without its comments. `None` where there is
    /// no convention of this name, or one that could not be put together.
    #[must_use]
    pub fn whole_document(given: &[Source], name: &str) -> Option<String> {
        let BuiltIn { sources, mut known } = BUILT_IN_CONVENTIONS.clone().ok()?;
        let (documents, _) = read_documents(given, sources.len());
        let quiet = Problems::default();
        let specs = documents.iter().filter_map(|document| {
            let envelope = Envelope::read(document, &quiet)?;
            let (name, _) = envelope.name(&quiet)?;
            (envelope.kind == Kind::Convention).then_some((name, envelope.spec))
        });
        known.specs.add(specs.collect::<Vec<_>>().into_iter(), &quiet);
        let (spec, _) = known.specs.get(name).filter(|(_, complete)| *complete)?;
        let spec = serde_saphyr::to_string(&InMap("spec", spec)).ok()?;
        Some(format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata:\n  name: {name}\n{spec}"
        ))
    }
}

/// The documents of a text, without the lines between them.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    tree::parts(text).into_iter().map(|part| {
        let part = &text[part];
        let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
        if first.trim_end() == "---" { rest } else { part }
    })
}

fn declares(text: &str, name: &str) -> bool {
    let is = |node: Option<&Node>, wanted: &str| matches!(node.map(|node| &node.value), Some(Value::String(text)) if text == wanted);
    let (documents, _) = tree::parse(0, text);
    documents.iter().map(|document| &document.root).any(|root| {
        is(root.member("kind"), "StatusConvention")
            && is(root.member("metadata").and_then(|metadata| metadata.member("name")), name)
    })
}

/// A mapping of one key.
struct InMap<'n>(&'static str, &'n Node);

impl Serialize for InMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, self.1)?;
        map.end()
    }
}
