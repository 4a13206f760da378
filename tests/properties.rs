//! What holds for every policy, every stored status and every write. The statuses use the words of the
//! policy's convention and contain hostile values.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use statusgate::engine::Action;
use statusgate::model::Webhook;
use statusgate::policy::convention::{Backfill, Convention, Filling};
use statusgate::policy::{Disposition, PolicySet};
use statusgate::server::admit::{Reply, admit};

use statuses::{pairs, put, specs};
use support::{CROSSPLANE, LATER, NOW, Outcome, Write, built_in, compile, examples, policy};

#[path = "support/statuses.rs"]
mod statuses;
mod support;

// --- policies ---------------------------------------------------------------------------------

/// Policies that are compiled together. Each selects another API group, so one set serves all writes:
/// in a debug build it takes longer to compile a convention than to judge hundreds of statuses.
struct Family {
    settings: Vec<Settings>,
    policies: PolicySet,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Every built-in convention.
    Conventions,
    /// AppCat with every combination of settings and additions.
    AppCat,
    /// Two policies for one resource.
    Pairs,
}

#[derive(Clone, Debug)]
struct Settings {
    kind: Kind,
    /// The place in the family. The API group is `gINDEX`.
    index: usize,
    convention: String,
    disagreement: &'static str,
    enforcement: &'static str,
    /// The action for Crossplane's disagreements.
    crossplane: Option<&'static str>,
    additions: &'static str,
    /// Whether the policy enables every optional rule and default.
    everything: bool,
    subresource: bool,
    /// The convention of a second policy for the same resources.
    second: Option<String>,
}

impl Kind {
    fn family(self) -> &'static Family {
        static CONVENTIONS: LazyLock<Family> = LazyLock::new(|| Family::of(conventions()));
        static APPCAT: LazyLock<Family> = LazyLock::new(|| Family::of(appcat()));
        static PAIRS: LazyLock<Family> = LazyLock::new(|| Family::of(two_policies()));
        match self {
            Self::Conventions => &CONVENTIONS,
            Self::AppCat => &APPCAT,
            Self::Pairs => &PAIRS,
        }
    }
}

impl Family {
    fn of(settings: Vec<Settings>) -> Self {
        let numbered = settings.into_iter().enumerate();
        let settings: Vec<Settings> =
            numbered.map(|(index, settings)| Settings { index, ..settings }).collect();
        let documents: Vec<String> = settings.iter().flat_map(Settings::documents).collect();
        Self { policies: compile(&documents), settings }
    }
}

fn settings(kind: Kind, convention: &str) -> Settings {
    Settings {
        kind,
        index: 0,
        convention: convention.to_owned(),
        disagreement: "Deny",
        enforcement: "Deny",
        crossplane: None,
        additions: "",
        everything: false,
        subresource: true,
        second: None,
    }
}

fn conventions() -> Vec<Settings> {
    let mut all = Vec::new();
    for convention in built_in().conventions().keys() {
        for disagreement in ["Deny", "Repair", "Warn"] {
            for everything in [false, true] {
                for subresource in [true, false] {
                    let settings = settings(Kind::Conventions, convention);
                    all.push(Settings { disagreement, everything, subresource, ..settings });
                }
            }
        }
    }
    all
}

fn appcat() -> Vec<Settings> {
    let mut all = Vec::new();
    for disagreement in ["Deny", "Repair", "Warn", "Audit"] {
        for enforcement in ["Deny", "Warn", "Audit"] {
            for crossplane in [None, Some("Repair"), Some("Deny")] {
                for additions in ADDITIONS {
                    for subresource in [true, false] {
                        all.push(Settings {
                            disagreement,
                            enforcement,
                            crossplane,
                            additions,
                            subresource,
                            ..settings(Kind::AppCat, "appcat")
                        });
                    }
                }
            }
        }
    }
    all
}

fn two_policies() -> Vec<Settings> {
    let mut all = Vec::new();
    for (convention, _) in built_in().conventions().iter().filter(|(_, c)| c.phase.is_some()) {
        for second in built_in().conventions().keys() {
            all.push(Settings {
                disagreement: "Repair",
                everything: true,
                second: Some(second.clone()),
                ..settings(Kind::Pairs, convention)
            });
        }
    }
    all
}

