//! What is filled in where it is absent: fields, members of conditions, whole conditions.

use super::super::Predicate;
use super::super::predicate::{self, pointer};
use super::super::yaml::{Key, Map, Node, Problems, Value};
use super::Names;
use crate::model::Pointer;

/// Something to fill in where it is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Backfill {
    /// What a policy calls it by; the path, where the document gives no name.
    pub name: String,
    /// Off, unless a policy enables it.
    pub optional: bool,
    /// Only when this holds.
    pub when: Option<Predicate>,
    /// Where, and with what.
    pub filling: Filling,
    /// Where it comes from.
    pub source: String,
}

/// Where something is filled in, and with what.
#[derive(Clone, Debug, PartialEq)]
pub enum Filling {
    /// The field stays absent, and an explicit null is removed, because a null on a property that
    /// is not `nullable` fails the whole write.
    Absent(Pointer),
    /// The first of these that there is.
    Field(Pointer, Vec<ValueSource>),
    /// A member, in every element of a list of conditions that lacks it.
    Member {
        /// The list.
        list: Pointer,
        /// The member.
        member: String,
        /// The first of these that there is.
        sources: Vec<ValueSource>,
    },
    /// A whole condition, where the list has none of its type.
    Element {
        /// The list.
        list: Pointer,
        /// Its type.
        kind: String,
        /// Its other members; one for which there is no value is left out.
        members: Vec<(String, Vec<ValueSource>)>,
    },
    /// The stored value of a member, put back where nothing else of the element changed: for
    /// controllers that stamp all conditions anew at each look.
    Steady {
        /// The list.
        list: Pointer,
        /// The member that is put back.
        member: String,
        /// What must be as it was.
        unless: Vec<String>,
    },
}

/// Where a value comes from. Never the clock: a value that a controller drops at its next write and
/// gets anew would make an endless loop.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSource {
    /// This value.
    Value(serde_json::Value),
    /// What the stored object has in the same place.
    Stored,
    /// A field of the status.
    Field(Pointer),
    /// A member of a condition of the same list.
    Condition {
        /// Its type.
        kind: String,
        /// The member.
        member: String,
    },
    /// `metadata.creationTimestamp`.
    CreationTimestamp,
    /// `metadata.deletionTimestamp`.
    DeletionTimestamp,
    /// `metadata.generation`.
    Generation,
}

impl Backfill {
    /// The place that is filled: of conditions, their list.
    #[must_use]
    pub const fn path(&self) -> &Pointer {
        match &self.filling {
            Filling::Absent(path)
            | Filling::Field(path, _)
            | Filling::Member { list: path, .. }
            | Filling::Element { list: path, .. }
            | Filling::Steady { list: path, .. } => path,
        }
    }

    /// Whether it may have to wait for another change: a guard or a copy sees what others filled
    /// in, and a list is filled one element at a time.
    #[must_use]
    pub fn depends_on_others(&self) -> bool {
        let copies = |sources: &[ValueSource]| {
            sources.iter().any(|source| {
                matches!(source, ValueSource::Field(_) | ValueSource::Condition { .. })
            })
        };
        self.when.is_some()
            || match &self.filling {
                Filling::Absent(_) | Filling::Steady { .. } => false,
                Filling::Field(_, sources) | Filling::Member { sources, .. } => copies(sources),
                Filling::Element { .. } => true,
            }
    }
}

impl Filling {
    /// Whether it says for sure what becomes of a field: a copy may find nothing to copy.
    fn is_sure(&self) -> bool {
        match self {
            Self::Absent(_) => true,
            Self::Field(_, sources) => {
                sources.iter().any(|source| matches!(source, ValueSource::Value(_)))
            }
            Self::Member { .. } | Self::Element { .. } | Self::Steady { .. } => false,
        }
    }
}

/// Reads a `backfill` list; policies have the same.
pub(crate) fn read(node: &Node, problems: &Problems, names: &Names) -> Vec<Backfill> {
    let mut settled: Vec<Pointer> = Vec::new();
    problems.list(node, |item| {
        let fill = read_one(item, problems, names)?;
        let always = fill.when.is_none() && !fill.optional;
        if always && let Filling::Absent(path) | Filling::Field(path, _) = &fill.filling {
            if settled.contains(path) {
                let message = format!("{path} is filled in above already, whatever else holds");
                let help = "say with \"when\" which of them counts".to_owned();
                problems.report_with_help(&item.span, message, Some(help));
            }
            if fill.filling.is_sure() {
                settled.push(path.clone());
            }
        }
        Some(fill)
    })
}

