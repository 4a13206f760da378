//! An object as kstatus' Go code reads it: strictly, leniently, or as a typed list of conditions.
//!
//! Which of the three a rule uses decides what a field of a wrong type does to it, so each has its
//! own name here and no rule reads the tree by itself.

use crate::model::Json;

use super::ComputeError;

/// One object. Paths are member names joined by dots; none of kstatus' own has a dot inside a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'j, 'a>(&'j Json<'a>);

/// A condition as rules read it: four texts, empty where they are absent or null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'j> {
    pub(crate) kind: &'j str,
    pub(crate) status: &'j str,
    pub(crate) reason: &'j str,
    pub(crate) message: &'j str,
}

impl Condition<'_> {
    /// Whether its status is exactly `True`; `true` and `TRUE` are nothing.
    pub(crate) fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether its status is exactly `False`.
    pub(crate) fn is_false(&self) -> bool {
        self.status == "False"
    }
}

impl<'j, 'a> Fields<'j, 'a> {
    pub(crate) const fn new(object: &'j Json<'a>) -> Self {
        Self(object)
    }

    /// The value at a path. A null on the way is absence; a null at its end is a value.
    ///
    /// # Errors
    /// When something on the way is neither null nor an object.
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

    /// The text at a path, as `NestedString` reads it.
    ///
    /// # Errors
    /// When it is of another type, null included.
    pub(crate) fn strict_text(&self, path: &str) -> Result<Option<&'j str>, ComputeError> {
        let Some(value) = self.find(path)? else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| wrong_type(path.to_owned(), value, TEXT))
    }

    /// The integer at a path, as `NestedInt64` reads it. JSON's `1.0` and `1e0` are floats in Go.
    ///
    /// # Errors
    /// When it is of another type, null included.
    pub(crate) fn strict_integer(&self, path: &str) -> Result<Option<i64>, ComputeError> {
        let Some(value) = self.find(path)? else { return Ok(None) };
        value.as_int64().map(Some).ok_or_else(|| wrong_type(path.to_owned(), value, INTEGER))
    }

    /// The list at a path, as `NestedSlice` reads it.
    ///
    /// # Errors
    /// When it is of another type, null included.
    pub(crate) fn strict_list(&self, path: &str) -> Result<Option<&'j [Json<'a>]>, ComputeError> {
        let Some(value) = self.find(path)? else { return Ok(None) };
        value.as_array().map(Some).ok_or_else(|| wrong_type(path.to_owned(), value, LIST))
    }

    /// The text at a path, or `otherwise` where there is none, whatever is there instead.
    pub(crate) fn text(&self, path: &str, otherwise: &'j str) -> &'j str {
        self.lenient(path).and_then(Json::as_str).unwrap_or(otherwise)
    }

    /// The integer at a path, or `otherwise` where there is none, whatever is there instead.
    pub(crate) fn integer(&self, path: &str, otherwise: i64) -> i64 {
        self.lenient(path).and_then(Json::as_int64).unwrap_or(otherwise)
    }

    /// Whether the path leads to `true`.
    pub(crate) fn is_true(&self, path: &str) -> bool {
        self.lenient(path) == Some(&Json::Bool(true))
    }

    /// `status.conditions`, decoded as a Go struct with four texts would be: null is the zero value
    /// at every level, other members of an element are not looked at, and one bad element spoils
    /// the list.
    ///
    /// # Errors
    /// When status is no object, the list no list, an element no object or one of the four no text.
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

/// The member of an element of a list, as a Go type assertion reads it: `None` where it is absent,
/// and where Go would panic, null included, an error.
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
