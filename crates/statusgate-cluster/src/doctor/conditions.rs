//! Whether policies select all served versions, and the registered match conditions are those of the policies. With those of other policies, the API
//! server may omit a request about a write that a policy would change or reject.

use k8s_openapi::api::admissionregistration::v1::MatchCondition;

use super::hook::Hook;
use crate::manifests::conditions;
use crate::manifests::registrations::Calls;
use crate::manifests::selectors::{LeftOut, left_out};
use crate::{CheckResult, Cluster};
use statusgate_core::policy::PolicySet;

/// Checks the served versions, and the generated match conditions of all webhooks about objects.
pub(super) async fn check(
    hooks: &[Hook],
    cluster: &Cluster,
    policies: &PolicySet,
) -> Vec<CheckResult> {
    let about_objects = hooks.iter().filter(|hook| !hook.is_about_documents());
    let hooks = about_objects.filter(|hook| generated(hook).next().is_some());
    match cluster.custom_resources(policies, |resource, _| resource).await {
        Ok(resources) => {
            let calls = Calls::of(policies, &resources, true);
            let versions = left_out(policies, &resources);
            let versions = versions.iter().map(version);
            versions.chain(hooks.flat_map(|hook| compare(hook, &calls))).collect()
        }
        Err(error) => {
            let verb = "list and get customresourcedefinitions";
            vec![CheckResult::not_checked(ID, "CustomResourceDefinition", error, verb)]
        }
    }
}

fn version(left_out: &LeftOut) -> CheckResult {
    let (of, message) = (left_out.version.clone(), left_out.describe());
    if left_out.named {
        let help = "give the version an entry with its statusSubresource: no write in it is judged";
        CheckResult::problem("subresource", of, message, help)
    } else {
        let help = "add the version: if another policy selects it, writes in it avoid this policy";
        CheckResult::warning("versions", of, message, help)
    }
}

/// Compares by expression: the numbers in the names depend on the other conditions. Without one of the
/// expected conditions, the webhook only gets more requests.
fn compare(hook: &Hook, calls: &Calls) -> Vec<CheckResult> {
    let expected = &calls.conditions[hook.webhook() as usize];
    let unexpected = generated(hook)
        .filter(|condition| !expected.iter().any(|of| of["expression"] == condition.expression));
    let mut checks: Vec<CheckResult> = unexpected
        .map(|MatchCondition { name, .. }| {
            let message = format!(
                "the match condition {name} is not one of these policies: writes that they judge \
                 may not reach the webhook"
            );
            let help = "apply the output of `statusgate manifests registrations` again, with the \
                        same options";
            CheckResult::problem(ID, hook.subject(), message, help)
        })
        .collect();
    if checks.is_empty() {
        let message =
            format!("the match conditions are those of the policies: {}", generated(hook).count());
        checks.push(CheckResult::ok(ID, hook.subject(), message));
    }
    checks
}

/// The match conditions with names of statusgate.
fn generated(hook: &Hook) -> impl Iterator<Item = &MatchCondition> {
    let all = hook.settings.match_conditions.iter().flatten();
    all.filter(|condition| conditions::is_ours(&condition.name))
}

const ID: &str = "match-conditions";

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::Level;
    use crate::manifests::registrations::{
        Address, FailurePolicy, HookKind, RegistrationSettings, registrations,
    };
    use crate::manifests::resource::{CustomResource, ServedVersion};
    use crate::manifests::yaml;
    use statusgate_core::policy::Source;

    /// The calls for `foos` with one convention and `bars` with another.
    fn calls(conventions: [&str; 2]) -> Calls {
        let plurals = ["foos", "bars"];
        let policy = |(convention, plural): (&str, &str)| Source {
            name: format!("{plural}.yaml"),
            text: format!(
                "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: {plural}}}, \
                 spec: {{convention: {convention}, resources: \
                 [{{apiGroups: [a.io], apiVersions: [v1], resources: [{plural}]}}]}}}}"
            ),
        };
        let sources: Vec<Source> = conventions.into_iter().zip(plurals).map(policy).collect();
        let resources = plurals.map(|plural| CustomResource {
            group: "a.io".into(),
            plural: plural.into(),
            kind: plural.into(),
            versions: vec![ServedVersion { name: "v1".into(), status_subresource: true }],
        });
        Calls::of(&PolicySet::compile(&sources).unwrap(), &resources, true)
    }

    /// The webhooks about objects, as printed and applied.
    fn applied(calls: &Calls) -> [Hook; 2] {
        let settings = RegistrationSettings {
            namespace: "n".into(),
            address: Address::Service("statusgate".into()),
            authorities: String::new(),
            failure_policy: FailurePolicy::Fail,
        };
        let [mutating, validating, _] = registrations(calls, &settings).map(|registration| {
            let text = yaml::print(&[registration]).unwrap();
            serde_saphyr::from_str::<Value>(&text).unwrap()
        });
        let hook = |registration: &Value, kind| Hook {
            kind,
            registration: "statusgate".into(),
            settings: serde_json::from_value(registration["webhooks"][0].clone()).unwrap(),
            rules: Vec::new(),
        };
        [hook(&mutating, HookKind::Mutating), hook(&validating, HookKind::Validating)]
    }

    fn found(hook: &Hook, calls: &Calls) -> Vec<(Level, String)> {
        let checks = compare(hook, calls);
        checks.into_iter().map(|check| (check.level, check.message)).collect()
    }

    fn ok(count: usize) -> Vec<(Level, String)> {
        vec![(Level::Ok, format!("the match conditions are those of the policies: {count}"))]
    }

    fn problem(name: &str) -> (Level, String) {
        let message = format!(
            "the match condition {name} is not one of these policies: writes that they judge may \
             not reach the webhook"
        );
        (Level::Problem, message)
    }

    #[test]
    fn printed_match_conditions_are_those_of_the_policies_until_a_policy_changes() {
        let (older, newer) = (calls(["appcat", "metav1"]), calls(["appcat", "appcat"]));
        for hook in applied(&older) {
            assert_eq!(found(&hook, &older), ok(2));
            let both = ["relevant-changes-1", "relevant-changes-2"].map(problem);
            assert_eq!(found(&hook, &newer), both);
        }
    }

    #[test]
    fn only_the_expressions_of_our_match_conditions_count() {
        let calls = calls(["appcat", "metav1"]);
        for mut hook in applied(&calls) {
            let conditions = hook.settings.match_conditions.as_mut().unwrap();
            conditions.reverse();
            conditions[0].name = "relevant-changes-7".into();
            let (name, expression) = ("own".to_owned(), "false".to_owned());
            conditions.push(MatchCondition { name, expression });
            assert_eq!(found(&hook, &calls), ok(2));
            hook.settings.match_conditions.as_mut().unwrap().remove(0);
            assert_eq!(found(&hook, &calls), ok(1));
            for condition in hook.settings.match_conditions.iter_mut().flatten() {
                condition.expression = "false".into();
            }
            assert_eq!(found(&hook, &calls).last(), Some(&problem("relevant-changes-1")));
        }
    }
}
