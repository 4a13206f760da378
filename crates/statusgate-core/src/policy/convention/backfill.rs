//! Defaults for absent fields, members of conditions and whole conditions; and members to remove.

use std::sync::Arc;

use serde_json::Value;

use super::super::Disposition;
use super::super::compile::{Compiler, Purpose};
use super::ConditionList;
use super::place::{Label, remaining};
use crate::documents::{
    self, CopySource, ElementStatus, ElementValue, OnlyTimes, Origin, SteadyWhile,
};
use crate::language::{Predicate, Scalar};
use crate::model::Pointer;
use crate::source::tree::At;

/// A default for something absent, or something to remove.
#[derive(Clone, Debug, PartialEq)]
pub struct Backfill {
    /// The name by which a policy enables or replaces it. Without a name in the document, its place.
    pub name: String,
    /// The path, or the list with the member or type of its elements.
    pub(crate) place: String,
    /// Off, unless a policy enables it.
    pub optional: bool,
    /// Only when this holds.
    pub when: Option<Predicate>,
    /// What it sets, and to which value.
    pub filling: Filling,
    /// Where it comes from.
    pub source: String,
    /// Whether a policy declares it, and not its convention.
    pub of_policy: bool,
}

/// What a default sets, and to which value.
#[derive(Clone, Debug, PartialEq)]
pub enum Filling {
    /// The field stays absent, and an explicit null is removed, because a null on a property that
    /// is not `nullable` fails the whole write.
    Absent(Pointer),
    /// A field, with the first of these values that exists.
    Field(Pointer, Vec<ValueSource>),
    /// A member, in every element of a list of conditions that lacks it.
    Member {
        /// The list.
        list: Pointer,
        /// The member.
        member: String,
        /// The first of these that exists.
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
    /// The stored value of a member, restored if nothing else of the element changed: for controllers
    /// that set the time of all conditions at each reconciliation.
    Steady {
        /// The list.
        list: Pointer,
        /// The member that is restored.
        member: String,
        /// The members that must be unchanged.
        unless: Vec<String>,
    },
    /// The stored status, restored if nothing but times changed: for controllers that set times at each
    /// reconciliation, which their own watch starts again.
    SteadyStatus {
        /// The status.
        path: Pointer,
        /// The names of members with times that may differ.
        times: Vec<String>,
    },
    /// A member that is removed from some elements.
    AbsentMember {
        /// The list, one that the convention names.
        list: Pointer,
        /// The member.
        member: String,
        /// Which elements. It is evaluated for each, like the rules about elements.
        of: Predicate,
    },
    /// The duplicates in this list that are removed: of several elements with one key, the one with the newest
    /// transition time stays.
    Unique(Pointer),
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSource {
    /// This value.
    Value(Value),
    /// The object. A condition is one of the same list.
    Copy(CopySource),
}

impl Backfill {
    /// The place that is set. Of a condition, its list.
    pub const fn path(&self) -> &Pointer {
        match &self.filling {
            Filling::Absent(path)
            | Filling::Field(path, _)
            | Filling::Member { list: path, .. }
            | Filling::Element { list: path, .. }
            | Filling::Steady { list: path, .. }
            | Filling::SteadyStatus { path, .. }
            | Filling::AbsentMember { list: path, .. }
            | Filling::Unique(path) => path,
        }
    }

    /// Whether this sets something at, above or below a path. A removed null is not a change for any reader,
    /// and a restored status has the values that the other steps have set.
    pub(crate) fn sets_at(&self, path: &Pointer) -> bool {
        let own = self.path();
        self.changes_more_than_a_null()
            && !self.comes_last()
            && (own.contains(path) || path.contains(own))
    }

    /// Whether both set the same place. In a list, that is a condition of one type, or one member.
    pub(crate) fn sets_place_of(&self, other: &Self) -> bool {
        let same_part = match (&self.filling, &other.filling) {
            (Filling::Field(..), _) | (_, Filling::Field(..)) => true,
            (Filling::Element { kind: one, .. }, Filling::Element { kind: other, .. }) => {
                one == other
            }
            _ => self.filling.member().is_some() && self.filling.member() == other.filling.member(),
        };
        same_part && self.sets_at(other.path()) && other.sets_at(self.path())
    }

    /// Whether this can change what other steps read. To every reader, a null is an absent value.
    pub(crate) const fn changes_more_than_a_null(&self) -> bool {
        !matches!(self.filling, Filling::Absent(_))
    }

    /// Whether this removes elements, or members from them.
    pub(crate) const fn removes(&self) -> bool {
        matches!(self.filling, Filling::AbsentMember { .. } | Filling::Unique(_))
    }

    /// Whether this may set the time of the write.
    pub(crate) fn stamps(&self) -> bool {
        const TRANSITION: ValueSource = ValueSource::Copy(CopySource::Origin(Origin::Transition));
        match &self.filling {
            Filling::Member { sources, .. } => sources.contains(&TRANSITION),
            Filling::Element { members, .. } => {
                members.iter().any(|(_, sources)| sources.contains(&TRANSITION))
            }
            _ => false,
        }
    }

    /// Whether this compares the status with all other defaults set.
    pub(crate) const fn comes_last(&self) -> bool {
        matches!(self.filling, Filling::SteadyStatus { .. })
    }
}

impl Filling {
    /// The member that this sets or removes in each element.
    pub fn member(&self) -> Option<&str> {
        match self {
            Self::Member { member, .. }
            | Self::Steady { member, .. }
            | Self::AbsentMember { member, .. } => Some(member),
            _ => None,
        }
    }

    /// Whether it always decides about a field: a copy may find nothing to copy.
    fn is_sure(&self) -> bool {
        match self {
            Self::Absent(_) => true,
            Self::Field(_, sources) => {
                sources.iter().any(|source| matches!(source, ValueSource::Value(_)))
            }
            _ => false,
        }
    }
}

impl Compiler<'_> {
    /// Compiles a `backfill` list, of a convention with these lists of conditions or of a policy that
    /// follows it; then `inherited` are the convention's own that stay.
    pub(crate) fn backfill(
        &self,
        documents: &[documents::Backfill],
        lists: &[Arc<ConditionList>],
        inherited: &[Backfill],
        at: At<'_>,
    ) -> Vec<Backfill> {
        let own =
            at.each(documents).filter_map(|(at, document)| Some((self.default(document, at)?, at)));
        let own: Vec<(Backfill, At<'_>)> = own.collect();
        let inherited: Vec<&Backfill> =
            remaining(inherited, own.iter().map(|(default, _)| default));
        let mut settled: Vec<&Pointer> = Vec::new();
        for (index, (default, at)) in own.iter().enumerate() {
            if default.when.is_none()
                && !default.optional
                && let Filling::Absent(path) | Filling::Field(path, _) = &default.filling
            {
                if settled.contains(&path) {
                    let message = format!("an entry above always sets {path}");
                    at.report_with_help(message, "choose between them with \"when\"");
                }
                if default.filling.is_sure() {
                    settled.push(path);
                }
            }
            match &default.filling {
                Filling::AbsentMember { list, member, .. } => {
                    check_removed(list, member, lists, *at);
                }
                Filling::Unique(path) => {
                    let mut lists = lists.iter().filter(|list| *list.path == *path);
                    if lists.any(|list| list.key().is_empty()) {
                        let message = format!("{path} has no key: no element is a duplicate");
                        at.key("list").report(message);
                    }
                }
                _ => {}
            }
            let before = own[..index].iter().map(|(other, _)| other);
            let mut others = before.chain(inherited.iter().copied());
            // Each run would undo what the run before it did.
            let removes = |one: &Backfill| matches!(one.filling, Filling::AbsentMember { .. });
            let undone = others.find(|other| {
                removes(default) != removes(other)
                    && default.path() == other.path()
                    && default.filling.member().is_some()
                    && default.filling.member() == other.filling.member()
            });
            if let Some(other) = undone {
                let message =
                    format!("\"{}\" and \"{}\" undo each other", default.name, other.name);
                at.key("member")
                    .report_with_help(message, "a default sets a member or removes it, not both");
            }
        }
        own.into_iter().map(|(default, _)| default).collect()
    }

    /// Compiles one entry.
    fn default(&self, document: &documents::Backfill, at: At<'_>) -> Option<Backfill> {
        let when = document.when.clone();
        if let Some(when) = &when {
            self.report(when.check(), Purpose::Change, at.key("when"));
        }
        let kinds = ["value", "copyOf", "element", "steadyWhile", "absentWhere", "uniqueElements"];
        let kinds = kinds.into_iter();
        let mut kinds: Vec<_> = kinds.filter_map(|key| Some((at.position(key)?, key))).collect();
        kinds.sort_unstable();
        if let [(_, one), (_, other), ..] = kinds[..] {
            let message = format!("either \"{one}\" or \"{other}\", not both");
            at.key(other).report(message);
            return None;
        }
        let filling = match (&document.path, &document.list) {
            (Some(path), None) => self.field(path, document, at),
            (None, Some(list)) => self.in_list(list, document, at),
            (None, None) if document.steady_while.is_some() => steady_status(document, at),
            _ => {
                at.report("a default needs either \"path\" or \"list\"");
                None
            }
        };
        let label = Label::of(at.node());
        Some(Backfill {
            name: label.name().unwrap_or_default().to_owned(),
            place: label.place.unwrap_or_default(),
            optional: document.optional,
            when,
            filling: filling?,
            source: document.source.clone(),
            of_policy: false,
        })
    }

    fn field(&self, path: &Pointer, document: &documents::Backfill, at: At<'_>) -> Option<Filling> {
        let help = "name the list with \"list\" instead of \"path\"";
        let of_elements = ["member", "element", "steadyWhile", "absentWhere", "uniqueElements"];
        let mut of_elements = of_elements.into_iter();
        if let Some(key) = of_elements.find(|key| at.position(key).is_some()) {
            let message = format!("\"{key}\" is only for elements of a list");
            at.key(key).name().report_with_help(message, help);
            return None;
        }
        let copies = document.copy_of.iter().flat_map(|from| from.iter());
        for (at, source) in at.key("copyOf").each(copies) {
            match source {
                CopySource::Member(_) => {
                    let at = at.key("condition").name();
                    at.report_with_help("\"condition\" is only for elements of a list", help);
                }
                CopySource::Origin(Origin::Transition) => {
                    at.report_with_help("\"transition\" is only for elements of a list", help);
                }
                CopySource::Origin(_) => {}
            }
        }
        // A client-side `kubectl apply` drops `value: null`, but not "nullable".
        let is_null = match &document.value {
            Some(value) => value.is_null(),
            None => document.nullable.is_some() && document.copy_of.is_none(),
        };
        let sources = match (is_null, document.nullable) {
            (true, Some(true)) => vec![ValueSource::Value(Value::Null)],
            (true, _) => return Some(Filling::Absent(path.clone())),
            (false, _) => sources(document, at)?,
        };
        if let Some(value) = &document.value
            && self.names.is_phase(path)
        {
            match value {
                Value::String(name) => self.names.check_phase(at.key("value"), name),
                Value::Null => {}
                _ => at.key("value").report("a phase is a string"),
            }
        }
        Some(Filling::Field(path.clone(), sources))
    }

    fn in_list(
        &self,
        list: &Pointer,
        document: &documents::Backfill,
        at: At<'_>,
    ) -> Option<Filling> {
        self.names.check_list(at.key("list"), list);
        let list = list.clone();
        let whole = if document.unique_elements { "uniqueElements" } else { "element" };
        let mut of_members = ["member", "nullable"].into_iter();
        if at.position(whole).is_some()
            && let Some(key) = of_members.find(|key| at.position(key).is_some())
        {
            at.key(key).report(format!("either \"{whole}\" or \"{key}\", not both"));
        }
        if document.unique_elements {
            return Some(Filling::Unique(list));
        }
        if let Some(element) = &document.element {
            if self.is_own(at) {
                self.check_type(&element.kind, at.key("element").key("type"));
            }
            let (kind, members) = (element.kind.clone(), members(element));
            return Some(Filling::Element { list, kind, members });
        }
        let Some(member) = document.member.clone() else {
            at.report("missing required key \"member\"");
            return None;
        };
        match document.steady_while.clone() {
            Some(SteadyWhile::Members(unless)) => {
                return Some(Filling::Steady { list, member, unless });
            }
            Some(SteadyWhile::OnlyTimes(_)) => {
                at.key("steadyWhile").report_with_help(
                    "\"onlyTimes\" is only for the whole status",
                    "remove \"list\" and \"member\"",
                );
                return None;
            }
            None => {}
        }
        if let Some(of) = &document.absent_where {
            self.report(of.check(), Purpose::Change, at.key("absentWhere"));
            return Some(Filling::AbsentMember { list, member, of: of.0.clone() });
        }
        Some(Filling::Member { list, member, sources: sources(document, at)? })
    }
}

/// `steadyWhile` without `path` and `list`.
fn steady_status(document: &documents::Backfill, at: At<'_>) -> Option<Filling> {
    match (&document.steady_while, &document.member) {
        (Some(SteadyWhile::OnlyTimes(OnlyTimes { only_times })), None) => {
            let (path, times) = ("/status".parse().ok()?, only_times.clone());
            Some(Filling::SteadyStatus { path, times })
        }
        _ => {
            let help =
                "name the list with \"list\", or write {onlyTimes: […]} for the whole status";
            at.report_with_help("missing required key \"list\"", help);
            None
        }
    }
}

/// The validating webhook judges the result, and would reject a write without a required member.
fn check_removed(path: &Pointer, member: &str, lists: &[Arc<ConditionList>], at: At<'_>) {
    for list in lists.iter().filter(|list| *list.path == *path) {
        if list.history.is_some() {
            let message = format!("{path} is a history: its elements do not change");
            at.key("list").report(message);
        }
        let mut required = list.checks(member).iter().filter(|check| check.required);
        let key = |key: &[String]| key.iter().any(|part| part == member);
        let keys = list.types.values().filter_map(|kind| kind.key.as_deref());
        if std::iter::once(list.key()).chain(keys).any(key) {
            at.key("member")
                .report(format!("{member} cannot be removed: it is part of the key of an element"));
        } else if let Some(check) = required.find(|check| check.action() == Disposition::Deny) {
            let message = format!("{member} cannot be removed: it is required");
            let help = format!("{} would reject an element without it", check.rule);
            at.key("member").report_with_help(message, help);
        }
    }
}

/// `value: …`, or `copyOf: …`.
fn sources(document: &documents::Backfill, at: At<'_>) -> Option<Vec<ValueSource>> {
    match (&document.value, &document.copy_of) {
        (Some(value), _) => Some(vec![ValueSource::Value(value.clone())]),
        (None, Some(from)) => Some(copies(from)),
        (None, None) => {
            let help = "kubectl apply drops \"value: null\"; add \"nullable\", or apply with --server-side";
            at.report_with_help("missing required key \"value\" or \"copyOf\"", help);
            None
        }
    }
}

fn copies(from: &[CopySource]) -> Vec<ValueSource> {
    from.iter().cloned().map(ValueSource::Copy).collect()
}

/// The members of a condition to add, without its type.
fn members(element: &documents::Element) -> Vec<(String, Vec<ValueSource>)> {
    let status = element.status.as_ref().map(|status| match status {
        ElementStatus::Status(status) => vec![ValueSource::Value(status.name().into())],
        ElementStatus::Copy(copy) => copies(&copy.copy_of),
    });
    let others = element.members.iter().map(|(name, value)| {
        let sources = match value {
            ElementValue::Value(scalar) => {
                let text = text(scalar).map(Value::from);
                vec![ValueSource::Value(text.unwrap_or_else(|| scalar.value().clone()))]
            }
            ElementValue::Copy(copy) => copies(&copy.copy_of),
        };
        (name.clone(), sources)
    });
    status.map(|sources| ("status".to_owned(), sources)).into_iter().chain(others).collect()
}

/// A text as members of conditions have it; none for a number. YAML reads an unquoted `True` as a
/// boolean; in a condition it can only mean the status.
fn text(scalar: &Scalar) -> Option<&str> {
    match scalar.value() {
        Value::Bool(true) => Some("True"),
        Value::Bool(false) => Some("False"),
        other => other.as_str(),
    }
}
