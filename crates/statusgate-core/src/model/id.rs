//! Names of policies and rules, with their positions.

use std::fmt;
use std::ops::Deref;

/// The name of a policy or the id of a rule, with its position: that of a policy in its set, that of a
/// rule in the table of its convention or policy. People read the name; counters use the position.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Id {
    name: String,
    index: usize,
}

impl Id {
    /// A name at a position.
    pub const fn new(name: String, index: usize) -> Self {
        Self { name, index }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The position.
    pub const fn index(&self) -> usize {
        self.index
    }
}

impl Deref for Id {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name, f)
    }
}
