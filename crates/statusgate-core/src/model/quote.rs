//! Quotes user text in messages.

use std::fmt::Write as _;

/// Quotes a text on one line like Go's `%q`, as in errors of the API server. Truncates it after
/// `most` characters.
pub fn quote(text: &str, most: usize) -> String {
    let mut quoted = String::with_capacity(text.len().min(most) + 2);
    quoted.push('"');
    for (index, letter) in text.chars().enumerate() {
        if index == most {
            quoted.push('…');
            break;
        }
        push(&mut quoted, letter);
    }
    quoted.push('"');
    quoted
}

/// The first `most` characters of a text, with "…" for the others.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn push(quoted: &mut String, letter: char) {
    match letter {
        '\u{7}' => quoted.push_str("\\a"),
        '\u{8}' => quoted.push_str("\\b"),
        '\u{c}' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\u{b}' => quoted.push_str("\\v"),
        '"' | '\\' => quoted.extend(['\\', letter]),
        ' '..='~' => quoted.push(letter),
        // Rust's table of printable characters differs from Go's in combining accents, which Go
        // prints and this escapes.
        _ if letter.escape_debug().len() == 1 => quoted.push(letter),
        _ => {
            // Writing to a `String` does not fail.
            let _ = match u32::from(letter) {
                code @ (..0x20 | 0x7f) => write!(quoted, "\\x{code:02x}"),
                code @ ..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                code => write!(quoted, "\\U{code:08x}"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the rules of `appendEscapedRune` in Go's strconv/quote.go.
    #[test]
    fn quotes_like_go() {
        for (text, quoted) in [
            ("Ready", r#""Ready""#),
            ("o'brien \"x\" \\", r#""o'brien \"x\" \\""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\0\u{1f}\u{7f}\u{80}", r#""\x00\x1f\x7f\u0080""#),
            ("\u{202e}\u{a0}\u{feff}", r#""\u202e\u00a0\ufeff""#),
            ("\u{e000}\u{10ffff}", r#""\ue000\U0010ffff""#),
            ("äöü ✓ 😀", r#""äöü ✓ 😀""#),
        ] {
            assert_eq!(quote(text, 99), quoted);
        }
        assert_eq!(quote("äöü", 2), "\"äö…\"");
    }
}
