//! Condition lists: the shape of their elements, their keys and types, and how their times move.

mod elements;
mod generations;
mod history;
mod keys;
mod outer;
mod spelling;
mod summary;

use crate::model::Json;
use crate::policy::Disposition;
use crate::policy::convention::{Backfill, ConditionList, Filling, Position, Presence, Sanction};

use super::evidence::{Answers, Facts, Truth, with_element};
use super::violation::{Sink, Violation};
use super::{Cause, fields};
pub(crate) use crate::model::{ByType, MAX_ELEMENTS, SCAN_LIMIT, same};
use elements::JudgedElement;
pub(crate) use generations::Generations;
pub(crate) use keys::{ByKey, Key, surplus};
use keys::{Duplicates, shortened};
use outer::Path;

/// The input for judging a list, in addition to its rules.
#[derive(Clone, Copy)]
pub(crate) struct Circumstances<'p, 'f, 's, 'a> {
    pub(crate) facts: &'f Facts<'s, 'a>,
    pub(crate) generations: Option<&'f Generations<'p>>,
    /// The defaults of the policy.
    pub(crate) backfill: &'p [Backfill],
    pub(crate) now: i64,
}

/// Judges one list, or with an outer list or map what its elements have.
pub(crate) fn judge<'p: 's, 's, 'a>(
    list: &'p ConditionList,
    circumstances: Circumstances<'p, '_, 's, 'a>,
    violations: &mut dyn Sink<'p>,
) {
    if let Some(outer) = &list.outer {
        return outer::judge(list, outer, circumstances, violations);
    }
    let facts = circumstances.facts.reading(list.for_predicates());
    let value = facts.object.at_status(&list.path);
    let circumstances = Circumstances { facts: &facts, ..circumstances };
    judge_list(Path { list, parent: None }, value, circumstances, violations);
}

/// Judges the list at a path. The facts read this list.
fn judge_list<'p: 's, 's, 'a>(
    path: Path<'p, 's, 'a>,
    value: Option<&'s Json<'a>>,
    circumstances: Circumstances<'p, '_, 's, 'a>,
    violations: &mut dyn Sink<'p>,
) {
    let (list, facts) = (path.list, *circumstances.facts);
    let stored = facts.old_conditions.map(|stored| stored.items()).unwrap_or_default();
    let items = match value {
        None | Some(Json::Null) => &[],
        Some(Json::Array(items)) => items.as_slice(),
        Some(other) => {
            let found = wrong_shape(list, path.field(), "a list", other);
            return violations.push(found.at(path.place().into()));
        }
    };
    judge_length(path, items.len(), violations);
    if items.len() > MAX_ELEMENTS {
        return violations
            .push(too_long(list, path.field(), MAX_ELEMENTS).at(path.place().into()).limit());
    }
    // Violations of an unchanged list are in the stored list too, so they are not introduced. Rules
    // about elements are still judged, because they may read the rest of the object.
    if list.each.is_empty() && items == stored {
        judge_presence(path, items, stored, &facts, violations);
        return;
    }
    // A controller that clears the whole status starts over.
    let history = list.history.as_ref().filter(|_| facts.object.written_status().is_some());
    // A growing list shifts its elements but keeps their order.
    let grown =
        history.map_or(0, |history| history::judge(history, path, items, stored, violations));
    let answers = answers(list, items.len(), &circumstances);
    let facts = answers.as_ref().map_or(facts, |answers| Facts { answers: Some(answers), ..facts });
    let circumstances = Circumstances { facts: &facts, ..circumstances };
    let has_keys = list.has_keys_of_types();
    let mut duplicates = Duplicates::new(items, list, has_keys);
    let mut stored_by_key = ByKey::new(stored);
    // In a history or without a key, only the index identifies an element.
    let keyed = !list.key().is_empty();
    // As long as each element has the key of the stored element at its index, that one is used without a
    // search. Not for types with their own key, nor for long lists.
    let mut in_step = !has_keys && stored.len() <= SCAN_LIMIT;
    for (index, item) in items.iter().enumerate() {
        if !matches!(item, Json::Object(_)) {
            let field = format!("{}[{index}]", path.field());
            let found = wrong_shape(list, field, "an object", item);
            violations.push(found.at(format!("{}[]", path.place())));
            in_step = false;
            continue;
        }
        let kind = item.get("type").and_then(Json::as_str);
        let find = || kind.and_then(|kind| list.find(kind));
        // The type's rules are looked up only if needed: most elements did not change.
        let known = if has_keys { find() } else { None };
        let key = Key::of(list, known);
        let twin = keyed && duplicates.is_duplicate(index, item, key);
        let position = Position::Index(index);
        let mut element = JudgedElement { path, item, position, kind, key, known, before: None };
        if let (true, Some(duplicate)) = (twin, &list.duplicate) {
            let message = format!("Duplicate value: {}", key.describe(item));
            let found = element.violation(duplicate, key.member(), message);
            violations.push(found.cause(Cause::Duplicate));
        }
        // Of several elements with one key, the stored list identifies only the first; the others also
        // by index.
        let in_place = || stored.get(index).filter(|other| key.are_one(other, item));
        in_step = in_step && keyed && !twin && in_place().is_some();
        element.before = match keyed {
            true if twin || in_step => in_place(),
            true => stored_by_key.find(item, key).or_else(|| {
                // Elements without a key are matched by index.
                stored.get(index).filter(|other| key.is_missing(item) && key.is_missing(other))
            }),
            false => None,
        };
        // An unchanged element introduces nothing. Elements without a type are identified by index, or in a
        // short list by their value.
        let untouched = index < grown
            || element.before == Some(item)
            || stored.get(index) == Some(item)
            || (stored.len() <= SCAN_LIMIT && stored.contains(item));
        if untouched && list.each.is_empty() {
            continue;
        }
        element.known = known.or_else(find);
        if !untouched {
            element.judge(&circumstances, violations);
        }
        // Rules about elements may read the rest of the object, which did change.
        element.judge_rules(&facts, violations);
    }
    judge_presence(path, items, stored, &facts, violations);
    judge_order(path, items, violations);
    summary::judge(path, items, violations);
}

