//! Values that were skipped, to skip them again without a check.

/// Recently skipped objects and lists. A status write rarely changes spec, labels, annotations and managedFields, so
/// the old object of a review repeats values that were skipped in the new one. A comparison skips them
/// again without a second check.
#[derive(Default)]
pub(super) struct Skipped<'de> {
    /// Each with its first bytes, which distinguish most of them. Twelve exceeds the number of long objects
    /// in a typical object; with fewer, each would be replaced just before it is needed.
    values: [SkippedValue<'de>; 12],
    next: usize,
}

#[derive(Clone, Copy, Default)]
struct SkippedValue<'de> {
    head: u64,
    text: &'de [u8],
    /// How many values it has, with those inside.
    count: u32,
}

impl<'de> Skipped<'de> {
    /// Skipping a shorter value is as fast as finding it.
    pub(super) const MIN_BYTES: usize = 64;

    /// The length of one of these values at the start of `rest`, and how many values it has.
    #[inline]
    pub(super) fn find(&self, rest: &[u8]) -> Option<(usize, u32)> {
        let head = head(rest)?;
        let found = self.values.iter().find(|known| {
            known.head == head && !known.text.is_empty() && rest.starts_with(known.text)
        });
        found.map(|known| (known.text.len(), known.count))
    }

    pub(super) fn remember(&mut self, text: &'de [u8], count: u32) {
        let is_nested = matches!(text, [b'{' | b'[', ..]);
        if let Some(head) = head(text).filter(|_| is_nested) {
            if let Some(place) = self.values.get_mut(self.next) {
                *place = SkippedValue { head, text, count };
            }
            self.next = (self.next + 1) % self.values.len();
        }
    }
}

/// The first eight bytes.
#[inline]
fn head(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
