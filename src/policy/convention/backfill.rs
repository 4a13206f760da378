//! What is filled in where it is absent: fields, members of conditions, whole conditions. And what is
//! taken out where it may not be.

use super::super::predicate::{self, pointer};
use super::super::{Action, Check};
use super::place::{place_of, remaining};
use super::{ConditionList, Names};
use crate::language::Predicate;
use crate::model::Pointer;
use crate::source::tree::{Key, Map, Node, Problems, Value};

/// Something to fill in where it is absent, or to take out.
#[derive(Clone, Debug, PartialEq)]
pub struct Backfill {
    /// What a policy calls it by; its place, where the document gives no name.
    pub name: String,
    /// What it is about: the path, or the list and what of its elements.
    pub(crate) place: String,
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
    /// A member that some elements may not have: taken out of them.
    AbsentMember {
        /// The list, one that the convention names.
        list: Pointer,
        /// The member.
        member: String,
        /// Which elements. Asked of each, as the rules about elements are.
        of: Predicate,
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
            | Filling::Steady { list: path, .. }
            | Filling::AbsentMember { list: path, .. } => path,
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
                // What is asked of an element may be something that others fill in.
                Filling::Element { .. } | Filling::AbsentMember { .. } => true,
            }
    }

    /// The list and the member, where this gives elements a member that they lack, or an old one.
    fn gives(&self) -> Option<(&Pointer, &str)> {
        match &self.filling {
            Filling::Member { list, member, .. } | Filling::Steady { list, member, .. } => {
                Some((list, member))
            }
            _ => None,
        }
    }

    /// The list and the member, where this takes a member out of elements.
    fn takes(&self) -> Option<(&Pointer, &str)> {
        match &self.filling {
            Filling::AbsentMember { list, member, .. } => Some((list, member)),
            _ => None,
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
            Self::Member { .. }
            | Self::Element { .. }
            | Self::Steady { .. }
            | Self::AbsentMember { .. } => false,
        }
    }
}

/// Reads a `backfill` list, of a convention with these lists of conditions or of a policy that follows
/// it; then `inherited` are the convention's own that stay.
pub(crate) fn read_list(
    node: &Node,
    problems: &Problems,
    names: &Names,
    lists: &[ConditionList],
    inherited: &[Backfill],
) -> Vec<Backfill> {
    let read = |item| Some((read(item, problems, names)?, item));
    let own: Vec<(Backfill, &Node)> = problems.list(node, read);
    let inherited: Vec<&Backfill> = remaining(inherited, own.iter().map(|(fill, _)| fill));
    let mut settled: Vec<&Pointer> = Vec::new();
    for (at, (fill, item)) in own.iter().enumerate() {
        if fill.when.is_none()
            && !fill.optional
            && let Filling::Absent(path) | Filling::Field(path, _) = &fill.filling
        {
            if settled.contains(&path) {
                let message = format!("{path} is filled in above already, whatever else holds");
                let help = "say with \"when\" which of them counts".to_owned();
                problems.report_with_help(&item.span, message, Some(help));
            }
            if fill.filling.is_sure() {
                settled.push(path);
            }
        }
        let span = item.member("member").map_or(&item.span, |member| &member.span);
        if let Some((list, member)) = fill.takes() {
            check_taken(list, member, item, problems, lists);
        }
        let before = own[..at].iter().map(|(other, _)| other);
        let mut others = before.chain(inherited.iter().copied());
        // One run would never be the last: each would undo what the other did.
        let undoes = |other: &&Backfill| {
            (fill.takes().is_some() && fill.takes() == other.gives())
                || (fill.gives().is_some() && fill.gives() == other.takes())
        };
        if let Some(other) = others.find(undoes) {
            let message = format!("\"{}\" and \"{}\" undo each other", fill.name, other.name);
            let help = "a member is filled in, or taken out, not both".to_owned();
            problems.report_with_help(span, message, Some(help));
        }
    }
    own.into_iter().map(|(fill, _)| fill).collect()
}

/// What is taken out of an element is judged with the rest, and a writer would be refused for it.
fn check_taken(
    path: &Pointer,
    member: &str,
    item: &Node,
    problems: &Problems,
    lists: &[ConditionList],
) {
    let span = |key| item.member(key).map_or(&item.span, |node: &Node| &node.span);
    for list in lists.iter().filter(|list| list.path == *path) {
        if list.history.is_some() {
            let message = format!("{path} is a history: what is in it does not change");
            problems.report(span("list"), message);
        }
        let wanted = |check: &Check| check.required && check.action == Action::Deny;
        let checks = list.members.iter().filter(|(known, _)| known == member);
        let key = |key: &[String]| key.iter().any(|part| part == member);
        let keys = list.types.known.iter().filter_map(|kind| kind.key.as_deref());
        if std::iter::once(list.key.as_slice()).chain(keys).any(key) {
            let message = format!("{member} tells elements apart: it cannot be taken out");
            problems.report(span("member"), message);
        } else if let Some(check) =
            checks.flat_map(|(_, checks)| checks).find(|check| wanted(check))
        {
            let message = format!("{member} is required: it cannot be taken out");
            let help = format!("{} would refuse what is left", check.rule);
            problems.report_with_help(span("member"), message, Some(help));
        }
    }
}

