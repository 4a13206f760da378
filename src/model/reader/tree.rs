//! Reads a tree.

use super::Reader;
use crate::model::Json;

/// The maximum depth of a tree. No rule reads deeper values; they are skipped without recursion, so
/// that nesting costs neither stack nor memory.
pub(in crate::model) const MAX_DEPTH: u8 = 64;

/// The maximum number of values in a tree. A small object takes some 340 bytes in the tree and as few
/// as three in the text, so a tree could be a hundred times larger than the body. Ten thousand
/// conditions are 70,000 values; a status with more than this limit stays text.
pub(in crate::model) const MAX_VALUES: u32 = 200_000;

impl<'de> Reader<'de> {
    /// A tree. Too many values are an error.
    pub(crate) fn json(&mut self) -> Option<Json<'de>> {
        self.left = Some(MAX_VALUES);
        let mut tree = Json::Null;
        self.value(&mut tree, 0)?;
        Some(tree)
    }

    /// A tree, or a text if it has too many values.
    pub(crate) fn json_of_any_size(&mut self) -> Option<Json<'de>> {
        let start = self.rest;
        let tree = self.json();
        if self.left.is_some() {
            return tree;
        }
        (self.rest, self.left) = (start, Some(0));
        self.skip().map(|text| Json::Large(text.into()))
    }

    /// Reads a value to its final place: moving it there would take a third of the time, because processors wait
    /// when they read as one what was just written in parts.
    fn value(&mut self, place: &mut Json<'de>, depth: u8) -> Option<()> {
        self.left = self.left.and_then(|left| left.checked_sub(1));
        self.left?;
        if depth == MAX_DEPTH {
            self.skip()?;
            *place = Json::Deep;
            return Some(());
        }
        match self.next_byte()? {
            b'"' => *place = Json::String(self.text()?),
            b'{' => {
                // A metav1 condition has six members.
                let mut members = Vec::with_capacity(6);
                self.object(|reader, name| {
                    members.push((name, Json::Null));
                    let (_, place) = members.last_mut()?;
                    reader.value(place, depth + 1)
                })?;
                *place = Json::Object(members.into());
            }
            b'[' => {
                let mut items = Vec::new();
                self.list(|reader| {
                    // Most lists have up to a dozen elements. The default capacity of four would cost two
                    // copies.
                    if items.is_empty() {
                        items.reserve_exact(12);
                    }
                    items.push(Json::Null);
                    reader.value(items.last_mut()?, depth + 1)
                })?;
                *place = Json::Array(items);
            }
            b'n' => self.literal("null")?,
            b't' | b'f' => *place = Json::Bool(self.bool()?),
            _ => *place = Json::Number(self.number()?),
        }
        Some(())
    }
}
