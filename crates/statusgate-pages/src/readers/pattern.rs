//! Patterns in the syntax of RE2, and as lists of words for a language without patterns.

use std::fmt::Write as _;
use std::str;

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look, Repetition};
use regex_syntax::is_meta_character;

use statusgate_core::language::Pattern;

/// RE2 rejects larger counts (`maxRepeat` in Go's regexp/syntax).
const MOST_REPETITIONS: u32 = 1_000;

/// The pattern for CEL. `None` if RE2 has no equivalent.
pub(super) fn re2(pattern: &Pattern) -> Option<String> {
    let mut text = String::new();
    write(&pattern.tree()?, &mut text)?;
    Some(text)
}

fn write(tree: &Hir, text: &mut String) -> Option<()> {
    match tree.kind() {
        HirKind::Empty => {}
        HirKind::Literal(literal) => {
            let literal = str::from_utf8(&literal.0).ok()?;
            literal.chars().for_each(|letter| character(letter, text));
        }
        HirKind::Class(class) => write_class(characters(class)?, text)?,
        HirKind::Look(look) => text.push_str(match look {
            Look::Start => "^",
            Look::End => "$",
            Look::StartLF => "(?m:^)",
            Look::EndLF => "(?m:$)",
            Look::WordAscii => r"\b",
            Look::WordAsciiNegate => r"\B",
            _ => return None,
        }),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            if max.unwrap_or(*min) > MOST_REPETITIONS {
                return None;
            }
            match (sub.kind(), min, max) {
                // Any run of bytes is any run of characters.
                (HirKind::Class(Class::Bytes(bytes)), 0, None) if !bytes.is_ascii() => {
                    let mut others = bytes.clone();
                    others.negate();
                    let mut class = others.to_unicode_class()?;
                    class.negate();
                    write_class(class, text)?;
                }
                (HirKind::Class(_) | HirKind::Capture(_), ..) => write(sub, text)?,
                _ => group(sub, text)?,
            }
            let _ = match (min, max) {
                (0, None) => write!(text, "*"),
                (1, None) => write!(text, "+"),
                (0, Some(1)) => write!(text, "?"),
                (min, None) => write!(text, "{{{min},}}"),
                (min, Some(max)) if min == max => write!(text, "{{{min}}}"),
                (min, Some(max)) => write!(text, "{{{min},{max}}}"),
            };
            text.push_str(if *greedy { "" } else { "?" });
        }
        HirKind::Capture(capture) => group(&capture.sub, text)?,
        HirKind::Concat(parts) => {
            for part in parts {
                match part.kind() {
                    HirKind::Alternation(_) => group(part, text)?,
                    _ => write(part, text)?,
                }
            }
        }
        HirKind::Alternation(parts) => {
            for (index, part) in parts.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "|" });
                write(part, text)?;
            }
        }
    }
    Some(())
}

fn group(tree: &Hir, text: &mut String) -> Option<()> {
    text.push_str("(?:");
    write(tree, text)?;
    text.push(')');
    Some(())
}

fn character(letter: char, text: &mut String) {
    if is_meta_character(letter) {
        text.push('\\');
    }
    if letter.is_control() || u32::from(letter) > 0xFFFF {
        let _ = write!(text, r"\x{{{:X}}}", u32::from(letter));
    } else {
        text.push(letter);
    }
}

/// The characters of a class. `None` if it matches a part of a character.
fn characters(class: &Class) -> Option<ClassUnicode> {
    match class {
        Class::Unicode(class) => Some(class.clone()),
        Class::Bytes(class) => class.to_unicode_class(),
    }
}

/// `None` for a class without characters, which RE2 cannot write.
fn write_class(mut class: ClassUnicode, text: &mut String) -> Option<()> {
    class.ranges().first()?;
    let is_negated = class.ranges().last().is_some_and(|range| range.end() == char::MAX);
    if is_negated {
        class.negate();
    }
    // Without ranges, it is any character.
    if class.ranges().is_empty() {
        text.push_str("(?s:.)");
        return Some(());
    }
    text.push_str(if is_negated { "[^" } else { "[" });
    for range in class.iter() {
        character(range.start(), text);
        if range.len() > 1 {
            text.push_str(if range.len() > 2 { "-" } else { "" });
            character(range.end(), text);
        }
    }
    text.push(']');
    Some(())
}

/// A text of which a pattern matches the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// This text.
    Exact(String),
    /// This text of small letters and digits, with any letters as capitals.
    AnyCase(String),
}

/// The most texts that an export lists.
const MOST_TEXTS: usize = 64;

/// The most digits in base 36 of which a float knows each.
const MOST_DIGITS: usize = 10;

/// A part of a text in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Start,
    End,
    Exact(char),
    /// This small letter, or the capital.
    AnyCase(char),
}

