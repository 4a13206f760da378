//! Names with stars, as webhook rules and writers use them.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use wildmatch::WildMatchPattern;

/// A name in which `*` matches any number of characters, including colons and dots.
///
/// Only the star is special. `?` matches itself: no policy needs one unknown character in a group or user
/// name, and a name that contains `?` should match itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glob(GlobForm);

/// Almost every name in a policy has at most one star and needs no pattern matching. A policy for
/// `*.azure.com` is compared with every write.
#[derive(Clone, Debug, Default, PartialEq)]
enum GlobForm {
    #[default]
    Any,
    Exact(String),
    OneStar {
        before: String,
        behind: String,
    },
    Pattern(WildMatchPattern<'*', '\0'>),
}

impl Glob {
    /// Whether the complete `name` matches.
    pub fn matches(&self, name: &str) -> bool {
        match &self.0 {
            GlobForm::Any => true,
            GlobForm::Exact(text) => text == name,
            GlobForm::OneStar { before, behind } => {
                name.strip_prefix(before.as_str()).is_some_and(|rest| rest.ends_with(behind))
            }
            GlobForm::Pattern(pattern) => pattern.matches(name),
        }
    }

    /// Whether a name can match both lists. An empty list of versions means all versions.
    pub fn any_overlap(some: &[Self], others: &[Self]) -> bool {
        some.is_empty()
            || others.is_empty()
            || some.iter().any(|one| others.iter().any(|other| one.overlaps(other)))
    }

    /// Whether a name can match both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        for (one, other) in [(self, other), (other, self)] {
            if let Some(name) = one.exact() {
                return other.matches(name);
            }
        }
        let (one, other) = (self.to_string(), other.to_string());
        let (one, other) = (one.as_bytes(), other.as_bytes());
        // A table from the ends: whether the rest of one overlaps the rest of the other. A recursion would
        // be exponential in the number of stars.
        let mut left = vec![vec![false; other.len() + 2]; one.len() + 2];
        for at in (0..=one.len()).rev() {
            for with in (0..=other.len()).rev() {
                left[at][with] = match (one.get(at), other.get(with)) {
                    (None, None) => true,
                    (Some(b'*'), _) | (_, Some(b'*')) => left[at + 1][with] || left[at][with + 1],
                    (one, other) => one == other && left[at + 1][with + 1],
                };
            }
        }
        left[0][0]
    }

    /// Whether this matches every name that `other` matches. An approximation: a star in `other` is a
    /// character.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.matches(&other.to_string())
    }

    /// A name that matches, with an example for each star.
    pub fn sample(&self) -> String {
        self.to_string().replace('*', "example")
    }

    /// The name, if it has no star.
    pub fn exact(&self) -> Option<&str> {
        match &self.0 {
            GlobForm::Exact(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            GlobForm::Any => formatter.write_str("*"),
            GlobForm::Exact(text) => formatter.write_str(text),
            GlobForm::OneStar { before, behind } => write!(formatter, "{before}*{behind}"),
            GlobForm::Pattern(pattern) => formatter.write_str(&pattern.pattern()),
        }
    }
}

impl From<&str> for Glob {
    fn from(text: &str) -> Self {
        Self(match text.split_once('*') {
            None => GlobForm::Exact(text.to_owned()),
            Some(("", "")) => GlobForm::Any,
            Some((_, behind)) if behind.contains('*') => {
                GlobForm::Pattern(WildMatchPattern::new(text))
            }
            Some((before, behind)) => {
                GlobForm::OneStar { before: before.to_owned(), behind: behind.to_owned() }
            }
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
    fn a_star_matches_any_number_of_characters() {
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
        // The texts before and after a star do not share characters.
        assert!(!glob("ab*ba").matches("aba") && glob("ab*ba").matches("abba"));
        assert!(glob("a*b*c").matches("a-b-b-c") && !glob("a*b*c").matches("ac"));
        for text in ["", "*", "v1", "*.azure.com", "a*", "a*b*c"] {
            assert_eq!(glob(text).to_string(), text);
        }
    }

    #[test]
    fn two_globs_overlap_if_one_name_matches_both() {
        let overlaps = |one: &str, other: &str| {
            let (one, other): (Glob, Glob) = (one.into(), other.into());
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        for (one, other) in [
            ("v1", "v1"),
            ("*", "v1"),
            ("v1*", "*beta1"),
            ("v*1", "v1*"),
            ("*a*", "b*c"),
            ("*", ""),
        ] {
            assert!(overlaps(one, other), "{one} {other}");
        }
        for (one, other) in [("v1", "v2"), ("v1*", "v2*"), ("*alpha*", "v1"), ("v1", "v1*2")] {
            assert!(!overlaps(one, other), "{one} {other}");
        }
    }
}