/// Reads one entry.
fn read(node: &Node, problems: &Problems, names: &Names) -> Option<Backfill> {
    let map = problems.map(node)?;
    let name = map.get("name").and_then(|node| problems.string(node));
    let optional = map.get("optional").and_then(|node| problems.boolean(node)).unwrap_or(false);
    let when = map.get("when").and_then(|node| predicate::read(node, problems, names));
    let source = map.get("source").and_then(|node| problems.string(node)).unwrap_or_default();
    let filling = match (map.get("path"), map.get("list")) {
        _ if !does_one_thing(&map, problems) => {
            pass_over(&map);
            None
        }
        (Some(path), None) => read_field(path, &map, problems, names),
        (None, Some(list)) => read_in_list(list, &map, problems, names),
        _ => {
            problems.report(&node.span, "either \"path\" or \"list\" says what is filled in");
            pass_over(&map);
            None
        }
    };
    map.close();
    let filling = filling?;
    // What has a filling has a place.
    let place = place_of(node).unwrap_or_default();
    let name = name.map_or_else(|| place.clone(), str::to_owned);
    Some(Backfill { name, place, optional, when, filling, source: source.to_owned() })
}

/// One mistake, not one for each key that belongs to what is wrong.
fn pass_over(map: &Map<'_>) {
    for key in WHAT.into_iter().chain(["nullable", "member"]) {
        map.get(key);
    }
}

/// What an entry does: one of these.
const WHAT: [&str; 5] = ["value", "copyOf", "element", "steadyWhile", "absentWhere"];

/// Whether an entry does one thing, as far as its keys say.
fn does_one_thing(map: &Map<'_>, problems: &Problems) -> bool {
    let mut what = map.entries().iter().filter(|(key, _)| WHAT.contains(&key.name.as_str()));
    let (Some((one, _)), Some((other, node))) = (what.next(), what.next()) else { return true };
    let message = format!("either \"{}\" or \"{}\", not both", one.name, other.name);
    problems.report(&node.span, message);
    false
}

fn read_field(path: &Node, map: &Map<'_>, problems: &Problems, names: &Names) -> Option<Filling> {
    let of_elements = ["member", "element", "steadyWhile", "absentWhere"];
    let entry = map.entries().iter().find(|(key, _)| of_elements.contains(&key.name.as_str()));
    if let Some((key, _)) = entry {
        let message = format!("\"{}\" speaks of the elements of a list", key.name);
        let help = "name the list with \"list\" in the place of \"path\"".to_owned();
        problems.report_with_help(&key.span, message, Some(help));
        pass_over(map);
        return None;
    }
    let nullable = map.get("nullable").and_then(|node| problems.boolean(node)).unwrap_or(false);
    let path = pointer(path, problems);
    if let Some(Node { value: Value::Null, .. }) = map.get("value")
        && !nullable
    {
        return path.map(Filling::Absent);
    }
    let sources = read_sources(map, problems);
    let path = path?;
    if let Some(value) = map.get("value")
        && names.is_phase(&path)
    {
        match &value.value {
            Value::String(name) => names.check_phase(&value.span, name, problems),
            Value::Null => {}
            _ => problems.report(&value.span, "a phase is a text"),
        }
    }
    Some(Filling::Field(path, sources?))
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
    let Some(member) = map.required("member") else {
        pass_over(map);
        return None;
    };
    let member = problems.string(member)?.to_owned();
    if let Some(same) = map.get("steadyWhile") {
        let why = "whatever changes, the member would be put back";
        let unless =
            problems.filled_list(same, why, |item| problems.string(item).map(str::to_owned));
        return Some(Filling::Steady { list: list?, member, unless });
    }
    if let Some(of) = map.get("absentWhere") {
        let of = predicate::read_of_element(of, problems, names);
        return Some(Filling::AbsentMember { list: list?, member, of: of? });
    }
    let sources = read_sources(map, problems);
    Some(Filling::Member { list: list?, member, sources: sources? })
}

/// `value: …`, or `copyOf: …`.
fn read_sources(map: &Map<'_>, problems: &Problems) -> Option<Vec<ValueSource>> {
    match (map.get("value"), map.get("copyOf")) {
        (Some(value), None) => Some(vec![ValueSource::Value(problems.json(value)?)]),
        (None, Some(from)) => Some(problems.filled(from, |item| read_source(item, problems))),
        // That is two things, and said already.
        (Some(_), Some(_)) => None,
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
        let sources = match &node.value {
            Value::Map(_) => {
                let copy = problems.map(node)?;
                let from = copy.required("copyOf");
                copy.close();
                problems.filled(from?, |item| read_source(item, problems))
            }
            Value::Null | Value::List(_) => {
                let help = "or {copyOf: …}; what is not to be there is left out".to_owned();
                let message = "a member of a condition is a text or a number here";
                problems.report_with_help(&node.span, message, Some(help));
                return None;
            }
            _ if key.name == "status" => {
                let status = predicate::status(node, problems)?;
                vec![ValueSource::Value(status.name().into())]
            }
            _ => {
                problems.json(node)?;
                vec![ValueSource::Value(predicate::unquoted_status(node))]
            }
        };
        Some((key.name.clone(), sources))
    };
    let others = map.entries().iter().filter(|(key, _)| key.name != "type");
    let members = others.filter_map(read).collect();
    Some((kind?.to_owned(), members))
}
