//! The lists of conditions on a page.

use super::super::words;
use super::{Page, off_unless_enabled};
use crate::language::Predicate;
use crate::policy::convention::{ConditionList, ConditionType, Presence, Sanction, TransitionTime};

impl Page {
    pub(super) fn condition_list(&mut self, list: &ConditionList) {
        self.heading(format!("Conditions: {}", list.path.field()));
        self.list(about(list));
        let rows = list.members.iter().flat_map(|(member, checks)| {
            checks.iter().map(move |check| {
                [member.clone(), words::check(check), check.rule.to_string(), check.source.clone()]
            })
        });
        self.table(["member", "requirement", "rule", "source"], rows.collect());
        let rows = list.types.known.iter().map(|kind| {
            let polarity = kind.polarity.name().to_owned();
            [kind.name.clone(), polarity, presence(kind), kind.meaning.clone(), kind.source.clone()]
        });
        self.table(["type", "polarity", "presence", "meaning", "source"], rows.collect());
        self.reasons(list);
        if let Some(times) = &list.times {
            self.times(times);
        }
        let rows = list.each.iter().map(|rule| {
            [
                rule.id.to_string(),
                rule.when.in_words(),
                words::action(rule.action).to_owned(),
                rule.message.clone(),
                off_unless_enabled(rule.optional),
                rule.source.clone(),
            ]
        });
        let head = ["rule about each element", "violated where", "action", "message", "", "source"];
        self.table(head, rows.collect());
    }

    fn reasons(&mut self, list: &ConditionList) {
        let mut rows = Vec::new();
        for kind in &list.types.known {
            for row in &kind.reasons {
                let expects = row.expects.iter().map(|(member, values)| {
                    let values = values.iter().map(|value| {
                        if value.is_empty() { "absent".to_owned() } else { value.clone() }
                    });
                    format!("{member} {}", words::any_of(values))
                });
                rows.push([
                    kind.name.clone(),
                    row.reason.clone(),
                    expects.collect::<Vec<_>>().join(", "),
                    words::action(row.sanction.action).to_owned(),
                    row.sanction.rule.to_string(),
                ]);
            }
        }
        self.table(["type", "reason", "implies", "action", "rule"], rows);
    }

    fn times(&mut self, times: &TransitionTime) {
        let rows = time_rules(times).into_iter().map(|(what, sanction)| {
            [what, words::action(sanction.action).to_owned(), sanction.rule.to_string()]
        });
        self.table(["transition time", "action", "rule"], rows.collect());
        self.source(&times.source);
    }
}

/// What violates the rules about transition times.
pub(in super::super) fn time_rules(times: &TransitionTime) -> Vec<(String, &Sanction)> {
    let member = &times.member;
    let must = words::any_of(times.must_move_on.iter().cloned());
    let moved = match times.may_move_on.join(", ") {
        // No member may move it, so every move is a violation.
        on if on.is_empty() => format!("{member} moved"),
        on => format!("{member} moved and nothing of {on} changed"),
    };
    let same = times.backwards == times.backwards_unchanged;
    let back = if same { "" } else { " with a change" };
    let unchanged = times.backwards_unchanged.as_ref().filter(|_| !same);
    let all = [
        (format!("{must} changed and {member} did not move"), times.kept.as_ref()),
        (moved, times.moved.as_ref()),
        (format!("{member} went back{back}"), times.backwards.as_ref()),
        (format!("{member} went back without a change"), unchanged),
        (
            format!("{member} lies more than {} s in the future", times.skew()),
            times.future.as_ref(),
        ),
    ];
    all.into_iter().filter_map(|(what, sanction)| Some((what, sanction?))).collect()
}

/// The properties of a list as a whole.
fn about(list: &ConditionList) -> Vec<String> {
    let mut points = Vec::new();
    if !list.versions.is_empty() {
        let versions = list.versions.iter().map(ToString::to_string);
        points.push(format!("of objects of version {}", words::any_of(versions)));
    }
    match &list.history {
        Some(history) => {
            points.push(format!(
                "a history: it grows at its end; a new element differs from the last in {} ({}), and \
                 what is in it does not change ({})",
                words::any_of(history.distinct.iter().flat_map(|names| names.to_vec())),
                words::said(history.repeated.as_ref()),
                words::said(history.rewritten.as_ref())
            ));
        }
        None => points.push(match &list.duplicate {
            None => "elements have no key".to_owned(),
            Some(duplicate) => {
                format!(
                    "one element for each {} ({})",
                    list.key.join(" and "),
                    words::said(Some(duplicate))
                )
            }
        }),
    }
    if let Some(most) = &list.max_items {
        points.push(format!(
            "at most {} elements ({})",
            most.value,
            words::said(Some(&most.sanction))
        ));
    }
    if let Some(other) = &list.other_members {
        points.push(format!("no other members than these ({})", words::said(Some(other))));
    }
    if let Some(other) = &list.types.other {
        points.push(format!("no other types than these ({})", words::said(Some(other))));
    }
    if let Some(order) = &list.types.order {
        points.push(format!("types in this order ({})", words::said(Some(order))));
    }
    if !list.types.polarity_from.is_empty() {
        let paths = list.types.polarity_from.iter().map(|path| path.field().to_owned());
        points.push(format!("types of the object's own: {}", words::any_of(paths)));
    }
    if !list.source.is_empty() {
        points.push(format!("source: {}", list.source));
    }
    points
}

fn presence(kind: &ConditionType) -> String {
    let mut words: Vec<String> = Vec::new();
    let said = |sanction: &Sanction| words::action(sanction.action);
    let mut presence = |what: &str, presence: &Option<Presence>| {
        if let Some(presence) = presence {
            let when = presence.when.as_ref().map(Predicate::in_words);
            let when = when.map(|when| format!(" where {when}")).unwrap_or_default();
            words.push(format!("{what}{when}: {}", said(&presence.sanction)));
        }
    };
    presence("missing", &kind.missing);
    presence("present", &kind.present);
    let sanctions = [
        ("present but not True", &kind.not_true),
        ("removed", &kind.removed),
        ("no longer True", &kind.reverted),
    ];
    for (what, sanction) in sanctions {
        words.extend(sanction.as_ref().map(|sanction| format!("{what}: {}", said(sanction))));
    }
    if kind.mirrored {
        words.push("its times are those of another object".to_owned());
    }
    if let Some(key) = &kind.key {
        words.push(format!("one for each {}", key.join(" and ")));
    }
    words.join("; ")
}
