//! What comes out of a judgement.

use json_patch::Patch;

use crate::policy::Action;

/// One thing a rule says about a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<'p> {
    /// The policy that applied the rule.
    pub policy: &'p str,
    /// The rule id, `appcat/phase-ready`.
    pub rule: &'p str,
    /// The field, as the API server names fields: `status.conditions[0].type`.
    pub field: String,
    /// What kind of mistake it is.
    pub cause: Cause,
    /// One sentence that stands alone, without the rule id.
    pub message: String,
    /// What happens.
    pub action: Action,
}

/// Kinds of mistakes, as `metav1.StatusCause` knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A field that must be there is not.
    Required,
    /// A value of the wrong type.
    TypeInvalid,
    /// A value that is none of those that exist.
    NotSupported,
    /// A value that does not fit.
    Invalid,
    /// A key that is there twice.
    Duplicate,
    /// A text or list that is too long.
    TooLong,
    /// A value that this writer may not set.
    Forbidden,
}

impl Cause {
    /// The `reason` of a cause on the wire.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::Forbidden => "FieldValueForbidden",
        }
    }
}

/// The folded result.
#[derive(Clone, Debug, Default)]
pub struct Verdict<'p> {
    /// The policies that applied, by their place in the set.
    pub policies: Vec<u16>,
    /// Everything that was found, in the order of policies and rules.
    pub findings: Vec<Finding<'p>>,
    /// What to change. Never empty where it is there.
    pub patch: Option<Patch>,
    /// A patch was made that did not apply to its own object. That is a bug of ours: nothing is
    /// sent, and someone should be told.
    pub patch_failed: bool,
}

impl Verdict<'_> {
    /// Whether the write is refused.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.findings.iter().any(|finding| finding.action == Action::Deny)
    }
}
