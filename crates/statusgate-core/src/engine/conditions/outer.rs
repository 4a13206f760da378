//! Lists of conditions in the elements of an outer list or map, such as `status.parents[*].conditions`, and
//! maps with the elements themselves.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::because::escaped;
use super::super::evidence::Facts;
use super::super::violation::{Digest, Sink};
use super::elements::JudgedElement;
use super::keys::{Key, shortened};
use super::{
    Circumstances, MAX_ELEMENTS, answers, judge_length, judge_list, too_long, wrong_shape,
};
use crate::model::{Conditions, Json, SCAN_LIMIT, same};
use crate::policy::convention::{ConditionList, OuterList, Position};

/// The maximum number of elements of all inner lists together. Each costs as much as an element of one list.
const MAX_NESTED: usize = 5 * MAX_ELEMENTS;

/// Judges the list of each element of the outer list or map, or the values of the map.
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
    let lengths = outer.elements(written).into_iter().flatten().map(|(_, element)| {
        element.at(&outer.inner).and_then(Json::as_array).map_or(0, <[Json<'_>]>::len)
    });
    let (count, inside) = lengths.fold((0, 0), |(count, sum), length| (count + 1, sum + length));
    for (length, most) in [(count, MAX_ELEMENTS), (inside, MAX_NESTED)] {
        if length > most {
            return violations.push(too_long(list, outer.path.field(), most).limit());
        }
    }
    let Some(elements) = outer.elements(written) else {
        let expected = if outer.key.is_empty() { "an object" } else { "a list" };
        return violations.push(wrong_shape(list, outer.path.field(), expected, written));
    };
    let stored = facts.old.map(|old| old.at_status(&outer.path));
    let mut stored = stored.map(|stored| StoredElements { outer, stored, by_key: None });
    let count = if list.is_map() { count } else { 0 };
    let (map, answers) = (Path { list, parent: None }, answers(list, count, &circumstances));
    let of_values = Facts { answers: answers.as_ref(), ..*facts };
    if list.is_map() {
        judge_length(map, count, violations);
    }
    for (position, element) in elements {
        if !matches!(element, Json::Object(_)) {
            let field = format!("{}[{}]", outer.path.field(), position.name());
            let place = format!("{}[{}]", outer.path.field(), position.key().unwrap_or_default());
            violations.push(wrong_shape(list, field, "an object", element).at(place));
            continue;
        }
        let before = stored.as_mut().map(|stored| stored.find(position, element));
        if list.is_map() {
            let circumstances = Circumstances { facts: &of_values, ..circumstances };
            let key = Key::of(list, None);
            let (item, before) = (element, before.flatten());
            let value =
                JudgedElement { path: map, item, position, kind: None, key, known: None, before };
            if before != Some(item) {
                value.judge(&circumstances, violations);
            }
            value.judge_rules(&of_values, violations);
            continue;
        }
        let inner = |element: &'s Json<'a>| element.at(&outer.inner);
        let written = inner(element);
        let facts = facts.with_list(
            list.for_predicates(),
            Conditions::of(written),
            before.map(|before| Conditions::of(before.and_then(inner))),
        );
        let circumstances = Circumstances { facts: &facts, ..circumstances };
        let path = Path { list, parent: Some((outer, position, element)) };
        judge_list(path, written, circumstances, violations);
    }
}

/// Where a list or a map with elements is: its own path, or the one inside an element of the outer list
/// or map.
#[derive(Clone, Copy)]
pub(super) struct Path<'p, 's, 'a> {
    pub(super) list: &'p ConditionList,
    pub(super) parent: Option<(&'p OuterList, Position<'s>, &'s Json<'a>)>,
}

impl<'p> Path<'p, '_, '_> {
    /// `status.parents[0].conditions`.
    pub(super) fn field(&self) -> Cow<'p, str> {
        self.with(|_, position, _| position.name())
    }

    /// The same with the key of the element instead of its index, which changes when elements are inserted.
    pub(super) fn place(&self) -> Cow<'p, str> {
        self.with(|outer, position, element| {
            position.key().unwrap_or_else(|| format!("{:?}", key_of(outer, element)))
        })
    }

    fn with(
        &self,
        element: impl FnOnce(&OuterList, Position<'_>, &Json<'_>) -> String,
    ) -> Cow<'p, str> {
        match self.parent {
            None => self.list.root().field().into(),
            Some((outer, position, item)) => {
                let (field, inner) = (outer.path.field(), outer.inner.join("."));
                format!("{field}[{}].{inner}", element(outer, position, item)).into()
            }
        }
    }
}

impl<'o> Position<'o> {
    /// The index or the key, as in a field: `cluster-1`.
    pub(super) fn name(self) -> String {
        match self {
            Self::Index(index) => index.to_string(),
            Self::Key(key) => escaped(key),
            Self::Inner(outer, names, key) => {
                format!("{}].{}[{}", escaped(outer), names.join("."), escaped(key))
            }
        }
    }

    /// The key in the map whose value is the element.
    pub(super) fn own_key(self) -> Option<&'o str> {
        match self {
            Self::Index(_) => None,
            Self::Key(key) | Self::Inner(_, _, key) => Some(key),
        }
    }

    /// The key in a map as a place. It is compared, not shown.
    pub(super) fn key(self) -> Option<String> {
        match self {
            Self::Index(_) => None,
            Self::Key(key) => Some(format!("{:?}", shortened(key))),
            Self::Inner(outer, names, key) => {
                let (outer, key) = (shortened(outer), shortened(key));
                Some(format!("{outer:?}].{}[{key:?}", names.join(".")))
            }
        }
    }
}

/// The stored elements of the outer list or map.
struct StoredElements<'p, 's, 'a> {
    outer: &'p OuterList,
    stored: Option<&'s Json<'a>>,
    /// For a long list, made at the first element that is not at its stored index.
    by_key: Option<HashMap<KeyOfElement, &'s Json<'a>>>,
}

/// The values of the key's members. They can be objects, such as a `parentRef`.
type KeyOfElement = Vec<Option<Digest>>;

impl<'s, 'a> StoredElements<'_, 's, 'a> {
    /// The stored value of the same key in a map. In a list, the stored element with the key of an element:
    /// at the same index, or else the first one.
    fn find(&mut self, position: Position<'_>, element: &Json<'_>) -> Option<&'s Json<'a>> {
        let (outer, stored) = (self.outer, self.stored?);
        let index = match position {
            Position::Key(key) => return stored.get(key),
            Position::Inner(outer, names, key) => return stored.get(outer)?.at(names)?.get(key),
            Position::Index(index) => index,
        };
        let elements = stored.as_array()?;
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

fn key_of(outer: &OuterList, element: &Json<'_>) -> KeyOfElement {
    outer.key.iter().map(|member| element.get(member).map(Digest::of)).collect()
}
