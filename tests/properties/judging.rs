//! What holds for the verdicts of both webhooks.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use statusgate_core::engine::Action;
use statusgate_core::model::Json;
use statusgate_core::policy::convention::{Backfill, Filling};

use crate::case::{Case, cases, of_kind};
use crate::settings::{Kind, Settings};
use crate::statuses::{put, with_times};
use crate::support::{LATER, NOW, T0};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1200))]

    /// The helpers also assert that nothing panics, that every patch applies, that the mutating webhook
    /// denies nothing and that the validating webhook patches nothing.
    #[test]
    fn a_second_mutation_changes_nothing(case in cases()) {
        let once = case.mutated();
        for now in [NOW, LATER] {
            prop_assert_eq!(once.at(now).mutate().patch, Value::Null, "first {:?}", once.new);
        }
    }

    #[test]
    fn two_policies_do_not_undo_each_other(case in of_kind(Kind::Pairs, |_| true)) {
        let outcome = case.mutate();
        let once = case.mutated();
        prop_assert_eq!(once.at(LATER).mutate().patch, Value::Null, "first {:?}", once.new);
        let operations = outcome.patch.as_array().into_iter().flatten();
        let phases = operations.filter(|operation| operation["path"] == "/status/phase").count();
        prop_assert!(phases <= 1, "the phase is set {} times", phases);
        prop_assert_eq!(case.with(case.old.clone()).denials(), Vec::<String>::new());
    }

    /// AS-X1 and AS-X2 find nothing if the defaults remove the members.
    #[test]
    fn no_rule_denies_a_member_that_a_default_removed(case in of_kind(Kind::Conventions, removes_members)) {
        let denials = case.mutated().validate().denials();
        prop_assert!(!denials.iter().any(|text| text.contains("severity-when-")), "{denials:?}");
    }

    /// Controllers copy denials into conditions: a text with the time would cause an endless loop.
    #[test]
    fn equal_writes_get_equal_texts_at_any_time(case in cases()) {
        prop_assert_eq!(case.mutate().patch, case.mutate().patch);
        prop_assert_eq!(case.validate().findings, case.at(LATER).validate().findings);
    }

    /// With a wrong clock, each time of a controller would be a violation.
    #[test]
    fn a_clock_that_is_wrong_by_a_day_rejects_no_write(case in cases()) {
        let denials = case.denials();
        for now in ["2024-05-31T12:00:00Z", "2024-06-02T12:00:00Z"] {
            prop_assert_eq!(&case.at(now).denials(), &denials);
        }
    }

    #[test]
    fn enforcement_limits_every_action(case in cases()) {
        if case.settings.enforcement != "Deny" {
            case.validate().is_allowed();
        }
    }

    #[test]
    fn every_state_can_change_to_the_default_phase(case in cases()) {
        let rules = case.settings.convention().phase.as_ref();
        let default = rules.and_then(|rules| Some((&rules.path, rules.default.as_ref()?)));
        if let (Some((path, default)), Some(Value::Object(_))) = (default, &case.old) {
            let mut new = case.old.clone().unwrap();
            put(&mut new, &path.tokens()[1..], default.as_str().into());
            let mut denials = case.with(Some(new)).denials();
            // A known fault: the default `c` reads the written phase, which the deletion then replaces. The
            // validating webhook takes the default for a change by the writer.
            denials.retain(|denial| !(case.deleting && denial.contains("/owner]")));
            prop_assert_eq!(denials, Vec::<String>::new());
        }
    }

    #[test]
    fn a_disagreement_is_denied_only_with_disagreement_deny_and_not_while_deleting(case in cases()) {
        let outcome = case.validate();
        if case.deleting || case.disagreement() != "Deny" {
            let rules = case.settings.agreement_rules();
            let denied = |(action, rule): (Action, &str)| action == Action::Deny && rules.contains(&rule);
            prop_assert!(!outcome.rules().into_iter().any(denied), "{:?}", outcome.lines());
        }
        // The update may remove the last finalizer.
        if case.deleting && !case.settings.subresource {
            outcome.is_allowed();
        }
    }

    /// Not even a warning about a disagreement remains.
    #[test]
    fn a_repaired_phase_agrees_with_its_evidence(case in of_kind(Kind::AppCat, |_| true)) {
        if case.disagreement() == "Repair" && case.settings.enforcement == "Deny" {
            let outcome = case.mutated().validate();
            let rules = case.settings.phase_rules();
            let left = outcome.rules().into_iter().any(|(_, rule)| rules.contains(&rule));
            prop_assert!(!left, "{:?}", outcome.lines());
        }
    }

    /// If the webhook restores the stored phase over the written one, it restores its time too.
    #[test]
    fn a_restored_phase_has_its_stored_time(case in of_kind(Kind::AppCat, |_| true)) {
        let mutated = case.mutated();
        let of = |status: &Option<Value>, member: &str| {
            status.as_ref()?.get(member)?.as_str().map(str::to_owned)
        };
        let phase = of(&mutated.new, "phase");
        let stored = of(&case.old, "lastTransitionTime").filter(|time| !time.is_empty());
        let restored = phase.is_some() && phase != of(&case.new, "phase") && phase == of(&case.old, "phase");
        // A time of another type stays, so that the validating webhook names it.
        let sent = case.new.as_ref().and_then(|status| status.get("lastTransitionTime"));
        let replaceable = sent.is_none_or(|time| time.is_null() || time.is_string());
        if let (true, Some(stored)) = (restored && replaceable, stored) {
            // Go's times have whole seconds, so times within one second are equal.
            let second = |time: String| time.get(..19).unwrap_or(&time).to_owned();
            let time = of(&mutated.new, "lastTransitionTime");
            prop_assert_eq!(time.map(second), Some(second(stored)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1200))]

    #[test]
    fn steady_times_restores_a_status_of_which_only_times_changed_and_no_other(write in steady_writes()) {
        let result = write.mutated().new;
        prop_assert_eq!(result, if restores(&write) { write.old } else { without_steady(&write) });
    }
}