fn read_one(node: &Node, problems: &Problems, names: &Names) -> Option<Backfill> {
    let map = problems.map(node)?;
    let name = map.get("name").and_then(|node| problems.string(node));
    let optional = map.get("optional").and_then(|node| problems.boolean(node)).unwrap_or(false);
    let when = map.get("when").and_then(|node| predicate::read(node, problems, names));
    let source = map.get("source").and_then(|node| problems.string(node)).unwrap_or_default();
    let filling = match (map.get("path"), map.get("list")) {
        (Some(path), None) => read_field(path, &map, problems),
        (None, Some(list)) => read_in_list(list, &map, problems, names),
        _ => {
            problems.report(&node.span, "either \"path\" or \"list\" says what is filled in");
            // One mistake, not one for each key that belongs to them.
            for key in ["value", "copyOf", "nullable", "member", "element", "steadyWhile"] {
                map.get(key);
            }
            None
        }
    };
    map.close();
    let filling = filling?;
    let mut found =
        Backfill { name: String::new(), optional, when, filling, source: source.to_owned() };
    found.name = name.map_or_else(|| found.path().to_string(), str::to_owned);
    Some(found)
}

fn read_field(path: &Node, map: &Map<'_>, problems: &Problems) -> Option<Filling> {
    let nullable = map.get("nullable").and_then(|node| problems.boolean(node)).unwrap_or(false);
    let path = pointer(path, problems);
    if let Some(Node { value: Value::Null, .. }) = map.get("value")
        && !nullable
    {
        map.get("copyOf");
        return path.map(Filling::Absent);
    }
    let sources = read_sources(map, problems);
    Some(Filling::Field(path?, sources?))
}

fn read_in_list(node: &Node, map: &Map<'_>, problems: &Problems, names: &Names) -> Option<Filling> {
    let list = pointer(node, problems);
    if let Some(list) = &list {
        names.check_list(&node.span, &list.to_string(), problems);
    }
    if let Some(element) = map.get("element") {
        let (kind, members) = read_element(element, problems)?;
        return Some(Filling::Element { list: list?, kind, members });
    }
    let member = map.required("member").and_then(|node| problems.string(node))?.to_owned();
    if let Some(same) = map.get("steadyWhile") {
        let unless = problems.strings(same);
        return Some(Filling::Steady { list: list?, member, unless });
    }
    let sources = read_sources(map, problems);
    Some(Filling::Member { list: list?, member, sources: sources? })
}

/// `value: …`, or `copyOf: …`.
fn read_sources(map: &Map<'_>, problems: &Problems) -> Option<Vec<ValueSource>> {
    match (map.get("value"), map.get("copyOf")) {
        (Some(value), None) => Some(vec![ValueSource::Value(value.to_json())]),
        (None, Some(from)) => Some(problems.one_or_many(from, |item| read_source(item, problems))),
        (Some(_), Some(from)) => {
            problems.report(&from.span, "either \"value\" or \"copyOf\", not both");
            None
        }
        (None, None) => {
            problems.report(&map.node.span, "\"value\" or \"copyOf\" is missing here");
            None
        }
    }
}

/// `stored`, a pointer, or `{condition: Synced, member: message}`.
fn read_source(node: &Node, problems: &Problems) -> Option<ValueSource> {
    let text = match &node.value {
        Value::Map(_) => {
            let map = problems.map(node)?;
            let kind = map.required("condition").and_then(|node| problems.string(node));
            let member = map.required("member").and_then(|node| problems.string(node));
            map.close();
            let (kind, member) = (kind?.to_owned(), member?.to_owned());
            return Some(ValueSource::Condition { kind, member });
        }
        _ => problems.string(node)?,
    };
    Some(match text {
        "stored" => ValueSource::Stored,
        "/metadata/creationTimestamp" => ValueSource::CreationTimestamp,
        "/metadata/deletionTimestamp" => ValueSource::DeletionTimestamp,
        "/metadata/generation" => ValueSource::Generation,
        _ => ValueSource::Field(pointer(node, problems)?),
    })
}

/// A condition whose members are texts, or `{copyOf: …}`.
type Element = (String, Vec<(String, Vec<ValueSource>)>);

fn read_element(node: &Node, problems: &Problems) -> Option<Element> {
    let map = problems.map(node)?;
    let kind = map.required("type").and_then(|node| problems.string(node));
    let read = |(key, node): &(Key, Node)| {
        let sources = if let Value::Map(_) = node.value {
            let copy = problems.map(node)?;
            let from = copy.required("copyOf")?;
            let sources = problems.one_or_many(from, |item| read_source(item, problems));
            copy.close();
            sources
        } else {
            vec![ValueSource::Value(predicate::unquoted_status(node))]
        };
        Some((key.name.clone(), sources))
    };
    let others = map.entries().iter().filter(|(key, _)| key.name != "type");
    let members = others.filter_map(read).collect();
    Some((kind?.to_owned(), members))
}
