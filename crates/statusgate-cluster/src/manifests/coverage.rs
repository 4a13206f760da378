//! How the stored webhooks cover the resources of policies.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::conditions::clauses_for;
use super::registrations::Calls;
use super::resource::{CustomResource, ServedVersion};
use super::rules::{ANY, Reason, RuleWithOperations, entry, gaps, judged, operations};
use super::selectors::{LeftOut, left_out, unserved};
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

/// How the stored webhooks cover the resources of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The selected resources with status writes that reach both webhooks as they should.
    pub covered: Vec<String>,
    /// The other resources that the policy selects, and versions with another subresource than it says.
    pub missing: Vec<String>,
    /// Resources that the policy names and that have no definition in the cluster.
    pub absent: Vec<String>,
    /// Served versions of its resources that the policy does not select: `widgets.example.org v1`.
    pub left_out: Vec<String>,
    /// The values of the policy that the schemas of its resources reject.
    pub withheld: Vec<String>,
    /// Why a webhook gets no call at all.
    pub fault: Option<String>,
    /// A hash of what the webhooks have for the resources of the policy.
    pub state: u64,
}

/// A webhook about objects, as stored.
#[derive(Clone, Debug, Default)]
pub struct StoredWebhook {
    /// Its rules.
    pub rules: Vec<RuleWithOperations>,
    /// Its match conditions.
    pub conditions: Vec<Value>,
    /// Why it gets no call at all.
    pub fault: Option<String>,
}

/// How these webhooks, in the order of [`Webhook::ALL`], cover the resources of each policy. A status write has
/// to reach both. `calls` has what they should get.
pub fn coverage(
    policies: &PolicySet,
    resources: &[CustomResource],
    calls: &Calls,
    webhooks: &[StoredWebhook; 2],
) -> BTreeMap<String, Coverage> {
    let fault = webhooks.iter().find_map(|webhook| webhook.fault.clone());
    let mut states: BTreeMap<&str, DefaultHasher> = BTreeMap::new();
    let names = policies
        .names()
        .map(|name| (name.to_owned(), Coverage { fault: fault.clone(), ..Coverage::default() }));
    let mut coverage: BTreeMap<String, Coverage> = names.collect();
    for resource in judged(resources) {
        let clauses = Webhook::ALL.map(|of| {
            let wanted = clauses_for(&calls.conditions[of as usize], resource);
            let stored = clauses_for(&webhooks[of as usize].conditions, resource);
            // Without one of the wanted conditions, the webhook only gets more requests.
            (stored.iter().all(|clauses| wanted.contains(clauses)), stored)
        });
        let mut covered: BTreeMap<&str, bool> = BTreeMap::new();
        for version in &resource.versions {
            let matches = webhooks.iter().all(|of| is_matched(&of.rules, resource, version));
            let reaches = matches && fault.is_none() && clauses.iter().all(|(wanted, _)| *wanted);
            let selected = resource.selected(policies, version).into_iter();
            for policy in selected.filter_map(|index| Some(policies.get(index)?.name.as_str())) {
                *covered.entry(policy).or_insert(true) &= reaches;
                let state = states.entry(policy).or_default();
                (resource.name(), &version.name, reaches, &clauses).hash(state);
            }
        }
        for (policy, covered) in covered {
            let Some(of) = coverage.get_mut(policy) else { continue };
            let list = if covered { &mut of.covered } else { &mut of.missing };
            list.push(resource.name());
        }
    }
    for LeftOut { policy, version, named } in left_out(policies, resources) {
        let Some(of) = coverage.get_mut(&policy) else { continue };
        if named { of.missing.push(version) } else { of.left_out.push(version) }
    }
    for gap in gaps(policies, resources) {
        if let Some(of) = coverage.get_mut(&gap.policy) {
            let list = match gap.reason {
                Reason::NotDefined => &mut of.absent,
                Reason::WrongSubresource { .. } | Reason::OtherVersions => &mut of.missing,
            };
            list.push(gap.resource);
        }
    }
    // Missing plurals are gaps.
    for name in unserved(policies, resources) {
        if let Some(of) = coverage.get_mut(&name.policy).filter(|_| name.place.1 != "resources") {
            of.absent.push(name.what);
        }
    }
    for (policy, state) in states {
        if let Some(of) = coverage.get_mut(policy) {
            of.state = state.finish();
        }
    }
    coverage.values_mut().for_each(Coverage::sort);
    coverage
}

impl Coverage {
    /// Adds the resources of another policy.
    pub fn add(&mut self, other: &Self) {
        for (list, more) in [
            (&mut self.covered, &other.covered),
            (&mut self.missing, &other.missing),
            (&mut self.absent, &other.absent),
        ] {
            list.extend_from_slice(more);
        }
        self.fault = self.fault.take().or_else(|| other.fault.clone());
        self.sort();
    }

    fn sort(&mut self) {
        let Self { covered, missing, absent, left_out, .. } = self;
        for list in [covered, missing, absent, left_out] {
            list.sort_unstable();
            list.dedup();
        }
    }
}

