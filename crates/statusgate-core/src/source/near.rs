//! Similar names.

/// A help for an unknown name: the nearest known name, or all of them.
pub fn did_you_mean<'w>(found: &str, known: impl Iterator<Item = &'w str> + Clone) -> String {
    match near(found, known.clone()) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None if known.clone().next().is_none() => "there is none".to_owned(),
        None => format!("possible: {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// The nearest known name, if it is similar enough to be the intended one.
pub fn near<'w>(found: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let found = found.to_lowercase();
    known
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &found), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Whether two names differ only in case or in one letter: it is missing, or another one, or two changed
/// places. Names with other digits are other names, and so are most short ones.
pub fn is_near(one: &str, other: &str) -> bool {
    const SHORTEST: usize = 4;
    if one.len().min(other.len()) < SHORTEST || one.len().abs_diff(other.len()) > 1 || one == other
    {
        return false;
    }
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let start = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (left, right) = (&one[start..], &other[start..]);
    let both = left.iter().rev().zip(right.iter().rev());
    let end = both.take_while(|(one, other)| one == other).count();
    let (left, right) = (&left[..left.len() - end], &right[..right.len() - end]);
    let letters = left.iter().chain(right).all(u8::is_ascii_alphabetic);
    one.eq_ignore_ascii_case(other)
        || letters
            && match (left, right) {
                ([_], [_] | []) | ([], [_]) => true,
                ([a, b], [c, d]) => (a, b) == (d, c),
                _ => false,
            }
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn names_are_near_that_differ_in_one_letter_or_in_case() {
        for near in ["ready", "Redy", "Readyy", "Raedy", "Rexdy", "eady", "READY"] {
            assert!(is_near(near, "Ready") && is_near("Ready", near), "{near}");
        }
        for other in ["Ready", "Read1y", "Rdy", "NotReady", "Redayy", "Rxxdy", ""] {
            assert!(!is_near(other, "Ready"), "{other}");
        }
        assert!(
            !is_near("Phase1", "Phase2")
                && !is_near("Available", "Unavailable")
                && !is_near("Up", "Us")
        );
    }
}
