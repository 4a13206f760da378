//! The members of a JSON object.

use std::borrow::Cow;

use super::Json;
use super::member::Member;

/// Up to this length, a scan is faster than a binary search. Conditions have six members; a hostile
/// status has a hundred thousand.
const FEW: usize = 16;

/// The members of an object, sorted by name. Of duplicate names the last counts, as in Go's
/// `encoding/json` and so in the API server.
///
/// The API server writes members in this order, so most need no sorting, and a comparison is one pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members<'a>(Vec<(Cow<'a, str>, Member<'a>)>);

impl<'a> Members<'a> {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.get_key_value(name).map(|(_, value)| value)
    }

    /// The stored name and its value.
    pub fn get_key_value(&self, name: &str) -> Option<(&str, &Json<'a>)> {
        let found = if self.0.len() <= FEW {
            // From the end, where a condition has its type and status, and an object its status.
            self.0.iter().rfind(|(known, _)| known == name)
        } else {
            self.0.get(self.place(name).ok()?)
        };
        found.map(|(name, value)| (name.as_ref(), value.tree()))
    }

    /// The value of a name, to change it.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Json<'a>> {
        let at = self.place(name).ok()?;
        self.0.get_mut(at).and_then(|(_, value)| value.tree_mut())
    }

    /// Removes the member with this name.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Ok(at) = self.place(name) {
            self.0.remove(at);
        }
    }

    /// Adds or replaces a value.
    pub fn insert(&mut self, name: Cow<'a, str>, value: Json<'a>) {
        match self.place(&name) {
            Ok(at) => self.0[at].1 = Member::Tree(value),
            Err(at) => self.0.insert(at, (name, Member::Tree(value))),
        }
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.tree()))
    }

    /// Whether two objects have the same names, and all pairs of values are equal as texts or satisfy `test`.
    pub(crate) fn all_pairs(
        &self,
        other: &Self,
        mut test: impl FnMut(&str, &Json<'a>, &Json<'a>) -> bool,
    ) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.len() == other.len()
            && pairs.all(|((name, one), (other_name, other))| {
                name == other_name
                    && (one.is_same_text(other) || test(name, one.tree(), other.tree()))
            })
    }

    /// Whether it has no members.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of members.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// An owned copy.
    pub fn into_owned(self) -> Members<'static> {
        let owned = self.0.into_iter().map(|(name, value)| {
            (Cow::Owned(name.into_owned()), Member::Tree(value.into_tree().into_owned()))
        });
        Members(owned.collect())
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &Member<'a>> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Sorts members that are in the order of a text.
    pub(super) fn sorted(mut members: Vec<(Cow<'a, str>, Member<'a>)>) -> Self {
        if !members.is_sorted_by(|(one, _), (next, _)| one < next) {
            // The sort is stable, so `dedup_by` keeps the last of duplicate names.
            members.reverse();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            members.dedup_by(|(later, _), (first, _)| later == first);
        }
        Self(members)
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name))
    }
}

impl<'a> FromIterator<(Cow<'a, str>, Json<'a>)> for Members<'a> {
    fn from_iter<I: IntoIterator<Item = (Cow<'a, str>, Json<'a>)>>(members: I) -> Self {
        let members = members.into_iter().map(|(name, value)| (name, Member::Tree(value)));
        // `collect` makes room for at least four. The schemas have many smaller objects, and stay in memory.
        let mut exact = Vec::with_capacity(members.size_hint().0);
        exact.extend(members);
        Self::sorted(exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: impl IntoIterator<Item = (String, bool)>) -> Members<'static> {
        let member = |(name, value)| (Cow::Owned(name), Json::Bool(value));
        names.into_iter().map(member).collect()
    }

    #[test]
    fn the_last_of_duplicate_names_counts() {
        for names in [["a", "b", "a"], ["b", "a", "a"], ["a", "a", "b"]] {
            let last = names.iter().rposition(|name| *name == "a");
            let made = members(
                names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), Some(at) == last)),
            );
            assert_eq!(made.get("a"), Some(&Json::Bool(true)), "{names:?}");
            assert_eq!(made.iter().count(), 2, "{names:?}");
        }
    }

    #[test]
    fn a_name_is_found_among_few_and_among_many() {
        for count in [0, 1, FEW, FEW + 1, 1000] {
            let mut made = members((0..count).rev().map(|at| (format!("n{at}"), false)));
            assert_eq!(made.get("n"), None);
            made.insert("n".into(), Json::Bool(true));
            made.insert("n0".into(), Json::Bool(true));
            assert_eq!(made.get("n"), Some(&Json::Bool(true)));
            assert_eq!(made.get("n0"), Some(&Json::Bool(true)));
            assert_eq!(made.iter().count(), count.max(1) + 1);
            assert!((1..count).all(|at| made.get(&format!("n{at}")) == Some(&Json::Bool(false))));
        }
    }
}