fn is_matched(
    rules: &[RuleWithOperations],
    resource: &CustomResource,
    version: &ServedVersion,
) -> bool {
    let entry = entry(&resource.plural, version.status_subresource);
    operations(version.status_subresource).iter().all(|operation| {
        // A rule that is restricted to a scope counts as a mismatch: policies do not restrict it.
        let mut unrestricted = rules.iter().filter(|rule| rule.scope == ANY);
        unrestricted.any(|rule| rule.matches(&resource.group, &version.name, operation, &entry))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::rules::rules;
    use super::super::rules::tests::{policies, resource};
    use super::*;

    fn webhook(rules: &[RuleWithOperations], conditions: &[Value]) -> StoredWebhook {
        let (rules, conditions) = (rules.to_vec(), conditions.to_vec());
        StoredWebhook { rules, conditions, fault: None }
    }

    #[test]
    fn stored_rules_cover_a_resource_if_those_of_both_webhooks_match_in_every_selected_version() {
        let policies = policies(&[
            ("one", "{apiGroups: [a.io], apiVersions: [v1], resources: [foos, bars, pods]}"),
            ("other", "{apiGroups: [a.io], apiVersions: [v1, v2], resources: [foos]}"),
        ]);
        let resources = [resource("foos.a.io", &["v1", "v2"]), resource("bars.a.io", &["v1"])];
        let covered = |one: &[RuleWithOperations], other: &[RuleWithOperations]| {
            let webhooks = [webhook(one, &[]), webhook(other, &[])];
            let coverage = coverage(&policies, &resources, &Calls::default(), &webhooks);
            let one = &coverage["one"];
            assert_eq!(one.absent, ["pods.a.io"]);
            (one.covered.join(" "), coverage["other"].covered.join(" "))
        };
        let generated = rules(&policies, &resources);
        assert_eq!(
            covered(&generated, &generated),
            ("bars.a.io foos.a.io".into(), "foos.a.io".into())
        );
        let first = RuleWithOperations::of("a.io", &["v1"], &["UPDATE"], &["foos/*"]);
        assert_eq!(covered(&generated, &[first]), ("foos.a.io".into(), String::new()));
        let wrong = RuleWithOperations::of("a.io", &["*"], &["*"], &["*"]);
        assert_eq!(covered(&generated, &[wrong]), (String::new(), String::new()));
        assert_eq!(covered(&[], &[]), (String::new(), String::new()));
    }

    #[test]
    fn match_conditions_count_only_for_the_resources_that_they_are_about() {
        let policies = policies(&[
            ("foo", "{apiGroups: [a.io], apiVersions: [v1], resources: [foos]}"),
            ("bar", "{apiGroups: [b.io], apiVersions: [v1], resources: [bars]}"),
        ]);
        let resources = [resource("foos.a.io", &["v1"]), resource("bars.b.io", &["v1"])];
        let rules = rules(&policies, &resources);
        let condition = |group: &str, plurals: &str, clauses: &str| {
            let guard = format!(
                "!(request.resource.group == '{group}' && request.resource.resource in [{plurals}])"
            );
            json!({"name": "relevant-changes-1", "expression": format!("{guard}\n|| {clauses}")})
        };
        let (foos, bars) = (condition("a.io", "'foos'", "x"), condition("b.io", "'bars'", "y"));
        let calls =
            Calls { conditions: [vec![], vec![foos.clone(), bars.clone()]], ..Calls::default() };
        let with = |validate: &[Value]| {
            let webhooks = [webhook(&rules, &[]), webhook(&rules, validate)];
            coverage(&policies, &resources, &calls, &webhooks)
        };
        let missing = |validate: &[Value]| {
            let coverage = with(validate);
            ["foo", "bar"].map(|name| coverage[name].missing.concat())
        };
        let none = String::new;
        assert_eq!(missing(&[foos.clone(), bars.clone()]), [none(), none()]);
        assert_eq!(
            missing(&[condition("a.io", "'bars', 'foos'", "x"), bars.clone()]),
            [none(), none()]
        );
        assert_eq!(missing(&[condition("b.io", "'foos'", "z"), bars.clone()]), [none(), none()]);
        assert_eq!(
            missing(&[condition("a.io", "'foos'", "z"), bars.clone()]),
            ["foos.a.io".into(), none()]
        );
        let all = json!({"name": "status-changes", "expression": "z"});
        assert_eq!(missing(&[all]), ["foos.a.io", "bars.b.io"]);
        let own = json!({"name": "own", "expression": "z"});
        assert_eq!(missing(&[own]), [none(), none()], "that of the user");
        let states =
            |coverage: &BTreeMap<String, Coverage>| ["foo", "bar"].map(|name| coverage[name].state);
        let before = states(&with(&[foos.clone(), bars]));
        let after = states(&with(&[foos, condition("b.io", "'bars'", "z")]));
        assert!(before[0] == after[0] && before[1] != after[1]);
    }

    #[test]
    fn served_versions_that_a_policy_does_not_select_are_left_out_or_missing() {
        let policies = policies(&[
            ("some", "{apiGroups: [a.io], apiVersions: [v2], resources: [foos]}"),
            ("all", "{apiGroups: [a.io], apiVersions: ['*'], resources: [foos]}"),
        ]);
        let resources = [resource("foos.a.io", &["v1", "v2", "v3!"])];
        let rules = rules(&policies, &resources);
        let webhooks = [webhook(&rules, &[]), webhook(&rules, &[])];
        let coverage = coverage(&policies, &resources, &Calls::default(), &webhooks);
        assert_eq!(coverage["some"].left_out, ["foos.a.io v1", "foos.a.io v3"]);
        assert_eq!(coverage["some"].missing, [""; 0]);
        assert_eq!(coverage["all"].missing, ["foos.a.io v3"]);
    }
}
