//! Examples of values, such that the shape rules of a convention have nothing against them.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

use super::fitting::{fitting, passes};
use crate::language::Pattern;
use crate::model::{ConditionStatus, Pointer};
use crate::policy::convention::{ConditionList, ConditionType, Convention};
use crate::policy::{Check, FieldType, Format};

/// The time at which combinations are judged. Any: what is asked of times is how they lie to each
/// other and to this one.
pub(crate) const NOW: &str = "2026-01-10T00:00:00Z";
/// When stored things happened.
pub(crate) const PAST: &str = "2026-01-01T00:00:00Z";
/// Later than that, and still before now.
pub(super) const LATER: &str = "2026-01-02T00:00:00Z";
/// Further ahead than clocks differ.
pub(super) const FUTURE: &str = "2027-01-01T00:00:00Z";

/// A plural, a reason and a type that no convention names.
pub(super) const PLURAL: &str = "others";
pub(super) const REASON: &str = "Example";
pub(super) const TYPE: &str = "Example";

/// A condition that only a spec asks for.
pub(crate) const GATE: &str = "ExampleGate";

/// Such conditions the polarity that the spec gives them.
pub(crate) const GATES: [(&str, &str); 2] =
    [(GATE, "Positive"), ("ExampleNegativeGate", "Negative")];

/// The longest list that is made. Longer ones are allowed to exist.
pub(super) const LONGEST: usize = 1000;

/// What a value has to look like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kind {
    checks: Vec<Check>,
}

/// What the checks of a convention ask of a field.
pub(super) fn kind_of(convention: &Convention, path: &Pointer) -> Kind {
    let fields = convention.fields.iter().filter(|field| field.path == *path);
    Kind { checks: fields.map(|field| field.check.clone()).collect() }
}

/// What the checks of a list ask of a member.
pub(super) fn kind_of_member(list: &ConditionList, name: &str) -> Kind {
    let found = list.members.iter().find(|(known, _)| known == name);
    Kind { checks: found.map(|(_, checks)| checks.clone()).unwrap_or_default() }
}

impl Kind {
    fn field_type(&self) -> Option<FieldType> {
        self.checks.iter().find_map(|check| check.kind)
    }

    fn is_time(&self) -> bool {
        self.checks.iter().any(|check| check.format == Some(Format::DateTime))
    }

    /// Whether its values are numbers, as far as anybody says.
    pub(super) fn is_number(&self, named: &[Value]) -> bool {
        match self.field_type() {
            Some(kind) => matches!(kind, FieldType::Integer | FieldType::Number),
            None => named.iter().any(Value::is_number),
        }
    }

    /// So many values that differ, the lesser first. Fewer, where there are no more.
    pub(super) fn several(&self, count: usize, ordered: bool) -> Vec<Value> {
        let words: Vec<Value> = self.words().map(Value::from).collect();
        let day = |day: usize| format!("2026-01-{day:02}T00:00:00Z");
        match self.field_type() {
            Some(FieldType::Integer | FieldType::Number) => (1..=count).map(Value::from).collect(),
            Some(FieldType::Boolean) => vec![false.into(), true.into()],
            // All before now.
            _ if ordered || self.is_time() => {
                (1..=count.min(8)).map(|number| day(number).into()).collect()
            }
            _ => {
                let few = ["one", "two", "three", "four"].map(Value::from);
                let more = (5..).map(|number| Value::from(format!("value-{number}")));
                words.into_iter().chain(few).chain(more).take(count).collect()
            }
        }
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.checks.iter().flat_map(|check| &check.values);
        words.map(String::as_str).filter(|word| !word.is_empty())
    }

    /// A value that is none of these, where there is one.
    pub(super) fn other(&self, taken: &[Value]) -> Option<Value> {
        let other = self.any_other(taken)?;
        // What looks best may still be too short, or of another form.
        let checks: Vec<&Check> = self.checks.iter().collect();
        if passes(&checks, &other) {
            return Some(other);
        }
        // An empty one would not count as there, which is what most ask.
        let set = |value: &Value| ![json!(""), json!({}), json!([])].contains(value);
        let mut fitting = fitting(&checks).into_iter();
        fitting.find(|value| set(value) && !taken.contains(value)).or(Some(other))
    }

