//! What is known about the fate of a write.

use serde_json::Value;

use super::cause::Cause;

/// Whether the API server accepts a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Accepted,
    /// It does not.
    Rejected(Vec<Cause>),
    /// That is not known. The messages say why.
    NotProven(Vec<Cause>),
}

/// The fate of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether the API server accepts it.
    pub verdict: Verdict,
    /// The object that it stores then.
    pub stored: Value,
    /// The causes that ratcheting forgives, because the values did not change.
    pub forgiven: Vec<Cause>,
}

/// A cause that is found, or that is possible.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) cause: Cause,
    pub(super) is_proven: bool,
    /// Whether it is forgiven where the value did not change.
    pub(super) ratchets: bool,
    /// Whether it is about `x-kubernetes-validations`.
    pub(super) is_rule: bool,
}

impl Fault {
    pub(super) const fn proven(cause: Cause) -> Self {
        Self { cause, is_proven: true, ratchets: true, is_rule: false }
    }

    /// Something that is not known about a value.
    pub(super) fn unknown(field: String, what: &str) -> Self {
        let cause = Cause::new(field, NOT_PROVEN, format!("not checked: {what}"));
        Self { cause, is_proven: false, ratchets: true, is_rule: false }
    }
}

/// The reason of a cause that is only possible.
const NOT_PROVEN: &str = "NotProven";

impl Verdict {
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        let (found, possible): (Vec<Fault>, Vec<Fault>) =
            faults.into_iter().partition(|fault| fault.is_proven);
        let causes = |faults: Vec<Fault>| faults.into_iter().map(|fault| fault.cause).collect();
        match (found.is_empty(), possible.is_empty()) {
            (false, _) => Self::Rejected(causes(found)),
            (true, false) => Self::NotProven(causes(possible)),
            (true, true) => Self::Accepted,
        }
    }
}
