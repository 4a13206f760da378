//! The place that an entry of `backfill` sets: it identifies an entry without a name.

use super::Backfill;
use crate::source::tree::{Node, Value};

/// The name of an entry, and the place that it sets.
pub(crate) struct Label {
    name: Option<String>,
    pub(super) place: Option<String>,
}

impl Label {
    /// Of an entry as it is written: `extends` merges documents before they are read.
    ///
    /// The place is the path; in lists, the member or type. To set a member, to restore it and to remove it
    /// are three places: a list may have the first two, and the last together with one of them is an error.
    pub(crate) fn of(entry: &Node) -> Self {
        let text = |key| entry.text_of(key);
        let has = |key| entry.member(key).is_some_and(|node| !matches!(node.value, Value::Null));
        let element = entry.member("element").and_then(|element| element.text_of("type"));
        let place = match (text("list"), element, text("member")) {
            (None, ..) if text("path").is_none() && has("steadyWhile") => {
                Some("times of the status".to_owned())
            }
            (None, ..) => text("path").map(str::to_owned),
            (Some(list), Some(element), _) => Some(format!("condition {element} in {list}")),
            (Some(list), None, Some(member)) if has("steadyWhile") => {
                Some(format!("steady {member} in {list}"))
            }
            (Some(list), None, Some(member)) if has("absentWhere") => {
                Some(format!("absent {member} in {list}"))
            }
            (Some(list), None, None) if has("uniqueElements") => {
                Some(format!("duplicates in {list}"))
            }
            (Some(list), None, member) => member.map(|member| format!("{member} in {list}")),
        };
        Self { name: text("name").map(str::to_owned), place }
    }

    /// Its name, or its place.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref().or(self.place.as_deref())
    }

    /// Whether `own` replaces this one: it has the same name, or sets the same place. If several inherited
    /// entries set one place, the name decides.
    pub(crate) fn is_replaced(&self, inherited: &[Self], own: &Self) -> bool {
        let same = |one: Option<&str>, other: Option<&str>| one.is_some() && one == other;
        let same_place = |other: &Self| same(own.place.as_deref(), other.place.as_deref());
        let mut named = inherited.iter().filter(|other| same(own.name(), other.name()));
        same(own.name(), self.name()) || (same_place(self) && !named.any(same_place))
    }
}

impl From<&Backfill> for Label {
    fn from(default: &Backfill) -> Self {
        Self { name: Some(default.name.clone()), place: Some(default.place.clone()) }
    }
}

/// Those of `inherited` that the additions do not replace.
pub(crate) fn remaining<'b, 'o>(
    inherited: &'b [Backfill],
    own: impl IntoIterator<Item = &'o Backfill>,
) -> Vec<&'b Backfill> {
    let own: Vec<Label> = own.into_iter().map(Label::from).collect();
    let all: Vec<Label> = inherited.iter().map(Label::from).collect();
    let stays = all.iter().map(|their| !own.iter().any(|own| their.is_replaced(&all, own)));
    inherited.iter().zip(stays).filter_map(|(default, stays)| stays.then_some(default)).collect()
}

#[cfg(test)]
mod tests {
    use crate::policy::{PolicySet, Source};

    /// The names of all defaults of a policy with these of its own, whose convention has `theirs`.
    fn names(theirs: &str, own: &str) -> Vec<String> {
        compile(&format!(
            "{HEAD}kind: StatusConvention\nmetadata: {{name: own}}\nspec: {{conditions: [{{path: /status/conditions}}], backfill: [{theirs}]}}\n\
             ---\n{HEAD}kind: StatusPolicy\nmetadata: {{name: p}}\nspec: {{convention: own, {RESOURCES}, backfill: [{own}]}}\n"
        ))
    }

    /// The same of a convention that extends another one.
    fn inherited(theirs: &str, own: &str) -> Vec<String> {
        compile(&format!(
            "{HEAD}kind: StatusConvention\nmetadata: {{name: base}}\nspec: {{conditions: [{{path: /status/conditions}}], backfill: [{theirs}]}}\n\
             ---\n{HEAD}kind: StatusConvention\nmetadata: {{name: own}}\nspec: {{extends: base, {own}}}\n\
             ---\n{HEAD}kind: StatusPolicy\nmetadata: {{name: p}}\nspec: {{convention: own, {RESOURCES}}}\n"
        ))
    }

