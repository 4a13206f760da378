//! Checks before anything is written: whether the API server would store the values that policies set.

use std::collections::BTreeMap;

use super::crd::Definition;
use super::{CheckResult, Gap, Target, Targets};
use statusgate_core::policy::{Defined, Misfit, PolicySet, Source};

/// Resources that policies name but that cannot be judged.
pub fn gaps(targets: &Targets) -> Vec<CheckResult> {
    let mut checks = Vec::new();
    // A policy may name many resources that a cluster lacks: one warning for all of them.
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for gap in &targets.gaps {
        match gap {
            Gap::NotServed { policy, resource } => {
                missing.entry(policy).or_default().push(resource);
            }
            Gap::WrongSubresource { policy, resource, served, .. } => {
                let has = if *served { "has a" } else { "has no" };
                checks.push(CheckResult::problem(
                    "subresource",
                    resource,
                    format!(
                        "the resource {has} status subresource, but policy {policy} has \
                         statusSubresource: {}",
                        !served
                    ),
                    format!(
                        "set statusSubresource: {served} in the policy; until then, no write is judged"
                    ),
                ));
            }
            Gap::Unavailable { api_version, reason } => checks.push(CheckResult::warning(
                "api-group",
                api_version,
                format!("its server does not respond: {reason}"),
                "check its APIService; resources of this group are skipped",
            )),
        }
    }
    for (policy, resources) in missing {
        checks.push(CheckResult::warning(
            "served",
            format!("policy {policy}"),
            format!("this cluster does not serve {}", resources.join(", ")),
            "no action is needed if these CRDs are intentionally not installed",
        ));
    }
    checks
}

