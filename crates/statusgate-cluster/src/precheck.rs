//! Checks before anything is written: whether the API server would store the values that policies set.

use std::collections::BTreeMap;

use json_patch::jsonptr::Token;
use serde_json::Value;

use super::crd::Definition;
use super::{CheckResult, Gap, Target, Targets};
use statusgate_core::documents::{CopySource, Origin};
use statusgate_core::model::Pointer;
use statusgate_core::policy::convention::{Filling, ValueSource};
use statusgate_core::policy::{Policy, PolicySet};
use statusgate_core::schema::{FieldSchema, Schema, Verdict};

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
    let schema = match definition {
        Definition::Custom(schema) => schema,
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
        for (pointer, values) in settings(policy, schema) {
            let found = mismatch(schema, &pointer, &values);
            let Some((message, help)) = found else { continue };
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

/// The fields that a policy sets, each with the values to check: none if they depend on the object.
/// List elements have the index 0: one schema applies to all.
fn settings(policy: &Policy, schema: &Schema) -> Vec<(Pointer, Vec<Value>)> {
    let mut settings = Vec::new();
    if let Some(phase) = &policy.convention.phase {
        let imposed = phase.phases.iter().filter(|phase| phase.imposed.is_some());
        let imposed = imposed.map(|phase| phase.name.as_str());
        let names = phase.default.as_deref().into_iter().chain(imposed);
        let names: Vec<Value> = names.map(Value::from).collect();
        if !names.is_empty() {
            settings.push((phase.path.clone(), names));
            if let Some(time) = phase.transition_time.as_ref().filter(|time| time.in_step()) {
                settings.push(((*time.path).clone(), vec![TIME.into()]));
            }
        }
    }
    for default in &policy.backfill {
        match &default.filling {
            Filling::Absent(_)
            | Filling::Steady { .. }
            | Filling::SteadyStatus { .. }
            | Filling::AbsentMember { .. } => {}
            Filling::Field(path, sources) => settings.extend(each(path, sources)),
            // A kind without the list has no elements, so nothing is set.
            Filling::Member { list, .. }
                if matches!(schema.at(list.tokens()), FieldSchema::Pruned) => {}
            Filling::Member { list, member, sources } => {
                settings.extend(in_list(list, member, sources));
            }
            Filling::Element { list, members, .. } => {
                for (member, sources) in members {
                    settings.extend(in_list(list, member, sources));
                }
            }
        }
    }
    settings
}

fn each(path: &Pointer, sources: &[ValueSource]) -> Vec<(Pointer, Vec<Value>)> {
    let values = sources.iter().map(|source| match source {
        ValueSource::Value(value) => vec![value.clone()],
        ValueSource::Copy(CopySource::Origin(
            Origin::CreationTimestamp | Origin::DeletionTimestamp,
        )) => vec![TIME.into()],
        ValueSource::Copy(_) => Vec::new(),
    });
    values.map(|values| (path.clone(), values)).collect()
}

fn in_list(list: &Pointer, member: &str, sources: &[ValueSource]) -> Vec<(Pointer, Vec<Value>)> {
    let path = format!("{list}/0/{}", Token::new(member).encoded()).parse::<Pointer>();
    path.map(|path| each(&path, sources)).unwrap_or_default()
}

/// The error of a field with its first invalid value, and the fix.
fn mismatch(schema: &Schema, pointer: &Pointer, values: &[Value]) -> Option<(String, String)> {
    let field = pointer.field();
    if let FieldSchema::Pruned = schema.at(pointer.tokens()) {
        return Some((
            format!("{field} is not in the schema: the API server prunes its value"),
            format!("add {field} to the CustomResourceDefinition first"),
        ));
    }
    values.iter().find_map(|value| match schema.accepts(pointer, value) {
        Verdict::Rejected(_) if value.is_null() => Some((
            format!(
                "{field} is not nullable: the API server drops a null from backfill and rejects one \
                 from the webhook"
            ),
            format!(
                "set nullable: true on {field} in the schema, or nullable: false in the policy"
            ),
        )),
        Verdict::Rejected(causes) => causes.first().map(|cause| {
            let message = format!("the API server rejects {}: {}", cause.field, cause.message);
            (message, "change the schema first, or use another value in the policy".to_owned())
        }),
        Verdict::Accepted | Verdict::NotProven(_) => None,
    })
}

/// A time in the format of every time that a policy sets.
const TIME: &str = "2000-01-01T00:00:00Z";

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use statusgate_core::policy::Source;

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
        let definition = Definition::read(crd.as_bytes(), "v1");
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
