//! Owners of one field or condition that have no user in common.

use serde_json::{Value, json};

use crate::scene::{Stage, put, yaml};
use statusgate_core::language::Glob;
use statusgate_core::model::Pointer;
use statusgate_core::policy::{Owner, Policy};

use super::{Kind, Remark, each_once};

/// Something that has owners.
#[derive(Clone)]
struct Owned<'p> {
    policy: &'p Policy,
    owner: &'p Owner,
    /// The field, or of a condition the list and its type.
    place: Pointer,
    name: String,
    /// A field with a value of it.
    example: (&'p Pointer, Value),
}

/// A write below a field changes the field, too: only writers that own both may make it.
pub(super) fn of_policies<'p>(
    policy: &'p Policy,
    others: impl Iterator<Item = &'p Policy> + Clone,
    version: Option<&String>,
) -> Option<Remark> {
    let version = version?;
    let own = owned(policy, version);
    let all: Vec<Owned<'_>> =
        own.iter().cloned().chain(others.flat_map(|other| owned(other, version))).collect();
    let mut pairs = own.iter().flat_map(|one| all.iter().map(move |other| (one, other)));
    let (one, other) = pairs.find(|(one, other)| {
        (one.place.contains(&other.place) || other.place.contains(&one.place))
            && excludes(one.owner, other.owner)
    })?;
    let (inner, outer) = if one.place.contains(&other.place) { (other, one) } else { (one, other) };
    let message = format!(
        "no user may change {}: its owners and those of {} have no user in common",
        inner.name, outer.name
    );
    let rules = [inner, outer].into_iter().filter_map(|owned| owned.policy.owner_rule.as_ref());
    let rules = each_once(rules.map(ToString::to_string));
    let mut object = Stage::of(&policy.convention, version).bare();
    let (path, example) = &inner.example;
    put(&mut object, path, example.clone());
    Some(Remark::new(Kind::OwnersLock, rules, message, Some(yaml(&object))))
}

/// What the owners of a policy own.
fn owned<'p>(policy: &'p Policy, version: &str) -> Vec<Owned<'p>> {
    let list = policy.owned_list(version);
    let owned = policy.owners.iter().flat_map(|owner| {
        let field = owner.path.as_deref().map(|path| Owned {
            policy,
            owner,
            place: path.clone(),
            name: path.field().to_owned(),
            example: (path, "example".into()),
        });
        let conditions = list.into_iter().flat_map(move |list| {
            owner.conditions.iter().filter_map(move |kind| {
                let name = kind.replace('~', "~0").replace('/', "~1");
                Some(Owned {
                    policy,
                    owner,
                    place: format!("{}/{name}", *list.path).parse().ok()?,
                    name: format!("condition {kind}"),
                    example: (&*list.path, json!([{"type": kind}])),
                })
            })
        });
        field.into_iter().chain(conditions)
    });
    owned.collect()
}

/// Whether no writer can be one of both. A user can be in any group.
fn excludes(one: &Owner, other: &Owner) -> bool {
    let (one, other) = (&one.writers, &other.writers);
    one.groups.is_empty() && other.groups.is_empty() && !Glob::any_overlap(&one.users, &other.users)
}
