//! The objects in a document, and their names.

use std::borrow::Cow;

use super::document::{ManifestDocument, mistake};
use super::fields::{Part, Places};
use super::json::{Members, items, kind_of, range_in, with_sent_numbers};
use super::record::{Path, Record, Recorded};
use super::{Diagnostic, one_line};

/// The kind and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// `group/version`, or a version alone for the core group.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Empty if the object is cluster-scoped, or gets its namespace from elsewhere.
    pub namespace: String,
    /// Empty if the server generates it.
    pub name: String,
}

impl Identity {
    /// The kind and name of the object in a JSON text.
    ///
    /// # Errors
    /// Why this is not a Kubernetes object, in one sentence without a full stop.
    pub fn of(text: &str) -> Result<Self, String> {
        match Members::parse(text) {
            Some(members) => identity(&members, None),
            None => Err(not_an_object(text)),
        }
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The API version.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }
}

/// `Kind namespace/name`, always on one line.
impl std::fmt::Display for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, namespace) = (one_line(&self.kind), one_line(&self.namespace));
        let name = if self.name.is_empty() { "(no name)".into() } else { one_line(&self.name) };
        match namespace.as_str() {
            "" => write!(formatter, "{kind} {name}"),
            namespace => write!(formatter, "{kind} {namespace}/{name}"),
        }
    }
}

/// The objects of one document.
pub(super) struct Objects<'d> {
    document: &'d ManifestDocument<'d>,
    pub(super) found: Vec<Object>,
    /// The writes of the audit log without their objects.
    pub(super) references: Vec<Object>,
    pub(super) mistakes: Vec<Diagnostic>,
    /// Whether the document neither is an object nor looks like one with a mistake.
    pub(super) is_other: bool,
}

/// One object of a document.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) part: Part,
    /// As an API server sends it, if the document differs from that.
    pub(super) sent: Option<String>,
    pub(super) identity: Identity,
    pub(super) record: Option<Record>,
    /// The stored object, if the document has both.
    pub(super) old: Option<Part>,
}

impl<'d> Objects<'d> {
    pub(super) fn of(document: &'d ManifestDocument<'d>) -> Self {
        let (found, references, mistakes) = (Vec::new(), Vec::new(), Vec::new());
        let mut objects = Self { document, found, references, mistakes, is_other: false };
        let json: &str = &document.json;
        let members = Members::parse(json);
        let list = match &members {
            Some(members) => list(members),
            None => items(json)
                .filter(|items| items.iter().any(|item| is_manifest(item)))
                .map(|items| Ok(ObjectList { items, ..ObjectList::default() })),
        };
        match (list, members) {
            (Some(Ok(ObjectList { api_version, kind, items })), _) => {
                let outer = outer(&api_version, &kind);
                for (index, text) in items.into_iter().enumerate() {
                    let members = Members::parse(text).unwrap_or_default();
                    objects.add(Some(index), text, &members, outer);
                }
            }
            (Some(Err(message)), _) => {
                let part = objects.part(None, &[], json);
                objects.complain(&part, &["items".to_owned()], message);
            }
            (None, Some(members)) => objects.add(None, json, &members, None),
            (None, None) => {
                objects.is_other = true;
                objects.complain(&objects.part(None, &[], json), &[], not_an_object(json));
            }
        }
        objects
    }

    fn add(&mut self, item: Option<usize>, text: &str, members: &Members<'_>, outer: Outer<'_>) {
        let whole = self.part(item, &[], text);
        match Recorded::of(text, members, outer) {
            Recorded::Nothing => {
                let has =
                    ["apiVersion", "kind", "metadata", "status"].map(|name| members.get(name));
                self.is_other = item.is_none() && has.into_iter().flatten().count() < 2;
                self.add_object(whole, members, outer, None, None);
            }
            Recorded::NoWrite => {}
            Recorded::Write { record, object: (path, text), old } => {
                let old = old.map(|(path, text)| self.part(item, path, text));
                let members = Members::parse(text).unwrap_or_default();
                self.add_object(self.part(item, path, text), &members, None, Some(record), old);
            }
            Recorded::Reference { record, path, text, identity } => {
                let (part, record) = (self.part(item, path, text), Some(record));
                self.references.push(Object { part, sent: None, identity, record, old: None });
            }
            Recorded::Invalid(path, message) => {
                let field: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
                self.complain(&whole, &field, message);
            }
        }
    }

