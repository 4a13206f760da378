//! What the mutating webhook and backfill change.

use crate::search::{Extent, Outcome, in_every_world};
use crate::small::Small;
use crate::webhook::Write;
use crate::world::World;

const EXTENT: Extent = Extent { every: 11, worlds: [40, 200], pairs: [60, 1500], least: 300 };

#[test]
fn a_second_mutation_changes_nothing() {
    in_every_world("a second mutation changes nothing", EXTENT, |small, world| {
        let write = Write::of(&small.axes.stored(world), &small.axes.written(world));
        let once = write.mutate(&small.policies);
        let again = write.sending(once.object).mutate(&small.policies);
        match (once.patch, again.patch) {
            (Some(first), Some(second)) => {
                Outcome::Broken("the second call patches, too", format!("{first}\nthen {second}"))
            }
            (None, Some(second)) => Outcome::Broken("the same call has another answer", second),
            (Some(_), None) => Outcome::Held,
            (None, None) => Outcome::Trivial,
        }
    });
}

/// Lint reports the conventions for which this does not hold.
#[test]
fn nothing_that_the_webhook_added_is_what_makes_a_write_rejected() {
    in_every_world("nothing that was added makes a write rejected", EXTENT, |small, world| {
        let write = Write::of(&small.axes.stored(world), &small.axes.written(world));
        let once = write.mutate(&small.policies);
        let Some(patch) = once.patch else { return Outcome::Trivial };
        if !write.denials(&small.policies).is_empty() {
            return Outcome::Trivial;
        }
        let denials = write.sending(once.object).denials(&small.policies);
        if denials.is_empty() {
            return Outcome::Held;
        }
        if small.reports(&denials) {
            return Outcome::Outside;
        }
        Outcome::Broken("the patch makes the write rejected", format!("{patch}\nthen {denials:?}"))
    });
}

/// The user of backfill owns the fields that it changes.
#[test]
fn backfill_writes_what_the_webhook_would_and_is_done_after_one_run() {
    in_every_world("backfill is done after one run", EXTENT, backfill);
}

fn backfill(small: &Small, world: &World) -> Outcome {
    let old = small.axes.stored(world);
    let first = Write::by_owner(&old, &old).mutate(&small.policies);
    if first.repaired {
        return Outcome::Broken(
            "a write that changes nothing is repaired",
            first.patch.unwrap_or_default(),
        );
    }
    let mut touched = old.clone();
    touched["status"]["unrelated"] = 9.into();
    let other = Write::by_owner(&old, &touched).mutate(&small.policies);
    if !small.text.contains("steadyWhile") && first.patch != other.patch {
        let details = format!("{:?}\nbut {:?}", first.patch, other.patch);
        return Outcome::Broken("a write of another field gets another patch", details);
    }
    let Some(patch) = first.patch else { return Outcome::Trivial };
    let stored = first.object;
    let second = Write::by_owner(&stored, &stored).mutate(&small.policies);
    if let Some(second) = second.patch {
        return Outcome::Broken("the second run changes more", format!("{patch}\nthen {second}"));
    }
    let denials = Write::by_owner(&old, &stored).denials(&small.policies);
    if !denials.is_empty() && !small.reports(&denials) {
        return Outcome::Broken(
            "the write of backfill is rejected",
            format!("{patch}\nthen {denials:?}"),
        );
    }
    Outcome::Held
}

/// Rules about the stored object apart: they may reject every change, and hold for backfill, too.
#[test]
fn backfill_with_repair_is_done_after_one_run() {
    in_every_world("backfill --repair is done after one run", EXTENT, |small, world| {
        if ["old", "changed", "decreased"].iter().any(|word| small.text.contains(word)) {
            return Outcome::Outside;
        }
        let old = small.axes.stored(world);
        let repairing = small.policies.clone().repairing();
        let first = Write::by_owner(&old, &old).mutate(&repairing);
        let Some(patch) = first.patch else { return Outcome::Trivial };
        let second = Write::by_owner(&first.object, &first.object).mutate(&repairing);
        if let Some(second) = second.patch {
            return Outcome::Broken(
                "the second run changes more",
                format!("{patch}\nthen {second}"),
            );
        }
        // The webhooks judge this write under the policy as it is.
        let write = Write::by_owner(&old, &first.object);
        let mutated = write.mutate(&small.policies);
        if let Some(again) = mutated.patch {
            let details = format!("{patch}\nthen {again}");
            return Outcome::Broken("the webhook changes what backfill wrote", details);
        }
        let denials = write.denials(&small.policies);
        if !denials.is_empty() && !small.reports(&denials) {
            return Outcome::Broken(
                "the write of backfill is rejected",
                format!("{patch}\nthen {denials:?}"),
            );
        }
        Outcome::Held
    });
}
