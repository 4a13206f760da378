//! Lists of which elements never change: new ones are added at the end, old ones are dropped at a limit.

use super::lists::Found;
use super::tally::Seen;

/// The facts about the lists at one path.
#[derive(Debug, Default)]
pub(crate) struct HistoryFacts {
    pub(crate) grown: Seen,
    /// The writes that dropped old elements.
    pub(crate) dropped: u32,
    /// Whether a write did something else.
    pub(crate) rewritten: bool,
    pub(crate) longest: usize,
    /// The lists of that length.
    pub(crate) at_longest: Seen,
}

impl HistoryFacts {
    pub(crate) fn see(&mut self, object: u32, found: &Found<'_, '_>) {
        let (new, old) = (found.items, found.stored);
        if new.len() > self.longest {
            (self.longest, self.at_longest) = (new.len(), Seen::default());
        }
        if new.len() == self.longest {
            self.at_longest.see(object);
        }
        if new == old || old.is_empty() {
            return;
        }
        let dropped = (0..old.len()).find(|dropped| new.starts_with(&old[*dropped..]));
        match dropped {
            Some(dropped) => {
                self.dropped += u32::from(dropped > 0);
                self.grown.see(object);
            }
            None => self.rewritten = true,
        }
    }
}