const ADDITIONS: [&str; 9] = [
    "",
    "backfill: [{path: /status/billing, value: null, nullable: true}]",
    "backfill: [{path: /status/billing, value: {unit: GiB}}], preserve: [/status/billing]",
    "preserve: [/status/billing], owners: [{path: /status/billing, users: [biller]}]",
    "preserve: [/status/billing/unit, /status/lastTransitionTime], owners: [{path: /status/billing/unit, users: [biller]}]",
    "backfill: [{path: /status/a~1b/m~0n, copyOf: [/status/instanceNamespace, /status/reason]}], fields: [{path: /status/billing/unit, enum: [GiB, minutes]}]",
    // Defaults that remove members, and that read what others set, restore and own.
    "backfill: [
        {name: a, list: /status/conditions, member: observedGeneration, absentWhere: {any: [{member: status, isNot: 'True'}, {member: severity, set: true}]}},
        {name: b, list: /status/conditions, member: message, absentWhere: {any: [{member: observedGeneration, changed: true}, {phase: Failed}]}, when: {condition: Synced, present: true}},
        {name: c, list: /status/conditions, member: severity, value: Info, when: {phase: Unknown}}],
      preserve: [/status/conditions], owners: [{path: /status/conditions, users: [biller]}]",
    // Rules that would deny the default phase if they could, and rules that often cannot be evaluated.
    r#"backfill: [{path: /status/billing, value: {unit: GiB}}], rules: [
        {name: not-unknown, message: m, expression: "self.status.phase != 'Unknown'"},
        {name: always-ready, message: m, trigger: state, expression: "self.status.phase == 'Ready'"},
        {name: billed-late, message: m, expression: "!has(self.status.billing)"},
        {name: never-deleting, message: m, expression: "self.status.phase != 'Deleting'"}]"#,
    r#"rules: [
        {name: never, message: m, trigger: {moved: /status/phase}, expression: "false"},
        {name: both, message: m, trigger: {coWritten: [/status/phase, condition Ready]}, expression: "1 / 0 == 1"},
        {name: moves, message: m, expression: "oldSelf.status.phase == self.status.phase"},
        {name: conditions, message: m, expression: "self.status.conditions.all(c, c.status == 'True' || c.reason.matches('^[A-Z]'))"},
        {name: pairs, message: m, expression: "self.status.conditions.all(a, self.status.conditions.exists_one(b, a.type == b.type))"},
        {name: unit, message: m, action: Warn, expression: "self.status.billing.unit.size() + self.status.observedGeneration > 2"},
        {name: whole, message: m, action: Audit, expression: "self == oldSelf || writer.user == 'operator' && self.status.map(k, k) != []"}]"#,
];

impl Settings {
    fn documents(&self) -> Vec<String> {
        let Self { index, disagreement, enforcement, additions, subresource, .. } = self;
        let writers = self.crossplane.map_or_else(String::new, |action| {
            format!("{{users: ['system:serviceaccount:*:crossplane'], disagreement: {action}}}")
        });
        let document = |name: String, convention: &String| {
            let optional = built_in().conventions()[convention].optional_parts();
            let enabled: Vec<&str> = optional.filter(|_| self.everything).collect();
            policy(
                &name,
                format!(
                    "convention: {convention}, disagreement: {disagreement}, enforcement: {enforcement}, \
                     writers: [{writers}], enable: [{}], resources: [{{apiGroups: [g{index}], \
                     apiVersions: ['*'], resources: ['*'], statusSubresource: {subresource}}}], {additions}",
                    enabled.join(", ")
                ),
            )
        };
        let first = document(format!("p{index}"), &self.convention);
        let second =
            self.second.as_ref().map(|second| document(format!("p{index}-second"), second));
        std::iter::once(first).chain(second).collect()
    }

    fn convention(&self) -> &'static Convention {
        &built_in().conventions()[&self.convention]
    }

    /// The rules that compare the phase with its evidence.
    fn phase_rules(&self) -> Vec<&'static str> {
        let phases = self.convention().phase.iter().flat_map(|rules| &rules.phases);
        phases.filter(|phase| phase.necessary.is_some()).map(|phase| phase.rule.as_str()).collect()
    }

    /// All rules about parts of a status that disagree.
    fn agreement_rules(&self) -> Vec<&'static str> {
        let rules = self.convention().rules.iter().map(|rule| (rule.id.as_str(), rule.action));
        let lists = self.convention().conditions.iter().flat_map(|list| &list.each);
        let rules = rules.chain(lists.map(|rule| (rule.id.as_str(), rule.action)));
        let rules = rules.filter(|(_, action)| *action == Disposition::Disagreement);
        self.phase_rules().into_iter().chain(rules.map(|(id, _)| id)).collect()
    }
}