    fn add_object(
        &mut self,
        part: Part,
        members: &Members<'_>,
        outer: Outer<'_>,
        record: Option<Record>,
        old: Option<Part>,
    ) {
        let identity = match identity(members, outer) {
            Ok(identity) => identity,
            Err(message) => return self.complain(&part, &[], message),
        };
        let text = &self.document.json[part.range.clone()];
        let sent =
            if record.is_none() { sent(text, members, &identity) } else { Cow::Borrowed(text) };
        let sent = (*sent != *text).then(|| sent.into_owned());
        self.found.push(Object { part, sent, identity, record, old });
    }

    fn part(&self, item: Option<usize>, path: Path, text: &str) -> Part {
        Part { item, path, range: range_in(&self.document.json, text) }
    }

    fn complain(&mut self, part: &Part, field: &[String], message: String) {
        let span = Places::of(self.document, part).bytes(field);
        self.mistakes.push(mistake(&self.document.lines, &span, message));
    }
}

/// Whether an item of an array is an object of Kubernetes or a record. Other programs have arrays, too.
fn is_manifest(text: &str) -> bool {
    Members::parse(text).is_some_and(|members| {
        members.get("apiVersion").is_some()
            || !matches!(Recorded::of(text, &members, None), Recorded::Nothing)
    })
}

/// An object as an API server sends it: with its kind and apiVersion, which the items of a typed list lack.
fn sent<'t>(text: &'t str, members: &Members<'_>, identity: &Identity) -> Cow<'t, str> {
    let numbers = with_sent_numbers(text);
    let lacks = |name| members.get(name).is_none();
    let Some(rest) = numbers.strip_prefix('{').filter(|_| lacks("kind") || lacks("apiVersion"))
    else {
        return numbers;
    };
    let names = [("kind", &identity.kind), ("apiVersion", &identity.api_version)];
    let mut text = "{".to_owned();
    for (name, value) in names.into_iter().filter(|(name, _)| lacks(name)) {
        text += &format!("\"{name}\":{},", serde_json::Value::from(value.as_str()));
    }
    if rest.trim_start().starts_with('}') {
        text.pop();
    }
    Cow::Owned(text + rest)
}

/// apiVersion and kind of the items of a typed list.
pub(super) type Outer<'a> = Option<(&'a str, &'a str)>;

/// The items of a typed list need no kind: `ThingList` contains Things. A plain `List` does not define
/// the kind of its items.
fn outer<'a>(api_version: &'a str, kind: &'a str) -> Outer<'a> {
    Some((api_version, kind.strip_suffix("List").filter(|kind| !kind.is_empty())?))
}

/// A `List`, any `…List` with items, or an array.
#[derive(Default)]
struct ObjectList<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
    items: Vec<&'a str>,
}

/// The list with these members, or the error in its items; `None` if this is not a list. A list
/// without items is empty: Go writes an empty list so.
fn list<'a>(members: &Members<'a>) -> Option<Result<ObjectList<'a>, String>> {
    let kind = members.string("kind").filter(|kind| kind.ends_with("List"))?;
    let api_version = members.string("apiVersion").unwrap_or_default();
    let written = members.get("items");
    if let Some(items) = written.and_then(items) {
        return Some(Ok(ObjectList { api_version, kind, items }));
    }
    // A custom kind may end in `List`, too. Its objects have names; lists do not.
    let is_plain = kind == "List" && matches!(&*api_version, "" | "v1");
    if !is_plain && (written.is_none() || has_name(members)) {
        return None;
    }
    Some(match written {
        None | Some("null") => Ok(ObjectList { api_version, kind, items: Vec::new() }),
        Some(text) => {
            let (kind, is) = (one_line(&kind), kind_of(text));
            Err(format!("\"items\" of this {kind} is {is}, not a list"))
        }
    })
}

fn has_name(members: &Members<'_>) -> bool {
    let metadata = members.get("metadata").and_then(Members::parse).unwrap_or_default();
    ["name", "generateName"].iter().any(|name| metadata.get(name).is_some())
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

fn not_an_object(json: &str) -> String {
    format!("this is {}, not a Kubernetes object", kind_of(json))
}
