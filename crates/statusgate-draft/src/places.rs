//! The values of a status, each with the stored value at its place.

use std::collections::BTreeMap;

use statusgate_core::model::{Conditions, Json};

use super::text::{escaped, last};

/// One value of a status, or of an element of an outer list.
pub(crate) struct Place<'j, 'a> {
    /// With `*` for the elements of an outer list.
    pub(crate) path: String,
    pub(crate) value: &'j Json<'a>,
    /// The stored value. An empty one counts as absent, because Go clients cannot distinguish these.
    pub(crate) stored: Option<&'j Json<'a>>,
    /// The element of the outer list.
    pub(crate) parent: Option<&'j Json<'a>>,
    /// The objects and lists around it.
    depth: usize,
}

/// The depth in which lists are searched, and the depth of fields.
const MAX_DEPTH: usize = 4;
const MAX_FIELD_DEPTH: usize = 3;

/// The elements of a list. A longer one is not read, because elements are compared with each other.
const MAX_ITEMS: usize = 128;

impl<'j, 'a> Place<'j, 'a> {
    /// All places of a status.
    pub(crate) fn all(status: &'j Json<'a>, stored: Option<&'j Json<'a>>) -> Vec<Self> {
        let path = "/status".to_owned();
        let mut places = Vec::new();
        Self { path, value: status, stored, parent: None, depth: 0 }.walk(&mut places);
        places
    }

    fn walk(&self, places: &mut Vec<Self>) {
        let Json::Object(members) = self.value else { return };
        for (name, value) in members.iter() {
            let path = format!("{}/{}", self.path, escaped(name));
            let stored = self.stored.and_then(|stored| stored.get(name));
            let stored = stored.filter(|stored| !stored.is_empty());
            let (parent, depth) = (self.parent, self.depth + 1);
            let place = Self { path, value, stored, parent, depth };
            match value {
                Json::Object(_) if depth <= MAX_DEPTH => place.walk(places),
                // Conventions have one outer list.
                Json::Array(_) if depth <= MAX_DEPTH && parent.is_none() && !place.is_list() => {
                    let [items, stored] = place.items().unwrap_or_default();
                    for item in items {
                        let stored = stored.iter().find(|other| is_same_parent(item, other));
                        let path = format!("{}/*", place.path);
                        Self { path, value: item, stored, parent: Some(item), depth }.walk(places);
                    }
                }
                _ => {}
            }
            places.push(place);
        }
    }

    /// The elements, and the stored elements.
    pub(crate) fn items(&self) -> Option<[&'j [Json<'a>]; 2]> {
        let items = self.value.as_array()?;
        let stored = self.stored.and_then(Json::as_array).unwrap_or_default();
        (items.len().max(stored.len()) <= MAX_ITEMS).then_some([items, stored])
    }

    /// Whether it is a list of conditions, or a list of objects that is named like one or like a history.
    pub(crate) fn is_list(&self) -> bool {
        let name = last(&self.path);
        let is_named = name == "conditions" || name.to_ascii_lowercase().ends_with("history");
        self.has_conditions() || (is_named && matches!(self.first(), Some(Json::Object(_))))
    }

    /// Whether it is a list of conditions.
    pub(crate) fn has_conditions(&self) -> bool {
        self.first()
            .is_some_and(|item| text(item, "type").is_some() && text(item, "status").is_some())
    }

    fn first(&self) -> Option<&'j Json<'a>> {
        self.value.as_array()?.first()
    }
}

/// The fields outside of lists that have a value, by path.
pub(crate) type Fields<'p> = BTreeMap<&'p str, &'p Place<'p, 'p>>;

pub(crate) fn fields<'p>(places: &'p [Place<'p, 'p>]) -> Fields<'p> {
    let fields = places.iter().filter(|place| {
        place.parent.is_none() && place.depth <= MAX_FIELD_DEPTH && !place.value.is_empty()
    });
    fields.map(|place| (place.path.as_str(), place)).collect()
}

/// A text in an element of a list.
pub(crate) fn text<'j>(item: &'j Json<'_>, name: &str) -> Option<&'j str> {
    item.get(name)?.as_str()
}

/// The index of the status of a condition: of True, False and Unknown.
pub(crate) fn status(item: &Json<'_>) -> Option<usize> {
    Conditions::status_of(item).map(|status| status as usize)
}

/// Whether two elements of an outer list have the same scalars and references.
fn is_same_parent(one: &Json<'_>, other: &Json<'_>) -> bool {
    let Json::Object(members) = one else { return false };
    let mut members = members.iter().filter(|(_, value)| !matches!(value, Json::Array(_)));
    members.all(|(name, value)| other.get(name) == Some(value))
}