/// Whether the schema of a target allows the values that its policies set.
pub fn schema(policies: &PolicySet, target: &Target, definition: &Definition) -> Vec<CheckResult> {
    let name = target.name();
    let defined = match definition {
        Definition::Custom(defined) => defined,
        Definition::Other => {
            let message = "not a custom resource: there is no CustomResourceDefinition to check";
            return vec![CheckResult::ok("schema", name, message)];
        }
        Definition::Unknown(reason) => {
            let message = format!("cannot check which fields are pruned: {reason}");
            let help = "allow this account to get customresourcedefinitions";
            return vec![CheckResult::warning("schema", name, message, help)];
        }
    };
    let mut checks = Vec::new();
    for policy in target.policies.iter().filter_map(|index| policies.get(*index)) {
        for Misfit { message, help, .. } in defined.misfits(policy) {
            let message = format!("{message} (policy {})", policy.name);
            let check = CheckResult::problem("schema", name.clone(), message, help);
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
    }
    if checks.is_empty() {
        checks.push(CheckResult::ok(
            "schema",
            name,
            "the schema declares every field that policies set",
        ));
    }
    checks
}

/// Fields and values that the texts of policies and conventions name, and that no selected object can have.
pub fn texts(policies: &PolicySet, texts: &[Source], defined: &[Defined]) -> Vec<CheckResult> {
    let mistakes = policies.mistakes_in_pointers(texts, defined);
    let checks = mistakes.list().iter().map(|mistake| {
        let (document, line, _) = mistakes.place(mistake);
        let help = mistake.help.clone().unwrap_or_default();
        CheckResult::problem("schema", format!("{document}:{line}"), &mistake.message, help)
    });
    checks.collect()
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use statusgate_core::schema::NEWEST;

    fn complaints(status: &str, backfill: &str) -> Vec<String> {
        let text = format!(
            "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: p}}, spec: \
             {{convention: appcat, resources: [{{apiGroups: [a.io], apiVersions: [v1], resources: [foos]}}], \
             backfill: [{backfill}]}}}}"
        );
        let policies = PolicySet::compile(&[Source { name: "p.yaml".into(), text }]).unwrap();
        let crd = format!(
            r#"{{"spec":{{"versions":[{{"name":"v1","schema":{{"openAPIV3Schema":{{"properties":{{"status":{status}}}}}}}}}]}}}}"#
        );
        let target = Target::example("foos");
        let definition = Definition::read(crd.as_bytes(), "v1", NEWEST);
        let checks = schema(&policies, &target, &definition);
        let problems = checks.into_iter().filter(|check| check.level == Level::Problem);
        problems.map(|check| check.message).collect()
    }

    const WHOLE: &str = r#"{"properties":{"phase":{"type":"string"},
        "lastTransitionTime":{"type":"string","format":"date-time"},
        "billing":{"type":"object","nullable":true}}}"#;

    #[test]
    fn a_schema_that_declares_or_keeps_every_field_is_clean() {
        let backfill = "{path: /status/billing, value: null, nullable: true}";
        assert_eq!(complaints(WHOLE, backfill), [""; 0]);
        assert_eq!(
            complaints(r#"{"x-kubernetes-preserve-unknown-fields":true}"#, backfill),
            [""; 0]
        );
    }

    #[test]
    fn a_pruned_field_is_reported() {
        let schema = WHOLE.replace("\"phase\"", "\"stage\"");
        assert_eq!(
            complaints(&schema, ""),
            ["status.phase is not in the schema: the API server prunes its value (policy p)"]
        );
        assert_eq!(
            complaints(WHOLE, "{path: /status/plan, value: small}"),
            ["status.plan is not in the schema: the API server prunes its value (policy p)"]
        );
    }

    /// The routes of the Gateway API have no `status.conditions`.
    #[test]
    fn a_default_for_the_elements_of_a_list_needs_no_list() {
        let backfill = "{list: /status/conditions, member: message, value: ''}";
        assert_eq!(complaints(WHOLE, backfill), [""; 0]);
        let list =
            r#","conditions":{"type":"array","items":{"properties":{"type":{"type":"string"}}}}}}"#;
        let schema = format!("{}{list}", WHOLE.trim_end().trim_end_matches("}}"));
        assert_eq!(
            complaints(&schema, backfill),
            [
                "status.conditions[0].message is not in the schema: the API server prunes its value (policy p)"
            ]
        );
    }

    #[test]
    fn a_null_that_is_not_allowed_is_reported() {
        let schema = WHOLE.replace("\"nullable\":true", "\"nullable\":false");
        assert_eq!(
            complaints(&schema, "{path: /status/billing, value: null, nullable: true}"),
            [
                "status.billing is not nullable: the API server drops a null from backfill and rejects one from the webhook (policy p)"
            ]
        );
        assert_eq!(
            complaints(&schema, "{path: /status/billing, value: null, nullable: false}"),
            [""; 0]
        );
    }

    #[test]
    fn a_value_that_the_schema_rejects_is_reported() {
        let schema = WHOLE.replace(r#""type":"string"}"#, r#""type":"string","enum":["Ready"]}"#);
        assert_eq!(
            complaints(&schema, ""),
            [
                r#"the API server rejects status.phase: Unsupported value: "Unknown": supported values: "Ready" (policy p)"#
            ]
        );
        assert_eq!(
            complaints(WHOLE, "{path: /status/billing, value: 5}"),
            [
                r#"the API server rejects status.billing: Invalid value: "integer": status.billing in body must be of type object: "integer" (policy p)"#
            ]
        );
    }

    #[test]
    fn a_wrong_status_subresource_is_a_problem() {
        let gap = Gap::WrongSubresource {
            policy: "p".into(),
            resource: "foos.a.io".into(),
            kind: "Foo".into(),
            served: false,
        };
        let checks = gaps(&Targets { gaps: vec![gap], ..Targets::default() });
        assert_eq!(
            checks[0].message,
            "the resource has no status subresource, but policy p has statusSubresource: true"
        );
        assert_eq!(checks[0].level, Level::Problem);
    }
}
