//! Conditions that summarize the others: each is as bad as the worst of them.

use std::cmp::Ordering;

use super::super::violation::Sink;
use super::elements::JudgedElement;
use super::keys::Key;
use super::{Path, same};
use crate::language::Polarity;
use crate::model::{ConditionStatus, Conditions, Json};
use crate::policy::convention::{ConditionType, Position};

/// A condition of the list with a valid status.
#[derive(Clone, Copy)]
struct Part<'p, 's, 'a> {
    index: usize,
    item: &'s Json<'a>,
    kind: &'s str,
    known: Option<&'p ConditionType>,
    status: ConditionStatus,
    /// How good the status is: bad, Unknown, good. None for a type that is neither.
    rank: Option<u8>,
}

/// Judges the conditions of a list that summarize the others.
pub(super) fn judge<'p: 's, 's, 'a>(
    path: Path<'p, 's, 'a>,
    items: &'s [Json<'a>],
    violations: &mut dyn Sink<'p>,
) {
    let list = path.list;
    if list.types.values().all(|known| known.summary.is_none()) {
        return;
    }
    let conditions: Vec<Part<'p, 's, 'a>> = (0..)
        .zip(items)
        .filter_map(|(index, item)| {
            let kind = item.get("type")?.as_str()?;
            let (known, status) = (list.find(kind), Conditions::status_of(item)?);
            let polarity = known.and_then(|known| known.polarity).unwrap_or_default();
            Some(Part { index, item, kind, known, status, rank: rank(status, polarity) })
        })
        .collect();
    let parts = conditions.iter().filter(|part| part.is_summarized());
    let Some((worst, part)) =
        parts.clone().filter_map(|part| Some((part.rank?, part))).min_by_key(|(rank, _)| *rank)
    else {
        return;
    };
    for found in &conditions {
        let (Some(rank), Some(known)) = (found.rank, found.known) else { continue };
        let Some(summary) = &known.summary else { continue };
        let text = |item: &'s Json<'a>, member| item.get(member).filter(|value| !value.is_empty());
        let reason = text(found.item, "reason").and_then(Json::as_str).unwrap_or_default();
        if summary.own_reasons.iter().any(|own| own == reason) {
            continue;
        }
        let (status, of, worst_status) = (found.status.name(), part.kind, part.status.name());
        let (sanction, member, message) = match rank.cmp(&worst) {
            Ordering::Greater => {
                let message =
                    format!("must not be {status} while condition {of} is {worst_status}");
                (&summary.better, "status", message)
            }
            Ordering::Less => {
                let message = format!("is {status}, but no other condition is as bad");
                (&summary.worse, "status", message)
            }
            Ordering::Equal => {
                let mut sources = parts.clone().filter(|part| part.rank == Some(worst));
                let is_copied = sources.any(|part| {
                    let mut members = ["reason", "message"].into_iter();
                    members.all(|member| same(text(part.item, member), text(found.item, member)))
                });
                if found.status == ConditionStatus::True || is_copied {
                    continue;
                }
                let message =
                    format!("has reason and message of no condition that is {worst_status}");
                (&summary.other_reason, "reason", message)
            }
        };
        if let Some(sanction) = sanction {
            let key = Key::of(list, found.known);
            let (position, kind) = (Position::Index(found.index), Some(found.kind));
            let element = JudgedElement {
                path,
                item: found.item,
                position,
                kind,
                key,
                known: found.known,
                before: None,
            };
            violations.push(element.violation(sanction, member, message));
        }
    }
}

impl Part<'_, '_, '_> {
    /// Whether a summary is about it: not one that is a summary itself, and of no lower severity.
    fn is_summarized(&self) -> bool {
        let severity = self.item.get("severity").and_then(Json::as_str).unwrap_or_default();
        self.known.is_none_or(|known| known.summary.is_none()) && ["", "Error"].contains(&severity)
    }
}

/// How good a status is for a polarity; none if no status is good or bad.
fn rank(status: ConditionStatus, polarity: Polarity) -> Option<u8> {
    match (status, polarity) {
        (_, Polarity::Neutral) => None,
        (ConditionStatus::Unknown, _) => Some(1),
        (status, polarity) => Some(if status == polarity.good() { 2 } else { 0 }),
    }
}
