//! Regular expressions with the meaning that they have in Go.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// The maximum size of a compiled pattern.
const SIZE_LIMIT: usize = 1 << 20;

/// The letters of `\p{L}` in blocks that consist of letters in each version of Unicode. The crate has no
/// tables.
const LETTERS: &str = r"A-Za-z\u{AA}\u{B5}\u{BA}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{24F}\u{3041}-\u{3096}\u{30A1}-\u{30FA}\u{4E00}-\u{9FEF}\u{AC00}-\u{D7A3}";

/// A pattern, compiled when it is first used: most patterns of a schema never are.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) text: Box<str>,
    compiled: OnceLock<Option<Compiled>>,
}

#[derive(Clone, Debug)]
struct Compiled {
    regex: Regex,
    needs: Needs,
}

/// What must hold for a text so that a translated pattern has the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Whether each character is a letter is known.
    Letters,
    /// No character folds to an ASCII letter.
    NoFolding,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }

    /// Whether the pattern matches a part of a text. `None` if that is not proven.
    pub(super) fn is_match(&self, text: &str) -> Option<bool> {
        let Compiled { regex, needs } =
            self.compiled.get_or_init(|| Compiled::new(&self.text)).as_ref()?;
        let text = match needs {
            Needs::Nothing => Cow::Borrowed(text),
            Needs::Letters => text
                .chars()
                .all(|letter| is_letter(letter).is_some())
                .then_some(Cow::Borrowed(text))?,
            Needs::NoFolding => without_folding(text)?,
        };
        Some(regex.is_match(text.as_bytes()))
    }
}

impl Compiled {
    fn new(text: &str) -> Option<Self> {
        let (spelled, needs) = translate(text)?;
        let mut builder = RegexBuilder::new(&spelled);
        builder.size_limit(SIZE_LIMIT).unicode(needs != Needs::NoFolding);
        Some(Self { regex: builder.build().ok()?, needs })
    }
}

/// The pattern in the syntax of the crate. `None` for what the two languages do not share.
fn translate(text: &str) -> Option<(String, Needs)> {
    let (mut has_letters, mut is_folding) = (false, false);
    let mut spelled = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_class = false;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\\' => {
                let escaped = rest.chars().next()?;
                rest = &rest[escaped.len_utf8()..];
                if matches!(escaped, 'p' | 'P') {
                    rest = rest.strip_prefix("{L}").or_else(|| rest.strip_prefix('L'))?;
                    has_letters = true;
                }
                escape(&mut spelled, escaped, is_class)?;
            }
            '[' if !is_class => {
                is_class = true;
                spelled.push('[');
                // A bracket at the start of a class is a character.
                for first in ['^', ']'] {
                    if let Some(after) = rest.strip_prefix(first) {
                        spelled.push_str(if first == '^' { "^" } else { r"\]" });
                        rest = after;
                    }
                }
            }
            '[' if rest.starts_with(':') => {
                let (name, after) = rest.split_once(":]")?;
                spelled.extend(["[", name, ":]"]);
                rest = after;
            }
            ']' if is_class => {
                is_class = false;
                spelled.push(']');
            }
            // Classes of the crate nest, and have operators.
            '[' | '&' | '~' if is_class => spelled.extend(['\\', letter]),
            '-' if is_class && rest.starts_with('-') => return None,
            '(' if !is_class && rest.starts_with('?') => {
                let end = rest.find([')', ':', '<'])?;
                let flags = &rest[1..end];
                if !flags.chars().all(|flag| "imsU-".contains(flag)) && flags != "P" {
                    return None;
                }
                is_folding |= flags.contains('i');
                spelled.push('(');
            }
            // `{,3}` is a text in Go.
            '{' if !is_class && rest.starts_with(',') => spelled.push_str(r"\{"),
            _ => spelled.push(letter),
        }
    }
    let needs = match (is_folding, has_letters) {
        (false, false) => Needs::Nothing,
        (false, true) => Needs::Letters,
        (true, false) if text.is_ascii() && !text.contains(r"\x") => Needs::NoFolding,
        (true, _) => return None,
    };
    Some((spelled, needs))
}

