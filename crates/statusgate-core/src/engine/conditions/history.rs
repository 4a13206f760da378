//! Append-only lists: elements are immutable; only the oldest may be dropped.

use super::super::violation::{Sink, Violation};
use super::{Path, same};
use crate::model::Json;
use crate::policy::convention::History;

/// Judges how a list grows: it must start with the stored elements (without the oldest, if it is full)
/// and may append new ones. Returns how many of its elements are stored.
pub(super) fn judge<'p>(
    history: &'p History,
    path: Path<'p, '_, '_>,
    items: &[Json<'_>],
    stored: &[Json<'_>],
    violations: &mut dyn Sink<'p>,
) -> usize {
    let full = path.list.max_items.is_some_and(|most| items.len() >= most);
    let known = match items.starts_with(stored) {
        true => stored.len(),
        false if full => overlap(stored, items),
        false => {
            if let Some(rewritten) = &history.rewritten {
                let message = "stored elements must not change";
                violations.push(Violation::by(rewritten, path.field(), message).transition());
            }
            return 0;
        }
    };
    let (Some(distinct), Some(repeated)) = (&history.distinct, &history.repeated) else {
        return known;
    };
    for index in known.max(1)..items.len() {
        let (item, last) = (&items[index], &items[index - 1]);
        if distinct.iter().all(|member| same(item.get(member), last.get(member))) {
            let field = format!("{}[{index}]", path.field());
            let message = "repeats the previous element";
            violations.push(Violation::by(repeated, field, message).transition());
        }
    }
    known
}

/// The largest number of elements at the end of one list that equal the start of the other.
///
/// It uses the failure function of Knuth, Morris and Pratt, because trying each length is quadratic for
/// repetitive lists.
fn overlap(stored: &[Json<'_>], items: &[Json<'_>]) -> usize {
    // For each prefix of `items`, the longest shorter prefix that is also its suffix.
    let mut shorter: Vec<usize> = Vec::with_capacity(items.len());
    let longest = |shorter: &[usize], mut length: usize, next: &Json<'_>| loop {
        if items.get(length) == Some(next) {
            return length + 1;
        }
        match length.checked_sub(1) {
            Some(last) => length = shorter[last],
            None => return 0,
        }
    };
    for (index, item) in items.iter().enumerate() {
        let length = match index.checked_sub(1) {
            Some(last) => longest(&shorter, shorter[last], item),
            None => 0,
        };
        shorter.push(length);
    }
    stored.iter().fold(0, |length, item| longest(&shorter, length, item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overlap_is_the_longest_one() {
        // All pairs of lists of up to five of two kinds.
        let lists: Vec<Vec<Json<'_>>> = (0..=5_u32)
            .flat_map(|length| (0..1 << length).map(move |bits| (length, bits)))
            .map(|(length, bits)| (0..length).map(|at| Json::Bool(bits >> at & 1 == 1)).collect())
            .collect();
        for stored in &lists {
            for items in &lists {
                let by_trying = (0..=stored.len())
                    .find(|forgotten| items.starts_with(&stored[*forgotten..]))
                    .map(|forgotten| stored.len() - forgotten);
                assert_eq!(Some(overlap(stored, items)), by_trying, "{stored:?} {items:?}");
            }
        }
    }
}
