//! Lists of conditions in the elements of an outer list, such as `status.parents[*].conditions`.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::Cause;
use super::super::ratchet::{Digest, Sink, Violation};
use super::{Circumstances, judge_list};
use crate::model::{Conditions, Json, SCAN_LIMIT, same};
use crate::policy::Disposition;
use crate::policy::convention::{ConditionList, OuterList};

/// Judges the list of each element of the outer list.
pub(super) fn judge<'p: 's, 's, 'a>(
    list: &'p ConditionList,
    outer: &'p OuterList,
    circumstances: Circumstances<'p, '_, 's, 'a>,
    violations: &mut dyn Sink<'p>,
) {
    let facts = circumstances.facts;
    let Some(written) = facts.object.at_status(&outer.path).filter(|list| !list.is_null()) else {
        return;
    };
    let field = outer.path.field();
    let Some(elements) = written.as_array() else {
        let message = format!("must be a list, it is {}", written.kind());
        let found = Violation::new(&list.shape_rule, Disposition::Deny, field, message);
        violations.push(found.cause(Cause::TypeInvalid));
        return;
    };
    let stored = facts.old.map(|old| old.at_status(&outer.path).and_then(Json::as_array));
    let mut stored_by_key = stored.map(|stored| Stored::new(outer, stored.unwrap_or_default()));
    for (index, element) in elements.iter().enumerate() {
        if !matches!(element, Json::Object(_)) {
            let message = format!("must be an object, it is {}", element.kind());
            let found = Violation::new(
                &list.shape_rule,
                Disposition::Deny,
                format!("{field}[{index}]"),
                message,
            );
            violations.push(found.cause(Cause::TypeInvalid).at(format!("{field}[]")));
            continue;
        }
        let before = stored_by_key.as_mut().map(|stored| stored.find(index, element));
        let inner = |element: &'s Json<'a>| element.at(&outer.inner);
        let written = inner(element);
        let facts = facts.with_list(
            list.for_predicates(),
            Conditions::of(written),
            before.map(|before| Conditions::of(before.and_then(inner))),
        );
        let circumstances = Circumstances { facts: &facts, ..circumstances };
        let path = Path { list, parent: Some((outer, index, element)) };
        judge_list(path, written, circumstances, violations);
    }
}

/// Where a list is: its own path, or the one inside an element of the outer list.
#[derive(Clone, Copy)]
pub(super) struct Path<'p, 's, 'a> {
    pub(super) list: &'p ConditionList,
    pub(super) parent: Option<(&'p OuterList, usize, &'s Json<'a>)>,
}

impl<'p> Path<'p, '_, '_> {
    /// `status.parents[0].conditions`.
    pub(super) fn field(&self) -> Cow<'p, str> {
        self.with(|_, index, _| index.to_string())
    }

    /// The same with the key of the element instead of its index, which changes when elements are inserted.
    pub(super) fn place(&self) -> Cow<'p, str> {
        self.with(|outer, _, element| format!("{:?}", key_of(outer, element)))
    }

    fn with(&self, element: impl FnOnce(&OuterList, usize, &Json<'_>) -> String) -> Cow<'p, str> {
        match self.parent {
            None => self.list.path.field().into(),
            Some((outer, index, item)) => {
                let (field, inner) = (outer.path.field(), outer.inner.join("."));
                format!("{field}[{}].{inner}", element(outer, index, item)).into()
            }
        }
    }
}

/// The stored elements of the outer list.
struct Stored<'p, 's, 'a> {
    outer: &'p OuterList,
    elements: &'s [Json<'a>],
    /// For a long list, made at the first element that is not at its stored index.
    by_key: Option<HashMap<Key, &'s Json<'a>>>,
}

/// The values of the key's members. They can be objects, such as a `parentRef`.
type Key = Vec<Option<Digest>>;

impl<'p, 's, 'a> Stored<'p, 's, 'a> {
    const fn new(outer: &'p OuterList, elements: &'s [Json<'a>]) -> Self {
        Self { outer, elements, by_key: None }
    }

    /// The stored element with the key of an element: at the same index, or else the first one.
    fn find(&mut self, index: usize, element: &Json<'_>) -> Option<&'s Json<'a>> {
        let (outer, elements) = (self.outer, self.elements);
        let is_one = |other: &&'s Json<'a>| {
            outer.key.iter().all(|member| same(other.get(member), element.get(member)))
        };
        if let Some(found) = elements.get(index).filter(is_one) {
            return Some(found);
        }
        if elements.len() <= SCAN_LIMIT {
            return elements.iter().find(is_one);
        }
        let table = self.by_key.get_or_insert_with(|| {
            elements.iter().rev().map(|element| (key_of(outer, element), element)).collect()
        });
        table.get(&key_of(outer, element)).copied()
    }
}

fn key_of(outer: &OuterList, element: &Json<'_>) -> Key {
    outer.key.iter().map(|member| element.get(member).map(Digest::of)).collect()
}
