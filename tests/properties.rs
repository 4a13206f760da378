//! What holds for every status, however hostile, and every policy: the laws of a verdict, and the
//! "never stuck" list of the design.
//!
//! The cases are the same at every run: a law that breaks in CI breaks at every desk.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests, and their helpers too"
)]

use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};
use statusgate::engine::{Action, Verdict, decide};
use statusgate::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate::policy::{PolicySet, Source};
use statusgate::server::admit::admit;

const T0: &str = "2024-06-01T11:00:00Z";
const EARLIER: &str = "2024-06-01T10:00:00Z";
const NOW: &str = "2024-06-01T12:00:00Z";
const LATER: &str = "2024-06-01T12:01:00Z";
const CROSSPLANE: &str = "system:serviceaccount:syn-crossplane:crossplane";

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x5747_6174),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

// --- what is generated -----------------------------------------------------------------------------

/// A write: what is stored, what is sent, by whom, to which policy.
#[derive(Clone, Debug)]
struct Write {
    settings: Settings,
    resource: &'static str,
    user: &'static str,
    deleting: bool,
    old: Option<Value>,
    new: Option<Value>,
}

/// JSON that no controller means to write.
fn hostile() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(vec![0, 1, -1, i64::MAX, i64::MIN]).prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        select(vec!["", "True", "Ready", "Unknown", T0, "ä\u{0}\n", "a/b~c", "\u{10fffd}"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(
                (select(vec!["type", "status", "a/b", "m~n", "", "0"]), inner),
                0..4
            )
            .prop_map(|members| object(members.into_iter().map(|(k, v)| (k, Some(v))).collect())),
        ]
    })
}

fn object(members: Vec<(&str, Option<Value>)>) -> Value {
    let present = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    Value::Object(members.into_iter().filter_map(present).collect::<Map<_, _>>())
}

/// Mostly `sane`; absent or anything at all now and then.
fn mostly<S: Strategy<Value = Value> + 'static>(sane: S) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![16 => sane.prop_map(Some), 3 => Just(None), 1 => hostile().prop_map(Some)]
}

fn text(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    select(words).prop_map(Value::from)
}

const TIMES: &[&str] =
    &[EARLIER, T0, T0, T0, "2999-01-01T00:00:00Z", "yesterday", "2024-06-01T11:00:00.5Z"];

fn condition() -> impl Strategy<Value = Value> {
    let member = (
        mostly(text(&["Ready", "Ready", "Synced", "PodReady", "Custom", "no type"])),
        mostly(text(&["True", "True", "False", "False", "Unknown", "true"])),
        mostly(text(&["Available", "ReconcilePaused", "two words"])),
        mostly(text(TIMES)),
        prop_oneof![4 => Just(None), 1 => select(vec![1, 3, 9, -1]).prop_map(|n| Some(json!(n)))],
        prop_oneof![4 => Just(None), 1 => text(&["m", ""]).prop_map(Some)],
    );
    member.prop_map(|(kind, status, reason, time, generation, message)| {
        object(vec![
            ("type", kind),
            ("status", status),
            ("reason", reason),
            ("lastTransitionTime", time),
            ("observedGeneration", generation),
            ("message", message),
        ])
    })
}

const PHASES: &[&str] = &[
    "Deleting",
    "Failed",
    "Provisioning",
    "Maintenance",
    "Scaling",
    "Degraded",
    "Ready",
    "Ready",
    "Unknown",
    "ready",
    "",
];

fn status() -> impl Strategy<Value = Value> {
    let conditions = prop::collection::vec(prop_oneof![30 => condition(), 1 => hostile()], 0..5);
    let sane = (
        mostly(text(PHASES)),
        mostly(conditions.prop_map(Value::from)),
        mostly(text(TIMES)),
        mostly(text(&["vshn-redis-x", "vshn-redis-x", ""])),
        prop_oneof![
            3 => Just(None),
            1 => Just(Some(Value::Null)),
            2 => select(vec!["GiB", "minutes", "gib"]).prop_map(|unit| Some(json!({"unit": unit}))),
            1 => hostile().prop_map(Some),
        ],
        prop_oneof![4 => Just(None), 1 => select(vec![1, 3, 9]).prop_map(|n| Some(json!(n)))],
    );
    sane.prop_map(|(phase, conditions, time, namespace, billing, generation)| {
        object(vec![
            ("phase", phase),
            ("conditions", conditions),
            ("lastTransitionTime", time),
            ("instanceNamespace", namespace),
            ("billing", billing),
            ("observedGeneration", generation),
        ])
    })
}

