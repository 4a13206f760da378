//! Where a value is, as a list on the stack.

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

impl Path<'_> {
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
        match self {
            Self::Root { field, name } => (if as_field { *field } else { *name }).to_owned(),
            Self::Key(parent, name) => match parent.written(as_field) {
                parent if parent.is_empty() => (*name).to_owned(),
                parent => format!("{parent}.{name}"),
            },
            Self::Index(parent, index) => format!("{}[{index}]", parent.written(as_field)),
        }
    }
}
