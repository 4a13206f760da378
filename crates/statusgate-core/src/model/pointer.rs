//! JSON pointers of policies, parsed once.

use std::fmt;
use std::str::FromStr;

use json_patch::jsonptr::PointerBuf;

/// Required by RFC 6901.
const NO_SLASH: &str = "a JSON pointer starts with '/'";

/// RFC 6901: `~` is only valid before 0 or 1.
const BAD_ESCAPE: &str = "'~' must be written '~0' and '/' inside a name '~1'";

/// RFC 6901 allows empty names, but no Kubernetes field has one.
const EMPTY_TOKEN: &str = "a name between two slashes is empty";

/// `*` in a pointer to one value.
const WILDCARD: &str = "only the path of a list of conditions can contain '*'";

/// A `*` that does not stand for the elements of one list or the values of one map.
const NO_OUTER_LIST: &str = "one '*' stands for the elements of a list or the values of a map: /status/parents/*/conditions";

/// The name that stands for each element of an outer list, or each value of a map.
const EACH: &str = "*";

/// A JSON pointer (RFC 6901). The path of a list of conditions may contain one `*`, which stands for
/// each element of an outer list or each value of a map. A lookup by such a path finds nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer {
    /// `["status", "phase"]`.
    tokens: Vec<String>,
    /// `/status/phase`, for a patch.
    text: PointerBuf,
    /// `status.phase`, as in errors of the API server.
    field: String,
}

/// The item of a list that a name in a pointer stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Counted from 0.
    At(usize),
    /// `-1`: the last one, an extension of RFC 6901 for lists that grow at their end.
    Last,
}

impl Index {
    /// `None` if this name is only a key of a map.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "-1" => Some(Self::Last),
            signed if signed.starts_with('+') => None,
            name => name.parse().ok().map(Self::At),
        }
    }
}

impl Pointer {
    /// The unescaped names.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The names below `/status`; empty for any other pointer.
    pub fn below_status(&self) -> &[String] {
        self.below("status")
    }

    /// The names below `/spec`; empty for any other pointer.
    pub fn below_spec(&self) -> &[String] {
        self.below("spec")
    }

    fn below(&self, root: &str) -> &[String] {
        match self.tokens.split_first() {
            Some((first, rest)) if first == root => rest,
            _ => &[],
        }
    }

    /// `labels` or `annotations`, and the key, for the pointer to one of them.
    pub fn in_metadata(&self) -> Option<(&str, &[String])> {
        match self.tokens.as_slice() {
            [metadata, map, key @ ..] if metadata == "metadata" => {
                let is_known = matches!(map.as_str(), "labels" | "annotations") && key.len() == 1;
                is_known.then_some((map, key))
            }
            _ => None,
        }
    }

    /// Whether a name can also be the index of a list.
    pub(crate) fn may_have_index(&self) -> bool {
        self.tokens.iter().any(|name| Index::of(name).is_some())
    }

    /// Whether this is a location inside `.status`.
    pub fn is_below_status(&self) -> bool {
        !self.below_status().is_empty()
    }

    /// The path for a JSON patch operation.
    pub fn to_patch_path(&self) -> PointerBuf {
        self.text.clone()
    }

    /// The field as in a cause of the API server: `status.billing.unit`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Reads the path of a list of conditions: `/status/conditions`, `/status/parents/*/conditions` or
    /// `/status/instances/*`.
    ///
    /// # Errors
    /// When it is not a pointer, or `*` is not below a list or map in the status.
    pub fn of_list(text: &str) -> Result<Self, &'static str> {
        let pointer = Self::parse(text)?;
        let is_valid = match pointer.tokens.iter().filter(|token| *token == EACH).count() {
            0 => true,
            1 => pointer.outer_list().is_some(),
            // A map in the values of a map.
            2 => pointer.outer_list().is_some_and(|(_, inner)| {
                inner.len() > 1 && inner.last().is_some_and(|last| last == EACH)
            }),
            _ => false,
        };
        if is_valid { Ok(pointer) } else { Err(NO_OUTER_LIST) }
    }

    /// The path of the outer list or map and the names inside its elements, if the path contains `*`.
    pub fn outer_list(&self) -> Option<(Self, &[String])> {
        let at = self.tokens.iter().position(|token| token == EACH)?;
        let (outer, inner) = (&self.tokens[..at], &self.tokens[at + 1..]);
        (outer.len() > 1).then(|| (Self::from_tokens(outer.to_vec()), inner))
    }

    /// The same path with this name instead of `*`.
    pub fn with_element(&self, name: &str) -> Self {
        let tokens = self.tokens.iter().map(|token| if token == EACH { name } else { token });
        Self::from_tokens(tokens.map(str::to_owned).collect())
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        if !text.starts_with('/') {
            return Err(NO_SLASH);
        }
        let text = PointerBuf::parse(text).map_err(|_| BAD_ESCAPE)?;
        let tokens: Vec<String> = text.tokens().map(|token| token.decoded().into()).collect();
        if tokens.iter().any(String::is_empty) {
            return Err(EMPTY_TOKEN);
        }
        Ok(Self::from_tokens(tokens))
    }

    pub(crate) fn from_tokens(tokens: Vec<String>) -> Self {
        let (text, field) = (PointerBuf::from_tokens(&tokens), field_name(&tokens));
        Self { tokens, text, field }
    }

    /// Whether `other` is this location or inside it.
    pub fn contains(&self, other: &Self) -> bool {
        other.tokens.starts_with(&self.tokens)
    }
}

