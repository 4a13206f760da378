//! Names with stars, as webhook rules and writers use them.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use wildmatch::WildMatchPattern;

/// A name in which `*` stands for any run of characters, colons and dots included.
///
/// Only the star is special: `?` is left as it is, because a policy that means one unknown
/// character in a group or user name does not exist, and a name that has one should match itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Glob(Kind);

/// Almost every name in a policy has no star: those are compared, not matched.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Any,
    Exact(String),
    Pattern(WildMatchPattern<'*', '\0'>),
}

impl Glob {
    /// Whether the whole of `name` matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match &self.0 {
            Kind::Any => true,
            Kind::Exact(text) => text == name,
            Kind::Pattern(pattern) => pattern.matches(name),
        }
    }

    /// A name that matches: an example for each star.
    pub(crate) fn sample(&self) -> String {
        self.to_string().replace('*', "example")
    }

    /// The name, where it has no star.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        match &self.0 {
            Kind::Exact(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Any => formatter.write_str("*"),
            Kind::Exact(text) => formatter.write_str(text),
            Kind::Pattern(pattern) => formatter.write_str(&pattern.pattern()),
        }
    }
}

impl From<&str> for Glob {
    fn from(text: &str) -> Self {
        Self(match text {
            "*" => Kind::Any,
            _ if text.contains('*') => Kind::Pattern(WildMatchPattern::new(text)),
            _ => Kind::Exact(text.to_owned()),
        })
    }
}

impl FromStr for Glob {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        let glob = |text: &str| text.parse::<Glob>().unwrap();
        assert!(
            glob("system:serviceaccount:*:crossplane")
                .matches("system:serviceaccount:a-b:crossplane")
        );
        assert!(
            !glob("system:serviceaccount:*:crossplane")
                .matches("system:serviceaccount:a:crossplane2")
        );
        assert!(glob("*.azure.com").matches("storage.azure.com"));
        assert!(!glob("*.azure.com").matches("azure.com"));
        assert!(glob("*").matches(""));
        assert!(!glob("v1").matches("v1beta1"));
        assert!(!glob("v?").matches("v1"));
    }
}
