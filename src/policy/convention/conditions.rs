//! A list of conditions: the shape of its elements, its key, and the rules about each of them.

use super::super::predicate::{self, pointer};
use super::super::schema::{self, Check, kebab};
use super::super::{Action, Disposition};
use super::{ConditionTypes, Reader, Sanction, TransitionTimes};
use crate::language::{Glob, List, Predicate};
use crate::model::Pointer;
use crate::source::tree::{Key, Map, Node, Span, Value, near};

/// A list of conditions and what its elements look like.
#[derive(Clone, Debug)]
pub struct ConditionList {
    /// `/status/conditions`.
    pub path: Pointer,
    /// The API versions whose objects have this list at this path; all, where none is named.
    pub versions: Vec<Glob>,
    /// The rule id for a list that is no list, or an element that is no object.
    pub shape_rule: String,
    /// The members that tell elements apart; none in a history.
    pub key: Vec<String>,
    /// Said of two elements with one key.
    pub duplicate: Sanction,
    /// The largest number of elements.
    pub max_items: Option<usize>,
    /// Said of a list that has more.
    pub too_long: Sanction,
    /// For a list that grows at its end.
    pub history: Option<History>,
    /// The checks of each member of an element, in the order of the document.
    pub members: Vec<(String, Vec<Check>)>,
    /// Said of a member that is not among them.
    pub other_members: Option<Sanction>,
    /// The types of its elements.
    pub types: ConditionTypes,
    /// How `lastTransitionTime` moves.
    pub times: Option<TransitionTimes>,
    /// Rules about each element.
    pub each: Vec<ElementRule>,
    /// Where all this comes from.
    pub source: String,
}

/// A list that grows at its end and forgets at its beginning.
#[derive(Clone, Debug)]
pub struct History {
    /// A new element differs from the last one in one of these.
    pub distinct: Vec<String>,
    /// Said of a change to what was in the list.
    pub rewritten: Sanction,
    /// Said of a new element that says what the last one said.
    pub repeated: Sanction,
}

/// A rule about each element of a list, whatever its type.
#[derive(Clone, Debug)]
pub struct ElementRule {
    /// `aso/severity-when-true`.
    pub id: String,
    /// The violation. `member`, `polarity` and `type` speak of the element.
    pub when: Predicate,
    /// What happens.
    pub action: Disposition,
    /// The member that is named in the answer; the element, where there is none.
    pub member: String,
    /// The sentence in the answer.
    pub message: String,
    /// Where it comes from.
    pub source: String,
    /// Off, unless a policy enables it.
    pub optional: bool,
}

impl ConditionList {
    /// Whether objects of this version have the list.
    #[must_use]
    pub fn applies_to(&self, version: &str) -> bool {
        self.versions.is_empty() || self.versions.iter().any(|glob| glob.matches(version))
    }

    /// What predicates need to know of it.
    pub(crate) fn for_predicates(&self) -> List<'_> {
        List {
            path: &self.path,
            types: &self.types,
            has_aliases: self.types.has_aliases,
            polarity_from: &self.types.polarity_from,
        }
    }
}

/// What members of conditions are called everywhere.
const MEMBERS: [&str; 7] =
    ["type", "status", "reason", "message", "severity", "lastTransitionTime", "observedGeneration"];

