//! Judges one stored object.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use super::super::identity::read_object;
use super::super::{Target, object_path};
use statusgate_core::causes::with_causes;
use statusgate_core::engine::{
    Action, Found, Health, PatchFailed, Rehearsal, decide, phase_of, review, since,
};
use statusgate_core::model::{
    Conditions, Json, Metadata, Object, Operation, Resource, Subject, Webhook, Writer,
};
use statusgate_core::policy::{Disposition, Policy, PolicySet};

/// Judges stored objects.
#[derive(Debug)]
pub struct Judge<'p> {
    policies: &'p PolicySet,
    older_than: Option<i64>,
}

/// The result for one object.
#[derive(Debug)]
pub struct Audited<'a> {
    /// Its identity.
    pub metadata: Metadata<'a>,
    /// The result under each policy that judged it.
    pub states: Vec<State<'a>>,
    /// Whether backfill would write it.
    pub backfill: bool,
    /// The newest transition time, otherwise the creation, in Unix seconds.
    pub since: Option<i64>,
    /// Why it could not be judged.
    pub broken: Option<String>,
}

/// One object under one policy.
#[derive(Debug)]
pub struct State<'a> {
    /// The index of the policy in the set.
    pub policy: u16,
    /// The health of the object, by the convention or otherwise by kstatus.
    pub health: Health,
    /// The stored phase, if any.
    pub phase: Option<Cow<'a, str>>,
    /// Type and status of each stored condition.
    pub conditions: Vec<(Cow<'a, str>, &'static str)>,
    /// The findings that count.
    pub findings: Vec<Found>,
    /// Disagreements that are too recent to count.
    pub passing: Vec<Found>,
    /// The number of disagreements among the findings.
    pub lasting: usize,
}

impl<'p> Judge<'p> {
    /// Prepares to judge by these policies. Only disagreements older than this number of seconds count;
    /// without a number, all count.
    pub const fn new(policies: &'p PolicySet, older_than: Option<i64>) -> Self {
        Self { policies, older_than }
    }

    /// Judges a stored object as the write of an unnamed user, who matches none of a policy's
    /// `writers`.
    ///
    /// # Errors
    /// When the text is not an object with a name.
    pub fn object<'a>(
        &self,
        target: &'a Target,
        text: &'a str,
        now: Timestamp,
    ) -> Result<Audited<'a>, serde_json::Error> {
        let object = read_object(text)?;
        let metadata = object.metadata.clone();
        let mut judged =
            Audited { metadata, states: Vec::new(), backfill: false, since: None, broken: None };
        let object = match object.judgeable() {
            Ok(object) => object,
            // One object that is too large must not end the run.
            Err(error) => {
                judged.broken = Some(format!("cannot be judged: {}", with_causes(&error)));
                return Ok(judged);
            }
        };
        // As backfill judges it: nothing moved the phase just now. A first write would also get the time
        // of its transition.
        let subject = target.subject(object, Writer::default());
        let verdict = decide(self.policies, &subject, Webhook::Mutate, now);
        judged.backfill = verdict.patch.is_some();
        let Subject { object, resource, .. } = &subject;
        let judging = target.policies.iter().filter_map(|index| self.policies.get(*index));
        let conventions = judging.map(|policy| &*policy.convention);
        judged.since = since(conventions, object, &target.version, now.as_second());
        for index in &target.policies {
            let Some(policy) = self.policies.get(*index) else { continue };
            let health = match Health::of(&policy.convention, object, resource) {
                Some(health) => health,
                None => target.health_without_convention(text, now)?,
            };
            judged.states.push(state(*index, policy, health, object, resource));
        }
        // Without the subresource, the first write of a status is the creation.
        let operation =
            if target.status_subresource { Operation::Update } else { Operation::Create };
        let subject = Subject { operation, old: None, ..subject };
        let findings = match review(self.policies, subject, true, now) {
            Ok(review) if !verdict.patch_failed => review.findings,
            _ => {
                let broken = Some(PatchFailed.to_string());
                return Ok(Audited { states: Vec::new(), broken, ..judged });
            }
        };
        for found in self.rehearse(target, text, verdict.status.as_ref())? {
            self.file(found, now.as_second(), &mut judged);
        }
        for mut found in findings {
            // Count it for each policy that reports it.
            for (policy, action) in std::mem::take(&mut found.others) {
                self.file(Found { policy, action, ..found.clone() }, now.as_second(), &mut judged);
            }
            self.file(found, now.as_second(), &mut judged);
        }
        Ok(judged)
    }

    /// What a new schema, if there is one, does to a stored object. `status`: as backfill leaves it.
    fn rehearse(
        &self,
        target: &Target,
        text: &str,
        status: Option<&Json<'_>>,
    ) -> Result<Vec<Found>, serde_json::Error> {
        let resource = Resource::new(&target.group, &target.version, &target.plural);
        let policy = target.policies.first().and_then(|index| self.policies.get(*index));
        let (Some(defined), Some(policy)) = (self.policies.defined().get(&resource), policy) else {
            return Ok(Vec::new());
        };
        let stored: Value = serde_json::from_str(text)?;
        let backfilled = status.map(|status| {
            let mut object = stored.clone();
            object["status"] = status.to_value();
            object
        });
        let has_subresource = target.status_subresource;
        let rehearsal = Rehearsal { defined, policy: &policy.name, has_subresource };
        Ok(rehearsal.stored(&stored, backfilled.as_ref()))
    }

    /// Adds a finding to the result of its policy.
    fn file(&self, found: Found, now: i64, judged: &mut Audited<'_>) {
        let of = judged.states.iter_mut().find_map(|state| {
            let policy = self.policies.get(state.policy)?;
            (*policy.name == *found.policy).then_some((state, policy))
        });
        let Some((state, policy)) = of else { return };
        if !is_disagreement(policy, &found.rule) {
            state.findings.push(found);
            return;
        }
        // Without any time, a disagreement counts.
        let lasts = match (self.older_than, judged.since) {
            (Some(seconds), Some(since)) => now.saturating_sub(since) > seconds,
            _ => true,
        };
        if lasts {
            state.lasting += 1;
            state.findings.push(found);
        } else {
            state.passing.push(found);
        }
    }
}

