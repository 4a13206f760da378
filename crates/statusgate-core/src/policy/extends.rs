//! `extends` and `like`: a convention that is another one with differences.
//!
//! The trees are put together before they are checked and read, so that inherited parts are checked
//! under its new name as if it had been written there: `{convention: appcat}` finds
//! `appcat/condition-status`, wherever that came from. The rules are those of a JSON merge patch
//! (a value replaces, null removes), but the items of lists are merged by name. Predicates and defaults are
//! replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::built_in;
use super::checks::{FieldIds, member_id};
use super::convention::{Label, PHASE};
use crate::documents::{ConventionSpec, Merge, Spec};
use crate::language::Glob;
use crate::source::tree::{At, Key, Node, Problems, Value, near};

/// The specs of conventions, with everything that they extend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specs {
    /// Those of the documents. The built-in ones are put together when one of these names them.
    pub(super) resolved: BTreeMap<String, Whole>,
    /// The documents that are not among them.
    pub(crate) absent: Absent,
    /// The conventions that others inherit from.
    pub(crate) bases: BTreeSet<String>,
    /// Invalid names of conventions. A reference to one of these is not reported again.
    pub(crate) invalid_names: Vec<String>,
}

/// The documents that a compilation does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Absent {
    /// None: it has all documents.
    #[default]
    Nothing,
    /// Some could not be read.
    Unread,
    /// Any document: only mistakes that no other document can correct are reported.
    Anything,
}

/// A spec with what it extends, as far as that is known.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    pub(crate) spec: Arc<Node>,
    /// Whether all of it is known.
    pub(crate) complete: bool,
}

/// Puts the specs of one compilation together with what they extend.
struct Resolver<'d, 's> {
    known: &'s mut Specs,
    /// The specs that are not resolved yet.
    pending: BTreeMap<&'d str, &'d Node>,
    /// Those that are being resolved, outermost first: one that is needed again is a cycle.
    open: Vec<Open<'d>>,
    problems: &'s Problems,
}

/// A convention that is being resolved.
struct Open<'d> {
    name: &'d str,
    /// Its first list, once that is complete. Of two conventions each may have the other's first list in
    /// addition to its own, as two versions of one API do: that is not a cycle.
    first: Option<Node>,
}

impl Specs {
    /// Puts all of `specs` together with what they extend, among themselves, known before or built in.
    pub(crate) fn add<'d>(
        &mut self,
        specs: impl Iterator<Item = (&'d str, &'d Node)>,
        problems: &Problems,
    ) {
        let (pending, open) = (specs.collect(), Vec::new());
        let mut resolver = Resolver { known: self, pending, open, problems };
        while let Some((name, own)) = resolver.pending.pop_first() {
            resolver.resolve(name, own);
        }
    }

    /// The spec of a convention with what it extends.
    pub(crate) fn get(&self, name: &str) -> Option<Whole> {
        let given = self.resolved.get(name).cloned();
        given.or_else(|| Some(Whole { spec: built_in::spec(name)?, complete: true }))
    }

    /// Reports that there is no convention of this name, neither one of these nor a built-in one. It may be
    /// in a document that could not be read: then only a name that is similar to a known one is reported.
    pub(crate) fn report_unknown<'w>(
        &self,
        name: &str,
        given: impl Iterator<Item = &'w str>,
        at: At<'_>,
    ) {
        let mut known: Vec<&str> = given.collect();
        built_in::names().for_each(|name| known.push(name));
        known.sort_unstable();
        let is_invalid = self.invalid_names.iter().any(|invalid| invalid == name);
        let is_absent = match self.absent {
            Absent::Nothing => false,
            Absent::Unread => near(name, known.iter().copied()).is_none(),
            Absent::Anything => true,
        };
        if !is_invalid && !is_absent {
            at.unknown("convention", name, known.iter().copied());
        }
    }
}

