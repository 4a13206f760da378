//! The values of a map are judged as the elements of a list whose key is the key of the map.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use statusgate_core::engine::Action;
use statusgate_core::policy::PolicySet;

use crate::support::{EARLIER, NOW, T0, Write, under};

static BOTH: LazyLock<[PolicySet; 2]> = LazyLock::new(|| {
    let list = |path: &str| {
        under(
            &format!(
                "generation: {{}}, conditions: [{{{path}, maxItems: 3, \
                   members: {{a: {{type: string, enum: [x, y]}}, b: {{required: true, action: Warn}}}}, \
                   transitionTime: {{member: since, mustMoveOn: [a], mayMoveOn: [a]}}, \
                   each: [{{id: turned, when: {{all: [{{member: a, is: x}}, {{oldMember: a, is: y}}]}}, \
                            action: Deny, member: a, message: m}}]}}]"
            ),
            "",
        )
    };
    [list("path: /status/all, key: [name]"), list("path: '/status/all/*'")]
});

type Values = BTreeMap<String, Value>;

fn values() -> impl Strategy<Value = Values> {
    let value = (
        select(vec![json!(null), json!("x"), json!("y"), json!("z"), json!(5)]),
        select(vec![json!(null), json!(1)]),
        select(vec![T0, T0, EARLIER, NOW, "yesterday"]),
        select(vec![1, 9]),
    );
    let value = value.prop_map(|(a, b, since, generation)| {
        json!({"a": a, "b": b, "since": since, "observedGeneration": generation})
    });
    let key = select(vec!["a", "b/c", "d.e", "~", "*", "0"]).prop_map(str::to_owned);
    prop::collection::btree_map(key, value, 0..6)
}

/// The values as a list. The order differs from that of the map.
fn list(values: &Values) -> Value {
    let item = |(name, value): (&String, &Value)| {
        let mut item = value.clone();
        item["name"] = name.as_str().into();
        item
    };
    values.iter().rev().map(item).collect()
}

/// Rule, field, message and action of each finding.
fn found(policies: &PolicySet, old: &Value, new: &Value) -> Vec<(String, String, String, Action)> {
    let write = Write::of(json!({"all": old}), json!({"all": new, "other": 1}));
    let findings = write.validate(policies).findings.into_iter();
    findings.map(|f| (f.rule, f.field, f.message, f.action)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_values_of_a_map_are_judged_as_the_elements_of_a_list(old in values(), new in values()) {
        let [of_list, of_map] = &*BOTH;
        let mut expected = found(of_list, &list(&old), &list(&new));
        for (_, field, ..) in &mut expected {
            for (index, name) in new.keys().rev().enumerate() {
                let element = format!("status.all[{index}]");
                if let Some(member) = field.strip_prefix(&element) {
                    *field = format!("status.all[{name}]{member}");
                    break;
                }
            }
        }
        let mut found = found(of_map, &json!(old), &json!(new));
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);
    }
}