fn statuses() -> impl Strategy<Value = Option<Value>> {
    mostly(status())
}

/// A stored status and the next one: unrelated, or the same with one thing changed, as most writes
/// are.
fn pair() -> impl Strategy<Value = (Option<Value>, Option<Value>)> {
    prop_oneof![
        1 => (statuses(), statuses()),
        3 => (status(), status(), 0..6usize).prop_map(|(old, other, at)| {
            let names = ["phase", "conditions", "lastTransitionTime", "instanceNamespace", "billing"];
            let mut new = old.clone();
            let Some(name) = names.get(at) else { return (Some(old), Some(new)) };
            let members = new.as_object_mut().unwrap();
            match other.get(name) {
                Some(value) => drop(members.insert((*name).to_owned(), value.clone())),
                None => drop(members.remove(*name)),
            }
            (Some(old), Some(new))
        }),
    ]
}

/// How strict a policy is and what it adds.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// The policy's place in [`all_policies`]: it speaks of the API group `gINDEX`.
    index: usize,
    disagreement: &'static str,
    enforcement: &'static str,
    /// What Crossplane's disagreements lead to, where that is another thing.
    crossplane: Option<&'static str>,
    additions: &'static str,
    subresource: bool,
}

const ADDITIONS: [&str; 9] = [
    "",
    "backfill: [{path: /status/billing, value: null, nullable: true}]",
    "backfill: [{path: /status/billing, value: {unit: GiB}}], preserve: [/status/billing]",
    "preserve: [/status/billing], owners: [{path: /status/billing, users: [biller]}]",
    "preserve: [/status/billing/unit, /status/lastTransitionTime], owners: [{path: /status/billing/unit, users: [biller]}]",
    "backfill: [{path: /status/a~1b/m~0n, copyOf: [/status/instanceNamespace, /status/reason]}], fields: [{path: /status/billing/unit, enum: [GiB, minutes]}]",
    // Taken out, and asked of what others fill in, restore and own.
    "backfill: [
        {name: a, list: /status/conditions, member: observedGeneration, absentWhere: {any: [{member: status, isNot: 'True'}, {member: severity, set: true}]}},
        {name: b, list: /status/conditions, member: message, absentWhere: {any: [{member: observedGeneration, changed: true}, {phase: Failed}]}, when: {condition: Synced, present: true}},
        {name: c, list: /status/conditions, member: severity, value: Info, when: {phase: Unknown}}],
      preserve: [/status/conditions], owners: [{path: /status/conditions, users: [biller]}]",
    // Rules that would lock the way out if they could, and rules that often cannot be evaluated.
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

/// Every combination once.
fn all_settings() -> &'static [Settings] {
    static ALL: OnceLock<Vec<Settings>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for disagreement in ["Deny", "Repair", "Warn", "Audit"] {
            for enforcement in ["Deny", "Warn", "Audit"] {
                for crossplane in [None, Some("Repair"), Some("Deny")] {
                    for additions in ADDITIONS {
                        for subresource in [true, false] {
                            let index = all.len();
                            all.push(Settings {
                                index,
                                disagreement,
                                enforcement,
                                crossplane,
                                additions,
                                subresource,
                            });
                        }
                    }
                }
            }
        }
        all
    })
}

/// All of them as one set, compiled once: in a debug build a convention takes longer to compile
/// than hundreds of statuses take to judge.
fn all_policies() -> &'static PolicySet {
    static POLICIES: OnceLock<PolicySet> = OnceLock::new();
    POLICIES.get_or_init(|| {
        let documents: Vec<String> = all_settings().iter().map(Settings::document).collect();
        let source = Source { name: "all.yaml".into(), text: documents.join("---\n") };
        PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"))
    })
}

