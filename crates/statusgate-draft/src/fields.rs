//! The fields of a status outside of lists.

use std::collections::BTreeMap;

use statusgate_core::model::{Json, parse_rfc3339};

use super::MIN_OBJECTS;
use super::tally::{Seen, Table};
use super::text::escaped;

/// The objects inside each other whose fields are read.
const MAX_DEPTH: usize = 2;

/// The fields of a status by path. An empty value counts as absent, because Go clients cannot distinguish these.
pub(crate) fn read<'j, 'a>(status: &'j Json<'a>) -> BTreeMap<String, &'j Json<'a>> {
    let mut fields = BTreeMap::new();
    read_in(status, "/status", 0, &mut fields);
    fields
}

fn read_in<'j, 'a>(
    value: &'j Json<'a>,
    path: &str,
    depth: usize,
    fields: &mut BTreeMap<String, &'j Json<'a>>,
) {
    let Json::Object(members) = value else { return };
    for (name, inner) in members.iter().filter(|(_, inner)| !inner.is_empty()) {
        let path = format!("{path}/{}", escaped(name));
        if depth < MAX_DEPTH {
            read_in(inner, &path, depth + 1, fields);
        }
        fields.insert(path, inner);
    }
}

/// The facts about a field.
#[derive(Debug, Default)]
pub(crate) struct FieldFacts {
    pub(crate) seen: Seen,
    /// The texts, with the objects that have them.
    pub(crate) texts: Table<Seen>,
    /// Whether some value is no word, such as a message.
    pub(crate) has_others: bool,
    pub(crate) is_bool: bool,
    /// The writes that change false or nothing to true, keep true, or change it to something else.
    pub(crate) to_true: Seen,
    pub(crate) stays_true: Seen,
    pub(crate) reverted: bool,
    /// The text changes that were seen: `OLD NEW`.
    pub(crate) moves: Table<Seen>,
}

/// The characters of a word: phases are no sentences.
const MAX_WORD: usize = 64;

impl FieldFacts {
    /// `old`: the stored value; absent if the stored status lacks the field, none without a stored status.
    pub(crate) fn see(&mut self, object: u32, value: &Json<'_>, old: Option<Option<&Json<'_>>>) {
        self.seen.see(object);
        let stored = old.flatten();
        match value {
            Json::String(text) if text.len() <= MAX_WORD && parse_rfc3339(text).is_none() => {
                if let Some(row) = self.texts.row(text) {
                    row.see(object);
                }
                if let Some(Json::String(old)) = stored
                    && old != text
                    && let Some(row) = self.moves.row(&format!("{old} → {text}"))
                {
                    row.see(object);
                }
            }
            Json::Bool(value) => {
                self.is_bool = true;
                match (matches!(stored, Some(Json::Bool(true))), value) {
                    (false, true) if old.is_some() => self.to_true.see(object),
                    (true, true) => self.stays_true.see(object),
                    (true, false) => self.reverted = true,
                    _ => {}
                }
            }
            _ => self.has_others = true,
        }
    }

    /// A write that removes the field.
    pub(crate) const fn see_removed(&mut self) {
        self.reverted = true;
    }

    pub(crate) const fn is_latch(&self) -> bool {
        self.is_bool
            && !self.reverted
            && self.to_true.objects >= MIN_OBJECTS
            && self.stays_true.objects >= MIN_OBJECTS
    }

    /// Whether it has words and nothing else.
    pub(crate) fn has_words(&self) -> bool {
        self.texts.len() > 0 && !self.has_others && !self.is_bool && !self.texts.is_full
    }
}

/// Whether a path is named as phases are.
pub(crate) fn is_phase(path: &str) -> bool {
    let name = super::text::last(path).to_ascii_lowercase();
    name.ends_with("phase") || name.ends_with("state") || name == "status"
}
