//! The nesting depth of an expression, computed from its text before it is parsed.

/// The maximum nesting depth. The parser and the evaluator of the `cel` crate recurse, and a stack
/// overflow ends the process. A level of brackets takes about 5 KiB to parse, so this many levels use a
/// tenth of a thread's 2 MiB. The deepest rule in the documentation has 8.
pub(super) const MAX_NESTING: usize = 20;

/// The open constructs at one level of brackets.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Members, calls and indices in a row: `a.b.c(d)[0]`.
    members: usize,
    /// Operators in a row. They associate to the left: `a + b + c` has depth 2.
    operators: usize,
    /// Conditionals in a row. They associate to the right.
    conditionals: usize,
}

/// The nesting depth of `text`: an upper bound of the parser's depth.
///
/// `&&` and `||` do not count: the parser balances them.
pub(super) fn nesting(text: &str) -> usize {
    let (mut outer, mut level) = (Vec::new(), Level::default());
    let mut deepest = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = literal(rest).unwrap_or_else(|| word_or_sign(rest, first));
        let (token, after) = rest.split_at(length);
        rest = after;
        match token {
            "(" | "[" | "{" => outer.push(std::mem::take(&mut level)),
            ")" | "]" | "}" => {
                if let Some(around) = outer.pop() {
                    level = Level { members: around.members + 1, ..around };
                }
            }
            "." => level.members += 1,
            "," => level = Level::default(),
            "&&" | "||" | ":" => (level.members, level.operators) = (0, 0),
            "?" => level = Level { conditionals: level.conditionals + 1, ..Level::default() },
            "+" | "-" | "*" | "/" | "%" | "!" | "<" | ">" | "==" | "!=" | "<=" | ">=" | "in" => {
                (level.members, level.operators) = (0, level.operators + 1);
            }
            _ => {}
        }
        let levels = outer.iter().chain([&level]);
        let depth = levels.map(|of| 1 + of.members + of.operators + of.conditionals);
        deepest = deepest.max(depth.sum::<usize>() - 1);
    }
    deepest
}

/// The length of the string literal or comment at the start of `rest`.
fn literal(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    let prefix = rest.bytes().take_while(|byte| matches!(byte, b'r' | b'R' | b'b' | b'B')).count();
    let raw = rest[..prefix].contains(['r', 'R']);
    let body = &rest[prefix..];
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote))?;
    let mut at = prefix + quote.len();
    while at < rest.len() && !rest[at..].starts_with(quote) {
        let escaped = !raw && rest[at..].starts_with('\\');
        let width = |text: &str| text.chars().next().map_or(0, char::len_utf8);
        at += width(&rest[at..]);
        if escaped {
            at += width(&rest[at..]);
        }
    }
    Some((at + quote.len()).min(rest.len()))
}

fn word_or_sign(rest: &str, first: char) -> usize {
    if first.is_ascii_alphanumeric() || first == '_' {
        return rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(rest.len());
    }
    let double = ["&&", "||", "==", "!=", "<=", ">="].iter().any(|sign| rest.starts_with(sign));
    if double { 2 } else { first.len_utf8() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nested_constructs_are_counted() {
        for (text, depth) in [
            ("a", 0),
            ("a.b.c", 2),
            ("((a))", 2),
            ("a && b || c && d", 0),
            ("f(a, b, c)", 1),
            ("a + b + c", 2),
            ("a.b + c.d + e.f", 3),
            ("!!!a", 3),
            ("a ? b : c ? d : e", 2),
            ("[[[a]]]", 3),
            ("'((((' == a", 1),
            ("'it\\'s ((' != \"\"\"((\"\"\"", 1),
            ("r'\\' + '(('", 1),
            ("a // ((((\n", 0),
            ("x in y", 1),
            ("inner", 0),
            (
                "self.status.conditions.all(c, c.status == 'True' || (has(c.message) && c.message.matches('[a-z]')))",
                8,
            ),
        ] {
            assert_eq!(nesting(text), depth, "{text}");
        }
    }

    #[test]
    fn invalid_text_does_not_panic() {
        for text in ["", ")))]]", "'", "'\\", "\"\"\"", "r", "ä'ö\\ü", "//", "((('"] {
            assert!(nesting(text) < MAX_NESTING, "{text}");
        }
    }
}
