//! Skips JSON values: checks them, but does not parse them.

use wide::u8x16;

/// Recently skipped objects and lists. A status write rarely changes spec, labels, annotations and managedFields, so
/// the old object of a review repeats values that were skipped in the new one. A comparison skips them
/// again without a second check.
#[derive(Default)]
pub(super) struct Skipped<'de> {
    /// Each with its first bytes, which distinguish most of them. Twelve exceeds the number of long objects
    /// in a typical object; with fewer, each would be replaced just before it is needed.
    values: [Known<'de>; 12],
    next: usize,
}

#[derive(Clone, Copy, Default)]
struct Known<'de> {
    head: u64,
    text: &'de [u8],
    /// How many values it has, with those inside.
    count: u32,
}

impl<'de> Skipped<'de> {
    /// Skipping a shorter value is as fast as finding it.
    const MIN_BYTES: usize = 64;

    /// The text after one of these values at the start of `rest`, and how many values it has.
    #[inline]
    pub(super) fn behind(&self, rest: &'de [u8]) -> Option<(&'de [u8], u32)> {
        let head = head(rest)?;
        let behind = |known: &Known<'de>| {
            let is_known = known.head == head && !known.text.is_empty();
            let behind = if is_known { rest.strip_prefix(known.text) } else { None };
            behind.map(|behind| (behind, known.count))
        };
        self.values.iter().find_map(behind)
    }

    pub(super) fn remember(&mut self, text: &'de [u8], count: u32) {
        let long = text.len() >= Self::MIN_BYTES && matches!(text, [b'{' | b'[', ..]);
        if let Some(head) = head(text).filter(|_| long) {
            if let Some(place) = self.values.get_mut(self.next) {
                *place = Known { head, text, count };
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

// These functions return the text after a token at the start of `rest`, or `None`. They use local variables
// instead of the reader, which needs a third of the instructions.

/// Most texts have no white space between values.
#[inline]
pub(super) fn trimmed(rest: &[u8]) -> &[u8] {
    match rest {
        [b' ' | b'\n' | b'\r' | b'\t', ..] => without_spaces(rest),
        _ => rest,
    }
}

#[inline(never)]
fn without_spaces(mut rest: &[u8]) -> &[u8] {
    while let [b' ' | b'\n' | b'\r' | b'\t', behind @ ..] = rest {
        rest = behind;
    }
    rest
}

/// After white space and this byte.
#[inline]
pub(super) fn behind(byte: u8, rest: &[u8]) -> Option<&[u8]> {
    match trimmed(rest) {
        [first, behind @ ..] if *first == byte => Some(behind),
        _ => None,
    }
}

/// The depth at which the API server rejects a text: the limit of Go's `encoding/json`.
const MAX_LEVELS: usize = 10_000;

/// After a value that starts here, and how many values it has, with those inside. A loop, so that any depth is safe.
pub(super) fn behind_value(mut rest: &[u8], controls: bool) -> Option<(&[u8], u32)> {
    let member = |rest| {
        let (rest, _) = behind_string(trimmed(rest), controls)?;
        behind(b':', rest).map(trimmed)
    };
    // One bit per open level, the innermost lowest: 1 for an object. The highest bit is a mark, so 63 levels
    // fit; `outer` has those above.
    let mut open = 1_u64;
    let mut outer: Vec<u64> = Vec::new();
    let mut count = 0_u32;
    loop {
        count = count.saturating_add(1);
        rest = match rest {
            [b'"', ..] => behind_string(rest, controls)?.0,
            [bracket @ (b'{' | b'['), inside @ ..] => {
                let inside = trimmed(inside);
                // In ASCII, both closing brackets are the opening one plus two.
                if let Some(behind) = behind(bracket + 2, inside) {
                    behind
                } else {
                    if open.leading_zeros() == 0 {
                        if outer.len() == MAX_LEVELS / 63 {
                            return None;
                        }
                        outer.push(open);
                        open = 1;
                    }
                    let is_object = *bracket == b'{';
                    open = open << 1 | u64::from(is_object);
                    rest = if is_object { member(inside)? } else { inside };
                    continue;
                }
            }
            [b't', ..] => rest.strip_prefix(b"true")?,
            [b'f', ..] => rest.strip_prefix(b"false")?,
            [b'n', ..] => rest.strip_prefix(b"null")?,
            _ => behind_number(rest)?,
        };
        loop {
            if open == 1 {
                match outer.pop() {
                    Some(levels) => open = levels,
                    None => return Some((rest, count)),
                }
            }
            let is_object = open & 1 == 1;
            rest = match trimmed(rest) {
                [b',', behind @ ..] => {
                    rest = if is_object { member(behind)? } else { trimmed(behind) };
                    break;
                }
                [b'}', behind @ ..] if is_object => behind,
                [b']', behind @ ..] if !is_object => behind,
                _ => return None,
            };
            open >>= 1;
        }
    }
}

/// After a string that starts here, and whether it has escapes.
#[inline]
pub(super) fn behind_string(rest: &[u8], controls: bool) -> Option<(&[u8], bool)> {
    let [b'"', start @ ..] = rest else { return None };
    let end = from_quote_or_backslash(start)?;
    match end {
        [b'"', behind @ ..] if !controls => Some((behind, false)),
        _ => behind_unusual_string(start, end, controls),
    }
}

/// The same for a string with escapes, or in a text with control characters. `end` starts with its first quote or
/// backslash.
#[inline(never)]
fn behind_unusual_string<'t>(
    start: &[u8],
    end: &'t [u8],
    controls: bool,
) -> Option<(&'t [u8], bool)> {
    let escapes = end.first() == Some(&b'\\');
    let end = if escapes { from_end_of_escapes(end)? } else { end };
    if controls {
        let inside = start.get(..start.len() - end.len())?;
        if inside.iter().any(|byte| *byte < b' ') {
            return None;
        }
    }
    Some((end.get(1..)?, escapes))
}

/// From the first quote or backslash, 16 bytes at a time.
#[inline]
fn from_quote_or_backslash(mut rest: &[u8]) -> Option<&[u8]> {
    while let Some((bytes, behind)) = rest.split_first_chunk() {
        if let Some(place) = quote_or_backslash(*bytes) {
            return rest.get(place..);
        }
        rest = behind;
    }
    let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    rest.get(length..)
}

/// The place of the first one. Skipped strings have ten bytes on average, too few for a call of the crate memchr.
#[inline]
fn quote_or_backslash(bytes: [u8; 16]) -> Option<usize> {
    let bytes = u8x16::new(bytes);
    let equal = |byte| bytes.simd_eq(u8x16::splat(byte));
    let found = (equal(b'"') | equal(b'\\')).to_bitmask();
    (found != 0).then(|| found.trailing_zeros() as usize)
}

/// From the closing quote, given the text from the first backslash.
fn from_end_of_escapes(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = match rest {
            [b'"', ..] => return Some(rest),
            [_, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', behind @ ..] => behind,
            [_, b'u', behind @ ..] => {
                let (digits, behind) = behind.split_first_chunk::<4>()?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(behind)?
            }
            _ => return None,
        };
        rest = from_quote_or_backslash(rest)?;
    }
}

/// After a number that starts here.
pub(super) fn behind_number(rest: &[u8]) -> Option<&[u8]> {
    let digits = |rest: &'_ [u8]| {
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(count)
    };
    let mut rest = rest.strip_prefix(b"-").unwrap_or(rest);
    rest = match rest {
        [b'0', behind @ ..] => behind,
        _ => rest.get(digits(rest)?..)?,
    };
    if let [b'.', behind @ ..] = rest {
        rest = behind.get(digits(behind)?..)?;
    }
    if let [b'e' | b'E', behind @ ..] = rest {
        let behind = match behind {
            [b'+' | b'-', behind @ ..] => behind,
            _ => behind,
        };
        rest = behind.get(digits(behind)?..)?;
    }
    Some(rest)
}
