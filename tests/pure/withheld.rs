//! What the schema of a resource rejects is not set, and what is valid together is set together.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use statusgate_core::engine::{Verdict, decide};
use statusgate_core::model::{Object, Resource, Subject, Webhook};
use statusgate_core::policy::{Defined, PolicySet, Source};
use statusgate_core::schema::NEWEST;

/// The status after the mutating webhook, and the fields that were withheld.
fn mutated(
    properties: &Value,
    required: &[&str],
    backfill: &str,
    object: &Value,
) -> (Value, Vec<String>) {
    let definition = json!({"spec": {"group": "a.io", "names": {"plural": "things"}, "versions": [{"name": "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status":
            {"type": "object", "properties": properties, "required": required}}}}}]}});
    let text = format!(
        "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: p}}, spec: {{convention: kstatus, \
         resources: [{{apiGroups: [a.io], apiVersions: [v1], resources: [things]}}], backfill: [{backfill}]}}}}"
    );
    let policies = PolicySet::compile(&[Source::new("p.yaml", text)]).unwrap();
    let whole: Vec<Defined> = Defined::served(&definition, NEWEST);
    let narrow = whole.iter().map(|version| version.around(&version.fields(&policies)));
    let of = |versions: Vec<Defined>| {
        let policies = policies.clone().with_defined(Arc::new(versions.into_iter().collect()));
        let text = object.to_string();
        let subject = Subject {
            resource: Resource::new("a.io", "v1", "things"),
            subresource: "status".into(),
            object: Object::parse(&text).unwrap(),
            ..Subject::default()
        };
        let Verdict { patch, refused, .. } =
            decide(&policies, &subject, Webhook::Mutate, Timestamp::UNIX_EPOCH);
        let mut result = object.clone();
        json_patch::patch(&mut result, &patch.unwrap_or_default()).unwrap();
        let refused = refused.into_iter().map(|(_, cause)| cause.field).collect::<Vec<_>>();
        (result["status"].clone(), refused)
    };
    let found = of(narrow.collect());
    assert_eq!(found, of(whole), "the schema around the fields decides the same");
    found
}

#[test]
fn defaults_that_only_together_make_a_status_valid_are_all_set() {
    let text = json!({"type": "string"});
    let billing = json!({"type": "object", "required": ["plan", "tier"], "properties": {"plan": text, "tier": text}});
    let properties = json!({"id": text, "owner": text, "billing": billing});
    let backfill = "{path: /status/id, value: a}, {path: /status/owner, value: b}, \
                    {path: /status/billing/plan, value: c}, {path: /status/billing/tier, value: d}";
    let whole = json!({"id": "a", "owner": "b", "billing": {"plan": "c", "tier": "d"}});
    for status in [json!({"status": {}}), json!({})] {
        let found = mutated(&properties, &["id", "owner"], backfill, &status);
        assert_eq!(found, (whole.clone(), vec![]), "{status}");
    }
}

#[test]
fn what_is_invalid_is_left_out_and_the_rest_is_set() {
    let properties = json!({"id": {"type": "string", "maxLength": 1}, "owner": {"type": "string"},
        "billing": {"type": "object", "required": ["tier"], "properties": {"plan": {"type": "string"}}}});
    let backfill = "{path: /status/id, value: long}, {path: /status/owner, value: b}, {path: /status/billing/plan, value: c}";
    let (status, refused) = mutated(&properties, &[], backfill, &json!({"status": {}}));
    assert_eq!(status, json!({"owner": "b"}));
    assert_eq!(refused, ["status.id", "status.billing.tier"]);
    let (status, refused) =
        mutated(&properties, &["tier"], backfill, &json!({"status": {"code": 1}}));
    assert_eq!(
        (status, refused.len()),
        (json!({"code": 1}), 1),
        "nothing in an invalid status is touched"
    );
}