/// The violation of a list, or of an element, that has another type.
fn wrong_shape<'p>(
    list: &'p ConditionList,
    field: impl Into<String>,
    expected: &str,
    found: &Json<'_>,
) -> Violation<'p> {
    let message = format!("must be {expected}, it is {}", found.kind());
    let violation = Violation::new(&list.shape_rule, Disposition::Deny, field, message);
    violation.cause(Cause::TypeInvalid)
}

/// The violation of a list, or of lists together, with so many elements that none is judged.
fn too_long<'p>(list: &'p ConditionList, field: impl Into<String>, most: usize) -> Violation<'p> {
    let message = format!("must have at most {most} items to be judged");
    let violation = Violation::new(&list.shape_rule, Disposition::Deny, field, message);
    violation.cause(Cause::TooLong)
}

/// Judges the number of elements.
fn judge_length<'p>(path: Path<'p, '_, '_>, count: usize, violations: &mut dyn Sink<'p>) {
    if let (Some(most), Some(sanction)) = (path.list.max_items, &path.list.too_long)
        && count > most
    {
        let message = format!("must have at most {most} items");
        let found = Violation::by(sanction, path.field(), message).cause(Cause::TooLong);
        violations.push(found.at(path.place().into()));
    }
}

/// For a long list, the answers that are the same for all elements.
fn answers<'p, 's, 'a>(
    list: &'p ConditionList,
    count: usize,
    circumstances: &Circumstances<'p, '_, 's, 'a>,
) -> Option<Answers<'s, 'a>> {
    (count > SCAN_LIMIT).then(|| {
        let each = list.each.iter().map(|rule| &rule.when.0);
        let removed = circumstances.backfill.iter().filter_map(|fill| match &fill.filling {
            Filling::AbsentMember { list: path, of, .. } if *path == *list.path => {
                Some(fill.when.iter().chain([of]))
            }
            _ => None,
        });
        Answers::to(each.chain(removed.flatten()), circumstances.facts)
    })
}

/// Judges which types are present and absent.
///
/// A controller clears its conditions when it starts over (source-controller resets a HelmRepository that
/// becomes static) or finishes a deletion, so their absence then is no violation.
fn judge_presence<'p>(
    path: Path<'p, '_, '_>,
    items: &[Json<'_>],
    stored: &[Json<'_>],
    facts: &Facts<'_, '_>,
    violations: &mut dyn Sink<'p>,
) {
    // No type is missing from a status that was never written.
    let written = facts.object.written_status().is_some();
    let holding = |presence: &'p Presence| {
        let (when, sanction) = presence.parts();
        when.is_none_or(|when| facts.ask(when) == Truth::True).then_some(sanction)
    };
    let is_cleared = items.is_empty() && !stored.is_empty();
    let may_lack = facts.deleting() || is_cleared;
    let violation = |sanction: &'p Sanction, kind: &str, message: &str| {
        let message = format!("{} {kind} {message}", path.list.noun());
        Violation::by(sanction, path.field(), message).at(format!("{}[type={kind}]", path.place()))
    };
    for known in path.list.types.values().filter(|known| known.is_looked_for()) {
        let present = types_of(items).any(|kind| known.matches(kind));
        let lacks = !present && !may_lack;
        if let Some(missing) = known.missing.as_ref().filter(|_| written && lacks).and_then(holding)
        {
            violations.push(violation(missing, &known.name, "is missing"));
        }
        if let Some(forbidden) = known.present.as_ref().filter(|_| present).and_then(holding) {
            violations.push(violation(forbidden, &known.name, "must not be present"));
        }
    }
    if is_cleared || path.list.types.values().all(|known| known.removed.is_none()) {
        return;
    }
    let written = ByType::new(items);
    for kind in types_of(stored).filter(|kind| written.find(kind).is_none()) {
        let removed = path.list.find(kind).and_then(|known| known.removed.as_ref());
        if let Some(removed) = removed.and_then(holding) {
            let found = violation(removed, shortened(kind), "was removed");
            let softens = facts.deleting() && removed.action.can_deny();
            let action = if softens { Disposition::Warn } else { removed.action };
            violations.push(Violation { action, ..found }.transition());
        }
    }
}

/// Judges the order of known types.
fn judge_order<'p>(path: Path<'p, '_, '_>, items: &[Json<'_>], violations: &mut dyn Sink<'p>) {
    let list = path.list;
    let Some(sanction) = &list.order else { return };
    if !types_of(items).filter_map(|kind| list.rank(kind)).is_sorted() {
        let names: Vec<&str> = list.types.values().map(|known| known.name.as_str()).collect();
        let message = format!("must be in the order {}", names.join(", "));
        let found = Violation::by(sanction, path.field(), message);
        violations.push(found.at(path.place().into()));
    }
}

fn types_of<'j>(items: &'j [Json<'_>]) -> impl Iterator<Item = &'j str> {
    items.iter().filter_map(|item| item.get("type")?.as_str())
}