impl FromStr for Pointer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let pointer = Self::parse(text)?;
        if pointer.tokens.iter().any(|token| token == EACH) {
            return Err(WILDCARD);
        }
        Ok(pointer)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text.as_str())
    }
}

/// `status.conditions[0].type`, the form of `field.Path` in apimachinery. Names with dots or slashes
/// are in brackets.
fn field_name(tokens: &[String]) -> String {
    let mut field = String::new();
    for token in tokens {
        let index =
            token == "-1" || token == EACH || token.bytes().all(|byte| byte.is_ascii_digit());
        if index || token.contains(['.', '/']) {
            field.push('[');
            field.push_str(token);
            field.push(']');
        } else {
            if !field.is_empty() {
                field.push('.');
            }
            field.push_str(token);
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unescaped_and_patch_paths_are_escaped() {
        let pointer: Pointer = "/status/a~1b/c~0d/0".parse().unwrap();
        assert_eq!(pointer.tokens(), ["status", "a/b", "c~d", "0"]);
        assert_eq!(pointer.to_string(), "/status/a~1b/c~0d/0");
        assert_eq!(pointer.field(), "status[a/b].c~d[0]");
    }

    #[test]
    fn an_invalid_pointer_is_rejected_with_the_reason() {
        assert_eq!("status/phase".parse::<Pointer>(), Err(NO_SLASH));
        assert_eq!("/status//phase".parse::<Pointer>(), Err(EMPTY_TOKEN));
        assert_eq!("/status/a~2".parse::<Pointer>(), Err(BAD_ESCAPE));
        assert_eq!("/status/a~".parse::<Pointer>(), Err(BAD_ESCAPE));
    }

    #[test]
    fn only_the_path_of_a_list_may_name_each_element_of_an_outer_list_or_map() {
        let nested = Pointer::of_list("/status/parents/*/conditions").unwrap();
        assert_eq!(nested.field(), "status.parents[*].conditions");
        assert_eq!(nested.with_element("a/b").to_string(), "/status/parents/a~1b/conditions");
        let (outer, inner) = nested.outer_list().unwrap();
        assert_eq!((outer.field(), inner), ("status.parents", &["conditions".to_owned()][..]));
        assert_eq!(Pointer::of_list("/status/conditions").unwrap().outer_list(), None);
        let values = Pointer::of_list("/status/instances/*").unwrap();
        let (map, inner) = values.outer_list().unwrap();
        assert_eq!((map.field(), inner), ("status.instances", &[][..]));
        let nested = Pointer::of_list("/status/a/*/b/*").unwrap();
        assert_eq!(nested.field(), "status.a[*].b[*]");
        for text in ["/status/*/conditions", "/status/*", "/status/a/*/*", "/status/a/*/b/*/c"] {
            assert_eq!(Pointer::of_list(text), Err(NO_OUTER_LIST), "{text}");
        }
        assert_eq!("/status/parents/*/x".parse::<Pointer>(), Err(WILDCARD));
    }

    #[test]
    fn containment_compares_complete_names() {
        let billing: Pointer = "/status/billing".parse().unwrap();
        assert!(billing.contains(&"/status/billing/unit".parse().unwrap()));
        assert!(!billing.contains(&"/status/billings".parse().unwrap()));
    }
}
