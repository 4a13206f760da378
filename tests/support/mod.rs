//! Policies, one write, and what is expected of it.
//!
//! ```ignore
//! let policies = compile(&[policy("p", "convention: appcat")]);
//! Write::to("things").stored(json!({"phase": "Unknown"})).sent(json!({"phase": "ready"}))
//!     .validate(&policies).denied_by(&["appcat/phase-value"]);
//! ```

#![allow(dead_code, reason = "each test crate uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::fmt;
use std::sync::LazyLock;

use serde_json::{Value, json};
use statusgate_core::engine::{Action, Verdict, decide};
use statusgate_core::model::{Object, Operation, Resource, Subject, Webhook, Writer};
use statusgate_core::policy::{PolicySet, Source};

pub(crate) const EARLIER: &str = "2024-06-01T10:00:00Z";
pub(crate) const T0: &str = "2024-06-01T11:00:00Z";
pub(crate) const DELETED: &str = "2024-06-01T11:59:00Z";
pub(crate) const NOW: &str = "2024-06-01T12:00:00Z";
pub(crate) const LATER: &str = "2024-06-01T12:01:00Z";
pub(crate) const CROSSPLANE: &str = "system:serviceaccount:syn-crossplane:crossplane";

// --- policies ---------------------------------------------------------------------------------

/// The resources of a policy for `things` without a status subresource.
pub(crate) const WITHOUT_SUBRESOURCE: &str =
    "resources: [{apiGroups: [g], apiVersions: ['*'], resources: ['*'], statusSubresource: false}]";

/// A policy document. `spec` is a YAML flow mapping without its braces, or JSON. Without `resources`
/// it selects every resource of the API group `g`.
pub(crate) fn policy(name: &str, spec: impl fmt::Display) -> String {
    let text = document("StatusPolicy", name, spec);
    if text.contains("resources: ") || text.contains("\"resources\":") {
        return text;
    }
    text.replacen(
        "\nspec: {",
        "\nspec: {resources: [{apiGroups: [g], apiVersions: ['*'], resources: ['*']}], ",
        1,
    )
}

/// A convention document, from the same kinds of text.
pub(crate) fn convention(name: &str, spec: impl fmt::Display) -> String {
    document("StatusConvention", name, spec)
}

fn document(kind: &str, name: &str, spec: impl fmt::Display) -> String {
    let spec = spec.to_string();
    let spec = if spec.starts_with('{') { spec } else { format!("{{{spec}}}") };
    format!(
        "apiVersion: statusgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

#[track_caller]
pub(crate) fn compile(documents: &[String]) -> PolicySet {
    let source = Source { name: "test.yaml".into(), text: documents.join("---\n") };
    PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"))
}

/// One policy named `p` that follows a built-in convention, with `additions` to its spec.
#[track_caller]
pub(crate) fn following(convention: &str, additions: &str) -> PolicySet {
    compile(&[policy("p", format!("convention: {convention}, {additions}"))])
}

/// One policy named `p` that follows a convention `c` with this spec.
#[track_caller]
pub(crate) fn under(spec: impl fmt::Display, additions: &str) -> PolicySet {
    compile(&[convention("c", spec), policy("p", format!("convention: c, {additions}"))])
}

pub(crate) fn built_in() -> &'static PolicySet {
    static BUILT_IN: LazyLock<PolicySet> = LazyLock::new(|| compile(&[]));
    &BUILT_IN
}

/// The policies of `examples/`.
pub(crate) fn examples() -> &'static PolicySet {
    static EXAMPLES: LazyLock<PolicySet> =
        LazyLock::new(|| PolicySet::compile(&PolicySet::examples()).unwrap());
    &EXAMPLES
}

// --- writes -----------------------------------------------------------------------------------

/// A write of an object: by default an update of the status subresource of a `Thing`.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    group: String,
    version: String,
    resource: String,
    subresource: String,
    user: String,
    user_groups: Vec<String>,
    now: String,
    /// The stored object, and the object as it is sent: JSON text.
    old: Option<String>,
    new: String,
}

