//! Where a value is, as a list on the stack.

use std::fmt::{self, Write as _};

/// A path from the value that the API server validates.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'p> {
    /// The value itself: its field, such as `status`, and its name in messages, which is empty where the API
    /// server validates the value alone.
    Root {
        field: &'p str,
        name: &'p str,
    },
    Key(&'p Self, &'p str),
    Index(&'p Self, usize),
}

impl<'p> Path<'p> {
    pub(super) const fn key(&'p self, name: &'p str) -> Self {
        Self::Key(self, name)
    }

    pub(super) const fn index(&'p self, index: usize) -> Self {
        Self::Index(self, index)
    }

    pub(super) const fn is_root(&self) -> bool {
        matches!(self, Self::Root { .. })
    }

    /// `status.conditions[0].type`.
    pub(super) fn field(&self) -> String {
        self.written(true)
    }

    /// The path in a message: without `status` for a write of the status.
    pub(super) fn name(&self) -> String {
        self.written(false)
    }

    fn written(&self, as_field: bool) -> String {
        let mut text = String::new();
        // Writing to a `String` does not fail.
        let _ = self.write(as_field, &mut text);
        text
    }

    fn write(&self, as_field: bool, text: &mut String) -> fmt::Result {
        match self {
            Self::Root { field, name } => text.push_str(if as_field { field } else { name }),
            Self::Key(parent, name) => {
                parent.write(as_field, text)?;
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Self::Index(parent, index) => {
                parent.write(as_field, text)?;
                write!(text, "[{index}]")?;
            }
        }
        Ok(())
    }
}