// --- writes -----------------------------------------------------------------------------------

/// A write under one of the policies.
#[derive(Clone, Debug)]
struct Case {
    settings: &'static Settings,
    user: &'static str,
    deleting: bool,
    write: Write,
    old: Option<Value>,
    new: Option<Value>,
}

fn cases() -> impl Strategy<Value = Case> {
    prop_oneof![of_kind(Kind::Conventions, |_| true), of_kind(Kind::AppCat, |_| true)]
}

fn of_kind(kind: Kind, filter: impl Fn(&Settings) -> bool) -> impl Strategy<Value = Case> {
    let settings: Vec<&'static Settings> =
        kind.family().settings.iter().filter(|settings| filter(settings)).collect();
    select(settings).prop_flat_map(|settings| {
        let circumstances = (
            select(vec!["v1", "v1beta1", "v1beta2"]),
            select(vec!["things", "xthings", "machines", "clusters", "machinesets"]),
            select(vec![CROSSPLANE, "operator", "biller"]),
            prop::bool::weighted(0.2),
            specs(),
            pairs(settings.convention()),
        );
        circumstances.prop_map(move |(version, plural, user, deleting, spec, (old, new))| {
            let group = format!("g{}", settings.index);
            let mut write = Write::to(plural).group(&group).version(version).by(user);
            if let Some(spec) = spec {
                write = write.both("/spec", spec);
            }
            if deleting {
                write = write.deleting();
            }
            if !settings.subresource {
                write = write.on_the_main_resource();
            }
            let write = write.stored(old.clone()).sent(new.clone());
            Case { settings, user, deleting, write, old, new }
        })
    })
}

impl Case {
    fn policies(&self) -> &'static PolicySet {
        &self.settings.kind.family().policies
    }

    /// This write with another new status.
    fn with(&self, new: Option<Value>) -> Self {
        Self { write: self.write.clone().sent(new.clone()), new, ..self.clone() }
    }

    fn at(&self, now: &str) -> Self {
        Self { write: self.write.clone().at(now), ..self.clone() }
    }

    fn mutate(&self) -> Outcome {
        self.write.mutate(self.policies())
    }

    fn validate(&self) -> Outcome {
        self.write.validate(self.policies())
    }

    /// This write after the mutating webhook.
    fn mutated(&self) -> Self {
        self.with(self.mutate().object().get("status").cloned())
    }

    /// The denials with and without the mutating webhook.
    fn denials(&self) -> Vec<String> {
        [self.validate().denials(), self.mutated().validate().denials()].concat()
    }

    fn disagreement(&self) -> &str {
        let own = self.settings.crossplane.filter(|_| self.user == CROSSPLANE);
        own.unwrap_or(self.settings.disagreement)
    }
}