/// Appends an escaped character. Perl's classes are ASCII.
fn escape(spelled: &mut String, escaped: char, is_class: bool) -> Option<()> {
    let (class, negated) = match escaped {
        'd' | 'D' => ("0-9", escaped == 'D'),
        'w' | 'W' => ("0-9A-Za-z_", escaped == 'W'),
        's' | 'S' => (r"\t\n\x0C\r\x20", escaped == 'S'),
        'p' | 'P' => (LETTERS, escaped == 'P'),
        'b' | 'B' if !is_class => {
            spelled.push_str(if escaped == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
            return Some(());
        }
        'A' | 'z' if !is_class => {
            spelled.extend(['\\', escaped]);
            return Some(());
        }
        'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'x' => {
            spelled.extend(['\\', escaped]);
            return Some(());
        }
        _ if escaped.is_ascii_punctuation() => {
            spelled.push_str(&regex::escape(escaped.encode_utf8(&mut [0; 4])));
            return Some(());
        }
        _ => return None,
    };
    spelled.extend(match (is_class, negated) {
        (true, false) => ["", class, ""],
        (_, true) => ["[^", class, "]"],
        (false, false) => ["[", class, "]"],
    });
    Some(())
}

/// A text in which each character beyond ASCII is a control character. `None` if one folds to an ASCII
/// letter, or the text has control characters.
fn without_folding(text: &str) -> Option<Cow<'_, str>> {
    const OTHER: char = '\u{1}';
    if text.is_ascii() {
        return Some(Cow::Borrowed(text));
    }
    let folds = ['\u{17F}', '\u{212A}', OTHER];
    let replaced = text.chars().map(|letter| if letter.is_ascii() { letter } else { OTHER });
    (!text.contains(folds)).then(|| Cow::Owned(replaced.collect()))
}

/// Whether a character is in `\p{L}`; `None` if it depends on the version of Unicode, or is not known.
pub(super) fn is_letter(letter: char) -> Option<bool> {
    let in_block = matches!(letter, 'A'..='Z' | 'a'..='z' | '\u{AA}' | '\u{B5}' | '\u{BA}'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{24F}' | '\u{3041}'..='\u{3096}'
        | '\u{30A1}'..='\u{30FA}' | '\u{4E00}'..='\u{9FEF}' | '\u{AC00}'..='\u{D7A3}');
    // All letters are alphabetic, but not the reverse.
    if in_block { Some(true) } else { (!letter.is_alphabetic()).then_some(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_what_it_means_in_go() {
        for (pattern, text, expected) in [
            ("a.c", "xa\u{e9}cx", Some(true)),
            ("a.c", "a\nc", Some(false)),
            (r"^\d+$", "٣", Some(false)),
            (r"^\s$", "\u{b}", Some(false)),
            (r"^[\s]$", "\u{c}", Some(true)),
            (r"^\w$", "é", Some(false)),
            (r"^\W\D\S$", "äöü", Some(true)),
            (r"\bfoo\b", "éfoo", Some(true)),
            (r"^[]a]+$", "]a", Some(true)),
            (r"^[^]]$", "]", Some(false)),
            (r"^[a[&&b~]+$", "a[&b~", Some(true)),
            ("^[[:alpha:]]+$", "ab", Some(true)),
            ("^[[:^alpha:]]$", "é", Some(true)),
            (r"^a{,3}$", "a{,3}", Some(true)),
            (r"^a\/b\<\_$", "a/b<_", Some(true)),
            (r"^(?P<a>x)(?:y)$", "xy", Some(true)),
            ("(?i)^ready$", "READY", Some(true)),
            ("(?i)^ready$", "Réady", Some(false)),
            ("(?i)^rea.y$", "reaéy", Some(true)),
            ("(?i)^s$", "ſ", None),
            (r"^\p{L}+$", "é漢字A", Some(true)),
            (r"^\p{L}+$", "e\u{301}", Some(false)),
            (r"^\pL$", "Ω", None),
            (r"^\P{L}$", "5", Some(true)),
            (r"^[^\s]*\z", "x\n", Some(false)),
        ] {
            assert_eq!(Pattern::new(pattern).is_match(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_that_the_languages_do_not_share_is_not_proven() {
        for pattern in
            ["(", r"\", r"\1", r"\Qa\E", r"\p{Greek}", "(?x)a", "(?=a)", "[+--]", "[z-a]", "(?i)é"]
        {
            assert_eq!(Pattern::new(pattern).is_match("a"), None, "{pattern}");
        }
        assert_eq!(Pattern::new("(?:.{999}){999}").is_match("a"), None, "too large");
    }
}
