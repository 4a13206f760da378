//! Reads a tree.

use super::Reader;
use crate::model::member::Member;
use crate::model::{Json, Members};

/// The maximum depth of a tree. No rule reads deeper values; they are skipped without recursion, so
/// that nesting costs neither stack nor memory.
pub(in crate::model) const MAX_DEPTH: u8 = 64;

/// The maximum number of values in a tree, which needs up to 32 bytes for each byte of text. Ten thousand
/// conditions are 70,000 values; a status with more than this limit stays text.
pub(in crate::model) const MAX_VALUES: u32 = 200_000;

/// An object with so few members keeps no room for others: `{}` would need 384 bytes.
const FEW_MEMBERS: usize = 2;

/// A list of so many bytes stays text until something reads it.
const LONG_LIST: usize = 4 * 1024;

/// The list that almost all rules read. To parse it later would take longer.
const READ_ANYWAY: &str = "conditions";

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
        let start = self.cursor;
        let tree = self.json();
        if self.left.is_some() {
            return tree;
        }
        (self.cursor, self.left) = (start, Some(0));
        self.skip().map(|text| Json::Large(text.into()))
    }

    /// The tree of a list that stayed text. Lists inside do not stay text, so that nested lists cost one more pass, not one for each
    /// level, and the depth of the tree is limited.
    pub(in crate::model) fn long_list(&mut self) -> Option<Json<'de>> {
        self.reads_all = true;
        self.json()
    }

    /// Reads a value to its final place: moving it there would take a third of the time, because processors wait
    /// when they read as one what was just written in parts.
    fn value(&mut self, place: &mut Json<'de>, depth: u8) -> Option<()> {
        self.count(1)?;
        if depth == MAX_DEPTH {
            self.skip()?;
            *place = Json::Deep;
            return Some(());
        }
        match self.next_byte() {
            b'"' => *place = Json::String(self.text()?),
            b'{' => {
                // A metav1 condition has six members.
                let mut members = Vec::with_capacity(6);
                self.object(|reader, name| {
                    members.push((name, Member::Tree(Json::Null)));
                    let (name, place) = members.last_mut()?;
                    reader.member(name, place, depth + 1)
                })?;
                if members.len() <= FEW_MEMBERS {
                    members.shrink_to_fit();
                }
                *place = Json::Object(Members::sorted(members));
            }
            b'[' => {
                let mut items = Vec::new();
                self.list(|reader| reader.item(&mut items, depth))?;
                *place = Json::Array(items);
            }
            b'n' => self.cursor.word("null")?,
            b't' | b'f' => *place = Json::Bool(self.bool()?),
            _ => *place = Json::Number(self.number()?),
        }
        Some(())
    }

    /// Reads the value of a member. A long list stays text.
    fn member(&mut self, name: &str, place: &mut Member<'de>, depth: u8) -> Option<()> {
        let Member::Tree(tree) = place else { return None };
        let is_list = self.next_byte() == b'[' && depth < MAX_DEPTH;
        if !is_list || self.reads_all || name == READ_ANYWAY {
            return self.value(tree, depth);
        }
        let start = self.start();
        let (behind, count) = self.behind_value(LONG_LIST)?;
        if behind.place - start >= LONG_LIST {
            self.cursor = behind;
            *place = Member::list(self.text_from(start)?);
            return self.count(count);
        }
        // The lists inside are shorter, and need not be measured.
        self.reads_all = true;
        let read = self.value(tree, depth);
        self.reads_all = false;
        read
    }

    /// Reads an element of a list.
    #[inline]
    fn item(&mut self, items: &mut Vec<Json<'de>>, depth: u8) -> Option<()> {
        // Most lists have up to a dozen elements. The default capacity of four would cost two copies.
        if items.is_empty() {
            items.reserve_exact(12);
        }
        items.push(Json::Null);
        self.value(items.last_mut()?, depth + 1)
    }

    /// Counts values; `None` if there are too many.
    #[inline]
    fn count(&mut self, values: u32) -> Option<()> {
        self.left = self.left.and_then(|left| left.checked_sub(values));
        self.left.map(|_| ())
    }
}
