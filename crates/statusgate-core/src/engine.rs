//! The decision. Pure: no IO, no clock, no randomness; the same subject gives the same verdict.
//!
//! ```
//! use statusgate_core::engine::decide;
//! use statusgate_core::model::{Object, Resource, Subject, Webhook};
//! use statusgate_core::policy::PolicySet;
//!
//! let policies = PolicySet::compile(&PolicySet::examples())?;
//! let subject = Subject {
//!     resource: Resource::new("vshn.appcat.vshn.io", "v1", "vshnredis"),
//!     subresource: "status".into(),
//!     object: Object::parse(r#"{"status": {"phase": "ready"}}"#)?,
//!     old: Some(Object::parse("{}")?),
//!     ..Subject::default()
//! };
//! let verdict = decide(&policies, &subject, Webhook::Validate, jiff::Timestamp::UNIX_EPOCH);
//! assert!(verdict.is_denied());
//! assert_eq!(verdict.findings[0].rule.as_str(), "appcat/phase-value");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agreement;
mod because;
mod cel;
mod conditions;
mod defaults;
mod draft;
mod evidence;
mod fields;
mod guess;
pub mod health;
mod judge;
mod mutate;
mod owners;
mod phase;
mod reading;
mod rehearsal;
mod remutate;
mod restore;
mod review;
mod standing;
mod status_write;
mod transition;
mod unique;
mod unproven;
mod verdict;
mod violation;

use std::collections::HashSet;

use jiff::Timestamp;

use crate::model::{Subject, Webhook};
use crate::policy::{PolicySet, Selected};

pub use crate::documents::HealthStatus;
pub use crate::policy::Action;
pub use crate::policy::convention::HealthClass;
pub use agreement::{admits, imposed, reason as disagreement, repaired};
pub use cel::{Budget, holds};
pub use evidence::{Facts, Truth, phase_of};
pub use evidence::{facts_of, with_element};
pub use fields::fits;
pub use guess::guess;
pub use health::Health;
pub use reading::Reading;
pub use rehearsal::{REHEARSED, Rehearsal};
pub use review::{Found, PatchFailed, Review, review};
pub use standing::Standing;
pub use status_write::{StatusChange, StatusWrite, phase_names};
pub use transition::since;
pub use unproven::Unproven;
pub use verdict::{Cause, Change, Finding, Verdict};

/// Judges a subject by all policies that select it.
///
/// The first policy with a phase, in the order of the documents, owns phase and defaults; the others add
/// their own defaults for other fields. The findings of all policies count, except that only the owner
/// judges the phase. The same finding of several policies is reported once, with the strongest action.
pub fn decide<'p, 'a: 'p>(
    policies: &'p PolicySet,
    subject: &Subject<'a>,
    webhook: Webhook,
    now: Timestamp,
) -> Verdict<'p> {
    let (mut verdict, now) = (Verdict::default(), now.as_second());
    let selected = Selected::of(policies, subject);
    let unique = unique::stored(&selected, subject);
    match webhook {
        Webhook::Mutate => {
            let subject = unique.as_ref().unwrap_or(subject);
            verdict = mutate::mutate(&selected, subject, &subject.object, now, false);
            if verdict.patch.as_ref().is_some_and(|patch| !mutate::applies(&subject.object, patch))
            {
                let (patch, changes, status) = (None, Vec::new(), None);
                verdict = Verdict { patch, changes, status, patch_failed: true, ..verdict };
            }
        }
        Webhook::Validate => {
            verdict.findings = findings(&selected, subject, now);
            if let Some(unique) = unique.filter(|_| !verdict.findings.is_empty()) {
                let others = findings(&selected, &unique, now);
                let places: HashSet<(&str, &str)> = others.iter().map(Finding::place).collect();
                verdict.findings.retain(|found| places.contains(&found.place()));
            }
            if selected.policies().nth(1).is_some() {
                verdict::merge_duplicates(&mut verdict.findings);
            }
        }
    }
    verdict.policies = selected.into_indices();
    verdict
}

/// What the policies find, each by itself.
fn findings<'p, 'a: 'p>(
    selected: &Selected<'p>,
    subject: &Subject<'a>,
    now: i64,
) -> Vec<Finding<'p>> {
    let (mut findings, budgets) = (Vec::new(), judge::Budgets::default());
    for (_, policy) in selected.policies() {
        judge::judge(policy, selected, subject, now, &budgets, &mut findings);
    }
    findings
}
