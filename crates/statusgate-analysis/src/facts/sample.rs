//! Examples of values that pass the checks of a convention.

use jiff::Timestamp;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

use super::fitting::{Left, left, passes, values};
use statusgate_core::language::{Pattern, Scalar};
use statusgate_core::model::{ConditionStatus, Pointer};
use statusgate_core::policy::convention::{ConditionList, ConditionType, Convention};
use statusgate_core::policy::{Check, FieldType, Format};

/// The time at which combinations are judged. Predicates only compare times with each other and with this
/// one.
pub(crate) const NOW: &str = "2026-01-10T00:00:00Z";
/// A time before now.
pub(crate) const PAST: &str = "2026-01-01T00:00:00Z";
/// A later time, still before now.
pub(crate) const LATER: &str = "2026-01-02T00:00:00Z";
/// A time after now. Clocks do not differ as much.
pub(crate) const FUTURE: &str = "2027-01-01T00:00:00Z";

/// A plural, a reason and a type that no convention names.
pub(super) const PLURAL: &str = "others";
pub(super) const REASON: &str = "Example";
pub(super) const TYPE: &str = "Example";

/// A condition that only a spec requires.
pub(crate) const GATE: &str = "ExampleGate";

/// A condition that the spec requires, of a type that the list admits.
pub(crate) fn gate(list: &ConditionList) -> String {
    let last = list.types.values().last().filter(|_| list.other_types.is_some());
    last.map_or_else(|| GATE.to_owned(), ConditionType::sample)
}

/// Such conditions, and the polarity that the spec sets.
pub(crate) const GATES: [(&str, &str); 2] =
    [(GATE, "Positive"), ("ExampleNegativeGate", "Negative")];

const GENERATION: i64 = 5;

/// The longest list in a scene. Real objects may have longer lists.
pub(super) const LONGEST: usize = 1000;

/// The time this many seconds before now.
pub(crate) fn ago(seconds: i64) -> Option<Value> {
    let now: Timestamp = NOW.parse().ok()?;
    let time = Timestamp::from_second(now.as_second().checked_sub(seconds)?).ok()?;
    Some(time.to_string().into())
}

/// The checks of a field.
pub(crate) fn checks_of<'c>(convention: &'c Convention, path: &Pointer) -> Vec<&'c Check> {
    let fields = convention.fields.iter().filter(|field| *field.path == *path);
    fields.map(|field| &field.check).collect()
}

/// An observed generation that passes its checks. The newest one can be smaller or larger.
pub(crate) fn generation(convention: &Convention, path: &Pointer) -> i64 {
    let checks = checks_of(convention, path);
    let least = convention.generation.as_ref().and_then(|rules| rules.minimum);
    let limits = values(&checks);
    let limits = limits.filter_map(|value| value.as_i64());
    let mut known = [GENERATION].into_iter().chain(least).chain(limits);
    let fitting = known.find(|number| Some(*number) >= least && passes(&checks, &(*number).into()));
    fitting.unwrap_or(GENERATION)
}

/// The path in an example: of the list, or of a value of the map. An outer list or map has one element.
pub(crate) fn sample_path(list: &ConditionList) -> Pointer {
    if list.outer.as_ref().is_some_and(|outer| !outer.key.is_empty()) {
        return list.path.with_element("0");
    }
    // Most lists have no checks of keys, and each scene asks for the paths of its lists.
    let keys = Some(&list.keys.0).filter(|keys| !keys.is_empty());
    match keys.map(|keys| left(&Vec::from_iter(keys))) {
        Some(Left::Value(Value::String(key))) => list.path.with_element(&key),
        _ => list.path.with_element("example"),
    }
}

/// The checks of a member of a list's elements.
pub(crate) fn checks_of_member<'c>(list: &'c ConditionList, name: &str) -> Vec<&'c Check> {
    list.checks(name).iter().collect()
}

fn type_of(checks: &[&Check]) -> Option<FieldType> {
    checks.iter().find_map(|check| check.kind)
}

fn is_time(checks: &[&Check]) -> bool {
    checks.iter().any(|check| check.format == Some(Format::DateTime))
}

/// Whether the values are numbers, according to the checks or to the values that predicates name.
pub(super) fn is_number(checks: &[&Check], named: &[Value]) -> bool {
    match type_of(checks) {
        Some(kind) => matches!(kind, FieldType::Integer | FieldType::Number),
        None => named.iter().any(Value::is_number),
    }
}

/// Different values, the smallest first. Fewer than `count` if there are no more.
pub(super) fn several(checks: &[&Check], count: usize, ordered: bool) -> Vec<Value> {
    match type_of(checks) {
        Some(FieldType::Integer | FieldType::Number) => {
            let named: Vec<Value> = words(checks).collect();
            let more = (1..=count).map(Value::from).filter(|number| !named.contains(number));
            named.iter().cloned().chain(more).take(count).collect()
        }
        Some(FieldType::Boolean) => vec![false.into(), true.into()],
        // All before now.
        _ if ordered || is_time(checks) => {
            (1..=count.min(8)).map(|day| format!("2026-01-{day:02}T00:00:00Z").into()).collect()
        }
        _ => {
            let few = ["one", "two", "three", "four"].map(Value::from);
            let more = (5..).map(|number| Value::from(format!("value-{number}")));
            words(checks).chain(few).chain(more).take(count).collect()
        }
    }
}

fn words(checks: &[&Check]) -> impl Iterator<Item = Value> {
    let words = checks.iter().flat_map(|check| &check.values);
    words.map(Scalar::value).filter(|word| *word != "").cloned()
}

