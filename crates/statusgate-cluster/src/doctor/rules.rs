//! Whether the rules of a registration match the requests that can change a stored status.

use std::collections::{BTreeMap, BTreeSet};

use super::about_objects;
use super::hook::Hook;
use crate::manifests::registrations::HookKind;
use crate::manifests::rules::{RuleWithOperations, entry, has, operations};
use crate::{CheckResult, Target, Targets};
use statusgate_core::policy::PolicySet;

/// Checks the rules of all webhooks.
pub(super) fn coverage(
    hooks: &[Hook],
    policies: &PolicySet,
    targets: &Targets,
) -> Vec<CheckResult> {
    let kinds = [HookKind::Mutating, HookKind::Validating].map(|kind| about_objects(hooks, kind));
    kinds.into_iter().flat_map(|of| fit(&of.collect::<Vec<_>>(), policies, targets)).collect()
}

/// Checks that the webhooks of one kind together match every selected resource.
fn fit(hooks: &[&Hook], policies: &PolicySet, targets: &Targets) -> Vec<CheckResult> {
    let subject = match hooks {
        [] => return Vec::new(),
        [hook] => hook.subject(),
        [hook, others @ ..] => format!("{} and {} more", hook.subject(), others.len()),
    };
    let mut checks = Vec::new();
    for target in &targets.list {
        let operations = operations(target.status_subresource);
        let not_asked = operations.iter().copied().filter(|operation| {
            !hooks.iter().any(|hook| is_asked(hook, policies, targets, target, operation))
        });
        let missing: Vec<&str> = not_asked.collect();
        let name = entry(&target.plural, target.status_subresource);
        if !missing.is_empty() {
            let message = format!("the rules do not match {} of {name}", missing.join(" and "));
            let help = format!(
                "add a rule: apiGroups [{}], apiVersions [{}], operations [{}], resources [{name}]",
                target.group,
                target.version,
                operations.join(", "),
            );
            checks.push(CheckResult::problem("rules", subject.clone(), message, help));
        }
    }
    let all = targets.list.len();
    let are_complete = checks.is_empty() && all > 0;
    checks.extend(hooks.iter().flat_map(|hook| too_much(hook, &targets.list)));
    if are_complete {
        let message = format!("the rules match all resources that the policies select: {all}");
        checks.push(CheckResult::ok("rules", subject, message));
    }
    checks
}

/// Rules that match more than necessary.
fn too_much(hook: &Hook, targets: &[Target]) -> Vec<CheckResult> {
    let subject = hook.subject();
    let mut checks = Vec::new();
    let mut stars: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for target in targets {
        let rules = hook.rules.iter().filter(|rule| has(&rule.api_groups, &target.group));
        let entries = rules.filter(|rule| in_scope(rule, target)).flat_map(|rule| &rule.resources);
        let in_vain = entries.filter(|entry| target.status_subresource && is_main(entry, target));
        for entry in in_vain {
            if *entry == target.plural {
                let message = format!("the rules match {entry}, {IN_VAIN}");
                let help = format!("remove {entry}: each of its writes waits for a response");
                checks.push(CheckResult::warning("rules", subject.clone(), message, help));
            } else {
                let plurals = stars.entry(entry).or_default();
                plurals.insert(target.plural.as_str());
            }
        }
    }
    // `*` may match dozens of kinds: one warning for all of them.
    for (entry, plurals) in stars {
        let Some(first) = plurals.first() else { continue };
        let more = match plurals.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("{entry} matches {first}{more}, {IN_VAIN}");
        let help = format!(
            "replace {entry} with entries such as {first}/status: each write waits for a response"
        );
        checks.push(CheckResult::warning("rules", subject.clone(), message, help));
    }
    let star = |list: &[String]| list.iter().any(|name| name.starts_with('*'));
    if hook.rules.iter().any(|rule| star(&rule.api_groups) && star(&rule.resources)) {
        let message = "a rule matches every resource of every group";
        let help = "name groups and resources: each of these writes waits for a response";
        checks.push(CheckResult::warning("rules", subject, message, help));
    }
    checks
}