impl<'d> Resolver<'d, '_> {
    fn resolve(&mut self, name: &'d str, own: &Node) {
        self.open.push(Open { name, first: None });
        let whole = self.whole(own);
        self.known.resolved.insert(name.to_owned(), whole);
        self.open.pop();
    }

    /// A spec with what it extends. Parts that cannot be found are left out, so that the rest is checked.
    fn whole(&mut self, own: &Node) -> Whole {
        let mut complete = true;
        let mut unwanted = Unwanted::of(own);
        let mut whole = match own.member("extends").map(|name| self.base(name)) {
            Some(Some(base)) => {
                complete &= base.complete;
                let mut base = (*base.spec).clone();
                unwanted.remove_from(&mut base);
                let mut whole = overlay(Merge::of(ConventionSpec::SCHEMA), &base, own);
                put_phase_below_own_rules(&mut whole, own);
                whole
            }
            inherits => {
                complete &= inherits.is_none();
                own.clone()
            }
        };
        let lists = whole.items_of_mut("conditions");
        if let Some((first, others)) = lists.and_then(|lists| lists.split_first_mut()) {
            complete &= self.complete_list(first, &mut unwanted);
            for list in others {
                // The convention that is resolved next may need our first list.
                if list.member("like").is_some()
                    && let Some(open) = self.open.last_mut()
                {
                    open.first.get_or_insert_with(|| first.clone());
                }
                complete &= self.complete_list(list, &mut unwanted);
            }
        }
        if complete {
            unwanted.report_unknown(self.problems);
        }
        Whole { spec: Arc::new(whole), complete }
    }

    /// `like: metav1` in a list of conditions: the first list of that convention, at another path.
    /// Whether all of that is known. The key is removed, because an heir inherits the result.
    fn complete_list(&mut self, list: &mut Node, unwanted: &mut Unwanted<'_>) -> bool {
        let like = list.entries_mut().and_then(|entries| {
            entries.extract_if(.., |(key, node)| key.name == "like" && node.text().is_some()).next()
        });
        let Some((_, like)) = like else { return list.member("like").is_none() };
        let mut inherit = |first: &Node| {
            let mut first = first.clone();
            unwanted.remove_from_list(&mut first);
            let merge = Merge::of(ConventionSpec::SCHEMA).key("conditions").item();
            *list = overlay(merge, &first, list);
        };
        let open = self.open.iter().find(|open| like.text() == Some(open.name));
        if let Some(first) = open.and_then(|open| open.first.as_ref()) {
            inherit(first);
            return true;
        }
        let Some(base) = self.base(&like) else { return false };
        match base.spec.items_of("conditions").first() {
            Some(first) => inherit(first),
            None if base.complete => {
                self.problems.report(&like.span, "that convention has no conditions");
            }
            None => {}
        }
        base.complete
    }

    /// The spec of the convention that `name` names.
    fn base(&mut self, name: &Node) -> Option<Whole> {
        let text = name.text()?;
        if self.open.iter().any(|open| open.name == text) {
            let message = format!("the convention extends itself, through \"{text}\"");
            self.problems.report(&name.span, message);
            return None;
        }
        if let Some((name, own)) = self.pending.remove_entry(text) {
            self.resolve(name, own);
        }
        self.known.bases.insert(text.to_owned());
        let found = self.known.get(text);
        if found.is_none() {
            let given = self.known.resolved.keys().map(String::as_str);
            let pending = self.pending.keys().copied();
            let at = At::root(name, self.problems);
            self.known.report_unknown(text, given.chain(pending), at);
        }
        found
    }
}

/// Merges one part over another, as its schema defines.
fn overlay(merge: Merge<'_>, base: &Node, own: &Node) -> Node {
    let value = match (merge.how(), &base.value, &own.value) {
        (Some(how @ ("keys" | "types" | "members")), Value::Map(theirs), Value::Map(ours)) => {
            let mut entries: Vec<(Key, Node)> =
                theirs.iter().filter(|(key, _)| !merge.key(&key.name).is_own()).cloned().collect();
            for (key, node) in ours {
                let at = entries.iter().position(|(known, _)| known.name == key.name);
                match (at, &node.value) {
                    // Null switches off what has a default.
                    (Some(at), Value::Null) if !merge.key(&key.name).has_default() => {
                        entries.remove(at);
                    }
                    (Some(at), _) => {
                        let (merge, theirs) = (merge.key(&key.name), &entries[at].1);
                        let joined = match how {
                            "members" => overlay_checks(merge.item(), &key.name, theirs, node),
                            _ => overlay(merge, theirs, node),
                        };
                        entries[at] = (key.clone(), joined);
                    }
                    (None, _) => entries.push((key.clone(), node.clone())),
                }
            }
            if how == "types" {
                put_above_families(&mut entries, base);
            }
            Value::Map(entries)
        }
        (Some("items"), Value::List(theirs), Value::List(ours)) => Value::List(overlay_items(
            merge.item(),
            &one_by_one(theirs),
            &one_by_one(ours),
            name_of,
        )),
        (Some("above"), Value::List(theirs), Value::List(ours)) => {
            Value::List(overlay_above(merge.item(), theirs, ours))
        }
        (Some("defaults"), Value::List(theirs), Value::List(ours)) => {
            Value::List(overlay_defaults(theirs, ours))
        }
        // Otherwise something is wrong with it, which the structural check reports.
        _ => return own.clone(),
    };
    Node { value, span: own.span.clone() }
}

