//! Conventions as text again: as somebody wrote them, and with all that they extend.

use crate::documents::{self, ConventionSpec, DocumentKind, StatusConvention};
use crate::source::tree::{self, Problems};

use super::{PolicySet, Source, Specs, built_in, envelopes, read_documents};

impl PolicySet {
    /// The document of a convention, built in or in one of `given`, to the letter: with its comments,
    /// and without the other documents of its file. `None` where there is none of this name.
    #[must_use]
    pub fn document(given: &[Source], name: &str) -> Option<String> {
        let built_in = built_in::sources();
        let texts = built_in.iter().chain(given).map(|source| source.text.as_str());
        let document = texts.flat_map(documents).find(|text| declares(text, name))?;
        Some(format!("{}\n", document.trim_end()))
    }

    /// The same with everything that it extends, as data. `None` where there is no convention of this
    /// name, or one that could not be put together.
    #[must_use]
    pub fn whole_document(given: &[Source], name: &str) -> Option<StatusConvention> {
        let (documents, _) = read_documents(given, built_in::COUNT);
        let (envelopes, _) = envelopes(documents);
        let conventions = envelopes.iter();
        let conventions = conventions.filter(|found| found.kind == DocumentKind::StatusConvention);
        let mut specs = Specs::default();
        let named = conventions.map(|envelope| (envelope.label.as_str(), &envelope.spec));
        specs.add(named, &Problems::default());
        let whole = specs.get(name).filter(|whole| whole.complete)?;
        let mut spec: ConventionSpec =
            documents::spec(&mut (*whole.spec).clone(), true, &Problems::default())?;
        spec.extends = None;
        spec.without = None;
        spec.conditions.iter_mut().flatten().for_each(|list| list.like = None);
        Some(StatusConvention::new(name.parse().ok()?, spec))
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
    let (documents, _) = tree::parse(0, text);
    let (envelopes, _) = envelopes(documents);
    let is = |kind| kind == DocumentKind::StatusConvention;
    envelopes.iter().any(|envelope| is(envelope.kind) && envelope.label == name)
}