impl Write {
    pub(crate) fn to(resource: &str) -> Self {
        let object = json!({"apiVersion": "g/v1", "kind": "Thing",
            "metadata": {"name": "n", "generation": 3, "creationTimestamp": "2024-06-01T09:00:00Z"}})
        .to_string();
        Self {
            group: "g".to_owned(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
            subresource: "status".to_owned(),
            user: "operator".to_owned(),
            user_groups: Vec::new(),
            now: NOW.to_owned(),
            old: Some(object.clone()),
            new: object,
        }
    }

    /// A write of `things`: the stored status, and the one that is sent.
    pub(crate) fn of(stored: impl Into<Option<Value>>, new: impl Into<Option<Value>>) -> Self {
        Self::to("things").stored(stored).sent(new)
    }

    /// A write of whole objects, byte by byte.
    pub(crate) fn of_texts(old: Option<String>, new: String) -> Self {
        Self { old, new, ..Self::to("things") }
    }

    pub(crate) fn group(self, group: &str) -> Self {
        let api_version = format!("{group}/{}", self.version);
        Self { group: group.to_owned(), ..self }.both("/apiVersion", api_version)
    }

    pub(crate) fn version(self, version: &str) -> Self {
        let api_version = format!("{}/{version}", self.group);
        Self { version: version.to_owned(), ..self }.both("/apiVersion", api_version)
    }

    /// Addresses another resource, and leaves the objects as they are.
    pub(crate) fn addressing(self, group: &str, version: &str, resource: &str) -> Self {
        let [group, version, resource] = [group, version, resource].map(str::to_owned);
        Self { group, version, resource, ..self }
    }

    pub(crate) fn by(self, user: &str) -> Self {
        Self { user: user.to_owned(), ..self }
    }

    pub(crate) fn in_groups(self, groups: &[&str]) -> Self {
        Self { user_groups: groups.iter().map(|group| (*group).to_owned()).collect(), ..self }
    }

    pub(crate) fn at(self, now: &str) -> Self {
        Self { now: now.to_owned(), ..self }
    }

    /// The status travels with the main resource.
    pub(crate) fn on_the_main_resource(self) -> Self {
        Self { subresource: String::new(), ..self }
    }

    /// A creation: the main resource, and no stored object.
    pub(crate) fn creating(self) -> Self {
        self.without_stored_object().on_the_main_resource()
    }

    pub(crate) fn without_stored_object(self) -> Self {
        Self { old: None, ..self }
    }

    /// The stored status; `None` for an object without the field `status`.
    pub(crate) fn stored(mut self, status: impl Into<Option<Value>>) -> Self {
        self.old = self.old.map(|old| with_status(&old, status.into()));
        self
    }

    /// The status that is sent; `None` for an object without the field `status`.
    pub(crate) fn sent(mut self, status: impl Into<Option<Value>>) -> Self {
        self.new = with_status(&self.new, status.into());
        self
    }

    pub(crate) fn deleting(self) -> Self {
        self.both("/metadata/deletionTimestamp", DELETED)
    }

    /// Sets a member of both objects.
    pub(crate) fn both(mut self, path: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        for text in self.old.iter_mut().chain([&mut self.new]) {
            let mut object = parse(text);
            let (parent, name) = path.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[name] = value.clone();
            *text = object.to_string();
        }
        self
    }

    /// The same write with other objects.
    pub(crate) fn map_objects(mut self, change: fn(Value) -> Value) -> Self {
        for text in self.old.iter_mut().chain([&mut self.new]) {
            *text = change(parse(text)).to_string();
        }
        self
    }

    pub(crate) fn new_object(&self) -> Value {
        parse(&self.new)
    }

    pub(crate) fn old_object(&self) -> Option<Value> {
        self.old.as_deref().map(parse)
    }

    /// Asks the engine, which must find a policy for this write.
    #[track_caller]
    pub(crate) fn ask<T>(
        &self,
        policies: &PolicySet,
        webhook: Webhook,
        question: impl FnOnce(&Verdict<'_>) -> T,
    ) -> T {
        let subject = Subject {
            resource: Resource::new(&self.group, &self.version, &self.resource),
            subresource: self.subresource.as_str().into(),
            operation: self.operation(),
            writer: Writer {
                user: self.user.as_str().into(),
                groups: self.user_groups.iter().map(|group| group.as_str().into()).collect(),
            },
            object: Object::parse(&self.new).unwrap(),
            old: self.old.as_deref().map(|old| Object::parse(old).unwrap()),
        }
        .as_stored();
        let verdict = decide(policies, &subject, webhook, self.now.parse().unwrap());
        assert!(!verdict.patch_failed, "a patch always applies");
        assert!(!verdict.policies.is_empty(), "no policy selects {self:?}");
        match webhook {
            Webhook::Mutate => assert!(!verdict.is_denied(), "the mutating webhook never denies"),
            Webhook::Validate => {
                assert!(verdict.patch.is_none(), "the validating webhook never patches");
            }
        }
        question(&verdict)
    }

    const fn operation(&self) -> Operation {
        let creates = self.old.is_none() && self.subresource.is_empty();
        if creates { Operation::Create } else { Operation::Update }
    }

    #[track_caller]
    fn through(&self, policies: &PolicySet, webhook: Webhook) -> Outcome {
        self.ask(policies, webhook, |verdict| {
            assert_eq!(verdict.patch.is_some(), !verdict.changes.is_empty(), "{self:?}");
            Outcome {
                findings: verdict.findings.iter().map(Found::of).collect(),
                patch: serde_json::to_value(&verdict.patch).unwrap(),
                sent: self.new.clone(),
            }
        })
    }

    /// Through the mutating webhook.
    #[track_caller]
    pub(crate) fn mutate(&self, policies: &PolicySet) -> Outcome {
        self.through(policies, Webhook::Mutate)
    }

    /// Through the validating webhook. A write that leaves the status as it is must have no findings:
    /// registrations may omit such writes.
    #[track_caller]
    pub(crate) fn validate(&self, policies: &PolicySet) -> Outcome {
        let whole = self.through(policies, Webhook::Validate);
        if self.subresource == "status" && self.old.is_some() {
            let unchanged = Self { old: Some(self.new.clone()), ..self.clone() };
            assert_eq!(unchanged.through(policies, Webhook::Validate).findings, [], "{self:?}");
        }
        whole
    }

    /// Through both, as the API server calls them: the patch of the mutating webhook, and the findings
    /// of the validating webhook about the patched object. A second mutation must find nothing to do.
    #[track_caller]
    pub(crate) fn review(&self, policies: &PolicySet) -> Outcome {
        let mutated = self.mutate(policies);
        let patched = self.after(&mutated);
        if mutated.is_patched() {
            assert_eq!(patched.mutate(policies).patch, Value::Null, "a second run of {patched:?}");
        }
        Outcome { findings: patched.validate(policies).findings, ..mutated }
    }

    /// This write with the object that `outcome` leaves.
    pub(crate) fn after(&self, outcome: &Outcome) -> Self {
        let new =
            if outcome.is_patched() { outcome.object().to_string() } else { outcome.sent.clone() };
        Self { new, ..self.clone() }
    }

    /// The outcome of a mutation with this patch.
    pub(crate) fn patched_by(&self, patch: Value) -> Outcome {
        Outcome { findings: Vec::new(), patch, sent: self.new.clone() }
    }

    /// The user of the write.
    pub(crate) fn writer(&self) -> Value {
        json!({"user": self.user, "groups": self.user_groups})
    }

    pub(crate) fn now(&self) -> &str {
        &self.now
    }

    /// The `AdmissionReview` of this write.
    pub(crate) fn request(&self) -> Value {
        let object = self.new_object();
        let (group, version) = (&self.group, &self.version);
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u",
            "kind": {"group": group, "version": version, "kind": object["kind"]},
            "resource": {"group": group, "version": version, "resource": self.resource},
            "subResource": self.subresource,
            "operation": self.operation().name(),
            "name": object["metadata"]["name"],
            "namespace": object["metadata"]["namespace"],
            "userInfo": {"username": self.user, "groups": self.user_groups},
            "object": object,
            "oldObject": self.old_object(),
        }})
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn with_status(object: &str, status: Option<Value>) -> String {
    let mut object = parse(object);
    match status {
        Some(status) => object["status"] = status,
        None => drop(object.as_object_mut().unwrap().remove("status")),
    }
    object.to_string()
}

// --- expectations -----------------------------------------------------------------------------

/// The result of a write.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) findings: Vec<Found>,
    /// JSON Patch; null without one.
    pub(crate) patch: Value,
    sent: String,
}

