//! The values of a status, each with the stored value at its place.

use std::collections::BTreeMap;

use statusgate_core::model::{Conditions, Json};

use super::text::{escaped, last};

/// One value of a status.
pub(crate) struct Place<'j, 'a> {
    pub(crate) path: String,
    pub(crate) value: &'j Json<'a>,
    /// The stored value. An empty one counts as absent, because Go clients cannot distinguish these.
    pub(crate) stored: Option<&'j Json<'a>>,
    /// The objects around it.
    depth: usize,
}

/// The depth in which lists and fields are searched.
const MAX_DEPTH: usize = 3;

/// The elements of a list. A longer one is not read, because elements are compared with each other.
const MAX_ITEMS: usize = 128;

impl<'j, 'a> Place<'j, 'a> {
    /// All places of a status; not those in lists.
    pub(crate) fn all(status: &'j Json<'a>, stored: Option<&'j Json<'a>>) -> Vec<Self> {
        let path = "/status".to_owned();
        let mut places = Vec::new();
        Self { path, value: status, stored, depth: 0 }.walk(&mut places);
        places
    }

    fn walk(&self, places: &mut Vec<Self>) {
        let Json::Object(members) = self.value else { return };
        for (name, value) in members.iter() {
            let path = format!("{}/{}", self.path, escaped(name));
            let stored = self.stored.and_then(|stored| stored.get(name));
            let stored = stored.filter(|stored| !stored.is_empty());
            let place = Self { path, value, stored, depth: self.depth + 1 };
            if place.depth < MAX_DEPTH {
                place.walk(places);
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
    let fields = places.iter().filter(|place| !place.value.is_empty());
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