impl Settings {
    fn document(&self) -> String {
        let Self { index, disagreement, enforcement, additions, subresource, .. } = self;
        let writers = self.crossplane.map_or_else(String::new, |action| {
            format!("{{users: ['system:serviceaccount:*:crossplane'], disagreement: {action}}}")
        });
        let comma = if additions.is_empty() { "" } else { ", " };
        format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p{index}}}\n\
             spec: {{convention: appcat, disagreement: {disagreement}, enforcement: {enforcement}, writers: [{writers}], \
             resources: [{{apiGroups: [g{index}], apiVersions: [v1], resources: [xthings, things], statusSubresource: {subresource}}}]{comma}{additions}}}\n"
        )
    }
}

fn writes() -> impl Strategy<Value = Write> {
    let circumstances = (
        select(all_settings()),
        select(vec!["xthings", "things"]),
        select(vec![CROSSPLANE, "operator", "biller"]),
        prop_oneof![4 => Just(false), 1 => Just(true)],
        pair(),
    );
    circumstances.prop_map(|(settings, resource, user, deleting, (old, new))| Write {
        settings,
        resource,
        user,
        deleting,
        old,
        new,
    })
}

// --- judging ------------------------------------------------------------------------------------------

impl Write {
    fn group(&self) -> String {
        format!("g{}", self.settings.index)
    }

    fn document(&self, status: Option<&Value>) -> Value {
        let mut object = json!({"apiVersion": "g/v1", "kind": "Thing",
            "metadata": {"name": "n", "generation": 3, "creationTimestamp": EARLIER}});
        if self.deleting {
            object["metadata"]["deletionTimestamp"] = "2024-06-01T11:59:00Z".into();
        }
        if let Some(status) = status {
            object["status"] = status.clone();
        }
        object
    }

