//! Duplicates in stored lists that a default removes.

use super::conditions::surplus;
use crate::model::{Json, Subject, in_status};
use crate::policy::Selected;
use crate::policy::convention::{ConditionList, Filling};

/// The subject as if its stored lists had no duplicates; `None` if they have none that a default removes.
///
/// What the removal does is not the writer's: a finding counts only if it is one with the stored duplicates and
/// without them.
pub(super) fn stored<'a>(selected: &Selected<'_>, subject: &Subject<'a>) -> Option<Subject<'a>> {
    let (object, old) = (&subject.object, subject.old.as_ref()?);
    let mut changed: Option<Json<'a>> = None;
    for (_, policy) in selected.policies() {
        for default in &policy.backfill {
            let Filling::Unique(path) = &default.filling else { continue };
            let version = &subject.resource.version;
            let Some(list) = policy.convention.list_at(path, version) else { continue };
            let surplus = surplus_in(list, changed.as_ref().or(old.status.as_ref()));
            if surplus.is_empty() {
                continue;
            }
            let status = changed.get_or_insert_with(|| old.status.clone().unwrap_or(Json::Null));
            if let Some(list) = status.at_mut(path.below_status()) {
                remove(list, &surplus);
            }
        }
    }
    let old = old.with_status(Some(changed?));
    Some(Subject {
        resource: subject.resource.clone(),
        subresource: subject.subresource.clone(),
        operation: subject.operation,
        writer: subject.writer.clone(),
        object: object.with_status(object.status.clone()),
        old: Some(old),
    })
}

/// The duplicates of a list in a status.
fn surplus_in(list: &ConditionList, status: Option<&Json<'_>>) -> Vec<usize> {
    let items = in_status(status, &list.path).and_then(Json::as_array);
    items.map(|items| surplus(list, items)).unwrap_or_default()
}

/// Removes the elements with these indices from a list.
pub(super) fn remove(list: &mut Json<'_>, indices: &[usize]) {
    let Json::Array(items) = list else { return };
    let mut index = 0..;
    items.retain(|_| index.next().is_some_and(|index| indices.binary_search(&index).is_err()));
}
