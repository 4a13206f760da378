//! Conventions as text: as they are written, and with everything that they extend.

use crate::documents::{self, ConventionSpec, DocumentKind, StatusConvention};
use crate::source::tree::{At, Problems};

use super::{
    CheckedEnvelope, Diagnostic, PolicySet, Source, Specs, built_in, envelopes, read_documents,
};

impl PolicySet {
    /// The document of a convention, built in or in one of `given`, to the letter: with its comments,
    /// and without the other documents of its file. `None` where there is none of this name.
    pub fn document(given: &[Source], name: &str) -> Option<String> {
        let sources = [built_in::sources(), given.to_vec()].concat();
        let found = conventions(&sources, 0).into_iter().find(|found| found.label == name)?;
        let text = &sources.get(found.span.source)?.text[found.span.bytes];
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let text = if first.trim_end() == "---" { rest } else { text };
        Some(format!("{}\n", text.trim_end()))
    }

    /// A mistake at a name in the selectors of a policy of `given`: an item of a list in an entry of its
    /// `resources`. `None` where there is no policy of this name.
    pub fn mistake_in_selector(
        given: &[Source],
        policy: &str,
        (entry, list, item): (usize, &str, usize),
        message: String,
    ) -> Option<Diagnostic> {
        let (documents, _) = read_documents(given, 0);
        let (found, _) = envelopes(documents);
        let found = found
            .into_iter()
            .find(|found| found.kind == DocumentKind::StatusPolicy && found.label == policy)?;
        let problems = Problems::default();
        let at = At::root(&found.spec, &problems).key("resources").item(entry);
        Some(Diagnostic::new(at.key(list).item(item).node().span.clone(), message))
    }

    /// A convention with everything that it extends, as data. `None` where there is no convention of this
    /// name, or one that could not be put together.
    pub fn whole_document(given: &[Source], name: &str) -> Option<StatusConvention> {
        let conventions = conventions(given, built_in::COUNT);
        let specs_of = conventions.iter().map(|found| (found.label.as_str(), &found.spec));
        let mut specs = Specs::default();
        specs.add(specs_of, &Problems::default());
        let whole = specs.get(name).filter(|whole| whole.complete)?;
        let mut spec: ConventionSpec =
            documents::spec(&mut (*whole.spec).clone(), true, &Problems::default())?;
        spec.extends = None;
        spec.without.clear();
        Some(StatusConvention::new(name.parse().ok()?, spec))
    }
}

/// The conventions among documents; `first` is the number of the first source.
fn conventions(sources: &[Source], first: usize) -> Vec<CheckedEnvelope> {
    let (documents, _) = read_documents(sources, first);
    let (mut found, _) = envelopes(documents);
    found.retain(|found| found.kind == DocumentKind::StatusConvention);
    found
}