    /// Asks `question` of the verdict on this write with `new` in the place of its status.
    fn ask<T>(
        &self,
        new: Option<&Value>,
        webhook: Webhook,
        now: &str,
        question: impl FnOnce(&Verdict<'_>) -> T,
    ) -> T {
        let (new, old) =
            (self.document(new).to_string(), self.document(self.old.as_ref()).to_string());
        let subject = Subject {
            resource: Resource {
                group: self.group().into(),
                version: "v1".into(),
                resource: self.resource.into(),
            },
            subresource: if self.settings.subresource { "status" } else { "" }.into(),
            operation: Operation::Update,
            writer: Writer { user: self.user.into(), groups: Vec::new() },
            object: Object::parse(&new).unwrap(),
            old: Some(Object::parse(&old).unwrap()),
        };
        let verdict = decide(all_policies(), &subject, webhook, now.parse().unwrap());
        assert!(!verdict.patch_failed, "a patch always applies");
        assert_eq!(verdict.policies.len(), 1, "the policy applies");
        question(&verdict)
    }

    /// The status after the mutating webhook, and whether there was a patch.
    fn mutated(&self, new: Option<&Value>, now: &str) -> (Option<Value>, bool) {
        self.ask(new, Webhook::Mutate, now, |verdict| {
            assert!(!verdict.is_denied(), "mutate never denies");
            // The whole object, not the status alone: as the API server applies it.
            let mut document = self.document(new);
            if let Some(patch) = &verdict.patch {
                assert!(!patch.0.is_empty(), "a patch is there or changes something");
                json_patch::patch(&mut document, patch).expect("a patch always applies");
            }
            (document.get("status").cloned(), verdict.patch.is_some())
        })
    }

    /// What is refused, word for word.
    fn denials(&self, new: Option<&Value>, now: &str) -> Vec<String> {
        self.ask(new, Webhook::Validate, now, |verdict| {
            assert!(verdict.patch.is_none(), "validate never patches");
            let denied = verdict.findings.iter().filter(|finding| finding.action == Action::Deny);
            denied.map(|f| format!("{}: {} [{}]", f.field, f.message, f.rule)).collect()
        })
    }

    fn enforces(&self) -> bool {
        self.settings.enforcement == "Deny"
    }

    fn disagreement(&self) -> &str {
        let own = self.settings.crossplane.filter(|_| self.user == CROSSPLANE);
        own.unwrap_or(self.settings.disagreement)
    }
}

/// The rules about phase and conditions telling the same story: `phase-READY`, not `phase-value`.
fn is_agreement(denial: &str) -> bool {
    denial.contains("[appcat/phase-") && denial.contains(" disagrees: ")
}

proptest! {
    #![proptest_config(config(1000))]

    /// Nothing panics, patches apply, mutate refuses nothing, validate patches nothing (asserted on
    /// the way), and a second run finds nothing to do, a minute later neither.
    #[test]
    fn mutate_is_done_after_one_run(write in writes()) {
        let (once, _) = write.mutated(write.new.as_ref(), NOW);
        for now in [NOW, LATER] {
            let (twice, patched) = write.mutated(once.as_ref(), now);
            prop_assert!(!patched, "first {:?}, then {:?}", once, twice);
        }
    }

    /// The same subject gets the same verdict, and no text tells the time.
    #[test]
    fn the_same_subject_gets_the_same_words(write in writes()) {
        let new = write.new.as_ref();
        prop_assert_eq!(write.mutated(new, NOW), write.mutated(new, NOW));
        prop_assert_eq!(write.denials(new, NOW), write.denials(new, LATER));
        let words = |now| write.ask(new, Webhook::Validate, now, |verdict| verdict.findings.clone().into_iter().map(|f| (f.field, f.message)).collect::<Vec<_>>());
        prop_assert_eq!(words(NOW), words(NOW));
    }

    #[test]
    fn enforcement_is_a_ceiling(write in writes()) {
        if !write.enforces() {
            prop_assert_eq!(write.denials(write.new.as_ref(), NOW), Vec::<String>::new());
        }
    }

    #[test]
    fn a_status_that_is_not_touched_is_never_refused(write in writes()) {
        prop_assert_eq!(write.denials(write.old.as_ref(), NOW), Vec::<String>::new());
    }

    /// A change of a field that no rule speaks of: what was wrong before stays allowed, but by a rule
    /// that asks for the opposite with `trigger: state`.
    #[test]
    fn old_faults_are_no_reason_to_refuse(write in writes()) {
        if let Some(Value::Object(mut members)) = write.old.clone() {
            members.insert("currentReleaseTag".into(), "7.2.5".into());
            let new = Value::Object(members);
            let mut denials = write.denials(Some(&new), NOW);
            denials.retain(|denial| !denial.contains("/always-ready"));
            prop_assert_eq!(denials, Vec::<String>::new());
        }
    }

    #[test]
    fn unknown_is_a_way_out_of_every_state(write in writes()) {
        if let Some(Value::Object(mut members)) = write.old.clone() {
            members.insert("phase".into(), "Unknown".into());
            let new = Value::Object(members);
            prop_assert_eq!(write.denials(Some(&new), NOW), Vec::<String>::new());
            // And through both webhooks, as it happens.
            let (mutated, _) = write.mutated(Some(&new), NOW);
            prop_assert_eq!(write.denials(mutated.as_ref(), NOW), Vec::<String>::new());
        }
    }

    /// Agreement refuses only where the policy says Deny for this writer and the object stays.
    #[test]
    fn disagreement_is_refused_only_where_the_policy_says_so(write in writes()) {
        let denials = write.denials(write.new.as_ref(), NOW);
        if write.deleting || write.disagreement() != "Deny" {
            prop_assert!(!denials.iter().any(|denial| is_agreement(denial)), "{denials:?}");
        }
    }

    /// Both webhooks one after the other: under Repair nothing disagrees afterwards that did not
    /// before, not even as a warning.
    #[test]
    fn what_was_repaired_agrees(write in writes()) {
        let (mutated, _) = write.mutated(write.new.as_ref(), NOW);
        if write.disagreement() == "Repair" && write.enforces() {
            let left = write.ask(mutated.as_ref(), Webhook::Validate, NOW, |verdict| {
                let texts = verdict.findings.iter().map(|f| format!("{} [{}]", f.message, f.rule));
                texts.filter(|text| is_agreement(text)).collect::<Vec<_>>()
            });
            prop_assert_eq!(left, Vec::<String>::new(), "{:?}", mutated);
        }
    }

    /// The phase's time moves with the phase: after mutate a phase that was changed has another
    /// time than the stored one, one that stayed has the stored time wherever the writer asked for
    /// another phase than it got.
    #[test]
    fn the_phases_time_is_kept_in_step(write in writes()) {
        let (mutated, _) = write.mutated(write.new.as_ref(), NOW);
        let of = |status: Option<&Value>, member: &str| status.and_then(|status| status.get(member)).and_then(Value::as_str).map(str::to_owned);
        let (asked, old) = (write.new.as_ref(), write.old.as_ref());
        let phase = of(mutated.as_ref(), "phase");
        let stored = of(old, "lastTransitionTime").filter(|time| !time.is_empty());
        let overruled = phase != of(asked, "phase");
        if let (true, Some(stored), true) = (overruled && phase.is_some(), stored, phase == of(old, "phase")) {
            // Go's times have whole seconds: within one it is the same time.
            let whole = |time: &str| time.get(..19).unwrap_or(time).to_owned();
            let time = of(mutated.as_ref(), "lastTransitionTime");
            prop_assert_eq!(time.map(|time| whole(&time)), Some(whole(&stored)));
        }
    }
}

// --- the requests that nothing may stop -----------------------------------------------------------

fn review(write: &Write, operation: &str, subresource: &str) -> String {
    let object = |status: Option<&Value>| write.document(status);
    let (new, old) = match operation {
        "DELETE" => (Value::Null, object(write.old.as_ref())),
        "CREATE" => (object(write.new.as_ref()), Value::Null),
        _ => (object(write.new.as_ref()), object(write.old.as_ref())),
    };
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
        "uid": "u", "kind": {"group": write.group(), "version": "v1", "kind": "Thing"},
        "resource": {"group": write.group(), "version": "v1", "resource": write.resource},
        "subResource": subresource, "name": "n", "operation": operation,
        "userInfo": {"username": write.user}, "object": new, "oldObject": old}})
    .to_string()
}

