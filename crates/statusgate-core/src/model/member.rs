//! The value of a member of a JSON object.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::Json;
use super::reader::{Reader, read};

/// The value of a member. A long list stays text until something reads it: most long lists of statuses are read by no rule,
/// and the trees of one took a fifth of the instructions of a large review.
#[derive(Clone)]
pub(super) enum Member<'a> {
    /// A value that was read.
    Tree(Json<'a>),
    /// A long list.
    List(Arc<LazyList<'a>>),
}

/// A list as text, and its tree after the first access.
pub(super) struct LazyList<'a> {
    text: &'a str,
    /// Owned: a cell with a borrowed value would make the lifetime invariant.
    tree: OnceLock<Json<'static>>,
}

impl<'a> Member<'a> {
    /// A list that was skipped.
    pub(super) fn list(text: &'a str) -> Self {
        Self::List(Arc::new(LazyList { text, tree: OnceLock::new() }))
    }

    /// The value.
    #[inline]
    pub(super) fn tree(&self) -> &Json<'a> {
        match self {
            Self::Tree(tree) => tree,
            Self::List(list) => list.tree.get_or_init(|| list.parsed().into_owned()),
        }
    }

    /// Whether both are long lists with the same text, so that no tree is needed.
    pub(super) fn is_same_text(&self, other: &Self) -> bool {
        matches!((self, other), (Self::List(one), Self::List(other)) if one.text == other.text)
    }

    /// The value, to change it.
    pub(super) fn tree_mut(&mut self) -> Option<&mut Json<'a>> {
        if let Self::List(list) = self {
            *self = Self::Tree(list.parsed());
        }
        match self {
            Self::Tree(tree) => Some(tree),
            Self::List(_) => None,
        }
    }

    /// The value.
    pub(super) fn into_tree(self) -> Json<'a> {
        match self {
            Self::Tree(tree) => tree,
            Self::List(list) => list.parsed(),
        }
    }
}

impl<'a> LazyList<'a> {
    /// A new tree. A list with a value that Go cannot decode stays text; the API server does not send one.
    fn parsed(&self) -> Json<'a> {
        read(self.text, Reader::long_list).unwrap_or_else(|_| Json::Large(self.text.into()))
    }
}

impl PartialEq for Member<'_> {
    /// The API server writes equal values as equal texts, so trees are rarely needed.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tree(one), Self::Tree(other)) => one == other,
            (Self::List(one), Self::List(other)) => {
                one.text == other.text || one.parsed() == other.parsed()
            }
            (Self::Tree(tree), Self::List(list)) | (Self::List(list), Self::Tree(tree)) => {
                *tree == list.parsed()
            }
        }
    }
}