impl Audited<'_> {
    /// `namespace/name`, or only the name.
    pub fn path(&self) -> String {
        object_path(&self.metadata.namespace, &self.metadata.name)
    }

    /// The worst action under any policy.
    pub fn worst(&self) -> Option<Action> {
        self.states.iter().filter_map(State::worst).max()
    }
}

impl State<'_> {
    /// The worst action.
    pub fn worst(&self) -> Option<Action> {
        self.findings.iter().map(|found| found.action).max()
    }
}

/// Whether a rule of a policy reports disagreements, between phase and conditions or between conditions.
/// A finding has only the resulting action, so the rule id identifies it.
fn is_disagreement(policy: &Policy, rule: &str) -> bool {
    policy.rule(rule).is_some_and(|rule| rule.actions.contains(&Disposition::Disagreement))
}

fn state<'a>(
    index: u16,
    policy: &Policy,
    health: Health,
    object: &Object<'a>,
    resource: &Resource<'a>,
) -> State<'a> {
    let convention = &*policy.convention;
    let phase = phase_of(convention, object);
    let list = convention.primary_conditions(&resource.version);
    let items = list.and_then(|list| object.at_status(&list.path)?.as_array());
    let conditions = items.unwrap_or_default().iter().filter_map(|item| {
        let status = Conditions::status_of(item).map_or("(other)", |status| status.name());
        match item.get("type") {
            Some(Json::String(kind)) => Some((kind.clone(), status)),
            _ => None,
        }
    });
    State {
        policy: index,
        health,
        phase: phase.map(|phase| phase.to_owned().into()),
        conditions: conditions.collect(),
        findings: Vec::new(),
        passing: Vec::new(),
        lasting: 0,
    }
}