/// Whether there is provably no value except these.
pub(super) fn are_all(taken: &[Value], checks: &[&Check]) -> bool {
    let named = checks.iter().any(|check| !check.values.is_empty());
    (named || taken.iter().any(Value::is_boolean))
        && words(checks).all(|word| taken.contains(&word))
}

/// A value that differs from these and matches none of the patterns. If possible, it passes the checks.
pub(super) fn other(checks: &[&Check], taken: &[Value], patterns: &[&Pattern]) -> Option<Value> {
    if are_all(taken, checks) {
        return None;
    }
    let with_numbers = is_number(checks, taken) && !is_time(checks);
    let numbers = [3, 4, 5].into_iter().filter(|_| with_numbers).map(Value::from);
    // For most predicates, an empty value is not set.
    let empty = [json!(""), json!({}), json!([])];
    let mut candidates = numbers.chain(values(checks)).filter(|value| {
        let mut patterns = patterns.iter();
        !empty.contains(value)
            && !taken.contains(value)
            && value.as_str().is_none_or(|text| !patterns.any(|pattern| pattern.is_match(text)))
    });
    let first = candidates.next()?;
    if passes(checks, &first) {
        return Some(first);
    }
    // Of `.`, all others match.
    let empty = json!("");
    let fits = !patterns.is_empty()
        && !taken.contains(&empty)
        && passes(checks, &empty)
        && !patterns.iter().any(|pattern| pattern.is_match(""));
    candidates.find(|value| passes(checks, value)).or_else(|| fits.then_some(empty)).or(Some(first))
}

/// A reason that is none of `taken`: one that the type declares for this status, or an example.
pub(crate) fn reason(
    list: Option<&ConditionList>,
    kind: &str,
    status: ConditionStatus,
    taken: &[String],
) -> String {
    let reasons = list.and_then(|list| list.find(kind)?.reasons.as_ref());
    let lists = reasons.iter().flat_map(|reasons| reasons.lists());
    let mut own = lists.filter(|(of, _)| *of == status).flat_map(|(_, reasons)| reasons);
    own.find(|reason| !taken.contains(reason)).map_or_else(|| REASON.to_owned(), Clone::clone)
}

/// The statuses of a condition.
pub(crate) const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// Whether the elements of a list have the status of a condition. Otherwise `status` is a member with other values, such as
/// the state of a node, or there is none.
pub(crate) fn has_statuses(list: &ConditionList) -> bool {
    let checks = checks_of_member(list, "status");
    let mut statuses = STATUSES.map(Value::from).into_iter();
    has(list, "status") && statuses.any(|status| passes(&checks, &status))
}

/// Whether the elements of a list have the type of a condition.
pub(crate) fn has_types(list: &ConditionList) -> bool {
    has(list, "type")
}

/// Whether the elements of a list have a member of conditions. A list of something else may reject it.
fn has(list: &ConditionList, name: &str) -> bool {
    let rejects_others = list.element.is_some() && list.other_members.is_some();
    !list.is_map() && (!rejects_others || list.members.contains_key(name))
}

/// A condition with all members that its list requires.
pub(crate) fn condition(
    list: Option<&ConditionList>,
    kind: &str,
    status: &str,
    reason: &str,
    since: &str,
) -> Value {
    let mut condition = Map::new();
    if list.is_none_or(has_types) {
        condition.insert("type".to_owned(), kind.into());
    }
    if list.is_none_or(has_statuses) {
        condition.insert("status".to_owned(), status.into());
    }
    let Some(list) = list else {
        condition.insert("reason".to_owned(), reason.into());
        return condition.into();
    };
    let time = list.time_member();
    let knows = |name: &str| match list.members.get(name) {
        Some(checks) => !checks.iter().any(|check| check.forbidden),
        None => list.members.is_empty() && !list.is_map(),
    };
    if knows("reason") {
        condition.insert("reason".to_owned(), reason.into());
    }
    if knows(time) {
        condition.insert(time.to_owned(), since.into());
    }
    for (member, checks) in list.members.iter() {
        let required = checks.iter().any(|check| check.required);
        if required && !condition.contains_key(member) {
            let value = other(&Vec::from_iter(checks.iter()), &[], &[]);
            condition.extend(value.map(|value| (member.clone(), value)));
        }
    }
    condition.into()
}

/// A text that matches a pattern: a short one, with `more` repetitions of each part that may be repeated.
pub(crate) fn matching(pattern: &Pattern, more: usize) -> Option<String> {
    let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
    let hir = parser.parse(pattern.as_str()).ok()?;
    let mut text = Vec::new();
    example_of(&hir, more, &mut text);
    let text = String::from_utf8(text).ok()?;
    pattern.is_match(&text).then_some(text)
}

fn example_of(hir: &Hir, more: usize, text: &mut Vec<u8>) {
    match hir.kind() {
        // The parser does not use Unicode classes.
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Unicode(_)) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(Class::Bytes(class)) => {
            // The first byte of a class such as "anything but a space" is not printable.
            text.extend((b'a'..=b'z').chain(b'!'..=b'~').find(|byte| {
                class.ranges().iter().any(|range| (range.start()..=range.end()).contains(byte))
            }));
        }
        HirKind::Repetition(repetition) => {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let count = repetition.min.saturating_add(more);
            let count = repetition.max.map_or(count, |most| count.min(most));
            // Only the outermost repetition grows.
            (0..count).for_each(|_| example_of(&repetition.sub, 0, text));
        }
        HirKind::Capture(capture) => example_of(&capture.sub, more, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| example_of(part, more, text)),
        HirKind::Alternation(parts) => {
            parts.first().into_iter().for_each(|part| example_of(part, more, text));
        }
    }
}
