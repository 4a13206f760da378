//! The mutating webhook restores what a writer removes that does not own it: fields, and conditions with owners.

use super::Change;
use super::conditions::MAX_ELEMENTS;
use super::draft::Draft;
use super::mutate::Run;
use super::owners::missing;
use crate::model::{Conditions, Json, Pointer};
use crate::policy::Policy;
use crate::policy::convention::ConditionList;

impl<'a> Run<'_, '_, 'a> {
    /// Restores the fields and conditions that this writer cannot remove.
    pub(super) fn restore(&mut self) {
        let mut draft = Draft::new(self.base, &self.in_lists);
        for (_, policy) in self.selected.policies() {
            for path in &policy.preserve {
                let is_restored = match self.owned_list(path) {
                    Some(list) => self.restore_conditions(list, &mut draft),
                    None => self.wanted(path).is_some_and(|wanted| {
                        draft.get(path) != Some(&wanted)
                            && draft.set_in_maps(path, wanted.to_value())
                    }),
                };
                if is_restored {
                    self.verdict.changes.push((&policy.name, Change::Restored));
                }
            }
        }
        self.take(draft.finish());
    }

    /// The list at a path, if its conditions have owners.
    fn owned_list(&self, path: &Pointer) -> Option<&ConditionList> {
        let policies = self.selected.policies().map(|(_, policy)| policy);
        let mut lists = policies.filter_map(|policy| self.owned_list_of(policy));
        lists.find(|list| *list.path == *path)
    }

    fn owned_list_of<'p>(&self, policy: &'p Policy) -> Option<&'p ConditionList> {
        policy.owned_list(&self.subject.resource.version)
    }

    /// Inserts the stored conditions that the written list lacks and this writer does not own, each in its
    /// place. An absent list counts as empty. Returns whether it changed anything.
    fn restore_conditions(&self, list: &ConditionList, draft: &mut Draft<'_, 'a>) -> bool {
        let stored = self.subject.old.as_ref().and_then(|old| old.at_status(&list.path));
        let written = match draft.get(&list.path) {
            None | Some(Json::Null) => &[],
            Some(Json::Array(items)) if items.len() <= MAX_ELEMENTS => items.as_slice(),
            Some(_) => return false,
        };
        let stored = Conditions::of(stored).items();
        let missing = missing(list, stored, written, |kind| self.has_other_owners(list, kind));
        for (index, item) in &missing {
            draft.insert(&list.path, *index, item.to_value());
        }
        !missing.is_empty()
    }

    /// Whether the conditions of a type have owners, and this writer is none of them.
    fn has_other_owners(&self, list: &ConditionList, kind: &str) -> bool {
        let mut is_owned = false;
        for (_, policy) in self.selected.policies() {
            for owner in &policy.owners {
                let owns = match &owner.path {
                    Some(path) => path.contains(&list.path),
                    None => {
                        owner.conditions.iter().any(|own| own == kind)
                            && self.owned_list_of(policy).is_some_and(|own| *own.path == *list.path)
                    }
                };
                if owns && owner.writers.include(&self.subject.writer) {
                    return false;
                }
                is_owned |= owns && owner.path.is_none();
            }
        }
        is_owned
    }

    /// The stored value of a field that the writer removed, without the parts that this writer owns. `None`
    /// if the field stays removed. The validating webhook judges a changed value.
    fn wanted(&self, path: &Pointer) -> Option<Json<'a>> {
        if self.base.at_status(path).is_some_and(|value| !value.is_null()) {
            return None;
        }
        let stored = self.subject.old.as_ref()?;
        let value = stored.at_status(path).filter(|value| !value.is_null() && value.is_whole())?;
        let names = path.below_status();
        let parent = |depth| stored.status.as_ref()?.at(&names[..depth]);
        // Inside a list, another element may have the index.
        if !(0..names.len()).all(|depth| matches!(parent(depth), Some(Json::Object(_)))) {
            return None;
        }
        let mut wanted = value.clone();
        let owners = self.selected.policies();
        let owners =
            owners.flat_map(|(_, policy)| policy.owners.iter().map(move |owner| (policy, owner)));
        for (policy, owner) in
            owners.filter(|(_, owner)| owner.writers.include(&self.subject.writer))
        {
            let Some(owned) = &owner.path else {
                let Some(list) = self.owned_list_of(policy) else { continue };
                let inside = list.path.below_status().get(names.len()..).unwrap_or_default();
                if path.contains(&list.path)
                    && let Some(Json::Array(items)) = wanted.at_mut(inside)
                {
                    items.retain(|item| {
                        let kind = item.get("type").and_then(Json::as_str);
                        !owner.conditions.iter().any(|own| kind == Some(own))
                    });
                }
                continue;
            };
            if owned.contains(path) {
                return None;
            }
            let part = owned.below_status().get(names.len()..).unwrap_or_default();
            let Some((_, parent)) = part.split_last().filter(|_| path.contains(owned)) else {
                continue;
            };
            // The next element would take the index of a removed one.
            if matches!(wanted.at(parent), Some(Json::Array(_))) {
                return None;
            }
            wanted.put(part, None);
        }
        Some(wanted)
    }
}
