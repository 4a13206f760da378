//! Checks, triggers and actions in words.

use serde_json::Value;

use statusgate_core::language::quoted_if_odd;
pub use statusgate_core::language::{any_of, shortest};
use statusgate_core::policy::convention::{Trigger, TriggerWord, Watch, Watched};
use statusgate_core::policy::{Check, Disposition, FieldType, Format};

/// A check of a field, as a list of short clauses.
pub fn check(check: &Check) -> String {
    // A format or values already say that it is a text.
    let is_plain = check.format.is_some() || !check.values.is_empty();
    let kind = check.kind.filter(|kind| *kind != FieldType::String || !is_plain);
    let values = check.values.iter().map(|value| match value.value() {
        Value::String(text) => quoted_if_odd(text),
        other => other.to_string(),
    });
    let format = check.format.map(|format| match format {
        Format::DateTime => "an RFC 3339 time",
        Format::Quantity => "a quantity",
        Format::QualifiedName => "a qualified name",
    });
    // The message of a check describes its pattern.
    let pattern = check.pattern.as_ref().filter(|_| check.message.is_none());
    let limit = |what: &str, limit: Option<String>| limit.map(|limit| format!("{what} {limit}"));
    let words = [
        check.required.then(|| "required".to_owned()),
        check.forbidden.then(|| "forbidden".to_owned()),
        (!check.nullable).then(|| "not null".to_owned()),
        check.empty_is_absent.then(|| "\"\" is absent".to_owned()),
        kind.map(|kind| kind.to_string()),
        (!check.values.is_empty()).then(|| any_of(values)),
        format.map(str::to_owned),
        limit("at least", check.min_length.map(|least| characters(least, "character"))),
        limit("at most", check.max_length.map(|most| characters(most, "character"))),
        limit("at most", check.max_bytes.map(|most| characters(most, "byte"))),
        limit("at least", check.minimum.map(|least| least.to_string())),
        limit("at most", check.maximum.map(|most| most.to_string())),
        limit("it", check.message.as_ref().map(ToString::to_string)),
        limit("matches", pattern.map(|pattern| format!("`{}`", pattern.as_str()))),
    ];
    let mut text = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if text.is_empty() {
        text.push_str("known");
    }
    if check.action() != Disposition::Deny {
        text.push_str(&format!(" ({})", action(check.action())));
    }
    text
}

fn characters(count: usize, unit: &str) -> String {
    if count == 1 { format!("{count} {unit}") } else { format!("{count} {unit}s") }
}

/// `Deny`, as documents spell it.
pub const fn action(action: Disposition) -> &'static str {
    match action {
        Disposition::Disagreement => "Disagreement",
        Disposition::Deny => "Deny",
        Disposition::Warn => "Warn",
        Disposition::Audit => "Audit",
    }
}

/// A rule id without the name of its convention.
pub fn short_id(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, name)| name)
}

/// The writes that a rule judges.
pub fn trigger(trigger: &Trigger) -> String {
    let names = |watched: &[Watched], word: &str| {
        let names = watched.iter().map(|watched| match watched {
            Watched::Field(path) => path.field().to_owned(),
            Watched::Condition(kind) => format!("condition {kind}"),
        });
        names.collect::<Vec<_>>().join(word)
    };
    match trigger {
        Trigger::Word(TriggerWord::State) => "every write with it".to_owned(),
        Trigger::Word(TriggerWord::Introduced) => "writes that introduce it".to_owned(),
        Trigger::Watch(Watch { moved: Some(watched), .. }) => {
            format!("writes that change {}", names(watched, " or "))
        }
        Trigger::Watch(Watch { co_written, .. }) => {
            let watched = co_written.as_deref().unwrap_or_default();
            format!("writes that change {} together", names(watched, " and "))
        }
    }
}
