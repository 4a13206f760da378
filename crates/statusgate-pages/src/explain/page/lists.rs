//! The lists of conditions on a page.

use super::{Page, off_unless_enabled, requirement};
use statusgate_analysis::words;
use statusgate_core::policy::convention::{ConditionList, ConditionType};

impl Page {
    pub(super) fn condition_list(&mut self, list: &ConditionList) {
        let what = list.element.as_ref().map_or("Conditions", |name| name.as_str());
        self.heading(format!("{what}: {}", list.path.field()));
        self.list(about(list));
        let keys = list.keys.iter().map(|check| requirement("the key", check));
        let rows = list.members.iter().flat_map(|(member, checks)| {
            checks.iter().map(move |check| requirement(member, check))
        });
        let head = ["member", "requirement", "rule", "source"];
        self.table(head, keys.chain(rows).collect());
        let rows = list.types.values().map(|kind| {
            let polarity = kind.polarity.unwrap_or_default().name().to_owned();
            [kind.name.clone(), polarity, remarks(kind), kind.meaning.clone(), kind.source.clone()]
        });
        self.table(["type", "polarity", "", "meaning", "source"], rows.collect());
        self.reasons(list);
        let rows = list.each.iter().map(|rule| {
            [
                rule.rule.to_string(),
                rule.when.0.in_words(),
                words::action(rule.action).to_owned(),
                rule.message.to_string(),
                off_unless_enabled(rule.optional),
                rule.source.clone(),
            ]
        });
        let head = ["rule about each element", "violated where", "action", "message", "", "source"];
        self.table(head, rows.collect());
    }

    fn reasons(&mut self, list: &ConditionList) {
        let rows = list.types.values().flat_map(|kind| {
            let reasons = kind.reasons.iter();
            let lists =
                reasons.flat_map(|reasons| reasons.lists().map(move |list| (reasons, list)));
            lists.filter(|(_, (_, names))| !names.is_empty()).map(|(reasons, (status, names))| {
                let actions = [&reasons.action, &reasons.other].map(|sanction| {
                    let action = sanction.as_ref().map(|sanction| words::action(sanction.action));
                    action.unwrap_or_default().to_owned()
                });
                let [action, other] = actions;
                [kind.name.clone(), status.name().to_owned(), names.join(", "), action, other]
            })
        });
        let head = ["type", "status", "reasons", "with another status", "other reasons"];
        self.table(head, rows.collect());
    }
}

/// The properties of a list as a whole.
fn about(list: &ConditionList) -> Vec<String> {
    let mut points = Vec::new();
    if !list.api_versions.is_empty() {
        let versions = list.api_versions.iter().map(ToString::to_string);
        points.push(format!("of objects of version {}", words::any_of(versions)));
    }
    if list.history.is_some() {
        points.push("a history: it grows at its end, and what is in it does not change".to_owned());
    } else if list.is_map() {
        points.push("the elements are the values of a map, and its keys identify them".to_owned());
    } else if list.key().is_empty() {
        points.push("elements have no key".to_owned());
    }
    if !list.polarity_from.is_empty() {
        let paths = list.polarity_from.iter().map(|path| path.field().to_owned());
        points.push(format!("types of the object's own: {}", words::any_of(paths)));
    }
    if !list.source.is_empty() {
        points.push(format!("source: {}", list.source));
    }
    let times = list.transition_time.as_ref().filter(|times| !times.source.is_empty());
    points.extend(times.map(|times| format!("source of the transition times: {}", times.source)));
    points
}

/// What a type has in addition to its polarity.
fn remarks(kind: &ConditionType) -> String {
    let mirrored = kind.mirrored.then(|| "its times are those of another object".to_owned());
    let key = kind.key.as_ref().map(|key| format!("one for each {}", key.join(" and ")));
    let removed = kind.removed.as_ref().map(|removed| {
        let (when, sanction) = removed.parts();
        let when = when.map(|when| format!(" where {}", when.in_words())).unwrap_or_default();
        format!("is never removed{when} ({})", words::action(sanction.action))
    });
    let summary = kind.summary.as_ref().map(|_| "as bad as the worst of the others".to_owned());
    mirrored.into_iter().chain(key).chain(removed).chain(summary).collect::<Vec<_>>().join("; ")
}