/// The texts that match. `None` if these are too many, or if the pattern also matches a part of a text.
pub(super) fn texts(pattern: &Pattern) -> Option<Vec<Text>> {
    let mut found = Vec::new();
    for units in expand(&pattern.tree()?)? {
        let [Unit::Start, text @ .., Unit::End] = units.as_slice() else { return None };
        let is_word = text.len() <= MOST_DIGITS
            && matches!(text.first(), Some(Unit::AnyCase(_)))
            && text.iter().all(|unit| match unit {
                Unit::AnyCase(_) => true,
                Unit::Exact(letter) => letter.is_ascii_digit(),
                Unit::Start | Unit::End => false,
            });
        let mut texts = vec![String::new()];
        for unit in text {
            match unit {
                Unit::Exact(letter) => texts.iter_mut().for_each(|text| text.push(*letter)),
                Unit::AnyCase(letter) if is_word => {
                    texts.iter_mut().for_each(|text| text.push(*letter));
                }
                Unit::AnyCase(letter) => {
                    let both = [*letter, letter.to_ascii_uppercase()];
                    let longer =
                        texts.iter().flat_map(|text| both.map(|end| format!("{text}{end}")));
                    texts = longer.collect();
                }
                Unit::Start | Unit::End => return None,
            }
            if texts.len() > MOST_TEXTS {
                return None;
            }
        }
        found.extend(texts.into_iter().map(if is_word { Text::AnyCase } else { Text::Exact }));
    }
    (1..=MOST_TEXTS).contains(&found.len()).then_some(found)
}

fn expand(tree: &Hir) -> Option<Vec<Vec<Unit>>> {
    let all = match tree.kind() {
        HirKind::Empty => vec![Vec::new()],
        HirKind::Literal(literal) => {
            vec![str::from_utf8(&literal.0).ok()?.chars().map(Unit::Exact).collect()]
        }
        HirKind::Class(class) => match characters(class)?.ranges() {
            [upper, lower]
                if upper.len() + lower.len() == 2
                    && upper.start().to_ascii_lowercase() == lower.start() =>
            {
                vec![vec![Unit::AnyCase(lower.start())]]
            }
            ranges => {
                let letters = ranges.iter().flat_map(|range| range.start()..=range.end());
                letters.take(MOST_TEXTS + 1).map(|letter| vec![Unit::Exact(letter)]).collect()
            }
        },
        HirKind::Look(Look::Start) => vec![vec![Unit::Start]],
        HirKind::Look(Look::End) => vec![vec![Unit::End]],
        HirKind::Look(_) => return None,
        HirKind::Repetition(Repetition { min: 0, max: Some(1), sub, .. }) => {
            [vec![Vec::new()], expand(sub)?].concat()
        }
        HirKind::Repetition(_) => return None,
        HirKind::Capture(capture) => expand(&capture.sub)?,
        HirKind::Concat(parts) => {
            let mut all = vec![Vec::new()];
            for part in parts {
                let part = expand(part)?;
                if all.len() * part.len() > MOST_TEXTS {
                    return None;
                }
                let longer = all.iter().flat_map(|start: &Vec<Unit>| {
                    part.iter().map(move |end| [start.as_slice(), end].concat())
                });
                all = longer.collect();
            }
            all
        }
        HirKind::Alternation(parts) => {
            parts.iter().map(expand).collect::<Option<Vec<_>>>()?.concat()
        }
    };
    (all.len() <= MOST_TEXTS).then_some(all)
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_for_re2_has_no_flags_and_no_named_classes() {
        for (text, expected) in [
            ("(?i)^failed$", Some("^[Ff][Aa][Ii][Ll][Ee][Dd]$")),
            ("(?i)failed.*1", Some(r"[Ff][Aa][Ii][Ll][Ee][Dd][^\x{A}]*1")),
            ("^(Failed|Error: .+)$", Some(r"^(?:Failed|Error: [^\x{A}]+)$")),
            (r"^\d{2,3}?-\w+(a/b)*\.x$", Some(r"^[0-9]{2,3}?\-[0-9A-Z_a-z]+(?:a/b)*\.x$")),
            (r"\bnot\B|(?m)^y$", Some(r"\bnot\B|(?m:^)y(?m:$)")),
            ("[^/]x{2}", Some("[^/](?:x){2}")),
            ("(?s).", Some("(?s:.)")),
            ("[a-z&&[^b-y]]ä", Some("[az]ä")),
            (r"\b{start}x", None),
            ("^[a&&b]$", None),
            ("(?i)[^/]{2}", None),
            ("x{1001}", None),
        ] {
            let found = re2(&pattern(text));
            assert_eq!(found.as_deref(), expected, "{text}");
            for value in ["failed", "Failed 1", "Error: a", "12-b_a/b.x", "not", "y", "ä", "zä"] {
                let same = found.as_ref().is_none_or(|found| {
                    Regex::new(found).unwrap().is_match(value) == pattern(text).is_match(value)
                });
                assert!(same, "{text} {value}");
            }
        }
    }

    #[test]
    fn a_pattern_of_words_is_a_list_of_texts() {
        let exact = |texts: &[&str]| {
            Some(texts.iter().map(|text| Text::Exact((*text).to_owned())).collect::<Vec<_>>())
        };
        let any = |text: &str| Text::AnyCase(text.to_owned());
        for (text, expected) in [
            ("^Failed$", exact(&["Failed"])),
            ("^(Failed|Fault|b c)$", exact(&["Failed", "Fault", "b c"])),
            ("^a$|^bc$", exact(&["a", "bc"])),
            ("^[Ff]ailed?$", exact(&["faile", "Faile", "failed", "Failed"])),
            ("(?i)^a-b$", exact(&["a-b", "a-B", "A-b", "A-B"])),
            ("(?i)^(failed|x1)$", Some(vec![any("failed"), any("x1")])),
            ("(?i)^1a$", exact(&["1a", "1A"])),
            ("Failed", None),
            ("^Failed", None),
            ("^a|b$", None),
            ("^a*$", None),
            ("^[a-z]{3}$", None),
            ("(?i)^progressing$", None),
        ] {
            assert_eq!(texts(&pattern(text)), expected, "{text}");
        }
    }
}
