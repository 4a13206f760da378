//! The elements of a list by their type.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::Json;

/// The maximum length of a list that is scanned; longer lists get a table. Real lists have fewer than a
/// dozen elements. Scanning a hostile list for each of its ten thousand elements would take seconds.
pub const SCAN_LIMIT: usize = 16;

/// The elements of a list by their type; the first if several have it. The first search in a long list
/// creates a table.
#[derive(Debug)]
pub struct ByType<'j, 'a> {
    items: &'j [Json<'a>],
    table: OnceCell<HashMap<&'j str, &'j Json<'a>>>,
}

impl<'j, 'a> ByType<'j, 'a> {
    /// An index of the elements of a list.
    pub const fn new(items: &'j [Json<'a>]) -> Self {
        Self { items, table: OnceCell::new() }
    }

    /// The elements.
    pub const fn items(&self) -> &'j [Json<'a>] {
        self.items
    }

    /// The element of a type.
    pub fn find(&self, kind: &str) -> Option<&'j Json<'a>> {
        if self.items.len() <= SCAN_LIMIT {
            let mut items = self.items.iter();
            return items.find(|item| item.get("type").and_then(Json::as_str) == Some(kind));
        }
        let table = self.table.get_or_init(|| {
            let mut table = HashMap::with_capacity(self.items.len());
            for item in self.items {
                if let Some(kind) = item.get("type").and_then(Json::as_str) {
                    table.entry(kind).or_insert(item);
                }
            }
            table
        });
        table.get(kind).copied()
    }
}
