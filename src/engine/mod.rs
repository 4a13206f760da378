//! The decision. Pure: no IO, no clock, no randomness; the same subject gives the same verdict.
//!
//! ```
//! use statusgate::engine::decide;
//! use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
//! use statusgate::policy::PolicySet;
//!
//! let policies = PolicySet::compile(&PolicySet::examples())?;
//! let subject = Subject {
//!     resource: Resource {
//!         group: "vshn.appcat.vshn.io".into(),
//!         version: "v1".into(),
//!         resource: "vshnredis".into(),
//!     },
//!     subresource: "status".into(),
//!     operation: Operation::Update,
//!     writer: Writer::default(),
//!     object: Object::parse(r#"{"status": {"phase": "ready"}}"#)?,
//!     old: Some(Object::parse("{}")?),
//! };
//! let verdict = decide(&policies, &subject, Webhook::Validate, jiff::Timestamp::UNIX_EPOCH);
//! assert!(verdict.is_denied());
//! assert_eq!(verdict.findings[0].rule, "appcat/phase-value");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agreement;
mod because;
mod cel;
mod conditions;
mod draft;
mod evidence;
mod fields;
mod fill;
mod holder;
mod judge;
mod mutate;
mod phase;
mod ratchet;
mod replay;
mod review;
mod rounds;
mod standing;
mod verdict;

use jiff::Timestamp;

use crate::model::{Subject, Webhook};
use crate::policy::PolicySet;

pub use crate::policy::Action;
pub(crate) use agreement::repaired;
pub(crate) use evidence::Element;
pub use evidence::{Facts, Truth};
pub(crate) use fields::fits;
use replay::Replay;
pub use review::{Found, Review, review};
pub use standing::Standing;
pub use verdict::{Cause, Finding, Verdict};

/// Judges a subject by all policies that select it.
///
/// Several policies on one resource combine so: each is applied whole, in the order of the
/// documents; a later one sees what earlier ones filled in, and does not fill in again what is
/// there; one alone sets the phase; all findings count; what several say is said once, with the
/// strongest action.
#[must_use]
pub fn decide<'p>(
    policies: &'p PolicySet,
    subject: &'p Subject<'_>,
    webhook: Webhook,
    now: Timestamp,
) -> Verdict<'p> {
    let mut verdict = Verdict::default();
    let now = now.as_second();
    match webhook {
        Webhook::Mutate => {
            verdict.policies.extend(policies.select(subject).map(|(index, _)| index));
            rounds::run(policies, subject, &subject.object, now, &mut verdict);
        }
        Webhook::Validate => {
            for (index, policy) in policies.select(subject) {
                verdict.policies.push(index);
                let replay = Replay { policies, policy, subject, now };
                judge::judge(policy, subject, replay, now, &mut verdict.findings);
            }
            if verdict.policies.len() > 1 {
                verdict::join_twins(&mut verdict.findings);
            }
        }
    }
    verdict
}
