//! A place in a JSON text that moves behind tokens and values.

use wide::u8x16;

/// A place in a text. Its methods move it behind white space and what they name, or return `None` for anything else.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t [u8],
    pub(super) place: usize,
    /// Whether the text contains control characters, such as line breaks between values. If so, every
    /// string is checked for them.
    controls: bool,
    /// The quotes and backslashes of 64 bytes, one bit per byte, the first lowest. A search after each quote would make
    /// the processor wait for the place of one string before it reads the next: this took a third longer.
    quotes: u64,
    /// Where these bytes start.
    block: usize,
}

/// The depth at which the API server rejects a text: the limit of Go's `encoding/json`.
const MAX_LEVELS: usize = 10_000;

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        // `any` could end early and would not be vectorized.
        let least = text.iter().fold(u8::MAX, |least, byte| least.min(*byte));
        Self { text, place: 0, controls: least < b' ', quotes: 0, block: 0 }
    }

    /// The next byte after white space. At the end it is 0, with which no value starts.
    #[inline(always)]
    pub(super) fn next(&mut self) -> u8 {
        let byte = self.byte();
        // Most texts have no white space between values.
        if byte > b' ' {
            return byte;
        }
        self.place = behind_spaces(self.text, self.place);
        self.byte()
    }

    #[inline(always)]
    fn byte(&self) -> u8 {
        self.text.get(self.place).copied().unwrap_or(0)
    }

    /// Behind this byte.
    #[inline(always)]
    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        (self.next() == byte).then(|| self.place += 1)
    }

    /// Behind so many bytes.
    pub(super) fn behind(mut self, bytes: usize) -> Self {
        self.place += bytes;
        self
    }

    /// Behind this word.
    pub(super) fn word(&mut self, word: &str) -> Option<()> {
        self.next();
        let is_next = self.text.get(self.place..)?.starts_with(word.as_bytes());
        is_next.then(|| self.place += word.len())
    }

    /// Behind a string, and whether it has escapes.
    #[inline(always)]
    pub(super) fn string(&mut self) -> Option<bool> {
        if self.next() != b'"' {
            return None;
        }
        let end = self.quote_or_backslash(self.place + 1)?;
        if self.text.get(end) == Some(&b'"') && !self.controls {
            self.place = end + 1;
            return Some(false);
        }
        let (behind, escapes) = self.behind_unusual_string(end)?;
        self.place = behind;
        Some(escapes)
    }

    /// The same for a string with escapes, or in a text with control characters, up to its first quote or backslash.
    #[inline(never)]
    fn behind_unusual_string(mut self, mut end: usize) -> Option<(usize, bool)> {
        let mut escapes = false;
        while self.text.get(end) == Some(&b'\\') {
            escapes = true;
            let behind = match self.text.get(end + 1..)? {
                [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => end + 2,
                [b'u', digits @ ..] => {
                    let digits = digits.first_chunk::<4>()?;
                    digits.iter().all(u8::is_ascii_hexdigit).then_some(end + 6)?
                }
                _ => return None,
            };
            end = self.quote_or_backslash(behind)?;
        }
        let inside = self.text.get(self.place + 1..end)?;
        let is_valid = !self.controls || inside.iter().all(|byte| *byte >= b' ');
        is_valid.then_some((end + 1, escapes))
    }

    /// The first quote or backslash from this place on.
    #[inline(always)]
    fn quote_or_backslash(&mut self, place: usize) -> Option<usize> {
        let bytes = place.wrapping_sub(self.block);
        let known = if bytes < 64 { self.quotes >> bytes } else { 0 };
        if known != 0 {
            return Some(place + known.trailing_zeros() as usize);
        }
        self.block = place;
        loop {
            self.quotes = quotes_in(self.text.get(self.block..)?)?;
            if self.quotes != 0 {
                return Some(self.block + self.quotes.trailing_zeros() as usize);
            }
            self.block += 64;
        }
    }

    /// Behind a number.
    pub(super) fn number(&mut self) -> Option<()> {
        self.next();
        let rest = behind_number(self.text.get(self.place..)?)?;
        self.place = self.text.len() - rest.len();
        Some(())
    }

    /// Behind a value, and how many values it has, with those inside. A loop, so that any depth is safe. A copy of the cursor, so that
    /// it is in registers, which needs a third of the instructions.
    pub(super) fn behind_value(mut self) -> Option<(Self, u32)> {
        // One bit per open level, the innermost lowest: 1 for an object. The highest bit is a mark, so 63 levels
        // fit; `outer` has those above.
        let mut open = 1_u64;
        let mut outer: Vec<u64> = Vec::new();
        let mut count = 0_u32;
        loop {
            count = count.saturating_add(1);
            match self.next() {
                b'"' => _ = self.string()?,
                bracket @ (b'{' | b'[') => {
                    self.place += 1;
                    // In ASCII, both closing brackets are the opening one plus two.
                    if self.take(bracket + 2).is_none() {
                        if open.leading_zeros() == 0 {
                            if outer.len() == MAX_LEVELS / 63 {
                                return None;
                            }
                            outer.push(open);
                            open = 1;
                        }
                        let is_object = bracket == b'{';
                        open = open << 1 | u64::from(is_object);
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.number()?,
            }
            loop {
                if open == 1 {
                    match outer.pop() {
                        Some(levels) => open = levels,
                        None => return Some((self, count)),
                    }
                }
                let is_object = open & 1 == 1;
                let next = self.next();
                self.place += 1;
                match next {
                    b',' => {
                        if is_object {
                            self.name()?;
                        }
                        break;
                    }
                    b'}' if is_object => {}
                    b']' if !is_object => {}
                    _ => return None,
                }
                open >>= 1;
            }
        }
    }

    /// Behind the name of a member and its colon.
    #[inline(always)]
    fn name(&mut self) -> Option<()> {
        self.string()?;
        self.take(b':')
    }
}

#[inline(never)]
fn behind_spaces(text: &[u8], mut place: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(place) {
        place += 1;
    }
    place
}

/// The quotes and backslashes of the next 64 bytes, or of those that are left; `None` at the end.
#[inline(always)]
fn quotes_in(rest: &[u8]) -> Option<u64> {
    match rest.first_chunk() {
        Some(bytes) => Some(quotes(bytes)),
        None => quotes_at_end(rest),
    }
}

#[inline(never)]
fn quotes_at_end(rest: &[u8]) -> Option<u64> {
    let mut bytes = [0; 64];
    bytes.get_mut(..rest.len())?.copy_from_slice(rest);
    (!rest.is_empty()).then(|| quotes(&bytes))
}

#[inline(always)]
fn quotes(bytes: &[u8; 64]) -> u64 {
    let (parts, _) = bytes.as_chunks();
    parts.iter().rev().fold(0, |quotes, part| {
        let part = u8x16::new(*part);
        let equal = |byte| part.simd_eq(u8x16::splat(byte));
        quotes << 16 | u64::from((equal(b'"') | equal(b'\\')).to_bitmask())
    })
}

/// After a number that starts here.
fn behind_number(rest: &[u8]) -> Option<&[u8]> {
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