fn answer(webhook: Webhook, body: &[u8]) -> (u16, Vec<u8>) {
    let reply = admit(all_policies(), webhook, body, NOW.parse().unwrap(), |_, _| {});
    (reply.status.as_u16(), reply.body)
}

fn allowed(answer: &(u16, Vec<u8>)) -> bool {
    let review: Value = serde_json::from_slice(&answer.1).unwrap_or_default();
    answer.0 == 200 && review["response"]["allowed"] == true
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn a_deletion_is_always_allowed(write in writes(), webhook in select(vec![Webhook::Mutate, Webhook::Validate])) {
        for subresource in ["", "status"] {
            let answer = answer(webhook, review(&write, "DELETE", subresource).as_bytes());
            prop_assert!(allowed(&answer), "{}", String::from_utf8_lossy(&answer.1));
        }
    }

    /// Where status has a subresource, nothing on the main resource is judged; where it has none,
    /// whatever is written to an object that is being deleted passes, for it may be the removal of
    /// the last finalizer.
    #[test]
    fn a_finalizer_can_always_go(mut write in writes()) {
        write.deleting = true;
        let answer = answer(Webhook::Validate, review(&write, "UPDATE", "").as_bytes());
        prop_assert!(allowed(&answer), "{}", String::from_utf8_lossy(&answer.1));
    }

    /// The same bytes twice, and always an answer: 200 for a review, whatever its objects hold.
    #[test]
    fn the_same_review_gets_the_same_bytes(write in writes(), operation in select(vec!["CREATE", "UPDATE", "CONNECT"]), subresource in select(vec!["", "status", "scale"])) {
        let body = review(&write, operation, subresource);
        for webhook in [Webhook::Mutate, Webhook::Validate] {
            let one = answer(webhook, body.as_bytes());
            prop_assert_eq!(one.0, 200, "{}", String::from_utf8_lossy(&one.1));
            prop_assert_eq!(one, answer(webhook, body.as_bytes()));
        }
    }
}

// --- bytes --------------------------------------------------------------------------------------------

fn examples() -> &'static PolicySet {
    static EXAMPLES: OnceLock<PolicySet> = OnceLock::new();
    EXAMPLES.get_or_init(|| PolicySet::compile(&PolicySet::examples()).unwrap())
}

