//! Rewrites CEL syntax errors for policy authors.
//!
//! The parser's messages name tokens, contexts and rules of its grammar.

use super::Mistake;

/// The first syntax error: later ones are mostly consequences.
pub(super) fn mistake(text: &str, errors: &cel::ParseErrors) -> Mistake {
    // An error of the grammar has a better location than one of the later walk.
    let found = errors.errors.iter().find(|error| error.msg.starts_with(GRAMMAR));
    let Some(error) = found.or_else(|| errors.errors.first()) else {
        return Mistake::new(None, "invalid CEL");
    };
    let (line, column) = error.pos;
    let place = usize::try_from(line).ok().zip(usize::try_from(column).ok());
    let at = place.filter(|(line, _)| *line > 0).map(|(line, column)| {
        let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let letters = text[before..].char_indices().nth(column.saturating_sub(1));
        letters.map_or(text.len(), |(at, _)| before + at)
    });
    let (message, help) = in_words(error.msg.strip_prefix(GRAMMAR).unwrap_or(&error.msg));
    Mistake { help, ..Mistake::new(at, format!("invalid CEL: {message}")) }
}

const GRAMMAR: &str = "Syntax error: ";

fn in_words(said: &str) -> (String, Option<String>) {
    // A single expected token helps; a list does not.
    let (said, expected) = said.split_once(" expecting ").unwrap_or((said, ""));
    let said = said.trim_end();
    if let Some(rest) = said.strip_prefix("token recognition error at: '") {
        return unknown_letter(rest);
    }
    if let Some((wanted, before)) =
        said.strip_prefix("missing ").and_then(|rest| rest.split_once(" at "))
    {
        let place = if before == END { "at the end".into() } else { format!("before {before}") };
        return (format!("{wanted} is missing {place}"), None);
    }
    let starts = ["mismatched input ", "extraneous input ", "no viable alternative at input "];
    if let Some(input) = starts.iter().find_map(|start| said.strip_prefix(start)) {
        let help = expected.starts_with('\'').then(|| format!("use {expected} instead"));
        return if input == END {
            let help = expected.starts_with('\'').then(|| format!("{expected} is missing"));
            ("the expression ends too early".into(), help)
        } else {
            (format!("unexpected {input}"), help)
        };
    }
    if said.starts_with("Incomplete ") || said.contains('`') || said == "UNKNOWN" {
        return ("a part is missing".into(), None);
    }
    if said == "invalid argument to has() macro" {
        let help = "has() needs a field: has(self.status.phase)".to_owned();
        return ("this is not a field".into(), Some(help));
    }
    // After the colon, the parser prints a value of a Rust type.
    let literal = said.split_once(" literal: ").map(|(kind, _)| format!("{kind} literal"));
    (literal.unwrap_or_else(|| said.to_owned()), None)
}

const END: &str = "'<EOF>'";

/// An unexpected character.
fn unknown_letter(rest: &str) -> (String, Option<String>) {
    let help = match rest.chars().next() {
        Some('\'' | '"') => {
            return ("this string has no end, or an invalid escape".into(), None);
        }
        Some('=') => Some("write == to compare"),
        Some('&') => Some("write && for \"and\""),
        Some('|') => Some("write || for \"or\""),
        _ => None,
    };
    let letter: String = rest.chars().take(1).collect();
    (format!("unexpected character '{letter}'"), help.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    /// The parser's own words change with its version, so messages must not contain them.
    #[test]
    fn messages_contain_no_words_of_the_parser() {
        for text in [
            "self.status.x ? true",
            "self.status.x ? true :",
            "self.status.x ==",
            "self.status.x = 1",
            "self.status.x & true",
            "(self.status.x",
            "[1, 2",
            "{'a': 1",
            "{'a'}",
            "self.status.x 5",
            "'abc",
            "'\\q'",
            "self.",
            "1 +",
            "!",
            "-",
            "has(self)",
            "self.status.all(1, true)",
            "99999999999999999999",
            "1e999",
            "b'\\ud800'",
            "if",
            ")",
            "#",
            "self..x",
            "self[",
        ] {
            let found = crate::policy::cel::compile(text).unwrap_err();
            for mistake in &found {
                let said = &mistake.message;
                for word in
                    ["`", "EOF", "Context", "token", "alternative", "mismatched", "Error", "{"]
                {
                    assert!(!said.contains(word), "{text}: {said}");
                }
            }
        }
    }
}
