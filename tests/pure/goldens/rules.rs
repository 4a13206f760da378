//! What the documents of the built-in conventions say about their rules.

use crate::support::{built_in, following};

/// The name of the convention alone is not a source.
#[test]
fn each_rule_names_its_source() {
    for name in built_in().conventions().keys() {
        let policies = following(name, "");
        let policy = &policies.policies()[0];
        for (id, rule) in policy.convention.declared.iter() {
            let source = &rule.source;
            let whole = id == policy.convention.status_rule;
            assert!(!source.is_empty(), "{id}");
            assert_eq!(*source == policy.convention.source, whole, "{id}: {source}");
        }
    }
    for (id, source) in [
        ("crossplane/condition-reason-form", "XP-S2"),
        ("crossplane/condition-status", "ValidateCondition"),
        ("crossplane/generation-ahead", "B-T6, B-T7"),
        ("crossplane/condition-reason-status", "Condition of apis/core/v2"),
        ("appcat/condition-reason-form", "XP-S2"),
        ("appcat/phase-value", "ADR 0051, phase table; AC-S4; AC-T1"),
        ("appcat/phase-reason", "AC-S5"),
        ("appcat/phase-ready", "AC-X3, AC-X4, AC-X5"),
        ("kstatus/condition-duplicate", "kstatus §1; KS-S3"),
        ("kstatus/observed-generation", "KS-S2"),
        ("capi-v1beta2/condition-status", "ValidateCondition; C1-S1"),
        ("stackable/condition-order", "ADR 027; operator-rs; ST-S1, ST-S4"),
    ] {
        let policies = following(id.split_once('/').unwrap().0, "");
        let declared = policies.policies()[0].rule(id).unwrap();
        assert_eq!(declared.source, source, "{id}");
    }
}

/// Objects of Cluster API have the lists of both versions.
#[test]
fn both_versions_of_cluster_api_have_the_same_rules_for_the_same_list() {
    let policies = built_in();
    let rules = |name: &str, path: &str| {
        let lists = &policies.conventions()[name].conditions;
        let list = lists.iter().find(|list| list.path.to_string() == path).unwrap();
        let mut list = (**list).clone();
        list.path = "/status/conditions".parse().unwrap();
        list.source.clear();
        format!("{list:#?}").replace(&format!("\"{name}/"), "\"")
    };
    for (one, path, other) in [
        ("capi-v1beta1", "/status/v1beta2/conditions", "capi-v1beta2"),
        ("capi-v1beta2", "/status/deprecated/v1beta1/conditions", "capi-v1beta1"),
    ] {
        // `assert_eq` would print a thousand lines of both.
        assert!(rules(one, path) == rules(other, "/status/conditions"), "{path} of {one}");
    }
}
