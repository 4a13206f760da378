//! The elements of a list by their type.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::Json;

/// Up to here a list is scanned; above it a table is made. Real lists have fewer than a dozen
/// elements; a hostile one has ten thousand, and scanning it for each would take seconds.
pub const SCAN_LIMIT: usize = 16;

/// The elements of a list by their type alone, the first of several. Where the list is long, a table
/// is made when it is first asked.
#[derive(Debug)]
pub struct ByType<'j, 'a> {
    items: &'j [Json<'a>],
    table: OnceCell<HashMap<&'j str, &'j Json<'a>>>,
}

impl<'j, 'a> ByType<'j, 'a> {
    /// Of the elements of a list.
    #[must_use]
    pub const fn new(items: &'j [Json<'a>]) -> Self {
        Self { items, table: OnceCell::new() }
    }

    /// The elements.
    #[must_use]
    pub const fn items(&self) -> &'j [Json<'a>] {
        self.items
    }

    /// The element of a type.
    #[must_use]
    pub fn find(&self, kind: &str) -> Option<&'j Json<'a>> {
        if self.items.len() <= SCAN_LIMIT {
            let is = |item: &&Json<'_>| item.get("type").and_then(Json::as_str) == Some(kind);
            return self.items.iter().find(is);
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