impl fmt::Debug for Member<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::MAX_DEPTH;
    use super::super::{Members, Object};
    use super::*;

    /// A status with a list of these elements.
    fn status(list: &str) -> String {
        format!(r#"{{"list":[{list}],"phase":"Ready"}}"#)
    }

    fn members<'j, 'a>(json: &'j Json<'a>) -> &'j Members<'a> {
        let Json::Object(members) = json else { panic!("{json:?}") };
        members
    }

    fn is_read(json: &Json<'_>) -> bool {
        members(json).values().all(|value| match value {
            Member::Tree(_) => true,
            Member::List(list) => list.tree.get().is_some(),
        })
    }

    #[test]
    fn a_long_list_is_parsed_when_it_is_read() {
        let elements = vec![r#"{"type":"A","message":"a\tb"}"#; 1_000].join(",");
        let text = status(&elements);
        let json = Json::parse(&text).unwrap();
        assert!(json.get("phase").is_some() && !is_read(&json));
        let element = json.get("list").and_then(|list| list.as_array()?.get(999));
        assert_eq!(element.and_then(|element| element.get("message")?.as_str()), Some("a\tb"));
        assert!(is_read(&json));
        let short = status(r#"{"type":"A"}"#);
        assert!(is_read(&Json::parse(&short).unwrap()));
    }

    #[test]
    fn equal_lists_of_the_old_and_the_new_object_are_compared_as_texts() {
        let status = status(&vec![r#"{"type":"A"}"#; 1_000].join(","));
        let text = format!(r#"{{"old":{status},"status":{status}}}"#);
        let json = Json::parse(&text).unwrap();
        let (one, other) = (json.get("old").unwrap(), json.get("status").unwrap());
        assert!(one == other);
        assert!(members(one).all_pairs(members(other), |name, _, _| name == "phase"));
        assert!(!is_read(one) && !is_read(other));
    }

    #[test]
    fn equality_of_long_lists_ignores_spelling() {
        let list = |element: &str| status(&vec![element; 1_000].join(","));
        let same = |one: &str, other: &str| {
            Json::parse(one).unwrap() == Json::parse(other).unwrap()
                && Json::parse(other).unwrap() == Json::parse(one).unwrap()
        };
        let long = list(r#"{"number":5.0,"b":""}"#);
        assert!(same(&long, &list(r#"{"b":"","number":5}"#)));
        assert!(!same(&long, &list(r#"{"b":"","number":6}"#)));
        // A list without spaces is short enough to be a tree at once.
        let few = |count: usize| status(&vec!["5"; count].join(","));
        let spaced = status(&vec!["5    "; 4_000].join(","));
        assert!(same(&few(4_000), &spaced) && !same(&few(3_999), &spaced));
    }

    #[test]
    fn a_long_list_can_be_changed_and_owned() {
        let text = status(&vec!["1"; 5_000].join(","));
        let mut json = Json::parse(&text).unwrap();
        let tokens = ["list".to_owned(), "4999".to_owned()];
        json.put(&tokens, Some(Json::Bool(true)));
        assert_eq!(json.at(&tokens), Some(&Json::Bool(true)));
        assert_eq!(json.to_value()["list"][4_999], true);
        let owned = Json::parse(&text).unwrap().into_owned();
        assert_eq!(owned, Json::parse(&text).unwrap());
    }

    /// A tree for each level would be a recursion of a thousand levels, and quadratic.
    #[test]
    fn nested_long_lists_are_parsed_together_up_to_the_depth_of_a_tree() {
        let long = "x".repeat(5_000);
        let nested = |inside: &str| {
            let start = format!(r#"{{"list":["{long}","#).repeat(1_000);
            Json::parse_any_size(&(start + inside + &"]}".repeat(1_000))).unwrap().into_owned()
        };
        let (one, other) = (nested("1"), nested("2"));
        let mut levels = 0;
        let mut level = &one;
        while let Some(inside) = level.get("list").and_then(|list| list.as_array()?.get(1)) {
            (level, levels) = (inside, levels + 1);
        }
        assert!(levels == usize::from(MAX_DEPTH) / 2 && !level.is_whole(), "{levels}");
        assert_eq!(one, other);
    }

    #[test]
    fn conditions_are_parsed_at_once() {
        let conditions = vec![r#"{"type":"A"}"#; 1_000].join(",");
        let text = format!(r#"{{"conditions":[{conditions}]}}"#);
        assert!(is_read(&Json::parse(&text).unwrap()));
    }

    #[test]
    fn the_values_of_long_lists_count() {
        let half = vec!["1"; 99_990].join(",");
        let too_many = |lists: &str| {
            let text = format!(r#"{{"status":{{{lists}}}}}"#);
            Object::parse(&text).unwrap().has_large_status()
        };
        assert!(!too_many(&format!(r#""a":[{half}],"b":[{half}]"#)));
        // The third list is found by comparison.
        assert!(too_many(&format!(r#""a":[{half}],"b":[{half},{half}]"#)));
        assert!(too_many(&format!(r#""a":[{half}],"b":[{half}],"c":[{half}]"#)));
    }

    #[test]
    fn a_long_list_that_go_cannot_decode_stays_text() {
        let text = status(&format!("{}1e999", "1,".repeat(5_000)));
        let json = Json::parse(&text).unwrap();
        assert!(matches!(json.get("list"), Some(Json::Large(_))) && !json.is_whole());
        assert!(Json::parse("[1e999]").is_err());
        let replaced = text.replace(r#""phase""#, r#""list""#);
        assert_eq!(Json::parse(&replaced).unwrap(), Json::parse(r#"{"list":"Ready"}"#).unwrap());
    }
}