/// A finding of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) policy: String,
    pub(crate) rule: String,
    pub(crate) action: Action,
    pub(crate) field: String,
    pub(crate) message: String,
    /// The reason of the cause, as the API server shows it.
    pub(crate) reason: &'static str,
}

impl Found {
    pub(crate) fn of(found: &statusgate_core::engine::Finding<'_>) -> Self {
        Self {
            policy: found.policy.to_string(),
            rule: found.rule.to_string(),
            action: found.action,
            field: found.field.clone(),
            message: found.message.clone(),
            reason: found.cause.reason(),
        }
    }
}

/// `deny status.phase: is required [appcat/phase-value]`
impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, field, message, rule, .. } = self;
        write!(formatter, "{} {field}: {message} [{rule}]", action.label())
    }
}

impl Outcome {
    pub(crate) fn is_patched(&self) -> bool {
        !self.patch.is_null()
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.findings.iter().any(|found| found.action == Action::Deny)
    }

    /// The object after the patch.
    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        let mut object = parse(&self.sent);
        if self.is_patched() {
            let patch: json_patch::Patch = serde_json::from_value(self.patch.clone()).unwrap();
            assert!(!patch.0.is_empty(), "an empty patch is no patch");
            json_patch::patch(&mut object, &patch).unwrap();
        }
        object
    }

    /// The status after the patch; null without one.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.object()["status"].take()
    }

    /// All findings as text.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.findings.iter().map(Found::to_string).collect()
    }

    /// The findings that reject the write, as text.
    pub(crate) fn denials(&self) -> Vec<String> {
        let denied = self.findings.iter().filter(|found| found.action == Action::Deny);
        denied.map(Found::to_string).collect()
    }

    /// The fields of the findings that reject the write.
    pub(crate) fn denied_fields(&self) -> impl Iterator<Item = String> {
        let denied = self.findings.iter().filter(|found| found.action == Action::Deny);
        denied.map(|found| found.field.clone())
    }

    /// The action and rule of each finding.
    pub(crate) fn rules(&self) -> Vec<(Action, &str)> {
        self.findings.iter().map(|found| (found.action, found.rule.as_str())).collect()
    }

    /// Expects exactly these findings.
    #[track_caller]
    pub(crate) fn finds(&self, expected: &[(Action, &str)]) {
        assert_eq!(self.rules(), expected, "{:#?}", self.lines());
    }

    /// Expects exactly these rules to reject the write; others may warn.
    #[track_caller]
    pub(crate) fn denied_by(&self, expected: &[&str]) {
        let denied = self.rules().into_iter().filter(|(action, _)| *action == Action::Deny);
        let denied: Vec<&str> = denied.map(|(_, rule)| rule).collect();
        assert_eq!(denied, expected, "{:#?}", self.lines());
    }

    /// Expects one warning, of this rule.
    #[track_caller]
    pub(crate) fn warns(&self, rule: &str) {
        self.finds(&[(Action::Warn, rule)]);
    }

    /// Expects no finding.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        self.finds(&[]);
    }

    /// Expects that nothing rejects the write.
    #[track_caller]
    pub(crate) fn is_allowed(&self) {
        self.denied_by(&[]);
    }
}
