//! The fields that documents name, compared with the schemas of the objects that they are about.

use serde_json::{Value, json};
use statusgate_core::policy::{Defined, PolicySet, Source};
use statusgate_core::schema::{NEWEST, Schema};

const CONVENTION: &str = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: test}\nspec: \
     {conditions: [{path: /status/conditions}], phase: {path: /status/phase, values: [{phase: Up}]}}\n";

/// Two versions of `things.a.io`; only v2 has `url` and `instances`.
fn defined() -> Vec<Defined> {
    let version = |version: &str, more: &[(&str, Value)]| {
        let text = || json!({"type": "string"});
        let condition = json!({"type": "object", "properties": {"type": text()}});
        let mut status =
            json!({"phase": text(), "conditions": {"type": "array", "items": condition}});
        for (name, schema) in more {
            status[name] = schema.clone();
        }
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
            "status": {"type": "object", "properties": status},
        }});
        Defined {
            name: format!("things.a.io {version}"),
            group: "a.io".to_owned(),
            version: version.to_owned(),
            plural: "things".to_owned(),
            schema: Schema::compile(&schema, NEWEST),
        }
    };
    let instance = json!({"type": "object", "properties": {"role": {"type": "string"}}});
    let instances = json!({"type": "object", "additionalProperties": instance});
    vec![
        version("v1", &[]),
        version("v2", &[("url", json!({"type": "string"})), ("instances", instances)]),
    ]
}

/// The mistakes in a convention and a policy for some versions.
fn mistakes(convention: &str, versions: &str, more: &str) -> String {
    let policy = format!(
        "---\napiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec:\n  convention: test\n  \
         resources: [{{apiGroups: [a.io], apiVersions: [{versions}], resources: [things]}}]\n"
    );
    let given = [Source::new("p.yaml", format!("{convention}{policy}{more}"))];
    let policies = PolicySet::compile(&given).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    policies.mistakes_in_pointers(&given, &defined()).to_string()
}

#[test]
fn fields_that_no_selected_definition_has_are_reported_with_a_similar_name() {
    assert_eq!(mistakes(CONVENTION, "v1", ""), "");
    let expression = |text: &str| {
        format!("  rules: [{{name: r, message: m, action: Warn, expression: \"{text}\"}}]\n")
    };
    for (more, found) in [
        (
            "  preserve: [/status/phaze]\n",
            "error: /status/phaze is not in the schema of things.a.io v1\n",
        ),
        ("  preserve: [/status/phaze]\n", "help: did you mean /status/phase?"),
        (
            "  fields: [{path: /status/message, type: string}]\n",
            "help: /status has conditions, phase",
        ),
        (
            "  owners: [{path: /status/phase/at, users: [u]}]\n",
            "help: /status/phase has no members",
        ),
        (
            "  backfill: [{path: /status/message, value: a, when: {set: /spec/replica}}]\n",
            "did you mean /spec/replicas?",
        ),
        (&expression("!has(self.status.phaze)"), "did you mean /status/phase?"),
        (&expression("oldSelf.spec.replica == 1"), "did you mean /spec/replicas?"),
    ] {
        let said = mistakes(CONVENTION, "v1", more);
        assert!(said.contains(found), "{more}: {said}");
    }
    let other = CONVENTION.replace("path: /status/phase", "path: /status/stage");
    let said = mistakes(&other, "v1", "");
    assert!(said.contains("/status/stage is not in the schema of things.a.io v1"), "{said}");
}

#[test]
fn a_field_of_one_of_the_selected_versions_is_no_mistake() {
    let url = "  preserve: [/status/url]\n";
    assert!(mistakes(CONVENTION, "v1", url).contains("/status/url is not"));
    assert_eq!(mistakes(CONVENTION, "'*'", url), "");
    let said = mistakes(CONVENTION, "'*'", "  preserve: [/status/uri]\n");
    assert!(said.contains("is not in the 2 schemas of the selected versions"), "{said}");
}

#[test]
fn lists_inside_lists_and_maps_are_compared_too() {
    for (path, version, is_known) in [
        ("/status/instances/*", "v2", true),
        ("/status/instances/*", "v1", false),
        ("/status/instances/*/roles", "v2", false),
        ("/status/conditions/*/roles", "v2", false),
    ] {
        let list = format!("conditions: [{{path: {path}}}, ");
        let said = mistakes(&CONVENTION.replacen("conditions: [", &list, 1), version, "");
        assert_eq!(said.is_empty(), is_known, "{path} {version}: {said}");
        assert!(is_known || said.contains(&format!("{path} is not in")), "{said}");
    }
}

#[test]
fn a_convention_without_policies_is_about_all_definitions_and_a_policy_for_others_about_none() {
    let other = CONVENTION.replace("path: /status/phase", "path: /status/stage");
    let given = [Source::new("c.yaml", other.clone())];
    let policies = PolicySet::compile(&given).unwrap();
    let said = policies.mistakes_in_pointers(&given, &defined()).to_string();
    assert!(said.contains("/status/stage is not in the 2 schemas"), "{said}");
    assert_eq!(mistakes(&other, "v3", "  preserve: [/status/phaze]\n"), "");
}

/// Otherwise the API server prunes the member, and every condition violates the rule.
#[test]
fn a_member_that_a_convention_requires_must_be_in_the_schema() {
    let heir = |spec: &str| CONVENTION.split("spec:").next().unwrap().to_owned() + "spec: " + spec;
    let required = ["status", "reason", "lastTransitionTime"];
    let said = mistakes(&heir("{extends: metav1}\n"), "v1", "");
    for name in required {
        let message = format!("status.conditions[0].{name} is not in the schema of things.a.io v1");
        assert!(said.contains(&message), "{said}");
    }
    assert!(said.contains("extends: test and without: [condition-last-transition-time]"), "{said}");
    let without = "{extends: metav1, without: [condition-status, condition-reason, condition-last-transition-time]}\n";
    assert_eq!(mistakes(&heir(without), "v1", ""), "");
    let nulls = "{extends: metav1, conditions: [{path: /status/conditions, members: {status: null, reason: null, lastTransitionTime: null}}]}\n";
    assert_eq!(mistakes(&heir(nulls), "v1", ""), "");
    assert_eq!(mistakes(&heir("{extends: metav1}\n"), "v3", ""), "", "no schema is known");
}