/// Whether a rule matches a request in a version that a policy judges.
fn is_asked(
    hook: &Hook,
    policies: &PolicySet,
    targets: &Targets,
    target: &Target,
    operation: &str,
) -> bool {
    let served = targets.versions.get(&target.name()).into_iter().flatten();
    // With `Equivalent`, the API server converts the request to the version of the rule, if it serves this
    // version.
    let is_equivalent = hook.settings.match_policy.as_deref() == Some("Equivalent");
    let others = served.filter(|_| is_equivalent).filter(|version| {
        let other = Target { version: (*version).clone(), ..target.clone() };
        !other.selected(policies, other.subresource()).is_empty()
    });
    let entry = entry(&target.plural, target.status_subresource);
    std::iter::once(&target.version).chain(others).any(|version| {
        let mut rules = hook.rules.iter().filter(|rule| in_scope(rule, target));
        rules.any(|rule| rule.matches(&target.group, version, operation, &entry))
    })
}

fn in_scope(rule: &RuleWithOperations, target: &Target) -> bool {
    match rule.scope.as_str() {
        "Namespaced" => target.namespaced,
        "Cluster" => !target.namespaced,
        _ => true,
    }
}

/// Whether an entry matches the main resource. `*/*` and `foos/*` do: for the API server, the empty
/// subresource is one of all.
fn is_main(entry: &str, target: &Target) -> bool {
    let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    (resource == "*" || resource == target.plural) && matches!(subresource, "" | "*")
}

const IN_VAIN: &str = "but writes to them cannot change a stored status";

#[cfg(test)]
pub(super) mod tests {
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;

    use super::*;
    use crate::Level;
    use statusgate_core::policy::Source;

    fn policies() -> PolicySet {
        let text = "{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {name: p}, spec: \
            {convention: appcat, resources: [{apiGroups: [a.io], apiVersions: [v1, v2], resources: [foos]}, \
            {apiGroups: [a.io], apiVersions: [v1], resources: [bars], statusSubresource: false}]}}";
        PolicySet::compile(&[Source { name: "p.yaml".into(), text: text.into() }]).unwrap()
    }

    fn target(plural: &str, status_subresource: bool) -> Target {
        Target { status_subresource, ..Target::example(plural) }
    }

    fn rule(version: &str, operations: &[&str], resources: &[&str]) -> RuleWithOperations {
        let owned = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        RuleWithOperations {
            api_groups: owned(&["a.io"]),
            api_versions: owned(&[version]),
            operations: owned(operations),
            resources: owned(resources),
            scope: "*".into(),
        }
    }

    pub(in super::super) fn hook(rules: Vec<RuleWithOperations>) -> Hook {
        let settings = MutatingWebhook {
            name: "mutate.statusgate.dev".into(),
            failure_policy: Some("Ignore".into()),
            match_policy: Some("Equivalent".into()),
            reinvocation_policy: Some("IfNeeded".into()),
            side_effects: "None".into(),
            timeout_seconds: Some(5),
            admission_review_versions: vec!["v1".into()],
            ..MutatingWebhook::default()
        };
        Hook { kind: HookKind::Mutating, registration: "statusgate".into(), settings, rules }
    }

    fn found(hook: &Hook, targets: &[Target]) -> Vec<(Level, String)> {
        found_of(&[hook], targets)
    }

    fn found_of(hooks: &[&Hook], targets: &[Target]) -> Vec<(Level, String)> {
        let served = |target: &Target| (target.name(), vec!["v1".to_owned(), "v2".to_owned()]);
        let versions = targets.iter().map(served).collect();
        let targets = Targets { list: targets.to_vec(), versions, ..Targets::default() };
        let checks = fit(hooks, &policies(), &targets);
        checks.into_iter().map(|check| (check.level, check.message)).collect()
    }

    #[test]
    fn rules_that_match_the_selected_resources_are_clean() {
        let rules = vec![
            rule("v1", &["UPDATE"], &["foos/status"]),
            rule("v1", &["CREATE", "UPDATE"], &["bars"]),
        ];
        let found = found(&hook(rules), &[target("foos", true), target("bars", false)]);
        assert_eq!(
            found,
            [(Level::Ok, "the rules match all resources that the policies select: 2".into())]
        );
    }

