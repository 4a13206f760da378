//! The ids of rules: one for each, whoever declares it. Answers, metrics and reports know a rule by
//! its id alone, and of two with one they would tell the words of the first.

use std::collections::BTreeMap;

use super::super::schema::{FieldRule, kebab};
use super::{ConditionList, Convention, Sanction};
use crate::source::tree::{Node, Problems, Span, Value};

/// What a policy calls changes of an owned field by others.
pub(crate) const OWNER: &str = "owner";

/// The second half of an id.
fn own(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, own)| own)
}

impl Convention {
    /// The ids of its rules, without its name: those that tables and checks make, too.
    pub(crate) fn rule_ids(&self) -> impl Iterator<Item = &str> {
        let each = self.conditions.iter().flat_map(|list| &list.each).map(|rule| rule.id.as_str());
        let written = self.rules.iter().map(|rule| rule.id.as_str()).chain(each).map(own);
        written.chain(self.table_ids()).chain(self.check_ids())
    }

    /// Those of checks. Several may have one: parts of a check have actions of their own.
    fn check_ids(&self) -> impl Iterator<Item = &str> {
        let lists = self.conditions.iter().flat_map(|list| &list.members);
        let members = lists.flat_map(|(_, checks)| checks).map(|check| check.rule.as_str());
        members.chain(self.fields.iter().map(|field| field.check.rule.as_str())).map(own)
    }

    /// Those of what the engine judges by tables.
    fn table_ids(&self) -> impl Iterator<Item = &str> {
        let lists = self.conditions.iter().flat_map(of_list);
        let generation = self.generation.iter().flat_map(|rules| {
            [&rules.ahead, &rules.ahead_at_first, &rules.decreased, &rules.below_minimum]
        });
        let phase = self.phase.iter().flat_map(|rules| {
            let sanctions = (rules.reason.iter().map(|reason| &reason.sanction))
                .chain(rules.moves.iter().map(|moves| &moves.sanction))
                .chain(rules.transition_time.iter().flat_map(|time| [&time.moved, &time.kept]));
            let phases = rules.phases.iter().filter(|phase| phase.necessary.is_some());
            std::iter::once(rules.value_rule.as_str())
                .chain(sanctions.map(|sanction| sanction.rule.as_str()))
                .chain(phases.map(|phase| phase.rule.as_str()))
        });
        std::iter::once(self.status_rule.as_str())
            .chain(lists)
            .chain(generation.map(|sanction| sanction.rule.as_str()))
            .chain(phase)
            .map(own)
    }
}

fn of_list(list: &ConditionList) -> impl Iterator<Item = &str> {
    let history = list.history.iter().flat_map(|history| [&history.rewritten, &history.repeated]);
    let times = list.times.iter().flat_map(|times| {
        [&times.kept, &times.moved, &times.backwards, &times.backwards_unchanged, &times.future]
    });
    let of_types = list.types.known.iter().flat_map(|kind| {
        let presence = kind.missing.iter().chain(&kind.present).map(|presence| &presence.sanction);
        let said = [&kind.not_true, &kind.removed, &kind.reverted, &kind.other_reasons];
        let rows = kind.reasons.iter().map(|row| &row.sanction);
        presence.chain(said.into_iter().flatten()).chain(rows)
    });
    let said = [&list.other_members, &list.types.other, &list.types.order].into_iter().flatten();
    let sanctions: Vec<&Sanction> = [&list.duplicate, &list.too_long]
        .into_iter()
        .chain(history)
        .chain(times)
        .chain(of_types)
        .chain(said)
        .collect();
    std::iter::once(list.shape_rule.as_str())
        .chain(sanctions.into_iter().map(|sanction| sanction.rule.as_str()))
}

/// Reports ids that rules of a convention share with others. Twice in one list is said of the
/// documents as they are written.
pub(super) fn check(spec: &Node, convention: &Convention, problems: &Problems) {
    let mut taken: BTreeMap<&str, &str> = BTreeMap::from([(OWNER, "owners of fields in policies")]);
    taken.extend(convention.check_ids().map(|id| (id, "a check of a field or member")));
    taken.extend(convention.table_ids().map(|id| (id, "a table or the phases")));
    let lists = spec.member("conditions").map(Node::items).unwrap_or_default();
    let each = lists.iter().flat_map(|list| ids(list.member("each")));
    for (id, node) in ids(spec.member("rules")).chain(each.clone()) {
        if let Some(what) = taken.get(id) {
            report(&node.span, id, what, problems);
        }
    }
    let rules: Vec<&str> = ids(spec.member("rules")).map(|(id, _)| id).collect();
    // Two lists may have the same rules, by `like`.
    for (id, node) in each.filter(|(id, _)| rules.contains(id) && !taken.contains_key(id)) {
        report(&node.span, id, "a rule of the convention", problems);
    }
    let phases = spec.member("phase").and_then(|phase| phase.member("values"));
    let phases = phases.map(Node::items).unwrap_or_default();
    let mut known: Vec<String> = Vec::new();
    for value in phases.iter().filter(|value| value.member("necessary").is_some()) {
        let Some(Node { value: Value::String(name), span }) = value.member("phase") else {
            continue;
        };
        let id = format!("phase-{}", kebab(name));
        if known.contains(&id) {
            report(span, &id, "another phase", problems);
        }
        known.push(id);
    }
}

/// Reports ids of a policy's own rules and fields that are those of others: of each other, and of the
/// convention `named` that has the policy's name.
pub(crate) fn check_policy(
    spec: &Node,
    fields: &[FieldRule],
    named: Option<&Convention>,
    problems: &Problems,
) {
    let mut taken: BTreeMap<&str, &str> = named
        .into_iter()
        .flat_map(Convention::rule_ids)
        .map(|id| (id, "the convention of the same name"))
        .collect();
    for (id, node) in ids(spec.member("fields")) {
        if let Some(what) = taken.get(id) {
            report(&node.span, id, what, problems);
        }
    }
    taken.insert(OWNER, "owners of fields");
    taken.extend(fields.iter().map(|field| (own(&field.check.rule), "a check of a field")));
    for (id, node) in texts(spec.member("rules"), "name") {
        if let Some(what) = taken.get(id) {
            report(&node.span, id, what, problems);
        }
    }
}

fn report(span: &Span, id: &str, what: &str, problems: &Problems) {
    let message = format!("the rule id {id} is taken, by {what}");
    problems.report_with_help(span, message, Some("give this one an id of its own".to_owned()));
}

fn ids(list: Option<&Node>) -> impl Iterator<Item = (&str, &Node)> + Clone {
    texts(list, "id")
}

fn texts<'n>(
    list: Option<&'n Node>,
    key: &'static str,
) -> impl Iterator<Item = (&'n str, &'n Node)> + Clone {
    let items = list.map(Node::items).unwrap_or_default().iter();
    items.filter_map(move |item| match item.member(key)? {
        node @ Node { value: Value::String(text), .. } => Some((text.as_str(), node)),
        _ => None,
    })
}