/// A change to a text at a place between 0 and 1.
#[derive(Clone, Debug)]
enum Damage {
    Set(f64, u8),
    Cut(f64),
    Drop(f64, usize),
    Twice(f64, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = || 0.0..1.0f64;
    prop_oneof![
        4 => (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        4 => (place(), select(b"\"{}[],:0-eE\\u".as_slice())).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => place().prop_map(Damage::Cut),
        2 => (place(), 1..200usize).prop_map(|(at, length)| Damage::Drop(at, length)),
        2 => (place(), 1..200usize).prop_map(|(at, length)| Damage::Twice(at, length)),
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
        match *damage {
            Damage::Set(at, byte) => {
                let at = place(at);
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            Damage::Cut(at) => bytes.truncate(place(at)),
            Damage::Drop(at, length) => {
                let (from, to) = (place(at), (place(at) + length).min(bytes.len()));
                bytes.drain(from..to);
            }
            Damage::Twice(at, length) => {
                let (from, to) = (place(at), (place(at) + length).min(bytes.len()));
                let part = bytes[from..to].to_vec();
                bytes.splice(from..from, part);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let policies = examples();
        for webhook in [Webhook::Mutate, Webhook::Validate] {
            let reply = admit(policies, webhook, &bytes, NOW.parse().unwrap(), |_, _| {});
            prop_assert_eq!(reply.status, 400);
        }
    }

    #[test]
    fn a_damaged_review_gets_an_answer(damages in prop::collection::vec(damage(), 1..4)) {
        let valid = include_bytes!("fixtures/reviews/repair/crossplane-composite-first-request/review.json");
        let bytes = damaged(valid.to_vec(), &damages);
        let policies = examples();
        for webhook in [Webhook::Mutate, Webhook::Validate] {
            let reply = admit(policies, webhook, &bytes, NOW.parse().unwrap(), |_, verdict| {
                assert!(!verdict.patch_failed, "a patch always applies");
            });
            prop_assert!(matches!(reply.status.as_u16(), 200 | 400), "{}", reply.status);
            if reply.status == 200 {
                prop_assert!(serde_json::from_slice::<Value>(&reply.body).is_ok());
            }
        }
    }
}

// --- faults that the laws above found --------------------------------------------------------------

/// A write under a policy of its own: the answers of both webhooks, decoded.
fn asked(additions: &str, operation: Operation, old: Option<Value>, new: Value) -> Asked {
    let text = format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: test}}\nspec: {{convention: appcat, {additions}}}\n"
    );
    let policies = PolicySet::compile(&[Source { name: "test.yaml".into(), text }])
        .unwrap_or_else(|error| panic!("{error}"));
    Asked { policies, operation, old, new }
}

struct Asked {
    policies: PolicySet,
    operation: Operation,
    old: Option<Value>,
    /// The whole object.
    new: Value,
}

const WITH_SUBRESOURCE: &str =
    "resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]";
const WITHOUT_SUBRESOURCE: &str = "resources: [{apiGroups: [g], apiVersions: [v1], resources: [things], statusSubresource: false}]";

impl Asked {
    fn ask<T>(&self, webhook: Webhook, now: &str, question: impl FnOnce(&Verdict<'_>) -> T) -> T {
        let (new, old) = (self.new.to_string(), self.old.as_ref().map(Value::to_string));
        let main =
            self.policies.policies()[0].resources.iter().any(|rule| !rule.status_subresource);
        let subject = Subject {
            resource: Resource {
                group: "g".into(),
                version: "v1".into(),
                resource: "things".into(),
            },
            subresource: if main { "" } else { "status" }.into(),
            operation: self.operation,
            writer: Writer { user: "operator".into(), groups: Vec::new() },
            object: Object::parse(&new).unwrap(),
            old: old.as_deref().map(|old| Object::parse(old).unwrap()),
        };
        let verdict = decide(&self.policies, &subject, webhook, now.parse().unwrap());
        assert!(!verdict.patch_failed, "a patch always applies");
        assert_eq!(verdict.policies, [0]);
        question(&verdict)
    }

    /// Through the mutating webhook: the patch, applied.
    fn mutate(&mut self, now: &str) -> Value {
        let patch = self.ask(Webhook::Mutate, now, |verdict| verdict.patch.clone());
        if let Some(patch) = &patch {
            json_patch::patch(&mut self.new, patch).unwrap();
        }
        serde_json::to_value(patch).unwrap()
    }

    fn settles_in_one_run(mut self) {
        self.mutate(NOW);
        assert_eq!(self.mutate(NOW), Value::Null, "the second run of {}", self.new);
    }

    fn denials(&self) -> Vec<String> {
        self.ask(Webhook::Validate, NOW, |verdict| {
            let denied = verdict.findings.iter().filter(|finding| finding.action == Action::Deny);
            denied.map(|f| format!("{}: {} [{}]", f.field, f.message, f.rule)).collect()
        })
    }
}

fn update(additions: &str, old: &Value, new: &Value) -> Asked {
    let object =
        |status: &Value| json!({"metadata": {"name": "n", "generation": 3}, "status": status});
    asked(additions, Operation::Update, Some(object(old)), object(new))
}

#[test]
fn a_default_phase_is_no_transition_at_the_second_run_either() {
    let legacy = json!({"instanceNamespace": "n"});
    update(WITH_SUBRESOURCE, &legacy, &legacy).settles_in_one_run();
}

#[test]
fn untouched_conditions_without_a_key_of_their_own_are_not_new() {
    let condition = |kind: Value, time: &str, generation: i64| json!({"type": kind, "status": "True", "reason": "R", "lastTransitionTime": time, "observedGeneration": generation});
    let far = "2999-01-01T00:00:00Z";
    for list in [
        json!([condition(json!("A"), T0, 1), condition(json!("A"), far, 1)]),
        json!([condition(json!("A"), T0, 1), condition(json!("A"), T0, 9)]),
        json!([condition(Value::Null, far, 1)]),
        json!([condition(Value::Null, T0, 9)]),
    ] {
        let (old, new) = (
            json!({"phase": "Ready", "conditions": list}),
            json!({"phase": "Unknown", "conditions": list}),
        );
        assert_eq!(update(WITH_SUBRESOURCE, &old, &new).denials(), [""; 0], "{list}");
    }
}

#[test]
fn a_default_of_ours_is_nobodys_trespass() {
    let policy = format!(
        "{WITH_SUBRESOURCE}, backfill: [{{path: /status/billing, value: {{unit: GiB}}}}], owners: [{{path: /status/billing, users: [biller]}}]"
    );
    let mut write =
        update(&policy, &json!({"phase": "Unknown"}), &json!({"phase": "Unknown", "x": 1}));
    write.mutate(NOW);
    assert_eq!(write.denials(), [""; 0]);
}

#[test]
fn what_the_mutating_webhook_did_to_an_owned_field_is_nobodys_trespass() {
    let owned = "owners: [{path: /status/conditions, users: [aso]}, {path: /status/phase, users: [portal]}]";
    let take_out =
        "{list: /status/conditions, member: severity, absentWhere: {member: status, is: 'True'}}";
    let fill_in = "{list: /status/conditions, member: message, value: ''}";
    let condition = json!({"type": "Ready", "status": "True", "severity": "Info", "reason": "R", "lastTransitionTime": T0});
    let old = json!({"phase": "Ready", "conditions": [condition]});
    let mut new = old.clone();
    new["x"] = 1.into();
    for backfill in [take_out, fill_in] {
        let policy = format!("{WITH_SUBRESOURCE}, {owned}, backfill: [{backfill}]");
        let mut write = update(&policy, &old, &new);
        assert_ne!(write.mutate(NOW), Value::Null, "{backfill}");
        assert_eq!(write.denials(), [""; 0], "{backfill}");
        // Another change of the same field is one.
        let mut theirs = new.clone();
        theirs["conditions"][0]["reason"] = "S".into();
        let mut write = update(&policy, &old, &theirs);
        write.mutate(NOW);
        assert_eq!(write.denials().len(), 1, "{backfill}");
    }
}

#[test]
fn what_was_restored_is_evidence_at_once() {
    let policy =
        format!("{WITH_SUBRESOURCE}, disagreement: Repair, preserve: [/status/conditions]");
    let conditions =
        json!([{"type": "Ready", "status": "False", "reason": "R", "lastTransitionTime": T0}]);
    let old = json!({"phase": "Provisioning", "instanceNamespace": "n", "conditions": conditions});
    update(&policy, &old, &json!({"phase": "Ready", "instanceNamespace": "n"}))
        .settles_in_one_run();
}

#[test]
fn defaults_see_each_other_in_one_run() {
    for backfill in [
        "{path: /status/x, value: 1, when: {phase: Unknown}}",
        "{path: /status/a, copyOf: [/status/b]}, {path: /status/b, value: 1}",
        "{path: /status/a, value: 1, when: {set: /status/b}}, {path: /status/b, value: 1}",
    ] {
        let policy = format!("{WITH_SUBRESOURCE}, backfill: [{backfill}]");
        update(&policy, &json!({"phase": "Ready"}), &json!({})).settles_in_one_run();
    }
}

#[test]
fn pointers_into_lists_do_no_harm() {
    let null = |at: &str| {
        format!("{WITH_SUBRESOURCE}, backfill: [{{path: /status/list/{at}, value: null}}]")
    };
    let list = json!({"phase": "Unknown", "list": [null, null, 1]});
    for at in ["0", "00", "+0"] {
        update(&null(at), &list, &list).settles_in_one_run();
    }
    let policy = format!("{WITH_SUBRESOURCE}, preserve: [/status/list/2]");
    let mut write = update(&policy, &list, &json!({"phase": "Unknown"}));
    write.mutate(NOW);
    assert!(!write.new["status"]["list"].is_object(), "{}", write.new);
}

#[test]
fn an_enum_is_about_values_of_every_kind() {
    let policy = format!(
        "{WITH_SUBRESOURCE}, fields: [{{path: /status/billing/unit, enum: [GiB, minutes]}}]"
    );
    for odd in [json!(5), json!(true), json!([]), json!({"a": 1})] {
        let write = update(&policy, &json!({}), &json!({"billing": {"unit": odd}}));
        assert_eq!(write.denials().len(), 1, "{odd}");
    }
}

#[test]
fn an_object_without_status_can_be_created() {
    let policy =
        format!("{WITHOUT_SUBRESOURCE}, fields: [{{path: /status/billing, required: true}}]");
    let object = json!({"metadata": {"name": "n"}});
    assert_eq!(asked(&policy, Operation::Create, None, object).denials(), [""; 0]);
}

#[test]
fn no_policy_takes_the_way_out_away() {
    for addition in [
        "owners: [{path: /status/phase, users: [portal]}]",
        "fields: [{path: /status/phase, enum: [Ready, Failed]}]",
        r#"rules: [{name: r, message: m, expression: "self.status.phase != 'Unknown'"}]"#,
        r#"rules: [{name: r, message: m, expression: "size(self.status) == 0", trigger: state}]"#,
        r#"rules: [{name: r, message: m, expression: "self.status.phase == oldSelf.status.phase"}]"#,
        r#"rules: [{name: r, message: m, expression: "false", trigger: {moved: /status/phase}}]"#,
    ] {
        let policy = format!("{WITH_SUBRESOURCE}, {addition}");
        let write = update(&policy, &json!({"phase": "Ready"}), &json!({"phase": "Unknown"}));
        assert_eq!(write.denials(), [""; 0], "{addition}");
    }
}

#[test]
fn a_time_in_the_future_is_a_value_and_no_type() {
    let condition = json!({"type": "A", "status": "True", "reason": "R", "lastTransitionTime": "2999-01-01T00:00:00Z", "observedGeneration": 9});
    let write = update(
        WITH_SUBRESOURCE,
        &json!({"phase": "Unknown"}),
        &json!({"phase": "Unknown", "conditions": [condition]}),
    );
    let reasons = write.ask(Webhook::Validate, NOW, |verdict| {
        verdict.findings.iter().map(|finding| finding.cause.reason()).collect::<Vec<_>>()
    });
    assert_eq!(reasons, ["FieldValueInvalid"; 2]);
}

#[test]
fn a_request_is_an_object() {
    let kind = json!({"group": "g", "kind": "Thing"});
    let plural = json!({"group": "vshn.appcat.vshn.io", "version": "v1", "resource": "vshnredis"});
    let user = json!(["operator", []]);
    let body = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": ["u", kind, plural, "status", "n", "s", "UPDATE", user, {}, {}, false]});
    let reply = admit(
        examples(),
        Webhook::Validate,
        body.to_string().as_bytes(),
        NOW.parse().unwrap(),
        |_, _| {},
    );
    assert_eq!(reply.status, 400, "{}", String::from_utf8_lossy(&reply.body));
}
