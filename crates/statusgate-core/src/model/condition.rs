//! Conditions as rules read them.

use serde::Serialize;

use super::Json;

/// The `status` of a condition. `None` stands for an absent condition: absent is not Unknown, and
/// Unknown is not False.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum ConditionStatus {
    /// `"True"`.
    True,
    /// `"False"`.
    False,
    /// `"Unknown"`.
    Unknown,
}

impl ConditionStatus {
    /// Reads a status; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::True, Self::False, Self::Unknown].into_iter().find(|status| status.name() == text)
    }

    /// The spelling on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The maximum number of elements of a list that rules read. Real lists have at most some hundred. A
/// megabyte has 300,000, and each can cost a finding and a part of a patch.
pub const MAX_ELEMENTS: usize = 1_000;

/// A list of conditions, borrowed. A value that is not a list has no conditions, and an element
/// without a string `type` is not a condition. Other rules judge the shape, and the length: of a longer list,
/// these are the first [`MAX_ELEMENTS`].
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'j, 'a>(Option<&'j [Json<'a>]>);

impl<'j, 'a> Conditions<'j, 'a> {
    /// The conditions in a value that should be a list of them.
    pub fn of(value: Option<&'j Json<'a>>) -> Self {
        let items = value.and_then(Json::as_array);
        Self(items.map(|items| items.get(..MAX_ELEMENTS).unwrap_or(items)))
    }

    /// The elements of the list.
    pub fn items(&self) -> &'j [Json<'a>] {
        self.0.unwrap_or_default()
    }

    /// The first condition of this type, as kstatus and most clients read it. A scan: real lists have
    /// fewer than a dozen elements, and a table would cost an allocation per request.
    pub fn find(&self, kind: &str) -> Option<&'j Json<'a>> {
        self.0?.iter().find(|item| item.get("type").and_then(Json::as_str) == Some(kind))
    }

    /// The status of a condition; `None` if it is not one of the three, which is no evidence.
    pub fn status_of(condition: &Json<'_>) -> Option<ConditionStatus> {
        condition.get("status").and_then(Json::as_str).and_then(ConditionStatus::parse)
    }
}