// --- properties -------------------------------------------------------------------------------

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

    #[test]
    fn enforcement_limits_every_action(case in cases()) {
        if case.settings.enforcement != "Deny" {
            case.validate().is_allowed();
        }
    }

    #[test]
    fn an_unchanged_status_is_never_denied(case in cases()) {
        let mut denials = case.with(case.old.clone()).denials();
        denials.retain(|denial| !denial.contains("/billed-late"));
        prop_assert_eq!(denials, Vec::<String>::new());
    }

    /// The additions of AppCat break this law on purpose: `always-ready` judges stored faults too, and
    /// `billed-late` denies the policy's own default.
    #[test]
    fn a_stored_fault_does_not_deny_an_unrelated_change(case in cases()) {
        // An empty stored status counts as none.
        let stored = case.old.clone().filter(|old| *old != json!({}));
        if let Some(Value::Object(mut members)) = stored {
            members.insert("unrelated".into(), "7.2.5".into());
            let mut denials = case.with(Some(members.into())).denials();
            denials.retain(|denial| !denial.contains("/always-ready") && !denial.contains("/billed-late"));
            prop_assert_eq!(denials, Vec::<String>::new());
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
    fn a_disagreement_is_denied_only_if_the_policy_says_deny_and_the_object_is_not_deleted(case in cases()) {
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
    let mut runner = TestRunner::new(ProptestConfig::with_cases(1));
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

// --- requests ---------------------------------------------------------------------------------

fn request(case: &Case, operation: &str, subresource: &str) -> Vec<u8> {
    let mut review = case.write.request();
    let request = &mut review["request"];
    request["operation"] = operation.into();
    request["subResource"] = subresource.into();
    match operation {
        "DELETE" => request["object"] = Value::Null,
        "CREATE" => request["oldObject"] = Value::Null,
        _ => {}
    }
    review.to_string().into_bytes()
}

fn answer(policies: &PolicySet, webhook: Webhook, body: &[u8]) -> Reply {
    admit(policies, webhook, body, NOW.parse().unwrap(), |_, verdict| {
        assert!(!verdict.patch_failed, "a patch always applies");
    })
}

fn is_allowed(reply: &Reply) -> bool {
    let review: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    reply.status == 200 && review["response"]["allowed"] == true
}

const WEBHOOKS: [Webhook; 2] = [Webhook::Mutate, Webhook::Validate];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_deletion_is_always_allowed(case in cases(), webhook in select(&WEBHOOKS[..])) {
        for subresource in ["", "status"] {
            let reply = answer(case.policies(), webhook, &request(&case, "DELETE", subresource));
            prop_assert!(is_allowed(&reply), "{}", String::from_utf8_lossy(&reply.body));
        }
    }

    /// With a status subresource, no write of the main resource is judged. Without one, every write of an
    /// object that is being deleted passes.
    #[test]
    fn a_finalizer_can_always_be_removed(mut case in cases()) {
        case.write = case.write.deleting();
        let reply = answer(case.policies(), Webhook::Validate, &request(&case, "UPDATE", ""));
        prop_assert!(is_allowed(&reply), "{}", String::from_utf8_lossy(&reply.body));
    }

    #[test]
    fn equal_reviews_get_equal_bytes(case in cases(), operation in select(vec!["CREATE", "UPDATE", "CONNECT"]), subresource in select(vec!["", "status", "scale"])) {
        let body = request(&case, operation, subresource);
        for webhook in WEBHOOKS {
            let one = answer(case.policies(), webhook, &body);
            prop_assert_eq!(one.status, 200, "{}", String::from_utf8_lossy(&one.body));
            prop_assert_eq!(one, answer(case.policies(), webhook, &body));
        }
    }
}

// --- bytes ------------------------------------------------------------------------------------

/// A change to a text at a place between 0 and 1.
#[derive(Clone, Debug)]
enum Damage {
    Set(f64, u8),
    Cut(f64),
    Drop(f64, usize),
    Repeat(f64, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = || 0.0..1.0f64;
    prop_oneof![
        4 => (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        4 => (place(), select(b"\"{}[],:0-eE\\u".as_slice())).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => place().prop_map(Damage::Cut),
        2 => (place(), 1..200usize).prop_map(|(at, length)| Damage::Drop(at, length)),
        2 => (place(), 1..200usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
    ]
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a place in a few kilobytes"
        )]
        let place = |at: f64| (at * bytes.len() as f64) as usize;
        let part = |at: f64, length: usize| place(at)..(place(at) + length).min(bytes.len());
        match *damage {
            Damage::Set(at, byte) => {
                let at = place(at);
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            Damage::Cut(at) => bytes.truncate(place(at)),
            Damage::Drop(at, length) => drop(bytes.drain(part(at, length))),
            Damage::Repeat(at, length) => {
                let part = part(at, length);
                bytes.splice(part.start..part.start, bytes[part].to_vec());
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_malformed(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for webhook in WEBHOOKS {
            prop_assert_eq!(answer(examples(), webhook, &bytes).status, 400);
        }
    }

    #[test]
    fn a_damaged_review_gets_an_answer(damages in prop::collection::vec(damage(), 1..4)) {
        let valid = include_bytes!("fixtures/reviews/repair/crossplane-composite-first-request/review.json");
        let bytes = damaged(valid.to_vec(), &damages);
        for webhook in WEBHOOKS {
            let reply = answer(examples(), webhook, &bytes);
            prop_assert!(reply.status == 200 || reply.status == 400, "{}", reply.status);
            if reply.status == 200 {
                prop_assert!(serde_json::from_slice::<Value>(&reply.body).is_ok());
            }
        }
    }
}