/// Writes under `steady-times`. About half change only times.
fn steady_writes() -> impl Strategy<Value = Case> {
    let cases = of_kind(Kind::Conventions, restores_times);
    (cases, prop::bool::ANY).prop_map(|(case, only_times)| match &case.old {
        Some(_) if only_times => {
            let settled = case.with(case.old.clone()).mutated();
            let (old, new) = (settled.new, settled.old.map(|old| with_times(&old, LATER)));
            Case { write: settled.write.stored(old.clone()), old, ..case }.with(new)
        }
        _ => case,
    })
}

fn restores_times(settings: &Settings) -> bool {
    let restores = |default: &Backfill| matches!(default.filling, Filling::SteadyStatus { .. });
    settings.steady && settings.convention().backfill.iter().any(restores)
}

/// The result without `steady-times`.
fn without_steady(case: &Case) -> Option<Value> {
    let settings = case.settings.without_steady();
    let write = case.write.clone().group(&format!("g{}", settings.index));
    Case { settings, write, ..case.clone() }.mutated().new
}

/// Whether the result without `steady-times` differs from the stored status in times, and only in these.
fn restores(case: &Case) -> bool {
    let (Some(old), Some(new)) = (&case.old, without_steady(case)) else { return false };
    let same = |one: &Value, other: &Value| Json::from(one) == Json::from(other);
    !same(old, &new) && same(&with_times(old, T0), &with_times(&new, T0))
}

/// Otherwise the property above would hold trivially.
#[test]
fn some_random_writes_change_only_times_and_others_do_not() {
    let mut runner = TestRunner::deterministic();
    let write = |_| steady_writes().new_tree(&mut runner).unwrap().current();
    let restored = (0..400).map(write).filter(restores).count();
    assert!((40..360).contains(&restored), "{restored}");
}

fn removes_members(settings: &Settings) -> bool {
    let removes = |default: &Backfill| matches!(default.filling, Filling::AbsentMember { .. });
    settings.everything && settings.convention().backfill.iter().any(removes)
}

/// Without denials the properties above would hold trivially. Each convention denies, and each one with
/// rules about agreement denies a disagreement.
#[test]
fn random_statuses_break_the_rules_of_every_convention() {
    let strict = |settings: &Settings| settings.disagreement == "Deny" && !settings.everything;
    let mut denied = denied_rules(of_kind(Kind::Conventions, strict), 3000);
    let agrees = |settings: &Settings| strict(settings) && !settings.agreement_rules().is_empty();
    denied.extend(denied_rules(of_kind(Kind::Conventions, agrees), 6000));
    for settings in Kind::Conventions.family().settings.iter().filter(|settings| strict(settings)) {
        let name = &settings.convention;
        let own = denied.iter().filter(|rule| rule.split('/').next() == Some(name));
        assert!(own.count() >= 5, "{name}: {denied:?}");
        let rules = settings.agreement_rules();
        let met = rules.iter().any(|rule| denied.contains(*rule));
        assert!(met || rules.is_empty(), "{name}: none of {rules:?}");
    }
}

fn denied_rules(cases: impl Strategy<Value = Case>, samples: usize) -> BTreeSet<String> {
    // Of random seeds, a few meet none of the agreement rules of a convention.
    let mut runner = TestRunner::deterministic();
    let mut denied = BTreeSet::new();
    for _ in 0..samples {
        let case = cases.new_tree(&mut runner).unwrap().current();
        // A write without a stored status introduces every fault.
        let outcome =
            case.write.stored(None::<Value>).validate(&case.settings.kind.family().policies);
        let found = outcome.findings.into_iter().filter(|found| found.action == Action::Deny);
        denied.extend(found.map(|found| found.rule));
    }
    denied
}
