//! Owners of one field that have no user in common.

use crate::scene::{Stage, put, yaml};
use statusgate_core::language::Glob;
use statusgate_core::policy::{Owner, Policy};

use super::{Kind, Remark, each_once};

/// A write below a field changes the field, too: only writers that own both may make it.
pub(super) fn of_policies<'p>(
    policy: &'p Policy,
    others: impl Iterator<Item = &'p Policy> + Clone,
    version: Option<&String>,
) -> Option<Remark> {
    let own = || policy.owners.iter().map(move |owner| (policy, owner));
    let all = others.flat_map(|other| other.owners.iter().map(move |owner| (other, owner)));
    let mut pairs =
        own().flat_map(|inner| own().chain(all.clone()).map(move |outer| (inner, outer)));
    let (one, other) = pairs.find(|((_, one), (_, other))| {
        (one.path.contains(&other.path) || other.path.contains(&one.path)) && excludes(one, other)
    })?;
    let (inner, outer) =
        if one.1.path.contains(&other.1.path) { (other, one) } else { (one, other) };
    let (field, around) = (inner.1.path.field(), outer.1.path.field());
    let message = format!(
        "no user may change {field}: its owners and those of {around} have no user in common"
    );
    let rules = [inner.0, outer.0].into_iter().filter_map(|policy| policy.owner_rule.as_ref());
    let rules = each_once(rules.map(ToString::to_string));
    let mut object = Stage::of(&policy.convention, version?).bare();
    put(&mut object, &inner.1.path, "example".into());
    Some(Remark::new(Kind::OwnersLock, rules, message, Some(yaml(&object))))
}

/// Whether no writer can be one of both. A user can be in any group.
fn excludes(one: &Owner, other: &Owner) -> bool {
    let (one, other) = (&one.writers, &other.writers);
    one.groups.is_empty() && other.groups.is_empty() && !Glob::any_overlap(&one.users, &other.users)
}
