//! Which place an entry of `backfill` is about: what tells two of them apart where they have no names.

use super::Backfill;
use crate::source::tree::{Node, Value};

/// What an entry is called: its name, or its place.
pub(crate) fn name_of(entry: &Node) -> Option<String> {
    text(entry, "name").map(str::to_owned).or_else(|| place_of(entry))
}

/// The path; in lists, what of the elements and what becomes of it. To fill in a member, to put it
/// back and to take it out are three things: the first two go together, and the last undoes both,
/// which is a mistake and not a choice.
///
/// Of the entry as it is written: `extends` puts documents together before anything is read.
pub(super) fn place_of(entry: &Node) -> Option<String> {
    let Some(list) = text(entry, "list") else { return text(entry, "path").map(str::to_owned) };
    if let Some(element) = entry.member("element") {
        return text(element, "type").map(|kind| format!("condition {kind} in {list}"));
    }
    let member = text(entry, "member")?;
    let what = ["steadyWhile", "absentWhere"].into_iter().find(|key| entry.member(key).is_some());
    Some(match what {
        Some("steadyWhile") => format!("steady {member} in {list}"),
        Some(_) => format!("absent {member} in {list}"),
        None => format!("{member} in {list}"),
    })
}

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    match &node.member(key)?.value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// What an entry is called, and the place it is about.
pub(crate) struct Label {
    name: Option<String>,
    place: Option<String>,
}

impl Label {
    /// Of entries as they are written.
    pub(crate) fn of_all(entries: &[Node]) -> Vec<Self> {
        let label = |entry| Self { name: name_of(entry), place: place_of(entry) };
        entries.iter().map(label).collect()
    }

    /// Whether `own` takes the place of this one: it has its name, or is about its place. Where
    /// several of all that are inherited are about one place, a name chooses among them.
    pub(crate) fn is_replaced(&self, inherited: &[Self], own: &Self) -> bool {
        let same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        let chosen = |other: &Self| same(&own.name, &other.name) && same(&own.place, &other.place);
        same(&own.name, &self.name)
            || (same(&own.place, &self.place) && !inherited.iter().any(chosen))
    }
}

impl From<&Backfill> for Label {
    fn from(fill: &Backfill) -> Self {
        Self { name: Some(fill.name.clone()), place: Some(fill.place.clone()) }
    }
}

/// Those of `inherited` that stay beside what somebody adds.
pub(crate) fn remaining<'b, 'o>(
    inherited: &'b [Backfill],
    own: impl IntoIterator<Item = &'o Backfill>,
) -> Vec<&'b Backfill> {
    let own: Vec<Label> = own.into_iter().map(Label::from).collect();
    let all: Vec<Label> = inherited.iter().map(Label::from).collect();
    let stays = |their: &Label| !own.iter().any(|own| their.is_replaced(&all, own));
    inherited.iter().zip(&all).filter(|(_, their)| stays(their)).map(|(fill, _)| fill).collect()
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
        let fills = set.policies()[0].backfill.iter();
        fills.map(|fill| format!("{}: {:?}", fill.name, fill.filling)).collect()
    }

    /// Which of the two sides each default is from: their values are called so.
    fn sides(names: &[String]) -> Vec<(&str, &str)> {
        let side = |text: &str| if text.contains("ours") { "ours" } else { "theirs" };
        names.iter().filter_map(|text| Some((text.split_once(": ")?.0, side(text)))).collect()
    }

    const LIST: &str = "list: /status/conditions";

    #[test]
    fn what_is_about_another_member_or_type_stays() {
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
    fn of_one_place_the_own_default_counts_whatever_the_other_is_called() {
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
