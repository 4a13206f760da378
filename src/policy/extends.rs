//! `extends` and `like`: a convention that is another one with differences.
//!
//! The documents are put together before they are read, so that whatever is inherited is checked
//! under its new name as if it had been written there: `{convention: appcat}` finds
//! `appcat/condition-status`, wherever that came from. The rules are those of a JSON merge patch
//! (what is there replaces, null removes), but lists whose items have a name of their own are put
//! together by that name, and the list of conditions and its tables item by item.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::convention::{self, Label};
use crate::language::Glob;
use crate::source::tree::{Key, Node, Problems, Span, Value, near};

/// The specs of conventions, with everything that they extend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specs {
    /// Shared: each compilation starts with the built-in ones.
    resolved: BTreeMap<String, Arc<Node>>,
    /// Those of them of which something is not known that they inherit.
    partial: Vec<String>,
    /// Whether there are documents that could not be read.
    pub(crate) incomplete: bool,
    /// What conventions are called whose names are no names: who names one has made no mistake.
    pub(crate) misnamed: Vec<String>,
}

/// Those of one compilation that are still as they were written.
struct Pending<'d> {
    specs: BTreeMap<&'d str, &'d Node>,
    /// Those being put together, outermost first: one that comes up again is a circle.
    open: Vec<Open<'d>>,
}

/// A convention that is being put together.
struct Open<'d> {
    name: &'d str,
    /// Its first list, as soon as that is whole. Of two conventions each may have the other's list
    /// beside its own, as two versions of one API do: that is no circle.
    first: Option<Node>,
}

impl Specs {
    /// Puts all of `specs` together with what they extend, among themselves or known before.
    pub(crate) fn add<'d>(
        &mut self,
        specs: impl Iterator<Item = (&'d str, &'d Node)>,
        problems: &Problems,
    ) {
        let specs: BTreeMap<_, _> = specs.collect();
        let names: Vec<&str> = specs.keys().copied().collect();
        let mut pending = Pending { specs, open: Vec::new() };
        for name in names {
            self.resolve(name, &mut pending, problems);
        }
    }

    /// The spec of a convention with what it extends, as far as that is known, and whether all of it
    /// is.
    pub(crate) fn get(&self, name: &str) -> Option<(&Node, bool)> {
        Some((self.resolved.get(name)?, !self.is_partial(name)))
    }

    fn is_partial(&self, name: &str) -> bool {
        self.partial.iter().any(|partial| partial == name)
    }

    /// Reports that there is no convention of this name. It may be in a document that could not be
    /// read: then only what looks like a slip is one.
    pub(crate) fn report_unknown<'w>(
        &self,
        node: &Node,
        name: &str,
        known: impl Iterator<Item = &'w str> + Clone,
        problems: &Problems,
    ) {
        let misnamed = self.misnamed.iter().any(|misnamed| misnamed == name);
        if !misnamed && (!self.incomplete || near(name, known.clone()).is_some()) {
            problems.unknown(&node.span, "convention", name, known);
        }
    }

    fn resolve<'d>(&mut self, name: &'d str, pending: &mut Pending<'d>, problems: &Problems) {
        let Some(own) = pending.specs.remove(name) else { return };
        pending.open.push(Open { name, first: None });
        let (whole, complete) = self.put_together(own, pending, problems);
        self.resolved.insert(name.to_owned(), Arc::new(whole));
        if !complete {
            self.partial.push(name.to_owned());
        }
        pending.open.pop();
    }

    /// What cannot be found is left out: the rest has mistakes of its own to be told.
    fn put_together<'d>(
        &mut self,
        own: &'d Node,
        pending: &mut Pending<'d>,
        problems: &Problems,
    ) -> (Node, bool) {
        let mut complete = true;
        let mut whole = match own.member("extends").map(|name| self.base(name, pending, problems)) {
            Some(Some((base, known))) => {
                complete &= known;
                overlay_spec(base, own)
            }
            inherits => {
                complete &= inherits.is_none();
                own.clone()
            }
        };
        whole.keep_entries(|key| key != "extends");
        for (key, node) in whole.entries_mut().into_iter().flatten() {
            let Value::List(lists) = &mut node.value else { continue };
            if key.name == "conditions" {
                let Some((first, others)) = lists.split_first_mut() else { continue };
                complete &= self.complete_list(first, own, pending, problems);
                for list in others {
                    // Who is about to be read for it may want our first one.
                    if list.member("like").is_some()
                        && let Some(open) = pending.open.last_mut()
                    {
                        open.first.get_or_insert_with(|| without_unwanted(first, own));
                    }
                    complete &= self.complete_list(list, own, pending, problems);
                }
            }
        }
        drop_unwanted(&mut whole, own, complete, problems);
        report_twice(own, problems);
        (whole, complete)
    }

    /// `like: metav1` in a list of conditions: the first list of that convention, at another path.
    /// Whether all of that is known.
    fn complete_list<'d>(
        &mut self,
        list: &mut Node,
        own: &'d Node,
        pending: &mut Pending<'d>,
        problems: &Problems,
    ) -> bool {
        let Some(like) = list.member("like").cloned() else { return true };
        list.keep_entries(|key| key != "like");
        // The name must live as long as the documents do: it is looked up in the one it is from.
        let Some(name) = own_name(own, &like) else { return true };
        let open = pending.open.iter().find(|open| name.is_text(open.name));
        if let Some(first) = open.and_then(|open| open.first.as_ref()) {
            *list = overlay_list(first, list);
            return true;
        }
        let Some((base, complete)) = self.base(name, pending, problems) else { return false };
        match base.member("conditions").and_then(|node| node.items().first()) {
            Some(first) => *list = overlay_list(first, list),
            None if complete => problems.report(&like.span, "that convention has no conditions"),
            None => {}
        }
        complete
    }

    /// The spec of the convention that `name` speaks of, and whether all of it is known.
    fn base<'d>(
        &mut self,
        name: &'d Node,
        pending: &mut Pending<'d>,
        problems: &Problems,
    ) -> Option<(&Node, bool)> {
        let text = problems.string(name)?;
        if pending.open.iter().any(|open| open.name == text) {
            let message = format!("the convention extends itself, through \"{text}\"");
            problems.report(&name.span, message);
            return None;
        }
        self.resolve(text, pending, problems);
        if !self.resolved.contains_key(text) {
            let known = self.resolved.keys().map(String::as_str);
            let known = known.chain(pending.specs.keys().copied());
            self.report_unknown(name, text, known, problems);
        }
        self.get(text)
    }
}

