//! The small shapes that many keys share. Most are strings with a form: the structural check reports
//! what is wrong with one by the name in `x-check`.

use std::fmt;
use std::str::FromStr;

use schemars::{Schema, json_schema};

use crate::language::shapes::{self, Text, TextCheck, check, form, pointer, text_shape};
use crate::model::Pointer;

/// The forms of documents that the language does not have.
const CHECKS: [TextCheck; 7] = [
    check::<ListPointer>(),
    check::<StatusPointer>(),
    check::<StatusOrBelow>(),
    check::<Name>(),
    check::<Sentence>(),
    check::<Origin>(),
    check::<Watched>(),
];

/// Checks a string that must have a form.
pub(super) fn check_form(form: &str, text: &str) -> Result<(), String> {
    let mut forms = CHECKS.iter().chain(&shapes::CHECKS);
    forms.find(|(name, _)| *name == form).map_or(Ok(()), |(_, check)| check(text))
}

/// A pointer to something inside `.status`: what rules judge and change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusPointer(Pointer);

/// A pointer to a list inside `.status`, or with one `*` to the lists in the elements of another list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPointer(Pointer);

/// A pointer to `.status` or to something inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusOrBelow(Pointer);

/// A name that becomes a part of a rule id, and so of metric labels and responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// A sentence in a response: one line, and not longer than clients show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence(String);

/// The longest sentence, in characters. A response has up to 32 of them, and controllers copy it into
/// a condition: its message may have 32,768.
const MAX_SENTENCE: usize = 200;

/// Where a value is copied from. The clock alone is no source: a value that a controller drops with its
/// next write and gets anew would cause an endless loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The same place of the stored object.
    Stored,
    /// In a condition, the time at which it became what it is: the stored one while the members of
    /// `mustMoveOn` are the same, otherwise the time of the write. The next write finds it stored.
    Transition,
    /// A field of the status.
    Field(Pointer),
    /// `metadata.creationTimestamp`.
    CreationTimestamp,
    /// `metadata.deletionTimestamp`.
    DeletionTimestamp,
    /// `metadata.generation`.
    Generation,
}

const ORIGINS: [(&str, Origin); 5] = [
    ("stored", Origin::Stored),
    ("transition", Origin::Transition),
    ("/metadata/creationTimestamp", Origin::CreationTimestamp),
    ("/metadata/deletionTimestamp", Origin::DeletionTimestamp),
    ("/metadata/generation", Origin::Generation),
];

/// What a trigger watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The value at a pointer.
    Field(Pointer),
    /// The status of the condition of this type.
    Condition(String),
}

form!(
    StatusPointer(Pointer),
    "status-pointer",
    {"description": "A JSON pointer below /status.", "type": "string", "pattern": "^/status/."},
    |text| pointer(text.parse(), Pointer::is_below_status, "this must point below /status")
);
form!(
    ListPointer(Pointer),
    "list-pointer",
    {
        "description": "A JSON pointer below /status. One name may be *, for each element of a list or each value of a map.",
        "type": "string",
        "pattern": "^/status/.",
    },
    |text| pointer(Pointer::of_list(text), Pointer::is_below_status, "this must point below /status")
);
form!(
    StatusOrBelow(Pointer),
    "status-or-below",
    {"description": "/status, or a JSON pointer below it.", "type": "string", "pattern": "^/status(/.|$)"},
    |text| pointer(
        text.parse(),
        |found| found.tokens().first().is_some_and(|first| first == "status"),
        "this must be /status or point below it"
    )
);
form!(
    Name(String),
    "name",
    {
        "description": "At most 63 of a-z, 0-9, '-' and '.'; it starts and ends with a letter or digit.",
        "type": "string",
        "maxLength": 63,
        "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    },
    |text| name(text)
);
form!(
    Sentence(String),
    "sentence",
    {"description": "One line of text.", "type": "string", "minLength": 1, "maxLength": MAX_SENTENCE},
    |text| sentence(text)
);

fn name(text: &str) -> Result<String, String> {
    let letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let good = text.len() <= 63
        && text.chars().all(|other| letter(other) || matches!(other, '-' | '.'))
        && text.starts_with(letter)
        && text.ends_with(letter);
    if good {
        Ok(text.to_owned())
    } else {
        Err("a name has at most 63 of a-z, 0-9, '-' and '.', and starts and ends with a letter or digit"
            .to_owned())
    }
}

fn sentence(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err("this must be one line of text".to_owned());
    }
    let length = text.chars().count();
    if length > MAX_SENTENCE {
        return Err(format!("this must have at most {MAX_SENTENCE} characters, it has {length}"));
    }
    Ok(text.to_owned())
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = ORIGINS.into_iter().find(|(name, _)| *name == text);
        match known {
            Some((_, origin)) => Ok(origin),
            None => text.parse::<StatusPointer>().map(|StatusPointer(path)| Self::Field(path)),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => path.fmt(formatter),
            known => {
                let name = ORIGINS.iter().find(|(_, origin)| origin == known);
                formatter.write_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}

impl Text for Origin {
    const CHECK: &'static str = "origin";

    fn schema() -> Schema {
        json_schema!({
            "description": "stored, transition, a JSON pointer below /status, /metadata/creationTimestamp, \
                            /metadata/deletionTimestamp or /metadata/generation.",
            "type": "string",
        })
    }
}
text_shape!(Origin);

const CONDITION: &str = "condition ";

impl FromStr for Watched {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(kind) = text.strip_prefix(CONDITION).filter(|kind| !kind.is_empty()) {
            return Ok(Self::Condition(kind.to_owned()));
        }
        if !text.starts_with('/') {
            return Err("this is neither a field nor a condition: write a pointer such as \
                        /status/phase, or \"condition\" and a type"
                .to_owned());
        }
        text.parse::<StatusPointer>().map(|StatusPointer(path)| Self::Field(path))
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => path.fmt(formatter),
            Self::Condition(kind) => write!(formatter, "{CONDITION}{kind}"),
        }
    }
}

impl Text for Watched {
    const CHECK: &'static str = "watched";

    fn schema() -> Schema {
        json_schema!({
            "description": "A JSON pointer below /status, or \"condition\" and a type.",
            "type": "string",
        })
    }
}
text_shape!(Watched);
