//! Skips JSON values: checks them, but does not parse them.

/// Recently skipped objects. A status write rarely changes spec, labels, annotations and managedFields, so
/// the old object of a review repeats values that were skipped in the new one. A comparison skips them
/// again without a second check.
#[derive(Default)]
pub(super) struct Skipped<'de> {
    /// Each with its first bytes, which distinguish most of them. Twelve exceeds the number of long objects
    /// in a typical object; with fewer, each would be replaced just before it is needed.
    objects: [(u64, &'de [u8]); 12],
    next: usize,
}

impl<'de> Skipped<'de> {
    /// Skipping a shorter object is as fast as finding it.
    const MIN_BYTES: usize = 64;

    /// The text after one of these objects at the start of `rest`.
    #[inline]
    pub(super) fn behind(&self, rest: &'de [u8]) -> Option<&'de [u8]> {
        let head = head(rest)?;
        let known = |(first, object): &(u64, &'de [u8])| {
            if *first == head && !object.is_empty() { rest.strip_prefix(*object) } else { None }
        };
        self.objects.iter().find_map(known)
    }

    pub(super) fn remember(&mut self, value: &'de [u8]) {
        let long = value.len() >= Self::MIN_BYTES && value.starts_with(b"{");
        if let Some(head) = head(value).filter(|_| long) {
            if let Some(place) = self.objects.get_mut(self.next) {
                *place = (head, value);
            }
            self.next = (self.next + 1) % self.objects.len();
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

#[inline]
pub(super) fn trimmed(mut rest: &[u8]) -> &[u8] {
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

/// After a value that starts here. A loop, so that any depth is safe.
pub(super) fn behind_value(mut rest: &[u8], controls: bool) -> Option<&[u8]> {
    let member = |rest| {
        let (rest, _) = behind_string(trimmed(rest), controls)?;
        behind(b':', rest).map(trimmed)
    };
    // One bit per open level, the innermost lowest: 1 for an object. The highest bit is a mark, so 63 levels
    // fit.
    let mut open = 1_u64;
    loop {
        rest = match rest {
            [b'"', ..] => behind_string(rest, controls)?.0,
            [bracket @ (b'{' | b'['), inside @ ..] => {
                let inside = trimmed(inside);
                // In ASCII, both closing brackets are the opening one plus two.
                match behind(bracket + 2, inside) {
                    Some(behind) => behind,
                    None if open.leading_zeros() == 0 => return None,
                    None => {
                        let is_object = *bracket == b'{';
                        open = open << 1 | u64::from(is_object);
                        rest = if is_object { member(inside)? } else { inside };
                        continue;
                    }
                }
            }
            [b't', ..] => rest.strip_prefix(b"true")?,
            [b'f', ..] => rest.strip_prefix(b"false")?,
            [b'n', ..] => rest.strip_prefix(b"null")?,
            _ => behind_number(rest)?,
        };
        loop {
            if open == 1 {
                return Some(rest);
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

/// From the first quote or backslash, eight bytes at a time. Skipped strings have ten bytes on average, too
/// few for a call of the crate memchr.
#[inline]
fn from_quote_or_backslash(mut rest: &[u8]) -> Option<&[u8]> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    // The lowest bit set is in the first zero byte; higher bits may be wrong.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    while let Some((word, behind)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*word);
        let quotes = zeros(word ^ (ONES * b'"' as u64));
        let backslashes = zeros(word ^ (ONES * b'\\' as u64));
        let found = (quotes | backslashes) & HIGHS;
        if found != 0 {
            return rest.get(found.trailing_zeros() as usize / 8..);
        }
        rest = behind;
    }
    let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    rest.get(length..)
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
