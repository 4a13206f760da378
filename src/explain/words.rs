//! Predicates, checks and actions in words.

use crate::policy::convention::{Trigger, Watched};
use crate::policy::{
    Action, Check, ConditionTest, Disposition, FieldType, Format, Observed, Place, Predicate,
    ValueTest,
};

/// A predicate as a clause: `Ready is True and Synced is not False`.
#[must_use]
pub fn predicate(predicate: &Predicate) -> String {
    clause(predicate, Around::Nothing, false)
}

/// What stands around a clause, and so whether it needs brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    And,
    Or,
}

fn clause(predicate: &Predicate, around: Around, negated: bool) -> String {
    match predicate {
        Predicate::Not(part) => clause(part, around, !negated),
        Predicate::All(parts) if parts.len() == 1 => clause(&parts[0], around, negated),
        Predicate::Any(parts) if parts.len() == 1 => clause(&parts[0], around, negated),
        // "not all of" is easier to read than its parts turned round one by one.
        Predicate::All(parts) if negated => format!("not all of: {}", list(parts)),
        Predicate::Any(parts) if negated => format!("none of: {}", list(parts)),
        Predicate::All(parts) => join(parts, Around::And, " and ", around),
        Predicate::Any(parts) => join(parts, Around::Or, " or ", around),
        other => fact(other, negated),
    }
}

fn list(parts: &[Predicate]) -> String {
    let parts = parts.iter().map(|part| clause(part, Around::And, false));
    format!("({})", parts.collect::<Vec<_>>().join("; "))
}

fn join(parts: &[Predicate], inside: Around, word: &str, around: Around) -> String {
    let parts = parts.iter().map(|part| clause(part, inside, false));
    let text = parts.collect::<Vec<_>>().join(word);
    if around == Around::Nothing || around == inside { text } else { format!("({text})") }
}

fn fact(predicate: &Predicate, negated: bool) -> String {
    let not = if negated { "not " } else { "" };
    let did = if negated { "did not change" } else { "changed" };
    match predicate {
        Predicate::Condition { old, kind, test } => {
            let name = if *old { format!("the stored {kind}") } else { kind.clone() };
            match test {
                ConditionTest::Is(statuses) => {
                    let statuses = any_of(statuses.iter().map(|status| status.name().to_owned()));
                    format!("{name} is {not}{statuses}")
                }
                ConditionTest::Reason(reasons) => reason(&name, reasons, negated),
                ConditionTest::Present => {
                    format!("{name} is {}", if negated { "absent" } else { "there" })
                }
                ConditionTest::Changed => format!("this write {did} {name}"),
            }
        }
        Predicate::Phase(names) => format!("the phase is {not}{}", any_of(names.iter().cloned())),
        Predicate::OldPhase(names) => {
            format!("the stored phase is {not}{}", any_of(names.iter().cloned()))
        }
        Predicate::Deleting => format!("deletion was {not}asked for"),
        Predicate::Observed(observed) => {
            let is = any_of(observed.iter().map(|observed| {
                match observed {
                    Observed::Behind => "behind",
                    Observed::Current => "equal to",
                    Observed::Ahead => "ahead of",
                }
                .to_owned()
            }));
            format!("observedGeneration is {not}{is} metadata.generation")
        }
        Predicate::Value(place, test) => value(place, test, negated),
        Predicate::Length { path, at_least, at_most } => {
            let has = if negated { "has not" } else { "has" };
            let bounds = match (*at_least, *at_most) {
                (least, usize::MAX) => format!("at least {least}"),
                (0, most) => format!("at most {most}"),
                (least, most) => format!("{least} to {most}"),
            };
            format!("{} {has} {bounds} items", path.field())
        }
        Predicate::Gates(path) if negated => {
            format!("a condition that {} asks for is not good", path.field())
        }
        Predicate::Gates(path) => {
            format!("every condition that {} asks for is good", path.field())
        }
        Predicate::Polarity(polarities) => {
            let polarities = polarities.iter().map(|polarity| polarity.name().to_owned());
            format!("its polarity is {not}{}", any_of(polarities))
        }
        Predicate::Resource(globs) => {
            format!("the resource is {not}{}", any_of(globs.iter().map(ToString::to_string)))
        }
        Predicate::All(_) | Predicate::Any(_) | Predicate::Not(_) => {
            clause(predicate, Around::And, negated)
        }
    }
}

fn value(place: &Place, test: &ValueTest, negated: bool) -> String {
    let not = if negated { "not " } else { "" };
    match test {
        ValueTest::Is(wanted) => {
            let wanted = wanted
                .iter()
                .map(|value| value.as_str().map_or_else(|| value.to_string(), quoted_if_odd));
            format!("{place} is {not}{}", any_of(wanted))
        }
        ValueTest::Set => format!("{place} is {not}set"),
        ValueTest::Changed if negated => format!("{place} did not change"),
        ValueTest::Changed => format!("{place} changed"),
        ValueTest::Decreased if negated => format!("{place} did not go back"),
        ValueTest::Decreased => format!("{place} went back"),
        ValueTest::Matches(pattern) => {
            let matches = if negated { "does not match" } else { "matches" };
            format!("{place} {matches} `{}`", pattern.as_str())
        }
        ValueTest::Equals(other) if negated => format!("{place} differs from {other}"),
        ValueTest::Equals(other) => format!("{place} equals {other}"),
        ValueTest::Before(other) => format!("{place} is {not}before {other}"),
        ValueTest::Future if negated => format!("{place} does not lie in the future"),
        ValueTest::Future => format!("{place} lies in the future"),
    }
}

fn quoted_if_odd(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|letter| !letter.is_whitespace());
    if plain { text.to_owned() } else { format!("{text:?}") }
}

