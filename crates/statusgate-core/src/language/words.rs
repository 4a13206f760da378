//! Predicates as text, for pages: `Ready is True and Synced is not False`.

use super::Predicate;

/// The surroundings of a clause, which determine whether it needs brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// Nothing.
    Nothing,
    /// Clauses joined by "and".
    And,
    /// Clauses joined by "or".
    Or,
}

impl Predicate {
    /// The predicate as a clause.
    pub fn in_words(&self) -> String {
        self.clause(Around::Nothing, false)
    }

    pub(super) fn clause(&self, around: Around, negated: bool) -> String {
        let parts = self.parts();
        match &parts[..] {
            [one] => one.words(around, negated),
            parts => join(parts, Around::And, (around, negated), |part, around| {
                part.words(around, false)
            }),
        }
    }
}

/// Joins clauses. "not all of" is easier to read than several negated parts.
pub(super) fn join<T>(
    parts: &[T],
    inside: Around,
    (around, negated): (Around, bool),
    say: impl Fn(&T, Around) -> String,
) -> String {
    let (within, word) = match inside {
        _ if negated => (Around::And, "; "),
        Around::Or => (inside, " or "),
        _ => (inside, " and "),
    };
    let list = parts.iter().map(|part| say(part, within)).collect::<Vec<_>>().join(word);
    match (inside, negated) {
        (Around::Or, true) => format!("none of: ({list})"),
        (_, true) => format!("not all of: ({list})"),
        _ if around == Around::Nothing || around == inside => list,
        _ => format!("({list})"),
    }
}

/// `A`, `A or B`, `A, B or C`.
pub fn any_of(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// Some names of a list, or all but the other names if that is shorter.
pub fn shortest(names: &str, others: &str) -> String {
    match (names, others) {
        ("", _) => "none".to_owned(),
        (_, "") => "all".to_owned(),
        _ if others.len() + "all but ".len() < names.len() => format!("all but {others}"),
        _ => names.to_owned(),
    }
}

/// `not `, or an empty text.
pub(super) const fn not(negated: bool) -> &'static str {
    if negated { "not " } else { "" }
}

/// A text, in quotes if it is empty or has spaces.
pub fn quoted_if_odd(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|letter| !letter.is_whitespace());
    if plain { text.to_owned() } else { format!("{text:?}") }
}