/// A health for tests.
#[cfg(test)]
pub(super) fn health() -> Health {
    use statusgate_core::engine::{HealthClass, HealthStatus};
    let class = HealthClass { is: HealthStatus::Current, retried: false };
    Health { class, reason: "Resource is current".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statusgate_core::policy::Source;

    fn policies() -> PolicySet {
        PolicySet::compile(&PolicySet::examples()).unwrap()
    }

    fn target(policies: &PolicySet) -> Target {
        let appcat = policies.policies().iter().position(|policy| *policy.name == *"appcat");
        Target {
            group: "vshn.appcat.vshn.io".into(),
            policies: vec![u16::try_from(appcat.unwrap()).unwrap()],
            ..Target::example("vshnredis")
        }
    }

    /// Ready over Ready=False, both since noon.
    fn disagreeing(conditions: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"a","namespace":"n","uid":"u","creationTimestamp":"2024-06-01T09:00:00Z"}},
            "status":{{"phase":"Ready","instanceNamespace":"n"{conditions}}}}}"#
        )
    }

    const NOT_READY: &str = r#","lastTransitionTime":"2024-06-01T12:00:00Z","conditions":[{"type":"Ready","status":"False",
        "reason":"No","lastTransitionTime":"2024-06-01T12:00:00Z"}]"#;

    fn counted(text: &str, older_than: Option<i64>, now: &str) -> (Vec<String>, usize, usize) {
        let policies = policies();
        let target = target(&policies);
        let judge = Judge::new(&policies, older_than);
        let judged = judge.object(&target, text, now.parse().unwrap()).unwrap();
        let [state] = judged.states.as_slice() else { panic!("{judged:?}") };
        let rules = state.findings.iter().map(|found| found.rule.clone()).collect();
        (rules, state.passing.len(), state.lasting)
    }

    #[test]
    fn disagreements_are_contradicted_phases_and_rules_with_this_action() {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let is = |name: &str, rule: &str| {
            let policy = policies.policies().iter().find(|policy| *policy.name == *name);
            is_disagreement(policy.unwrap(), rule)
        };
        assert!(is("appcat", "appcat/phase-ready"));
        assert!(!is("appcat", "appcat/phase-value"));
        assert!(!is("appcat", "appcat/phase-unknown"), "nothing contradicts Unknown");
        assert!(is("stackable", "stackable/paused-and-stopped"));
        assert!(
            !is("stackable", "stackable/available-while-stopped"),
            "it always warns, independent of the policy"
        );
    }

    #[test]
    fn a_disagreement_counts_when_it_is_old_enough() {
        let text = disagreeing(NOT_READY);
        let rule = || vec!["appcat/phase-ready".to_owned()];
        let (now, ten) = ("2024-06-01T12:10:00Z", Some(600));
        assert_eq!(counted(&text, None, "2024-06-01T12:00:01Z"), (rule(), 0, 1));
        assert_eq!(counted(&text, ten, now), (vec![], 1, 0), "ten minutes are not more than ten");
        assert_eq!(counted(&text, ten, "2024-06-01T12:10:01Z"), (rule(), 0, 1));
        let newer = text.replacen("T12:00:00Z", "T12:05:00Z", 1);
        assert_eq!(counted(&newer, ten, "2024-06-01T12:10:01Z"), (vec![], 1, 0), "the phase moved");
    }

    #[test]
    fn without_a_transition_time_the_creation_time_counts() {
        let text =
            disagreeing(r#","conditions":[{"type":"Ready","status":"False","reason":"No"}]"#);
        let old = counted(&text, Some(600), "2024-06-01T09:10:01Z");
        assert!(old.0.contains(&"appcat/phase-ready".to_owned()) && old.1 == 0, "{old:?}");
        let young = counted(&text, Some(600), "2024-06-01T09:10:00Z");
        assert!(!young.0.contains(&"appcat/phase-ready".to_owned()) && young.1 == 1, "{young:?}");
    }

    #[test]
    fn a_future_transition_time_is_ignored() {
        let text = disagreeing(&NOT_READY.replace("2024-06-01T12", "2999-06-01T12"));
        let (rules, passing, lasting) = counted(&text, Some(600), "2024-06-01T12:10:01Z");
        assert!(rules.contains(&"appcat/phase-ready".to_owned()), "{rules:?}");
        assert_eq!((passing, lasting), (0, 1));
    }

    #[test]
    fn other_findings_always_count() {
        let text = disagreeing(NOT_READY).replace("Ready\",\"instance", "ready\",\"instance");
        let (rules, passing, lasting) = counted(&text, Some(600), "2024-06-01T12:00:01Z");
        assert_eq!((rules, passing, lasting), (vec!["appcat/phase-value".to_owned()], 0, 0));
    }

    #[test]
    fn phase_and_conditions_are_the_stored_ones() {
        let policies = policies();
        let target = target(&policies);
        let judge = Judge::new(&policies, None);
        let text = disagreeing(NOT_READY);
        let now = "2024-06-01T13:00:00Z".parse().unwrap();
        let judged = judge.object(&target, &text, now).unwrap();
        let state = &judged.states[0];
        assert_eq!(state.phase.as_deref(), Some("Ready"));
        assert_eq!(state.conditions, [("Ready".into(), "False")]);
        assert_eq!((judged.since, judged.backfill), (Some(1_717_243_200), false));
        let empty = judge.object(&target, r#"{"metadata":{"name":"a"}}"#, Timestamp::UNIX_EPOCH);
        let empty = empty.unwrap();
        assert_eq!((empty.states[0].phase.as_deref(), empty.backfill), (None, true));
        assert_eq!((empty.worst(), empty.since), (None, None));
    }

    #[test]
    fn a_finding_of_two_policies_counts_for_each_with_its_action() {
        let policy = |name: &str, enforcement: &str| {
            format!(
                "---\napiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\n\
                 spec:\n  convention: metav1\n  enforcement: {enforcement}\n  resources:\n  - apiGroups: [g]\n\
                 \x20   apiVersions: [v1]\n    resources: [things]\n"
            )
        };
        let text = policy("a", "Warn") + &policy("b", "Deny");
        let policies = PolicySet::compile(&[Source { name: "p".into(), text }]).unwrap();
        let target =
            Target { group: "g".into(), policies: vec![0, 1], ..Target::example("things") };
        let judge = Judge::new(&policies, None);
        let text = disagreeing(NOT_READY).replace("\"reason\":\"No\",", "");
        let judged = judge.object(&target, &text, Timestamp::UNIX_EPOCH).unwrap();
        let worst: Vec<Option<Action>> = judged.states.iter().map(State::worst).collect();
        assert_eq!(worst, [Some(Action::Warn), Some(Action::Deny)]);
    }

    #[test]
    fn an_object_that_cannot_be_judged_does_not_end_the_run() {
        let policies = policies();
        let target = target(&policies);
        let list = vec!["0"; 200_001].join(",");
        let text = format!(r#"{{"metadata":{{"name":"a"}},"status":{{"list":[{list}]}}}}"#);
        let judged = Judge::new(&policies, None).object(&target, &text, Timestamp::UNIX_EPOCH);
        assert!(judged.unwrap().broken.is_some_and(|reason| reason.contains("cannot be judged: ")));
    }
}