impl Reader<'_> {
    /// All lists. Of two at one path an object has one, by its version.
    pub(super) fn condition_lists(&self, map: &Map<'_>) -> Vec<ConditionList> {
        let mut known: Vec<(Pointer, Vec<Glob>)> = Vec::new();
        self.list(map, "conditions", |node| {
            let list = self.condition_list(node)?;
            if known.iter().any(|(path, versions)| {
                *path == list.path && Glob::any_overlap(versions, &list.versions)
            }) {
                let message = format!("{} is listed twice for one version", list.path);
                let help = "give each its own \"apiVersions\"".to_owned();
                let span = node.member("path").map_or(&node.span, |path| &path.span);
                self.problems.report_with_help(span, message, Some(help));
            }
            known.push((list.path.clone(), list.versions.clone()));
            Some(list)
        })
    }

    fn condition_list(&self, node: &Node) -> Option<ConditionList> {
        let map = self.problems.map(node)?;
        let path = map.required("path").and_then(|node| pointer(node, self.problems));
        let members = map.get("members").and_then(|node| self.problems.map(node));
        let members = members
            .map(|members| members.entries().iter().map(|entry| self.member(entry)).collect());
        let history = map.get("history").and_then(|node| self.history(node));
        let key = match map.get("key") {
            Some(_) => self.filled_strings(&map, "key"),
            None if history.is_some() => Vec::new(),
            None => vec!["type".to_owned()],
        };
        let versions = self.list(&map, "apiVersions", |item| self.problems.parsed(item));
        let duplicate = self.sanction(&map, "duplicate", "condition-duplicate", Action::Deny);
        let max_items = map.get("maxItems").and_then(|node| schema::size(node, self.problems));
        let too_long = self.sanction(&map, "tooLong", "conditions-length", Action::Deny);
        let other_members = self.sanction_if_said(&map, "otherMembers", "condition-member-unknown");
        let types = self.condition_types(&map);
        let times = map.get("transitionTime").and_then(|node| self.transition_times(node));
        let each = self.list(&map, "each", |item| self.element_rule(item));
        let source = self.text(&map, "source");
        self.check_lengths(&map, history.is_some(), max_items);
        self.check_member_names(node);
        map.close();
        Some(ConditionList {
            path: path?,
            versions,
            shape_rule: self.id("condition-shape"),
            key,
            duplicate,
            max_items,
            too_long,
            history,
            members: members.unwrap_or_default(),
            other_members,
            types,
            times,
            each,
            source,
        })
    }

    fn member(&self, (key, node): &(Key, Node)) -> (String, Vec<Check>) {
        let id = format!("condition-{}", kebab(&key.name));
        (key.name.clone(), schema::read_checks(node, self.problems, self.name, &id))
    }

    fn history(&self, node: &Node) -> Option<History> {
        let map = self.problems.map(node)?;
        let history = History {
            distinct: self.filled_strings(&map, "distinct"),
            rewritten: self.sanction(&map, "rewritten", "history-rewritten", Action::Warn),
            repeated: self.sanction(&map, "repeated", "history-repeated", Action::Warn),
        };
        map.close();
        Some(history)
    }

    fn element_rule(&self, node: &Node) -> Option<ElementRule> {
        let map = self.problems.map(node)?;
        let id = map.required("id").and_then(|node| self.problems.identifier(node));
        let when = map.required("when");
        let when =
            when.and_then(|node| predicate::read_of_element(node, self.problems, self.names));
        let action = map.required("action");
        let action = action.and_then(|node| Disposition::read(node, self.problems));
        let message = map.required("message");
        let message = message.and_then(|node| self.problems.sentence(node, "message"));
        let (member, source) = (self.text(&map, "member"), self.text(&map, "source"));
        let optional = self.flag(&map, "optional");
        map.close();
        Some(ElementRule {
            id: self.id(id?),
            when: when?,
            action: action?,
            member,
            message: message?.to_owned(),
            source,
            optional,
        })
    }

    /// Slips in the names of members, where a table names some. A list says of which members it
    /// knows, not that there are no others: only what looks like one of those is a slip.
    fn check_member_names(&self, list: &Node) {
        let members = entries(list, "members");
        let known = members.iter().map(|(key, _)| key.name.as_str()).chain(MEMBERS);
        let check = |span: &Span, name: &str, word: Option<&'static str>| {
            let known = known.clone().chain(word);
            let is_known = known.clone().any(|known| known == name);
            if self.complete && !is_known && near(name, known.clone()).is_some() {
                self.problems.unknown(span, "member", name, known);
            }
        };
        for (_, kind) in entries(list, "types") {
            for (_, row) in entries(kind, "reasons") {
                let Value::Map(members) = &row.value else { continue };
                for (member, _) in members {
                    check(&member.span, &member.name, Some("action"));
                }
            }
        }
        let movers = list.member("transitionTime").and_then(|times| times.member("mayMoveOn"));
        for node in movers.iter().flat_map(|node| one_or_all(node)) {
            if let Value::String(name) = &node.value {
                check(&node.span, name, Some("anything"));
            }
        }
    }

    /// A history that may grow without end would be cut by nobody and rewritten by nobody.
    fn check_lengths(&self, map: &Map<'_>, is_history: bool, max_items: Option<usize>) {
        if is_history && max_items.is_none() && self.complete {
            let help = Some("add \"maxItems\"".to_owned());
            let message = "a history forgets its oldest elements at some length";
            self.problems.report_with_help(&map.node.span, message, help);
        }
    }
}

/// The items of a list, or what stands in its place.
pub(super) fn one_or_all(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// The entries of a mapping in a member; none where there is no such thing.
fn entries<'n>(node: &'n Node, key: &str) -> &'n [(Key, Node)] {
    match node.member(key) {
        Some(Node { value: Value::Map(entries), .. }) => entries,
        _ => &[],
    }
}
