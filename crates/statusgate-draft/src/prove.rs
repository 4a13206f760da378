//! Removes what the recording contradicts, and what lint faults.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use statusgate_analysis::lint;
use statusgate_analysis::words::short_id;
use statusgate_core::policy::{Diagnostics, PolicySet, Source};

use super::CONDITIONS;
use super::base::{Base, judge};
use super::document::Draft;
use super::recording::Recording;
use super::tally::Seen;
use super::text::shown;

/// Each round removes something.
const MAX_ROUNDS: usize = 12;

/// The name of the draft among its sources.
const DRAFT: &str = "draft";

pub(crate) fn prove(draft: &mut Draft, recording: &Recording<'_>, base: &Base<'_>) {
    let mut found = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        draft.shorten();
        let mut sources = base.sources.to_vec();
        sources.push(Source::new(DRAFT, draft.to_yaml()));
        let policies = match PolicySet::compile(&sources) {
            Ok(policies) => policies,
            Err(mistakes) => {
                found = mistakes.list().iter().map(|mistake| shown(&mistake.message)).collect();
                remove_lines(draft, &mistakes);
                continue;
            }
        };
        let fired = judge(recording, &policies, |found| found.policy == draft.name);
        found = contradicted(draft, &fired, recording.objects);
        if found.is_empty() {
            found = faults(draft, &policies);
        }
        if found.is_empty() {
            return;
        }
        draft.entries.retain(|entry| !entry.rules.iter().any(|rule| found.contains(rule)));
    }
    let wrong = found.into_iter().collect::<Vec<_>>().join(", ");
    draft.questions.insert(0, format!("this draft needs a correction: {wrong}"));
}

/// Removes the entries of the lines with mistakes.
fn remove_lines(draft: &mut Draft, mistakes: &Diagnostics) {
    let lines = draft.lines();
    let places = mistakes.list().iter().map(|mistake| mistakes.place(mistake));
    let wrong: Vec<_> = places
        .filter(|(file, ..)| *file == DRAFT)
        .filter_map(|(_, line, _)| lines.get(line.checked_sub(1)?))
        .filter(|line| !line.at.is_empty())
        .collect();
    draft.entries.retain(|entry| !wrong.iter().any(|line| entry.at.starts_with(&line.at)));
}

/// The rules of the draft that the recording contradicts. Rules of the base convention are switched off at once.
fn contradicted(draft: &mut Draft, fired: &BTreeMap<String, Seen>, all: u32) -> BTreeSet<String> {
    let like = draft.entries.iter().find(|entry| entry.at.last().is_some_and(|key| key == "like"));
    let list = like.map_or_else(|| CONDITIONS.to_owned(), |entry| entry.at[1].clone());
    let mut own = BTreeSet::new();
    for (id, seen) in fired.iter().filter(|(_, seen)| seen.writes > 0) {
        let rule = short_id(id);
        if draft.entries.iter().any(|entry| entry.has_rule(rule)) {
            own.insert(rule.to_owned());
            continue;
        }
        let at: &[&str] = match rule {
            // Without the rules about the shape, nothing could be read.
            "status" | "condition-shape" => &[],
            "generation-ahead" | "generation-decreased" => &["generation"],
            "condition-member-unknown" => &["conditions", &list, "otherMembers"],
            "condition-misspelled" => &["conditions", &list, "misspelled"],
            "condition-reason-kept" => &["conditions", &list, "reasonKept"],
            "condition-duplicate" => &["conditions", &list, "duplicate"],
            other => match other.strip_prefix("transition-time-") {
                Some(key) => &["conditions", &list, "transitionTime", key],
                None => &["without", other],
            },
        };
        if !at.is_empty() {
            let support = format!("{} of {all} objects contradict {rule}", seen.objects);
            draft.add(at, Value::Null).support(support);
        }
        own.insert(format!("inherited {rule}"));
    }
    own
}

/// The rules that lint faults; of several about one fault, the weakest.
fn faults(draft: &Draft, policies: &PolicySet) -> BTreeSet<String> {
    let Ok(report) = lint::lint(policies, &draft.name) else { return BTreeSet::new() };
    let faults = report.remarks.iter().filter(|remark| remark.kind.is_fault());
    let weakest = faults.filter_map(|fault| {
        let own = draft.entries.iter();
        let own = own.filter(|entry| fault.rules.iter().any(|rule| entry.has_rule(short_id(rule))));
        own.min_by_key(|entry| entry.weight)?.rules.first().cloned()
    });
    weakest.collect()
}