    fn any_other(&self, taken: &[Value]) -> Option<Value> {
        let fits = |value: &Value| !taken.contains(value);
        if let Some(word) = self.words().map(Value::from).find(fits) {
            return Some(word);
        }
        if self.checks.iter().any(|check| !check.values.is_empty())
            || taken.iter().any(Value::is_boolean)
        {
            return None;
        }
        let numbers = taken.iter().any(Value::is_number);
        let mut values = match self.field_type() {
            Some(FieldType::Integer | FieldType::Number) => vec![3.into(), 4.into(), 5.into()],
            Some(FieldType::Boolean) => vec![true.into(), false.into()],
            Some(FieldType::Object) => vec![json!({"example": "text"})],
            Some(FieldType::Array) => vec![json!(["example"])],
            _ if self.is_time() => vec![PAST.into(), LATER.into()],
            None if numbers => vec![3.into(), 4.into(), 5.into()],
            Some(FieldType::String) | None => vec!["example".into(), "Other".into(), REASON.into()],
        };
        values.retain(fits);
        values.into_iter().next()
    }
}

/// A reason of a status that is none of `taken`: one of the type's table, else any.
pub(crate) fn reason(
    list: Option<&ConditionList>,
    kind: &str,
    status: ConditionStatus,
    taken: &[String],
) -> String {
    let rows = list.and_then(|list| list.types.find(kind)).map(|known| known.reasons.as_slice());
    let goes = |expects: &[(String, Vec<String>)]| {
        let mut of_status = expects.iter().filter(|(member, _)| member == "status");
        of_status.all(|(_, values)| values.iter().any(|value| value == status.name()))
    };
    let mut rows = rows.unwrap_or_default().iter();
    let row = rows.find(|row| goes(&row.expects) && !taken.contains(&row.reason));
    row.map_or_else(|| REASON.to_owned(), |row| row.reason.clone())
}

/// A condition with all members that its list wants.
pub(crate) fn condition(
    list: Option<&ConditionList>,
    kind: &str,
    status: &str,
    reason: &str,
    since: &str,
) -> Value {
    let mut condition = Map::new();
    condition.insert("type".to_owned(), kind.into());
    condition.insert("status".to_owned(), status.into());
    let Some(list) = list else {
        condition.insert("reason".to_owned(), reason.into());
        return condition.into();
    };
    let time = list.times.as_ref().map_or("lastTransitionTime", |times| times.member.as_str());
    let knows = |name: &str| {
        let member = list.members.iter().find(|(known, _)| known == name);
        match member {
            Some((_, checks)) => !checks.iter().any(|check| check.forbidden),
            None => list.members.is_empty(),
        }
    };
    if knows("reason") {
        condition.insert("reason".to_owned(), reason.into());
    }
    if knows(time) {
        condition.insert(time.to_owned(), since.into());
    }
    // What goes with the reason, then what is missing still.
    let known: Option<&ConditionType> = list.types.find(kind);
    let row = known.and_then(|known| known.row(reason));
    for (member, values) in row.into_iter().flat_map(|row| &row.expects) {
        let first = values.iter().find(|value| !value.is_empty());
        if let Some(value) = first.filter(|_| member != "status") {
            condition.insert(member.clone(), value.as_str().into());
        }
    }
    for (member, checks) in &list.members {
        let required = checks.iter().any(|check| check.required);
        if required && !condition.contains_key(member) {
            let kind = Kind { checks: checks.clone() };
            condition.extend(kind.other(&[]).map(|value| (member.clone(), value)));
        }
    }
    condition.into()
}

/// A text that matches a pattern: the shortest that its syntax shows, or one with so many `more` of
/// what may be repeated.
pub(super) fn matching(pattern: &Pattern, more: usize) -> Option<String> {
    let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
    let hir = parser.parse(pattern.as_str()).ok()?;
    let mut text = Vec::new();
    example_of(&hir, more, &mut text);
    let text = String::from_utf8(text).ok()?;
    pattern.is_match(&text).then_some(text)
}

fn example_of(hir: &Hir, more: usize, text: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(Class::Bytes(class)) => {
            // Of a class like "anything but a space" the first byte is no text at all.
            let printable = |byte: &u8| {
                class.ranges().iter().any(|range| (range.start()..=range.end()).contains(byte))
            };
            text.extend((b'a'..=b'z').chain(b'!'..=b'~').find(printable));
        }
        // Only with Unicode on, which it is not.
        HirKind::Class(Class::Unicode(_)) => {}
        HirKind::Repetition(repetition) => {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let count = repetition.min.saturating_add(more);
            let count = repetition.max.map_or(count, |most| count.min(most));
            // Inside of what is repeated nothing more is.
            (0..count).for_each(|_| example_of(&repetition.sub, 0, text));
        }
        HirKind::Capture(capture) => example_of(&capture.sub, more, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| example_of(part, more, text)),
        HirKind::Alternation(parts) => {
            parts.first().into_iter().for_each(|part| example_of(part, more, text));
        }
    }
}