    const HEAD: &str = "apiVersion: statusgate.dev/v1alpha1\n";
    const RESOURCES: &str = "resources: [{apiGroups: [a], apiVersions: [v1], resources: [b]}]";

    fn compile(text: &str) -> Vec<String> {
        let set = PolicySet::compile(&[Source::new("a.yaml", text)]);
        let set = set.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let defaults = set.policies()[0].backfill.iter();
        defaults.map(|default| format!("{}: {:?}", default.name, default.filling)).collect()
    }

    /// Which of the two sides each default is from: their values are called so.
    fn sides(names: &[String]) -> Vec<(&str, &str)> {
        let side = |text: &str| if text.contains("ours") { "ours" } else { "theirs" };
        names.iter().filter_map(|text| Some((text.split_once(": ")?.0, side(text)))).collect()
    }

    const LIST: &str = "list: /status/conditions";

    #[test]
    fn defaults_of_other_members_and_types_stay() {
        let theirs = format!(
            "{{{LIST}, member: reason, value: theirs}}, {{{LIST}, element: {{type: Ready, message: theirs}}}}"
        );
        let own = format!(
            "{{{LIST}, member: severity, value: ours}}, {{{LIST}, element: {{type: Synced, message: ours}}}}"
        );
        let expected = [
            ("reason in /status/conditions", "theirs"),
            ("condition Ready in /status/conditions", "theirs"),
            ("severity in /status/conditions", "ours"),
            ("condition Synced in /status/conditions", "ours"),
        ];
        assert_eq!(sides(&names(&theirs, &own)), expected);
        assert_eq!(sides(&inherited(&theirs, &format!("backfill: [{own}]"))), expected);
    }

    #[test]
    fn the_own_default_of_a_place_replaces_an_inherited_one_of_any_name() {
        for (theirs, own) in [
            (
                "{name: unit, path: /status/unit, value: theirs}",
                "{path: /status/unit, value: ours}",
            ),
            (
                "{path: /status/unit, value: theirs}",
                "{name: unit, path: /status/unit, value: ours}",
            ),
            (
                "{name: a, path: /status/unit, value: theirs, when: {set: /status/a}}, {name: b, path: /status/unit, value: theirs}",
                "{path: /status/unit, value: ours}",
            ),
            (
                "{name: a, list: /status/conditions, member: unit, value: theirs}",
                "{list: /status/conditions, member: unit, value: ours}",
            ),
            (
                "{name: a, list: /status/conditions, element: {type: A, message: theirs}}",
                "{name: b, list: /status/conditions, element: {type: A, message: ours}}",
            ),
        ] {
            for found in [names(theirs, own), inherited(theirs, &format!("backfill: [{own}]"))] {
                assert!(
                    matches!(sides(&found)[..], [(_, "ours")]),
                    "{theirs} and {own}: {found:#?}"
                );
            }
        }
    }

    #[test]
    fn a_name_chooses_among_several_defaults_of_one_place() {
        let theirs = "{name: a, path: /status/unit, value: theirs, when: {set: /status/a}}, \
                      {name: b, path: /status/unit, value: theirs}";
        let own = "{name: a, path: /status/unit, value: ours, when: {set: /status/a}}";
        let mut found = names(theirs, own);
        found.sort();
        assert_eq!(sides(&found), [("a", "ours"), ("b", "theirs")]);
        let found = inherited(theirs, &format!("backfill: [{own}]"));
        assert_eq!(sides(&found), [("a", "ours"), ("b", "theirs")]);
    }

    #[test]
    fn a_default_without_a_name_can_be_left_out_by_its_place() {
        let theirs =
            format!("{{{LIST}, member: a, value: theirs}}, {{{LIST}, member: b, value: theirs}}");
        let found = inherited(&theirs, "without: [a in /status/conditions]");
        assert_eq!(sides(&found), [("b in /status/conditions", "theirs")]);
    }
}