/// `A`, `A or B`, `A, B or C`.
pub(crate) fn any_of(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// What is asked of a reason; the empty one is none.
fn reason(condition: &str, reasons: &[String], negated: bool) -> String {
    let named: Vec<String> = reasons.iter().filter(|name| !name.is_empty()).cloned().collect();
    let (only, none) = (named.is_empty(), named.len() < reasons.len());
    let named = any_of(named.into_iter());
    match (none, negated) {
        (true, false) if only => format!("{condition} has no reason"),
        (true, true) if only => format!("{condition} has a reason"),
        (true, false) => format!("{condition} has the reason {named} or none"),
        (true, true) => format!("{condition} has a reason, another than {named}"),
        (false, false) => format!("{condition} has the reason {named}"),
        (false, true) => format!("{condition} has another reason than {named}"),
    }
}

/// What is asked of a field, as a list of short clauses.
#[must_use]
pub(super) fn check(check: &Check) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut say = |condition: bool, text: String| {
        if condition {
            words.push(text);
        }
    };
    say(check.required, "required".to_owned());
    say(check.forbidden, "must not be there".to_owned());
    say(!check.nullable, "not null".to_owned());
    if let Some(kind) = check.kind {
        let plain =
            kind == FieldType::String && (check.format.is_some() || !check.values.is_empty());
        say(!plain, kind.to_string());
    }
    let values = check.values.iter().map(|value| quoted_if_odd(value));
    say(!check.values.is_empty(), any_of(values));
    if let Some(format) = check.format {
        let format = match format {
            Format::DateTime => "an RFC 3339 time",
            Format::Quantity => "a quantity",
            Format::QualifiedName => "a qualified name",
        };
        say(true, format.to_owned());
    }
    let mut limit = |what: &str, limit: Option<String>| {
        say(limit.is_some(), format!("{what} {}", limit.unwrap_or_default()));
    };
    limit("at least", check.min_length.map(|least| characters(least, "character")));
    limit("at most", check.max_length.map(|most| characters(most, "character")));
    limit("at most", check.max_bytes.map(|most| characters(most, "byte")));
    limit("at least", check.minimum.map(|least| least.to_string()));
    limit("at most", check.maximum.map(|most| most.to_string()));
    limit("matches", check.pattern.as_ref().map(|pattern| format!("`{}`", pattern.as_str())));
    let mut text = words.join(", ");
    if text.is_empty() {
        text.push_str("known");
    }
    if check.action != Action::Deny {
        text.push_str(&format!(" ({})", action(check.action.into())));
    }
    text
}

fn characters(count: usize, unit: &str) -> String {
    if count == 1 { format!("{count} {unit}") } else { format!("{count} {unit}s") }
}

/// `Deny`, as documents spell it.
#[must_use]
pub(super) const fn action(action: Disposition) -> &'static str {
    match action {
        Disposition::Disagreement => "Disagreement",
        Disposition::Fixed(Action::Deny) => "Deny",
        Disposition::Fixed(Action::Repair) => "Repair",
        Disposition::Fixed(Action::Warn) => "Warn",
        Disposition::Fixed(Action::Audit) => "Audit",
    }
}

/// The writes that a rule looks at.
#[must_use]
pub(super) fn trigger(trigger: &Trigger) -> String {
    let names = |watched: &[Watched], word: &str| {
        let names = watched.iter().map(|watched| match watched {
            Watched::Field(path) => path.field().to_owned(),
            Watched::Condition(kind) => format!("condition {kind}"),
        });
        names.collect::<Vec<_>>().join(word)
    };
    match trigger {
        Trigger::State => "every write that leaves it".to_owned(),
        Trigger::Introduced => "writes that bring it in".to_owned(),
        Trigger::Moved(watched) => format!("writes that change {}", names(watched, " or ")),
        Trigger::CoWritten(watched) => {
            format!("writes that change {} together", names(watched, " and "))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{PolicySet, Source};

    fn words(predicate: &str) -> String {
        let text = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: test}}\nspec:\n  \
             conditions: [{{path: /status/conditions}}]\n  \
             rules: [{{id: x, path: /status/x, message: m, action: Warn, when: {predicate}}}]\n"
        );
        let source = Source { name: "test.yaml".into(), text };
        let policies = PolicySet::compile(&[source]).unwrap();
        super::predicate(&policies.conventions()["test"].rules[0].when)
    }

    #[test]
    fn predicates_read_as_sentences() {
        for (predicate, expected) in [
            (r#"{condition: Ready, is: "True"}"#, "Ready is True"),
            (
                r#"{all: [{condition: Ready, is: "True"}, {condition: Synced, isNot: "False"}]}"#,
                "Ready is True and Synced is not False",
            ),
            (
                r#"{all: [{deleting: false}, {any: [{condition: A, present: false}, {condition: A, reason: [B, C]}]}]}"#,
                "deletion was not asked for and (A is absent or A has the reason B or C)",
            ),
            (
                r#"{not: {all: [{condition: A, is: "True"}, {set: /status/x}]}}"#,
                "not all of: (A is True; status.x is set)",
            ),
            (r#"{condition: A, reason: ""}"#, "A has no reason"),
            (r#"{condition: A, reason: [B, ""]}"#, "A has the reason B or none"),
            (r#"{not: {condition: A, reason: [B, ""]}}"#, "A has a reason, another than B"),
            ("{field: /spec/a, isNot: [1, true]}", "spec.a is not 1 or true"),
            ("{field: /status/a, before: /status/b}", "status.a is before status.b"),
            ("{length: /status/list, atLeast: 2, atMost: 3}", "status.list has 2 to 3 items"),
            ("{oldField: /status/a, set: true}", "the stored status.a is set"),
        ] {
            assert_eq!(words(predicate), expected);
        }
    }
}
