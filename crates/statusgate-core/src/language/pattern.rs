//! Regular expressions of documents: they match characters, and their classes are ASCII.

use std::fmt;
use std::str::FromStr;

use regex::Error;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

/// The maximum size of a compiled pattern. The longest known pattern, that of metav1 condition types, needs
/// less than half of this.
const SIZE_LIMIT: usize = 256 << 10;

/// Perl's classes are ASCII, as in ECMA 262 and Go. Unicode classes need tables that are present only if
/// another crate enables them.
const CLASSES: [(char, &str); 6] = [
    ('d', "[0-9]"),
    ('D', "[^0-9]"),
    ('s', r"[\t\n\x0B\x0C\r\x20]"),
    ('S', r"[^\t\n\x0B\x0C\r\x20]"),
    ('w', "[0-9A-Za-z_]"),
    ('W', "[^0-9A-Za-z_]"),
];

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// The text in the document.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The syntax tree without flags and named classes.
    pub fn tree(&self) -> Option<Hir> {
        let spelled = with_ascii_classes(&self.text);
        let (text, unicode) = (spelled.as_deref().unwrap_or(&self.text), spelled.is_some());
        ParserBuilder::new().unicode(unicode).utf8(false).build().parse(text).ok()
    }

    /// Whether the pattern matches a part of a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }
}

impl FromStr for Pattern {
    /// The syntax error, without a full stop.
    type Err = String;

    /// Compiles a pattern. `.` and negated classes match whole characters, as in OpenAPI. With `(?i)` they
    /// match bytes, because comparing letters without case needs Unicode tables.
    fn from_str(text: &str) -> Result<Self, String> {
        let build = |text: &str, unicode| {
            RegexBuilder::new(text).size_limit(SIZE_LIMIT).unicode(unicode).build()
        };
        let regex = match with_ascii_classes(text) {
            Some(spelled) => build(&spelled, true),
            None => build(text, false),
        };
        // A syntax error must be about the text of the document.
        let regex = match regex {
            Err(Error::Syntax(_)) => build(text, false),
            built => built,
        }
        .map_err(|error| {
            // The error repeats the text with a caret before the message.
            let text = error.to_string();
            let (_, message) = text.rsplit_once("error: ").unwrap_or(("", &text));
            format!("invalid pattern: {}", message.trim_end_matches('.'))
        })?;
        Ok(Self { text: text.to_owned(), regex })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The same pattern with its classes written as ranges, which are valid inside and outside of brackets.
/// `None` if the pattern needs Unicode tables.
fn with_ascii_classes(text: &str) -> Option<String> {
    let mut spelled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        if ignores_case(before) {
            return None;
        }
        spelled.push_str(before);
        let letter = after.chars().next().filter(|letter| !matches!(letter, 'p' | 'P'))?;
        rest = after.get(letter.len_utf8()..).unwrap_or_default();
        if let Some((_, class)) = CLASSES.iter().find(|(name, _)| *name == letter) {
            spelled.push_str(class);
        } else if matches!(letter, 'b' | 'B') {
            // `\b{start}` differs from `\b`.
            let end = rest.find('}').filter(|_| rest.starts_with('{')).map_or(0, |end| end + 1);
            let (kind, others) = rest.split_at(end);
            spelled.extend(["(?-u:\\", if letter == 'b' { "b" } else { "B" }, kind, ")"]);
            rest = others;
        } else {
            spelled.push('\\');
            spelled.push(letter);
        }
    }
    spelled.push_str(rest);
    (!ignores_case(rest)).then_some(spelled)
}

/// Whether there is a group like `(?i)` or `(?si:…)` in a text without escapes.
fn ignores_case(text: &str) -> bool {
    let mut before_i = text.split("(?").skip(1).filter_map(|group| group.split_once('i'));
    before_i.any(|(flags, _)| flags.chars().all(|flag| flag.is_ascii_alphabetic() || flag == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_characters_and_their_classes_are_ascii() {
        for (pattern, text, matches) in [
            ("^.{3}$", "äöü", true),
            ("^.{3}$", "ä", false),
            ("^[a-zäöü]+$", "grün", true),
            ("^[^/]{2}$", "äö", true),
            (r"^\w+\s\d\W$", "ab 1-", true),
            (r"^\w$", "ä", false),
            (r"^\W\D\S$", "äöü", true),
            (r"\bx\b", "a x b", true),
            (r"\bx\b", "axb", false),
            (r"\b{start}x", "a x", true),
            (r"^[\w.-]+$", "a_b.c-1", true),
            (r"^[^\s\d]$", "ä", true),
            (r"^\\d$", r"\d", true),
            (r"^(?i)abc$", "aBC", true),
            (r"^(?i)[^/]{2}$", "ä", true),
            (r"^\(?i.$", "(iä", true),
            (r"^(?P<i>.)$", "ä", true),
        ] {
            let compiled: Pattern = pattern.parse().unwrap();
            assert_eq!(compiled.is_match(text), matches, "{pattern} {text}");
            assert_eq!(compiled.as_str(), pattern);
        }
    }

    #[test]
    fn an_invalid_pattern_is_an_error() {
        for text in ["(", r"\", r"\p{Greek}", "[z-a]", r"\b{"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
        assert!("(?:.{999}){999}".parse::<Pattern>().is_err(), "too large");
    }
}