/// The first entry that matches a type counts: one that is added to a family goes above it.
fn put_above_families(entries: &mut Vec<(Key, Node)>, base: &Node) {
    let inherited = entries.iter().filter(|(key, _)| base.member(&key.name).is_some()).count();
    let mut above = inherited;
    for at in inherited..entries.len() {
        let name = entries[at].0.name.as_str();
        let mut keys = entries[..above].iter().map(|(key, _)| &*key.name);
        let family = keys.position(|key| key.contains('*') && Glob::from(key).matches(name));
        if let Some(family) = family {
            let entry = entries.remove(at);
            entries.insert(family, entry);
            above += 1;
        }
    }
}

/// A list over a list: items of one name are joined, the others follow. Null as the action of an item
/// switches it off.
fn overlay_items(
    merge: Merge<'_>,
    theirs: &[Node],
    ours: &[Node],
    name_of: impl Fn(&Node) -> Option<String>,
) -> Vec<Node> {
    let mut joined: Vec<Option<Node>> = theirs.iter().cloned().map(Some).collect();
    for (at, item) in ours.iter().enumerate() {
        let name = name_of(item);
        // Each is replaced once: of two items of one name the second is one more.
        let first = name.is_some() && ours[..at].iter().all(|other| name_of(other) != name);
        let is_off = matches!(item.member("action"), Some(Node { value: Value::Null, .. }));
        match theirs.iter().position(|known| first && name_of(known) == name) {
            Some(known) if is_off => joined[known] = None,
            Some(known) => joined[known] = Some(overlay(merge, &theirs[known], item)),
            None => joined.push(Some(item.clone())),
        }
    }
    joined.into_iter().flatten().collect()
}

/// The rules of an heir above inherited ones; an own rule takes the keys that it does not have from the
/// inherited one of its name.
fn overlay_above(merge: Merge<'_>, theirs: &[Node], ours: &[Node]) -> Vec<Node> {
    let own = ours.iter().map(|item| {
        let inherited = theirs.iter().find(|rule| name_of(rule) == name_of(item));
        inherited.map_or_else(|| item.clone(), |rule| overlay(merge, rule, item))
    });
    let rest = theirs.iter().filter(|rule| ours.iter().all(|item| name_of(item) != name_of(rule)));
    own.chain(rest.cloned()).collect()
}

/// An heir with a health of its phases: it counts after the heir's own rules and before the inherited ones.
fn put_phase_below_own_rules(whole: &mut Node, own: &Node) {
    let own_rules = own.member("health").map(|health| health.items_of("rules")).unwrap_or_default();
    let values = own.member("phase").map(|phase| phase.items_of("values")).unwrap_or_default();
    let is_phase = |rule: &Node| rule.text_of("name") == Some(PHASE);
    if values.iter().all(|value| value.member("health").is_none()) || own_rules.iter().any(is_phase)
    {
        return;
    }
    let health = whole.member_mut("health");
    let Some(rules) = health.and_then(|health| health.items_of_mut("rules")) else { return };
    rules.retain(|rule| !is_phase(rule));
    let name = (Key::placeholder("name"), Node::placeholder(Value::String(PHASE.to_owned())));
    rules.insert(own_rules.len().min(rules.len()), Node::placeholder(Value::Map(vec![name])));
}

/// The checks of a member over inherited ones. Both may be one check or a list.
fn overlay_checks(merge: Merge<'_>, member: &str, theirs: &Node, ours: &Node) -> Node {
    let (base, own) = (one_or_many(theirs), one_or_many(ours));
    let joined = overlay_items(merge, base, own, |check| Some(check_id(check, member, None)));
    Node { value: Value::List(joined), span: ours.span.clone() }
}

