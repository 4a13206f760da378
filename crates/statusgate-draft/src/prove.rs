//! Removes what the recording contradicts, and what lint faults.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use statusgate_analysis::lint;
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
        let policies = match compile(draft, base) {
            Ok(policies) => policies,
            Err(mistakes) => {
                found = mistakes.list().iter().map(|mistake| shown(&mistake.message)).collect();
                remove_lines(draft, &mistakes);
                continue;
            }
        };
        found = contradicted(draft, recording, &policies);
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

fn compile(draft: &Draft, base: &Base<'_>) -> Result<PolicySet, Diagnostics> {
    let mut sources = base.sources.to_vec();
    sources.push(Source::new(DRAFT, draft.to_yaml()));
    PolicySet::compile(&sources)
}

/// Removes the entries of the lines with mistakes.
fn remove_lines(draft: &mut Draft, mistakes: &Diagnostics) {
    let lines = draft.lines();
    let places = mistakes.list().iter().map(|mistake| mistakes.place(mistake));
    let wrong: BTreeSet<usize> = places
        .filter(|(file, ..)| *file == DRAFT)
        .filter_map(|(_, line, _)| lines.get(line.checked_sub(1)?))
        .flat_map(|line| line.entries.iter().copied())
        .collect();
    let mut index = 0..;
    draft.entries.retain(|_| index.next().is_none_or(|index| !wrong.contains(&index)));
}

/// The rules of the draft that the recording contradicts. Rules of the base convention are switched off at once.
fn contradicted(
    draft: &mut Draft,
    recording: &Recording<'_>,
    policies: &PolicySet,
) -> BTreeSet<String> {
    let mut fired: BTreeMap<String, Seen> = BTreeMap::new();
    for (object, findings) in judge(recording, policies) {
        for found in findings
            .iter()
            .filter(|found| found.policy == draft.name && found.action.label() != "audit")
        {
            let rule = found.rule.split_once('/').map_or(&*found.rule, |(_, rule)| rule);
            fired.entry(rule.to_owned()).or_default().see(object);
        }
    }
    let mut own = BTreeSet::new();
    for (rule, seen) in fired {
        if draft.entries.iter().any(|entry| entry.rules.contains(&rule)) {
            own.insert(rule);
            continue;
        }
        // An inherited rule is switched off.
        let support =
            format!("{} of {} objects contradict {rule}", seen.objects, recording.objects);
        let list =
            draft.entries.iter().find(|entry| entry.at.last().is_some_and(|key| key == "like"));
        let list = list.map_or_else(|| CONDITIONS.to_owned(), |entry| entry.at[1].clone());
        match (rule.as_str(), rule.strip_prefix("transition-time-")) {
            (_, Some(key)) => {
                draft.add(
                    &["conditions", &list, "transitionTime", key],
                    Value::Null,
                    support,
                    0,
                    &[],
                );
            }
            ("generation-ahead", _) => {
                draft.add(&["generation", "ahead"], "Audit".into(), support, 0, &[]);
                draft.add(&["generation", "aheadAtFirst"], "Audit".into(), "", 0, &[]);
            }
            ("generation-decreased", _) => {
                draft.add(&["generation", "decreased"], "Audit".into(), support, 0, &[]);
            }
            ("condition-member-unknown", _) => {
                draft.add(&["conditions", &list, "otherMembers"], Value::Null, support, 0, &[]);
            }
            ("condition-misspelled", _) => {
                draft.add(&["conditions", &list, "misspelled"], Value::Null, support, 0, &[]);
            }
            ("condition-reason-kept", _) => {
                draft.add(&["conditions", &list, "reasonKept"], Value::Null, support, 0, &[]);
            }
            ("condition-duplicate", _) => {
                draft.add(&["conditions", &list, "duplicate"], Value::Null, support, 0, &[]);
            }
            // Without the rules about the shape, nothing could be read.
            ("status" | "condition-shape", _) => {}
            _ => draft.add(&["without", &rule], Value::Null, support, 0, &[]),
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
        let rules =
            fault.rules.iter().filter_map(|rule| rule.split_once('/').map(|(_, rule)| rule));
        let own = draft
            .entries
            .iter()
            .filter(|entry| rules.clone().any(|rule| entry.rules.iter().any(|own| own == rule)));
        let weakest = own.min_by_key(|entry| entry.weight)?;
        weakest.rules.first().cloned()
    });
    weakest.collect()
}