/// The node of `own` that stands where `like` stands: a clone of it is what is at hand.
fn own_name<'d>(own: &'d Node, like: &Node) -> Option<&'d Node> {
    own.member("conditions")?
        .items()
        .iter()
        .filter_map(|list| list.member("like"))
        .find(|node| node.span == like.span)
}

/// An id that is in one list twice. Said of a document as it is written: put over what it extends,
/// the second would take the place of the first.
fn report_twice(own: &Node, problems: &Problems) {
    let lists = own.member("conditions").map(Node::items).unwrap_or_default();
    let each = lists.iter().filter_map(|list| list.member("each"));
    for list in own.member("rules").into_iter().chain(each) {
        let ids = list.items().iter().filter_map(|item| item.member("id"));
        let mut known: Vec<&str> = Vec::new();
        for node in ids {
            let Value::String(id) = &node.value else { continue };
            if known.contains(&id.as_str()) {
                problems.report(&node.span, format!("rule {id} is listed twice"));
            }
            known.push(id);
        }
    }
}

/// What a convention does not pass on: words about itself.
const PERSONAL: [&str; 4] = ["title", "source", "differences", "without"];

fn overlay_spec(base: &Node, own: &Node) -> Node {
    let mut whole = base.clone();
    whole.span = own.span.clone();
    whole.keep_entries(|key| !PERSONAL.contains(&key));
    overlay_entries(&mut whole, own, |key, base, own| match key {
        "conditions" => named(base, own, overlay_list),
        "rules" | "fields" => named(base, own, |_, own| own.clone()),
        "backfill" => fills(base, own),
        "generation" | "phase" => members(base, own),
        _ => own.clone(),
    });
    whole
}

fn overlay_list(base: &Node, own: &Node) -> Node {
    let mut whole = base.clone();
    whole.span = own.span.clone();
    overlay_entries(&mut whole, own, |key, base, own| match key {
        "members" | "transitionTime" => members(base, own),
        "types" => {
            let mut types = base.clone();
            overlay_entries(&mut types, own, |_, base, own| members(base, own));
            put_above_families(&mut types, base);
            types
        }
        "each" => named(base, own, |_, own| own.clone()),
        _ => own.clone(),
    });
    whole
}

/// The first entry that fits a type counts: one that is added to a family goes above it.
fn put_above_families(types: &mut Node, base: &Node) {
    let Some(entries) = types.entries_mut() else { return };
    let inherited = entries.iter().filter(|(key, _)| base.member(&key.name).is_some()).count();
    let mut above = inherited;
    for at in inherited..entries.len() {
        let name = entries[at].0.name.as_str();
        let is_family = |key: &Key| key.name.contains('*') && Glob::from(&*key.name).matches(name);
        if let Some(family) = entries[..above].iter().position(|(key, _)| is_family(key)) {
            let entry = entries.remove(at);
            entries.insert(family, entry);
            above += 1;
        }
    }
}

/// A mapping over a mapping, member by member.
fn members(base: &Node, own: &Node) -> Node {
    let mut whole = base.clone();
    overlay_entries(&mut whole, own, |_, _, own| own.clone());
    whole
}

/// Puts the entries of `own` over those of `whole`; `join` makes one of two.
fn overlay_entries(whole: &mut Node, own: &Node, join: impl Fn(&str, &Node, &Node) -> Node) {
    let (Value::Map(entries), Value::Map(own_entries)) = (&mut whole.value, &own.value) else {
        // Something is wrong with it, and will be said where it is read.
        *whole = own.clone();
        return;
    };
    for (key, node) in own_entries {
        let at = entries.iter().position(|(known, _)| known.name == key.name);
        match (at, &node.value) {
            (Some(at), Value::Null) => {
                entries.remove(at);
            }
            (Some(at), _) => entries[at] = (key.clone(), join(&key.name, &entries[at].1, node)),
            (None, _) => entries.push((key.clone(), node.clone())),
        }
    }
}

