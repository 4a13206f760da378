//! Finds a value that passes all checks of a field, or the checks that no value passes together.
//!
//! The engine judges each value. The tried values are at the limits of the checks. They decide most
//! checks; otherwise the result is not proven.

use serde_json::{Value, json};

use super::sample::{LATER, PAST, REASON, matching};
use statusgate_core::engine::fits;
use statusgate_core::model::Json;
use statusgate_core::policy::{Check, FieldType, Format};

/// The longest text that is tried.
const LONGEST_TEXT: usize = 1 << 12;

/// The length of the shortest RFC 3339 time.
const SHORTEST_TIME: usize = "2026-01-01T00:00:00Z".len();

/// The result of the checks of one value.
#[derive(Debug)]
pub(crate) enum Left<'c> {
    /// This value passes.
    Value(Value),
    /// No value passes: these checks exclude each other, and each of them is needed.
    Nothing(Vec<&'c Check>),
    /// No value that was tried passes, which is no proof.
    NotProven,
}

/// Judges the checks of a value that is present.
pub(crate) fn left<'c>(checks: &[&'c Check]) -> Left<'c> {
    let mut refusals: Vec<Vec<usize>> = Vec::new();
    for value in values(checks) {
        let refused = refusing(checks, &value);
        if refused.is_empty() {
            return Left::Value(value);
        }
        refusals.push(refused);
    }
    let core: Vec<&Check> = core_of(&refusals).into_iter().map(|at| checks[at]).collect();
    if is_decided(&core) { Left::Nothing(core) } else { Left::NotProven }
}

/// Whether a value passes all of these checks.
pub(crate) fn passes(checks: &[&Check], value: &Value) -> bool {
    checks.is_empty() || refusing(checks, value).is_empty()
}

/// A value that does not pass all of these checks.
pub(crate) fn refused(checks: &[&Check]) -> Option<Value> {
    let odd = [json!("example"), json!(1), json!(-1), json!(1_000_000), true.into()];
    values(checks).chain(odd).find(|value| !passes(checks, value))
}

/// A small set with a member of each of these sets, none of which is empty.
fn core_of<T: Clone + Ord>(sets: &[Vec<T>]) -> Vec<T> {
    let mut core: Vec<T> = sets.iter().flatten().cloned().collect();
    core.sort();
    core.dedup();
    // Members of few sets are removed first.
    let mut order = core.clone();
    order.sort_by_key(|member| sets.iter().filter(|set| set.contains(member)).count());
    for member in order {
        if sets.iter().all(|set| set.iter().any(|other| *other != member && core.contains(other))) {
            core.retain(|other| *other != member);
        }
    }
    core
}

fn refusing(checks: &[&Check], value: &Value) -> Vec<usize> {
    let text = value.to_string();
    let Ok(parsed) = Json::parse(&text) else { return Vec::new() };
    let places = checks.iter().enumerate();
    places.filter(|(_, check)| !fits(check, &parsed)).map(|(at, _)| at).collect()
}

/// Whether checks that reject all values that are tried reject every value. Checks see only the kind of a
/// value that is not a text, and the size of a number.
pub(crate) fn is_decided(checks: &[&Check]) -> bool {
    let any = |wanted: &dyn Fn(&Check) -> bool| checks.iter().any(|check| wanted(check));
    // All admissible values were tried.
    if any(&|check| check.forbidden || !check.values.is_empty()) {
        return true;
    }
    let most = |check: &Check| check.max_length.into_iter().chain(check.max_bytes).min();
    let is_time = any(&|check| check.format == Some(Format::DateTime));
    if any(&|check| check.kind.is_some_and(|kind| kind != FieldType::String))
        || (is_time && any(&|check| most(check).is_some_and(|most| most < SHORTEST_TIME)))
    {
        return true;
    }
    let lengths = any(&|check| {
        check.min_length.is_some() || check.max_length.is_some() || check.max_bytes.is_some()
    });
    let longest = checks.iter().filter_map(|check| check.min_length).max().unwrap_or(0);
    let forms = any(&|check| check.format.is_some());
    !any(&|check| check.pattern.is_some()) && longest <= LONGEST_TEXT && !(lengths && forms)
}

/// Values of every kind, the best examples first.
pub(crate) fn values<'c>(checks: &'c [&Check]) -> impl Iterator<Item = Value> + 'c {
    let words = checks.iter().flat_map(|check| &check.values).map(|word| word.value().clone());
    let kinds = checks.iter().filter_map(|check| check.kind).flat_map(|kind| match kind {
        FieldType::Integer | FieldType::Number => [3, 4, 5].map(Value::from).to_vec(),
        FieldType::Boolean => [true, false].map(Value::from).to_vec(),
        FieldType::Object => vec![json!({"example": "text"})],
        FieldType::Array => vec![json!(["example"])],
        FieldType::String => Vec::new(),
    });
    let all = words.chain(kinds).chain(texts(checks).map(Value::from)).chain(numbers(checks));
    let odd = [json!({"example": "text"}), json!(["example"]), true.into(), false.into()];
    let all = all.chain(odd).chain([json!(""), json!({}), json!([])]);
    // A value that counts as absent passes every check, which shows nothing.
    all.filter(|value| value != "" || !checks.iter().any(|check| check.empty_is_absent))
}

fn texts<'c>(checks: &'c [&Check]) -> impl Iterator<Item = String> + 'c {
    let has_times = checks.iter().any(|check| check.format == Some(Format::DateTime));
    let times = [PAST, LATER].into_iter().filter(move |_| has_times);
    let lengths =
        checks.iter().flat_map(|check| [check.min_length, check.max_length, check.max_bytes]);
    let lengths = lengths.flatten().filter(|length| *length <= LONGEST_TEXT).chain([1]);
    let patterns = checks.iter().filter_map(|check| check.pattern.as_ref());
    let repeated = lengths.clone();
    let matches = patterns.clone().flat_map(move |pattern| {
        [0, 1].into_iter().chain(repeated.clone()).filter_map(|more| matching(pattern, more))
    });
    let pairs =
        patterns.clone().flat_map(move |one| patterns.clone().map(move |other| (one, other)));
    let both = pairs.filter_map(|(one, other)| Some(matching(one, 0)? + &matching(other, 0)?));
    let plain = ["example", "Other", REASON];
    let texts = times.chain(plain).map(str::to_owned).chain(matches).chain(both);
    texts.chain(lengths.map(|length| "a".repeat(length))).chain([PAST, "1"].map(str::to_owned))
}

/// Integers and other numbers at the limits of the ranges.
fn numbers<'c>(checks: &'c [&Check]) -> impl Iterator<Item = Value> + 'c {
    let ends = checks.iter().flat_map(|check| [check.minimum, check.maximum]).flatten();
    let whole = |end: f64| [end.ceil(), end.floor()].map(|end| format!("{end:.0}").parse::<i64>());
    let whole = ends.clone().flat_map(whole).filter_map(Result::ok).map(Value::from);
    let exact = ends.map(Value::from).filter(Value::is_number);
    [1, 0, -1].into_iter().map(Value::from).chain(whole).chain(exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_has_a_member_of_each_set() {
        let core =
            |sets: &[&[u8]]| core_of(&sets.iter().map(|set| set.to_vec()).collect::<Vec<_>>());
        assert_eq!(core(&[&[1], &[1, 2], &[3, 2]]), [1, 2]);
        assert_eq!(core(&[&[1, 9], &[2, 9], &[3, 9]]), [9]);
        assert!(core(&[]).is_empty());
    }
}