/// The id of a check of a member.
fn check_id(check: &Node, member: &str, element: Option<&str>) -> String {
    check.text_of("id").map_or_else(|| member_id(member, element), str::to_owned)
}

fn one_or_many(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// Phases with one entry in common, `{phase: [A, B], …}`, as an entry each.
fn one_by_one(items: &[Node]) -> Vec<Node> {
    let mut all = Vec::new();
    for item in items {
        let phases = item.items_of("phase");
        for phase in phases {
            let mut item = item.clone();
            if let Some(node) = item.member_mut("phase") {
                *node = phase.clone();
            }
            all.push(item);
        }
        if phases.is_empty() {
            all.push(item.clone());
        }
    }
    all
}

/// Merges the defaults of a convention over inherited ones, by the rule for the defaults of a policy and
/// those of its convention. A default takes the position of the first inherited default that it replaces,
/// because the order of defaults can matter.
fn overlay_defaults(theirs: &[Node], ours: &[Node]) -> Vec<Node> {
    let labels = |items: &[Node]| items.iter().map(Label::of).collect::<Vec<_>>();
    let (their_labels, our_labels) = (labels(theirs), labels(ours));
    let mut left: Vec<Option<&Node>> = ours.iter().map(Some).collect();
    let mut joined = Vec::new();
    for (item, their) in theirs.iter().zip(&their_labels) {
        match our_labels.iter().position(|our| their.is_replaced(&their_labels, our)) {
            Some(at) => joined.extend(left[at].take().cloned()),
            None => joined.push(item.clone()),
        }
    }
    joined.extend(left.into_iter().flatten().cloned());
    joined
}

/// The name of an item of a list.
fn name_of(item: &Node) -> Option<String> {
    ["phase", "id", "name", "path"].iter().find_map(|key| item.text_of(key)).map(str::to_owned)
}

/// `without: [settled, first-visit]`: what a convention does not inherit.
struct Unwanted<'d> {
    names: &'d [Node],
    /// The names of everything that it could inherit.
    inherited: BTreeSet<String>,
}

impl<'d> Unwanted<'d> {
    fn of(own: &'d Node) -> Self {
        Self { names: own.items_of("without"), inherited: BTreeSet::new() }
    }

    fn remove_from(&mut self, spec: &mut Node) {
        self.retain(spec.items_of_mut("rules"), name_of);
        let mut ids = FieldIds::default();
        self.retain(spec.items_of_mut("fields"), |field| {
            let own = field.text_of("id").map(str::to_owned);
            own.or_else(|| Some(ids.id(&field.text_of("path")?.parse().ok()?)))
        });
        self.retain(spec.items_of_mut("backfill"), |default| {
            Label::of(default).name().map(str::to_owned)
        });
        if let Some(values) = spec.member_mut("phase").and_then(|of| of.items_of_mut("values")) {
            *values = one_by_one(values);
            self.retain(Some(values), name_of);
        }
        let rules = spec.member_mut("health").and_then(|health| health.items_of_mut("rules"));
        self.retain(rules, name_of);
        for list in spec.items_of_mut("conditions").into_iter().flatten() {
            self.remove_from_list(list);
        }
    }

    fn remove_from_list(&mut self, list: &mut Node) {
        self.retain(list.items_of_mut("each"), name_of);
        let element = list.text_of("element").map(str::to_owned);
        let members = list.member_mut("members").and_then(Node::entries_mut);
        for (member, checks) in members.into_iter().flatten() {
            let mut kept = one_or_many(checks).to_vec();
            self.retain(Some(&mut kept), |check| {
                Some(check_id(check, &member.name, element.as_deref()))
            });
            // A member without checks is not an unknown member.
            checks.value = Value::List(kept);
        }
    }

    fn retain(
        &mut self,
        items: Option<&mut Vec<Node>>,
        mut name_of: impl FnMut(&Node) -> Option<String>,
    ) {
        let Some(items) = items else { return };
        items.retain(|item| {
            let Some(name) = name_of(item) else { return true };
            let is_wanted = !self.names.iter().any(|node| node.text() == Some(&*name));
            self.inherited.insert(name);
            is_wanted
        });
    }

    fn report_unknown(&self, problems: &Problems) {
        for item in self.names {
            let Value::String(name) = &item.value else { continue };
            if !self.inherited.contains(name) {
                let known = self.inherited.iter().map(String::as_str);
                At::root(item, problems).unknown("inherited part", name, known);
            }
        }
    }
}