/// A list over a list: items of one name are joined, the others follow.
fn named(base: &Node, own: &Node, join: impl Fn(&Node, &Node) -> Node) -> Node {
    let (Value::List(items), Value::List(own_items)) = (&base.value, &own.value) else {
        return own.clone();
    };
    let mut joined = items.clone();
    for (at, item) in own_items.iter().enumerate() {
        let name = name_of(item);
        // Each is replaced once: of two items of one name the second is one more.
        let first = name.is_some() && own_items[..at].iter().all(|other| name_of(other) != name);
        match items.iter().position(|known| first && name_of(known) == name) {
            Some(known) => joined[known] = join(&items[known], item),
            None => joined.push(item.clone()),
        }
    }
    Node { value: Value::List(joined), span: own.span.clone() }
}

/// Defaults over defaults, as those of a policy are over those of its convention. The first of
/// one's own stands where the first of those stood that it replaces: an order may matter.
fn fills(base: &Node, own: &Node) -> Node {
    let (Value::List(items), Value::List(own_items)) = (&base.value, &own.value) else {
        return own.clone();
    };
    let (theirs, ours) = (Label::of_all(items), Label::of_all(own_items));
    let mut left: Vec<Option<&Node>> = own_items.iter().map(Some).collect();
    let mut joined = Vec::new();
    for (item, their) in items.iter().zip(&theirs) {
        match ours.iter().position(|our| their.is_replaced(&theirs, our)) {
            Some(at) => joined.extend(left[at].take().cloned()),
            None => joined.push(item.clone()),
        }
    }
    joined.extend(left.into_iter().flatten().cloned());
    Node { value: Value::List(joined), span: own.span.clone() }
}

/// What an item of a list is called.
fn name_of(item: &Node) -> Option<&str> {
    ["id", "name", "path"].iter().find_map(|key| match &item.member(key)?.value {
        Value::String(text) => Some(text.as_str()),
        _ => None,
    })
}

/// `without: [settled, first-visit]`: inherited rules and defaults that are not wanted.
fn drop_unwanted(whole: &mut Node, own: &Node, complete: bool, problems: &Problems) {
    let Some(unwanted) = own.member("without") else { return };
    for (name, span) in problems.list(unwanted, |item| Some((problems.string(item)?, &item.span))) {
        if !drop_named(whole, name) && complete {
            report_unknown(name, span, problems);
        }
    }
    whole.keep_entries(|key| key != "without");
}

fn report_unknown(name: &str, span: &Span, problems: &Problems) {
    let message = format!("there is no inherited rule or default \"{name}\"");
    problems.report(span, message);
}

fn drop_named(whole: &mut Node, name: &str) -> bool {
    let mut found = false;
    for (key, node) in whole.entries_mut().into_iter().flatten() {
        let Value::List(items) = &mut node.value else { continue };
        match key.name.as_str() {
            "rules" | "fields" => {
                let before = items.len();
                items.retain(|item| name_of(item) != Some(name));
                found |= items.len() < before;
            }
            "backfill" => {
                let before = items.len();
                items.retain(|item| convention::name_of(item).as_deref() != Some(name));
                found |= items.len() < before;
            }
            "conditions" => {
                for list in items {
                    found |= drop_from_list(list, name);
                }
            }
            _ => {}
        }
    }
    found
}

fn drop_from_list(list: &mut Node, name: &str) -> bool {
    let mut entries = list.entries_mut().into_iter().flatten();
    let each = entries.find(|(key, _)| key.name == "each");
    let Some((_, Node { value: Value::List(items), .. })) = each else { return false };
    let before = items.len();
    items.retain(|item| name_of(item) != Some(name));
    items.len() < before
}

/// A list as it will be once all of its convention is there.
fn without_unwanted(list: &Node, own: &Node) -> Node {
    let mut list = list.clone();
    for item in own.member("without").map(Node::items).unwrap_or_default() {
        if let Value::String(name) = &item.value {
            drop_from_list(&mut list, name);
        }
    }
    list
}

impl Node {
    /// The value of a key, without a word about what else is wrong.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    fn is_text(&self, text: &str) -> bool {
        matches!(&self.value, Value::String(own) if own == text)
    }

    /// The items of a list; of anything else, which is a mistake and said where it is read, none.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The entries of a mapping; of anything else, which is a mistake and said where it is read, none.
    fn entries_mut(&mut self) -> Option<&mut Vec<(Key, Self)>> {
        match &mut self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    fn keep_entries(&mut self, wanted: impl Fn(&str) -> bool) {
        if let Some(entries) = self.entries_mut() {
            entries.retain(|(key, _)| wanted(&key.name));
        }
    }
}
