//! What the values of a field have in common.

use statusgate_core::model::{Json, parse_rfc3339};

use super::places::Place;
use super::tally::{Latch, Seen, Table};
use super::text::last;

/// The facts about a field.
#[derive(Debug, Default)]
pub(crate) struct FieldFacts {
    pub(crate) seen: Seen,
    /// The texts, with the objects that have them.
    pub(crate) texts: Table<Seen>,
    /// Whether some value is no word, such as a message.
    has_others: bool,
    /// Of true. A write that removes the field reverts it.
    pub(crate) latch: Latch,
    /// The text changes that were seen: `OLD → NEW`.
    pub(crate) moves: Table<Seen>,
}

/// The characters of a word: phases are no sentences.
const MAX_WORD: usize = 64;

impl FieldFacts {
    /// `is_change`: whether there is a stored status.
    pub(crate) fn see(&mut self, object: u32, place: &Place<'_, '_>, is_change: bool) {
        self.seen.see(object);
        match place.value {
            Json::String(text) if text.len() <= MAX_WORD && parse_rfc3339(text).is_none() => {
                self.texts.see(text, object);
                let stored = place.stored.and_then(Json::as_str);
                if let Some(old) = stored.filter(|old| old != text) {
                    self.moves.see(&format!("{old} → {text}"), object);
                }
                return;
            }
            Json::Bool(value) if is_change => {
                self.latch.see(object, matches!(place.stored, Some(Json::Bool(true))), *value);
            }
            _ => {}
        }
        self.has_others = true;
    }

    /// Whether it has words and nothing else.
    pub(crate) fn has_words(&self) -> bool {
        self.texts.len() > 0 && !self.has_others && !self.texts.is_full
    }
}

/// Whether a path is named as phases are.
pub(crate) fn is_phase(path: &str) -> bool {
    let name = last(path).to_ascii_lowercase();
    name.ends_with("phase") || name.ends_with("state") || name == "status"
}