    #[test]
    fn a_star_and_a_plural_do_not_match_a_subresource() {
        for resources in [["*"], ["foos"]] {
            let found = found(&hook(vec![rule("v1", &["*"], &resources)]), &[target("foos", true)]);
            let missing = "the rules do not match UPDATE of foos/status".to_owned();
            assert_eq!(found[0], (Level::Problem, missing), "{resources:?}");
        }
        for resources in [["*/*"], ["foos/*"], ["*/status"]] {
            let found = found(&hook(vec![rule("v1", &["*"], &resources)]), &[target("foos", true)]);
            assert!(found.iter().all(|(level, _)| *level < Level::Problem), "{resources:?}");
        }
    }

    #[test]
    fn a_star_that_also_matches_main_resources_gives_one_warning() {
        let targets = [target("foos", true), target("bars", false), target("zoos", true)];
        for (star, asked) in
            [("*/*", "foos and 1 more"), ("*", "foos and 1 more"), ("zoos/*", "zoos")]
        {
            let found = found(&hook(vec![rule("v1", &["*"], &[star])]), &targets);
            let expected =
                format!("{star} matches {asked}, but writes to them cannot change a stored status");
            let warnings: Vec<_> =
                found.iter().filter(|(level, _)| *level == Level::Warning).collect();
            assert_eq!(warnings, [&(Level::Warning, expected)]);
        }
        let found = found(&hook(vec![rule("v1", &["*"], &["*/status", "bars"])]), &targets);
        assert!(found.iter().all(|(level, _)| *level == Level::Ok), "{found:?}");
    }

    #[test]
    fn without_the_subresource_creations_must_match() {
        let found =
            found(&hook(vec![rule("v1", &["UPDATE"], &["bars"])]), &[target("bars", false)]);
        assert_eq!(found, [(Level::Problem, "the rules do not match CREATE of bars".into())]);
    }

    #[test]
    fn a_rule_for_the_main_resource_is_unnecessary() {
        let rules = vec![rule("v1", &["UPDATE"], &["foos/status", "foos"])];
        let found = found(&hook(rules), &[target("foos", true)]);
        let message = "the rules match foos, but writes to them cannot change a stored status";
        assert_eq!(found[0], (Level::Warning, message.into()));
    }

    #[test]
    fn an_equivalent_and_judged_version_is_sufficient() {
        let foos = [target("foos", true)];
        let mut hook = hook(vec![rule("v2", &["UPDATE"], &["foos/status"])]);
        assert_eq!(found(&hook, &foos)[0].0, Level::Ok);
        hook.settings.match_policy = Some("Exact".into());
        assert_eq!(found(&hook, &foos)[0].0, Level::Problem);
        let unjudged = self::hook(vec![rule("v3", &["UPDATE"], &["foos/status"])]);
        assert_eq!(found(&unjudged, &foos)[0].0, Level::Problem);
    }

    #[test]
    fn a_version_that_is_not_served_never_matches() {
        let hook = hook(vec![rule("v2", &["UPDATE"], &["foos/status"])]);
        let foos = target("foos", true);
        let versions = [("foos.a.io".to_owned(), vec!["v1".to_owned()])].into();
        let targets = Targets { list: vec![foos], versions, ..Targets::default() };
        assert_eq!(fit(&[&hook], &policies(), &targets)[0].level, Level::Problem);
    }

    #[test]
    fn several_webhooks_of_one_kind_are_checked_together() {
        let (foos, bars) = (target("foos", true), target("bars", false));
        let first = hook(vec![rule("v1", &["UPDATE"], &["foos/status"])]);
        let second = hook(vec![rule("v1", &["CREATE", "UPDATE"], &["bars"])]);
        let together = found_of(&[&first, &second], &[foos.clone(), bars.clone()]);
        assert_eq!(together.iter().map(|(level, _)| *level).collect::<Vec<_>>(), [Level::Ok]);
        assert_eq!(found(&first, &[foos, bars])[0].0, Level::Problem);
        assert_eq!(fit(&[], &policies(), &Targets::default()), []);
    }

    #[test]
    fn the_scope_of_a_rule_counts() {
        let mut rule = rule("v1", &["UPDATE"], &["foos/status"]);
        rule.scope = "Cluster".into();
        assert_eq!(found(&hook(vec![rule]), &[target("foos", true)])[0].0, Level::Problem);
    }
}
