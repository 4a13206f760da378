//! Reads fields like the Go code of kstatus: strictly, leniently, or as a typed list of conditions.
//!
//! The way of reading decides the effect of a wrong type, so each has its own method, and rules do
//! not read the tree directly.

use crate::model::Json;

use super::ComputeError;

/// An object. Paths are member names joined by dots; no name that kstatus reads contains a dot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'j, 'a>(&'j Json<'a>);

/// A condition as rules read it. Absent and null members are empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'j> {
    pub(crate) kind: &'j str,
    pub(crate) status: &'j str,
    pub(crate) reason: &'j str,
    pub(crate) message: &'j str,
}

impl Condition<'_> {
    /// Whether the status is exactly `True`.
    pub(crate) fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether the status is exactly `False`.
    pub(crate) fn is_false(&self) -> bool {
        self.status == "False"
    }
}

impl<'j, 'a> Fields<'j, 'a> {
    pub(crate) const fn new(object: &'j Json<'a>) -> Self {
        Self(object)
    }

    /// The value at a path. A null inside the path counts as absent; a null at its end is a value.
    ///
    /// # Errors
    /// A value inside the path is neither null nor an object.
    pub(crate) fn find(&self, path: &str) -> Result<Option<&'j Json<'a>>, ComputeError> {
        let mut value = self.0;
        let mut start = 0;
        for name in path.split('.') {
            if value.is_null() {
                return Ok(None);
            }
            if !matches!(value, Json::Object(_)) {
                let above = path.get(..start).unwrap_or_default().trim_end_matches('.');
                let above = if above.is_empty() { "the object" } else { above };
                return Err(wrong_type(above.to_owned(), value, OBJECT));
            }
            match value.get(name) {
                Some(member) => value = member,
                None => return Ok(None),
            }
            start += name.len() + 1;
        }
        Ok(Some(value))
    }

    /// The text at a path, like `NestedString`.
    ///
    /// # Errors
    /// The value has another type, including null.
    pub(crate) fn strict_text(&self, path: &str) -> Result<Option<&'j str>, ComputeError> {
        self.strict(path, Json::as_str, TEXT)
    }

    /// The integer at a path, like `NestedInt64`. Go reads `1.0` and `1e0` as floats.
    ///
    /// # Errors
    /// The value has another type, including null.
    pub(crate) fn strict_integer(&self, path: &str) -> Result<Option<i64>, ComputeError> {
        self.strict(path, Json::as_int64, INTEGER)
    }

    /// The list at a path, like `NestedSlice`.
    ///
    /// # Errors
    /// The value has another type, including null.
    pub(crate) fn strict_list(&self, path: &str) -> Result<Option<&'j [Json<'a>]>, ComputeError> {
        self.strict(path, Json::as_array, LIST)
    }

    fn strict<T>(
        &self,
        path: &str,
        read: impl Fn(&'j Json<'a>) -> Option<T>,
        expected: &'static str,
    ) -> Result<Option<T>, ComputeError> {
        let Some(value) = self.find(path)? else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| wrong_type(path.to_owned(), value, expected))
    }

    /// The text at a path, or `otherwise` if there is none.
    pub(crate) fn text(&self, path: &str, otherwise: &'j str) -> &'j str {
        self.lenient(path).and_then(Json::as_str).unwrap_or(otherwise)
    }

    /// The integer at a path, or `otherwise` if there is none.
    pub(crate) fn integer(&self, path: &str, otherwise: i64) -> i64 {
        self.lenient(path).and_then(Json::as_int64).unwrap_or(otherwise)
    }

    /// Whether the value at a path is `true`.
    pub(crate) fn is_true(&self, path: &str) -> bool {
        self.lenient(path) == Some(&Json::Bool(true))
    }

    /// `status.conditions`, decoded like a Go struct with four strings: null is the zero value at
    /// every level, and other members are ignored.
    ///
    /// # Errors
    /// The status, the list, an element or one of the four members has the wrong type.
    pub(crate) fn conditions(&self) -> Result<Vec<Condition<'j>>, ComputeError> {
        let items = match self.find("status.conditions")? {
            None | Some(Json::Null) => return Ok(Vec::new()),
            Some(Json::Array(items)) => items,
            Some(other) => return Err(wrong_type("status.conditions".to_owned(), other, LIST)),
        };
        items.iter().enumerate().map(|(index, item)| condition(index, item)).collect()
    }

    fn lenient(&self, path: &str) -> Option<&'j Json<'a>> {
        self.find(path).ok().flatten()
    }
}

/// Reads a member like a Go type assertion: `None` if it is absent, and an error where Go would panic,
/// including null.
pub(crate) fn asserted<'j, 'a, T>(
    element: &'j Json<'a>,
    name: &str,
    path: &str,
    (read, expected): (impl Fn(&'j Json<'a>) -> Option<T>, &'static str),
) -> Result<Option<T>, ComputeError> {
    let Some(value) = element.get(name) else { return Ok(None) };
    read(value).map(Some).ok_or_else(|| wrong_type(format!("{path}.{name}"), value, expected))
}

pub(crate) fn wrong_type(path: String, found: &Json<'_>, expected: &'static str) -> ComputeError {
    ComputeError::WrongType { path, found: found.kind(), expected }
}

pub(crate) const OBJECT: &str = "an object";
pub(crate) const TEXT: &str = "a string";
const LIST: &str = "a list";
const INTEGER: &str = "a 64-bit integer without fraction or exponent";

fn condition<'j>(index: usize, item: &'j Json<'_>) -> Result<Condition<'j>, ComputeError> {
    if !matches!(item, Json::Object(_) | Json::Null) {
        return Err(wrong_type(format!("status.conditions[{index}]"), item, OBJECT));
    }
    let member = |name: &str| match item.get(name) {
        None | Some(Json::Null) => Ok(""),
        Some(Json::String(text)) => Ok(text.as_ref()),
        Some(other) => Err(wrong_type(format!("status.conditions[{index}].{name}"), other, TEXT)),
    };
    Ok(Condition {
        kind: member("type")?,
        status: member("status")?,
        reason: member("reason")?,
        message: member("message")?,
    })
}
