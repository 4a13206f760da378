//! The parts that `&&` joins.

/// One of the parts that `&&` joins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// It needs brackets after `!`.
    Test,
    /// It needs none.
    Call,
    /// It is in brackets.
    Group,
}

impl Part {
    pub(super) fn test(text: String) -> Self {
        Self { text, shape: Shape::Test }
    }

    pub(super) fn call(text: String) -> Self {
        Self { text, shape: Shape::Call }
    }

    pub(super) fn group(text: &str) -> Self {
        Self { text: format!("({text})"), shape: Shape::Group }
    }

    /// Parts as one.
    pub(super) fn all(mut parts: Vec<Self>) -> Self {
        match parts.len() {
            0 => Self::call("true".to_owned()),
            1 => parts.remove(0),
            _ => Self::group(&joined(parts, " && ")),
        }
    }

    /// Without brackets around it.
    pub(super) fn bare(self) -> String {
        match (self.shape, self.text.get(1..self.text.len().saturating_sub(1))) {
            (Shape::Group, Some(inner)) => inner.to_owned(),
            _ => self.text,
        }
    }
}

/// Adds the parts that are not known.
pub(super) fn add(known: &mut Vec<Part>, parts: Vec<Part>) {
    for part in parts {
        if !known.contains(&part) {
            known.push(part);
        }
    }
}

pub(super) fn joined(parts: impl IntoIterator<Item = Part>, by: &str) -> String {
    parts.into_iter().map(|part| part.text).collect::<Vec<_>>().join(by)
}
