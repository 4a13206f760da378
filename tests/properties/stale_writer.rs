//! A level-based controller with a stale cache that writes without a resourceVersion may repeat any
//! status that it wrote shortly before. No rule denies that only because the stored object is newer.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use statusgate_core::policy::PolicySet;

use crate::settings::{Kind, Settings};
use crate::statuses::statuses;
use crate::support::{LATER, Outcome, Write};

/// The times of the writes of a sequence.
const TIMES: [&str; 5] = [
    "2024-06-01T11:50:00Z",
    "2024-06-01T11:50:02Z",
    "2024-06-01T11:50:05Z",
    "2024-06-01T11:50:06Z",
    "2024-06-01T11:50:09Z",
];

/// A controller that writes several statuses and then repeats one of them.
#[derive(Debug)]
struct StaleWriter {
    settings: &'static Settings,
    /// The writes: a status, and whether the write changes the stored status to it or only touches conditions.
    written: Vec<(Value, bool)>,
    /// Which of them it repeats.
    repeated: Index,
    /// Which objects it touches, by position.
    touched: Vec<Touch>,
}

/// What a write does to a condition.
#[derive(Clone, Copy, Debug)]
enum Touch {
    Nothing,
    /// Its times are computed again.
    Times,
    /// Its status changes, with its times.
    Status,
}

fn stale_writers() -> impl Strategy<Value = StaleWriter> {
    let settings: Vec<&'static Settings> = Kind::Conventions
        .family()
        .settings
        .iter()
        .filter(|settings| settings.disagreement == "Deny")
        .filter(|settings| !settings.convention().resource_version.always)
        .collect();
    select(settings).prop_flat_map(|settings| {
        let write = (statuses(settings.convention()), any::<bool>());
        let touch = select(vec![Touch::Nothing, Touch::Nothing, Touch::Times, Touch::Status]);
        let written = prop::collection::vec(write, 2..TIMES.len());
        let touched = prop::collection::vec(touch, 32);
        (written, any::<Index>(), touched).prop_map(move |(written, repeated, touched)| {
            StaleWriter { settings, written, repeated, touched }
        })
    })
}

impl StaleWriter {
    /// The outcome of the repeated write. `None` if fewer than two statuses are accepted, or if it changes
    /// nothing.
    fn repeat(&self) -> Option<Outcome> {
        let mut touched = self.touched.iter().copied();
        let mut stored: Vec<Value> = Vec::new();
        for ((status, changes), time) in self.written.iter().zip(TIMES) {
            let before = stored.last();
            let mut status = merged(before.filter(|_| *changes), status);
            if let Some(before) = before.filter(|_| !changes) {
                status = before.clone();
                touch(&mut status, time, &mut touched);
            }
            stored.extend(self.acceptable(before, status, time));
        }
        let (last, earlier) = stored.split_last()?;
        let mut repeated = earlier.get(self.repeated.index(earlier.len().max(1)))?.clone();
        let mut times =
            touched.map(|touch| if matches!(touch, Touch::Times) { touch } else { Touch::Nothing });
        touch(&mut repeated, LATER, &mut times);
        let changes = repeated != *last;
        changes.then(|| self.write(Some(last), &repeated, LATER).validate(self.policies()))
    }

    /// The status without the parts that are rejected, both after `before` and as the first status.
    fn acceptable(&self, before: Option<&Value>, mut status: Value, time: &str) -> Option<Value> {
        for _ in 0..20 {
            let mutated = self.write(before, &status, time).mutate(self.policies()).status();
            let mut rejected: BTreeSet<String> = BTreeSet::new();
            for stored in [before, None] {
                let outcome = self.write(stored, &mutated, time).validate(self.policies());
                rejected.extend(outcome.denied_fields());
            }
            if rejected.is_empty() {
                return Some(mutated).filter(Value::is_object);
            }
            rejected.iter().rev().for_each(|field| remove(&mut status, field));
        }
        None
    }

    fn write(&self, stored: Option<&Value>, sent: &Value, time: &str) -> Write {
        let group = format!("g{}", self.settings.index);
        // No controller writes a generation that does not exist yet.
        let write = Write::to("things").group(&group).both("/metadata/generation", 9);
        let mut write = write.at(time);
        if !self.settings.subresource {
            write = write.on_the_main_resource();
        }
        write.stored(stored.cloned()).sent(sent.clone())
    }

    fn policies(&self) -> &'static PolicySet {
        &self.settings.kind.family().policies
    }
}

/// Half of the members of the previous status persist, as in most writes.
fn merged(before: Option<&Value>, status: &Value) -> Value {
    let mut status = status.clone();
    for (index, (name, value)) in
        before.and_then(Value::as_object).into_iter().flatten().enumerate()
    {
        if index % 2 == 0 {
            status[name] = value.clone();
        }
    }
    status
}

/// Removes the value at a field such as `status.conditions[2].reason`; in a list, the whole element.
fn remove(status: &mut Value, field: &str) {
    let names = field.trim_start_matches("status").split(['.', '[', ']']);
    let mut names = names.filter(|name| !name.is_empty()).peekable();
    let mut at = status;
    while let Some(name) = names.next() {
        at = match at {
            Value::Array(items) => {
                let index = name.parse().ok().filter(|index| *index < items.len());
                index.map(|index| items.remove(index));
                return;
            }
            Value::Object(members) if names.peek().is_none() => {
                members.remove(name);
                return;
            }
            Value::Object(members) if members.contains_key(name) => &mut members[name],
            _ => return,
        };
    }
}

/// Touches the objects with times.
fn touch(value: &mut Value, now: &str, touched: &mut dyn Iterator<Item = Touch>) {
    if let Value::Array(items) = value {
        items.iter_mut().for_each(|item| touch(item, now, touched));
    }
    let Value::Object(members) = value else { return };
    let is_time =
        |(name, value): &(&String, &mut Value)| name.ends_with("Time") && value.is_string();
    let has_time = members.iter_mut().any(|member| is_time(&member));
    let kind = if has_time { touched.next().unwrap_or(Touch::Nothing) } else { Touch::Nothing };
    if let (Touch::Status, Some(status)) = (kind, members.get_mut("status")) {
        *status = if *status == "True" { "False" } else { "True" }.into();
    }
    if !matches!(kind, Touch::Nothing) {
        members.iter_mut().filter(is_time).for_each(|(_, time)| *time = now.into());
    }
    members.values_mut().for_each(|value| touch(value, now, touched));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1200))]

    #[test]
    fn a_stale_writer_that_repeats_a_status_gets_warnings_at_most(writer in stale_writers()) {
        if let Some(outcome) = writer.repeat() {
            prop_assert_eq!(outcome.denials(), Vec::<String>::new());
        }
    }
}

/// Without statuses that differ from the stored ones, the property above would hold trivially.
#[test]
fn stale_writers_repeat_older_statuses_under_every_convention() {
    let mut runner = TestRunner::deterministic();
    let mut repeated: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..600 {
        let writer = stale_writers().new_tree(&mut runner).unwrap().current();
        let count = repeated.entry(&writer.settings.convention).or_default();
        *count += usize::from(writer.repeat().is_some());
    }
    for settings in &Kind::Conventions.family().settings {
        let name = settings.convention.as_str();
        let often = repeated.get(name).is_some_and(|count| *count >= 10);
        assert!(often || settings.convention().resource_version.always, "{name}: {repeated:?}");
    }
}
