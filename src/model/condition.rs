//! Conditions as rules read them: three values plus absence.

use super::Json;

/// The `status` of a condition. Absence of the condition is the fourth value and is an
/// `Option::None` around this: absent is not Unknown, Unknown is not False.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// `"True"`.
    True,
    /// `"False"`.
    False,
    /// `"Unknown"`.
    Unknown,
}

impl ConditionStatus {
    /// Reads one of the three spellings; everything else is not a status.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "True" => Some(Self::True),
            "False" => Some(Self::False),
            "Unknown" => Some(Self::Unknown),
            _ => None,
        }
    }

    /// As it is spelled on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A list of conditions, read where it stands. Tolerant: what is not a list has no conditions, what
/// is not an object with a string `type` is not a condition. Shape is judged elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'j, 'a>(Option<&'j [Json<'a>]>);

impl<'j, 'a> Conditions<'j, 'a> {
    /// The conditions in a value that should be a list of them.
    #[must_use]
    pub fn of(value: Option<&'j Json<'a>>) -> Self {
        Self(value.and_then(Json::as_array))
    }

    /// All of them, as they stand.
    #[must_use]
    pub fn items(&self) -> &'j [Json<'a>] {
        self.0.unwrap_or_default()
    }

    /// The condition of this type; the first of several, as kstatus and most readers do. Scans:
    /// real lists have fewer than a dozen, and a table would cost an allocation a request.
    #[must_use]
    pub fn find(&self, kind: &str) -> Option<&'j Json<'a>> {
        self.0?.iter().find(|item| item.get("type").and_then(Json::as_str) == Some(kind))
    }

    /// The status of a condition. `None` where it is not one of the three, which is evidence of nothing.
    #[must_use]
    pub fn status_of(condition: &Json<'_>) -> Option<ConditionStatus> {
        condition.get("status").and_then(Json::as_str).and_then(ConditionStatus::parse)
    }
}
