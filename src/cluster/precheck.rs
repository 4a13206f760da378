//! Checks before anything is written: whether the API server would store the values that policies set.

use std::collections::BTreeMap;

use serde_json::Value;

use super::crd::{Definition, Place, Schema};
use super::{Check, Gap, Target, Targets};
use crate::model::Pointer;
use crate::policy::convention::{self, ValueSource};
use crate::policy::{Policy, PolicySet};

/// Resources that policies name but that cannot be judged.
#[must_use]
pub fn gaps(targets: &Targets) -> Vec<Check> {
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
                checks.push(Check::problem(
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
            Gap::Unavailable { api_version, reason } => checks.push(Check::warning(
                "api-group",
                api_version,
                format!("its server does not respond: {reason}"),
                "check its APIService; resources of this group are skipped",
            )),
        }
    }
    for (policy, resources) in missing {
        checks.push(Check::warning(
            "served",
            format!("policy {policy}"),
            format!("this cluster does not serve {}", resources.join(", ")),
            "no action is needed if these CRDs are intentionally not installed",
        ));
    }
    checks
}

/// Whether the schema of a target allows the values that its policies set.
#[must_use]
pub fn schema(policies: &PolicySet, target: &Target, definition: &Definition) -> Vec<Check> {
    let name = target.name();
    let schema = match definition {
        Definition::Custom { schema, .. } => schema,
        Definition::Other => {
            let message = "not a custom resource: there is no CustomResourceDefinition to check";
            return vec![Check::ok("schema", name, message)];
        }
        Definition::Unknown(reason) => {
            let message = format!("cannot check which fields are pruned: {reason}");
            let help = "allow this account to get customresourcedefinitions";
            return vec![Check::warning("schema", name, message, help)];
        }
    };
    let mut checks = Vec::new();
    for policy in
        target.policies.iter().filter_map(|index| policies.policies().get(usize::from(*index)))
    {
        for (pointer, setting) in settings(policy) {
            let found = mismatch(schema, &pointer, &setting);
            let Some((message, help)) = found else { continue };
            let message = format!("{message} (policy {})", policy.name);
            let check = Check::problem("schema", name.clone(), message, help);
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
    }
    if checks.is_empty() {
        checks.push(Check::ok("schema", name, "the schema declares every field that policies set"));
    }
    checks
}

/// A value that a policy sets.
enum Setting<'p> {
    Null,
    Value(&'p Value),
    /// One of these phases.
    Names(Vec<&'p str>),
    /// A time.
    Time,
    /// A value that depends on the object.
    Anything,
}

/// The values that a policy may set, with their fields. List elements have the index 0: one schema
/// applies to all.
fn settings(policy: &Policy) -> Vec<(Pointer, Setting<'_>)> {
    let mut settings = Vec::new();
    if let Some(phase) = &policy.convention.phase {
        let imposed = phase.phases.iter().filter(|phase| phase.imposed.is_some());
        let imposed = imposed.map(|phase| phase.name.as_str());
        let names: Vec<&str> = phase.default.as_deref().into_iter().chain(imposed).collect();
        if !names.is_empty() {
            settings.push((phase.path.clone(), Setting::Names(names)));
            if let Some(time) = phase.transition_time.as_ref().filter(|time| time.in_step) {
                settings.push((time.path.clone(), Setting::Time));
            }
        }
    }
    for default in &policy.backfill {
        match &default.filling {
            convention::Filling::Absent(_)
            | convention::Filling::Steady { .. }
            | convention::Filling::AbsentMember { .. } => {}
            convention::Filling::Field(path, sources) => {
                settings.extend(each(path, sources));
            }
            convention::Filling::Member { list, member, sources } => {
                let path = in_list(list, member);
                settings.extend(path.iter().flat_map(|path| each(path, sources)));
            }
            convention::Filling::Element { list, members, .. } => {
                for (member, sources) in members {
                    let path = in_list(list, member);
                    settings.extend(path.iter().flat_map(|path| each(path, sources)));
                }
            }
        }
    }
    settings
}

fn each<'p>(path: &Pointer, sources: &'p [ValueSource]) -> Vec<(Pointer, Setting<'p>)> {
    let setting = |source: &'p ValueSource| match source {
        ValueSource::Value(Value::Null) => Setting::Null,
        ValueSource::Value(value) => Setting::Value(value),
        ValueSource::CreationTimestamp | ValueSource::DeletionTimestamp => Setting::Time,
        _ => Setting::Anything,
    };
    sources.iter().map(|source| (path.clone(), setting(source))).collect()
}

fn in_list(list: &Pointer, member: &str) -> Option<Pointer> {
    format!("{list}/0/{}", member.replace('~', "~0").replace('/', "~1")).parse().ok()
}

/// The error of a field, and the fix.
fn mismatch(schema: &Schema, pointer: &Pointer, setting: &Setting<'_>) -> Option<(String, String)> {
    let field = pointer.field();
    let node = match schema.at(pointer.tokens()) {
        Place::Free => return None,
        Place::Pruned => {
            let message = format!("{field} is not in the schema: the API server prunes its value");
            return Some((message, format!("add {field} to the CustomResourceDefinition first")));
        }
        Place::Declared(node) => node,
    };
    let nullable = node.get("nullable") == Some(&Value::Bool(true));
    let misfit = |value: &Value| misfit(node, nullable, value);
    match setting {
        Setting::Null if !nullable => Some((
            format!(
                "{field} is not nullable: the API server drops a null from backfill and rejects one from the webhook"
            ),
            format!("set nullable: true on {field} in the schema, or nullable: false in the policy"),
        )),
        Setting::Null | Setting::Anything => None,
        Setting::Value(value) => misfit(value),
        Setting::Names(names) => names.iter().find_map(|name| misfit(&Value::from(*name))),
        Setting::Time => misfit(&Value::from("2000-01-01T00:00:00Z")),
    }
    .map(|(message, help)| {
        if message.starts_with(field) {
            (message, help)
        } else {
            (format!("{field} {message}"), help)
        }
    })
}

/// Why the type or the enum of a field rejects a value. Patterns, limits and CEL are not checked.
fn misfit(node: &Value, nullable: bool, value: &Value) -> Option<(String, String)> {
    if value.is_null() && nullable {
        return None;
    }
    let kind = node.get("type").and_then(Value::as_str);
    let fits = match kind {
        None => true,
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(_) => true,
    };
    let open = node.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    if !fits && !open {
        let kind = kind.unwrap_or_default();
        let message = format!("has type {kind}: the API server rejects {value}");
        return Some((message, "use a value of this type in the policy".to_owned()));
    }
    let values = node.get("enum").and_then(Value::as_array)?;
    if values.contains(value) {
        return None;
    }
    let message = format!("has an enum without {value}: the API server rejects this value");
    Some((message, format!("add {value} to the enum first")))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use crate::policy::Source;

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
        let target = Target {
            group: "a.io".into(),
            version: "v1".into(),
            plural: "foos".into(),
            kind: "Foo".into(),
            namespaced: true,
            status_subresource: true,
            policies: vec![0],
        };
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
                r#"status.phase has an enum without "Unknown": the API server rejects this value (policy p)"#
            ]
        );
        assert_eq!(
            complaints(WHOLE, "{path: /status/billing, value: 5}"),
            ["status.billing has type object: the API server rejects 5 (policy p)"]
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
