//! One test for each kind of fact about the API server. The recorded answers are compared in
//! `tests/pure/schema_oracle.rs`.

use super::*;
use serde_json::json;

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

/// The fate of a value of `/status/a`.
fn fate(schema: &Value, value: &Value) -> Verdict {
    let status = json!({"type": "object", "properties": {"a": schema}});
    Schema::of_status(&status, NEWEST).accepts(&pointer("/status/a"), value)
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Rejected(_) => "rejected",
        Verdict::NotProven(_) => "not proven",
    }
}

fn first(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Accepted => "",
        Verdict::Rejected(causes) | Verdict::NotProven(causes) => &causes[0].message,
    }
}

fn judge(schema: &Schema, old: Option<&Value>, new: &Value, endpoint: Endpoint) -> Outcome {
    schema.judge(&Write { object: new, old, sender: Sender::Client, endpoint })
}

#[test]
fn declared_and_preserved_fields_are_stored() {
    let schema = Schema::of_status(
        &json!({"type": "object", "properties": {
            "phase": {"type": "string"},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"strict": {"type": "object", "properties": {}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "additionalProperties": true},
            "object": {"type": "object", "x-kubernetes-embedded-resource": true},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}}}}),
        NEWEST,
    );
    for (path, expected) in [
        ("status/phase", "declared"),
        ("status/billing", "pruned"),
        ("status/any/thing", "free"),
        ("status/any/strict/x", "pruned"),
        ("status/labels/a", "declared"),
        ("status/labels/a/b", "pruned"),
        ("status/labels/*", "declared"),
        ("status/labels/*/b", "pruned"),
        ("status/open/a", "declared"),
        ("status/open/a/b", "pruned"),
        ("status/object/metadata/name", "free"),
        ("status/object/spec", "pruned"),
        ("status/list/0/a", "declared"),
        ("status/list/*/a", "declared"),
        ("status/list/-1/b", "pruned"),
        ("status/list/0/b", "pruned"),
        ("status/list/a", "pruned"),
        ("metadata/labels", "free"),
    ] {
        let tokens: Vec<String> = path.split('/').map(str::to_owned).collect();
        let found = match schema.at(&tokens) {
            FieldSchema::Declared(_) => "declared",
            FieldSchema::Free => "free",
            FieldSchema::Pruned => "pruned",
        };
        assert_eq!(found, expected, "{path}");
        assert_eq!(schema.pruned(&tokens).is_some(), expected == "pruned", "{path}");
    }
    let (at, names) = schema.pruned(pointer("/status/list/0/b").tokens()).unwrap();
    assert_eq!((at, names), (3, vec!["a"]));
}

#[test]
fn a_node_reports_what_it_declares() {
    let schema = Schema::of_status(
        &json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "required": ["type"], "properties": {
                    "type": {"type": "string", "enum": ["Ready"], "default": "Ready"},
                    "at": {"type": "string", "format": "date-time", "nullable": true},
                    "port": {"x-kubernetes-int-or-string": true, "format": "int32"}}}}),
        NEWEST,
    );
    let FieldSchema::Declared(list) = schema.at(pointer("/status").tokens()) else { panic!() };
    let item = list.items.as_deref().unwrap();
    let member = |name: &str| item.property(name).unwrap();
    assert_eq!(list.list, ListType::Map(Box::from([Box::from("type")])));
    assert_eq!((list.types, item.types), (&["array"][..], &["object"][..]));
    assert_eq!(item.required, Box::from([Box::from("type")]));
    assert_eq!(member("type").members(), [json!("Ready")]);
    assert_eq!(member("type").default.as_deref(), Some(&json!("Ready")));
    assert_eq!((member("at").format(), member("at").is_nullable), (Some("date-time"), true));
    assert_eq!(
        (member("port").format(), member("port").types == ["integer", "string"]),
        (None, true)
    );
}

#[test]
fn each_keyword_has_the_words_of_the_api_server() {
    for (schema, value, message) in [
        (
            json!({"type": "string", "enum": ["Failed", "Ready"]}),
            json!("Unknown"),
            r#"Unsupported value: "Unknown": supported values: "Failed", "Ready""#,
        ),
        (
            json!({"type": "object"}),
            json!(5),
            r#"Invalid value: "integer": status.a in body must be of type object: "integer""#,
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("now"),
            r#"Invalid value: "now": status.a in body must be of type date-time: "now""#,
        ),
        (
            json!({"type": "string"}),
            json!(null),
            r#"Invalid value: "null": status.a in body must be of type string: "null""#,
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("abc"),
            "Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "minLength": 3}),
            json!("éé"),
            r#"Invalid value: "éé": status.a in body should be at least 3 chars long"#,
        ),
        (
            json!({"type": "string", "pattern": "^[a-z]+$"}),
            json!("B"),
            r#"Invalid value: "B": status.a in body should match '^[a-z]+$'"#,
        ),
        (
            json!({"type": "integer", "minimum": 5}),
            json!(1),
            "Invalid value: 1: status.a in body should be greater than or equal to 5",
        ),
        (
            json!({"type": "number", "maximum": 2.5, "exclusiveMaximum": true}),
            json!(2.5),
            "Invalid value: 2.5: status.a in body should be less than 2.5",
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(7),
            "Invalid value: 7: status.a in body should be a multiple of 5",
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            r#"Invalid value: "": Checked value must be of type integer with format int32 in status.a"#,
        ),
        (
            json!({"type": "array", "maxItems": 1}),
            json!([1, 2]),
            "Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "array", "minItems": 1}),
            json!([]),
            "Invalid value: 0: status.a in body should have at least 1 items",
        ),
        (
            json!({"type": "object", "maxProperties": 0}),
            json!({"a": 1}),
            "Too many: 1: must have at most 0 items",
        ),
        (json!({"type": "object", "required": ["b"]}), json!({}), "Required value"),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set"}),
            json!(["a", "a"]),
            r#"Duplicate value: "a""#,
        ),
        (
            json!({"not": {"enum": [1]}}),
            json!(1),
            r#"Invalid value: "": "status.a" must not validate the schema (not)"#,
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != 'B'"}]}),
            json!("B"),
            r#"Invalid value: "B": failed rule: self != 'B'"#,
        ),
    ] {
        let verdict = fate(&schema, &value);
        assert_eq!((word(&verdict), first(&verdict)), ("rejected", message), "{schema}");
    }
}

#[test]
fn numbers_follow_the_types_of_go() {
    for (schema, value, expected) in [
        // A bound of an int-or-string is truncated; that of an integer is an error of its own.
        (json!({"x-kubernetes-int-or-string": true, "minimum": 1.5}), json!(1), "accepted"),
        (json!({"type": "integer", "minimum": 1.5}), json!(5), "rejected"),
        (json!({"type": "integer", "enum": [1]}), json!(1.9), "rejected"),
        (json!({"enum": [1]}), json!(1.9), "accepted"),
        (json!({"type": "integer"}), json!(3.000_000_000_1), "rejected"),
        (json!({"type": "integer"}), json!(3.0), "accepted"),
        (json!({"type": "number"}), json!(3), "accepted"),
        (json!({"type": "string", "nullable": true, "enum": ["A"]}), json!(null), "rejected"),
        (json!({"type": "number", "maximum": 1e30}), json!(1), "not proven"),
        (json!({"type": "number", "format": "float"}), json!(1e39), "rejected"),
        (json!({"type": "number", "format": "double"}), json!(1e39), "accepted"),
    ] {
        assert_eq!(word(&fate(&schema, &value)), expected, "{schema} {value}");
    }
}

#[test]
fn junctors_have_three_values() {
    let open = json!({"pattern": "\\p{Greek}"});
    let (yes, no) = (json!({}), json!({"enum": [5]}));
    for (junctor, members, expected) in [
        ("allOf", json!([yes, open]), "not proven"),
        ("allOf", json!([open, no]), "rejected"),
        ("anyOf", json!([open, yes]), "accepted"),
        ("anyOf", json!([open, no]), "not proven"),
        ("oneOf", json!([yes, yes, open]), "rejected"),
        ("oneOf", json!([yes, open]), "not proven"),
        ("oneOf", json!([yes, no]), "accepted"),
        ("not", open, "not proven"),
        ("not", no, "accepted"),
    ] {
        let schema = json!({"type": "string", junctor: members});
        assert_eq!(word(&fate(&schema, &json!("x"))), expected, "{schema}");
    }
}

/// The recorded answers have more.
#[test]
fn formats_are_those_of_strfmt() {
    for (format, text, expected) in [
        ("date-time", "2024-01-01T00:00:00Z", "accepted"),
        ("datetime", "2024-01-01t00:00:00+99:99", "accepted"),
        ("date-time", "2024-01-01T24:00:00Z", "rejected"),
        ("date", "2023-02-29", "rejected"),
        ("date", "20240101", "rejected"),
        ("duration", "1h30m", "accepted"),
        ("duration", "2 weeks", "accepted"),
        ("duration", "PT5S", "accepted"),
        ("duration", "5 parsecs", "rejected"),
        ("duration", "999999999999999h", "not proven"),
        ("uri", "https://a.b:80/c?d", "accepted"),
        ("uri", "a/b", "rejected"),
        ("uri", "http://a#b", "rejected"),
        ("uri", "http://u@h", "not proven"),
        ("uri", "/%zz", "rejected"),
        ("email", "a@b.c", "accepted"),
        ("email", "a", "rejected"),
        ("email", "A <a@b.c>", "not proven"),
        ("hostname", "a-b.example.com", "accepted"),
        ("hostname", "a_b", "rejected"),
        ("hostname", "é.com", "accepted"),
        ("ipv4", "010.0.0.1", "accepted"),
        ("ipv4", "::ffff:1.2.3.4", "accepted"),
        ("ipv4", "::1", "rejected"),
        ("ipv6", "::1", "accepted"),
        ("ipv6", "1.2.3.4", "rejected"),
        ("cidr", "10.0.0.0/8", "accepted"),
        ("cidr", "10.0.0.0/33", "rejected"),
        ("cidr", "::/128", "accepted"),
        ("mac", "01:23:45:67:89:ab", "accepted"),
        ("mac", "0123.4567.89ab", "accepted"),
        ("mac", "01:23:45:67:89", "rejected"),
        ("uuid", "123e4567e89b12d3a456426614174000", "accepted"),
        ("uuid4", "123e4567-e89b-12d3-a456-426614174000", "rejected"),
        ("uuid3", "123e4567-e89b-32d3-a456-426614174000", "accepted"),
        ("uuid5", "123E4567-E89B-52D3-A456-426614174000", "accepted"),
        ("isbn", "0-321-75104-3", "accepted"),
        ("isbn10", "0321751044", "rejected"),
        ("isbn13", "978-0321751041", "accepted"),
        ("creditcard", "4111-1111-1111-1111", "accepted"),
        ("creditcard", "4111-1111-1111-1112", "rejected"),
        ("ssn", "111-22-3333", "accepted"),
        ("hexcolor", "#FFF", "accepted"),
        ("hexcolor", "#FFFF", "rejected"),
        ("rgbcolor", "rgb(255, 0,1 )", "accepted"),
        ("rgbcolor", "rgb(256,0,1)", "rejected"),
        ("byte", "YWI=", "accepted"),
        ("byte", "YWI", "rejected"),
        ("byte", "", "rejected"),
        ("bsonobjectid", "0123456789abcdef01234567", "accepted"),
        ("password", "", "accepted"),
        ("k8s-short-name", "a-b", "accepted"),
        ("k8s-short-name", "a.b", "rejected"),
        ("k8s-long-name", "a.b", "accepted"),
        ("k8s-long-name", "a-.b", "rejected"),
        ("int32", "x", "accepted"),
        ("quantity", "x", "accepted"),
    ] {
        let schema = json!({"type": "string", "format": format});
        assert_eq!(word(&fate(&schema, &json!(text))), expected, "{format} {text}");
    }
}

fn defaulted() -> Schema {
    Schema::of_status(
        &json!({"type": "object", "properties": {
            "phase": {"type": "string", "default": "Unknown"},
            "n": {"type": "string"},
            "m": {"type": "object", "maxProperties": 1, "properties": {"a": {"type": "string"}}}}}),
        NEWEST,
    )
}

#[test]
fn the_server_prunes_before_it_validates_a_client_but_after_a_webhook() {
    let schema = defaulted();
    let new = json!({"status": {"n": null, "m": {"a": "x", "b": 1}, "z": 1}});
    let client = judge(&schema, Some(&json!({})), &new, Endpoint::Status);
    assert_eq!(client.verdict, Verdict::Accepted);
    assert_eq!(client.stored, json!({"status": {"m": {"a": "x"}, "phase": "Unknown"}}));
    let write = Write {
        object: &new,
        old: Some(&json!({})),
        sender: Sender::Webhook,
        endpoint: Endpoint::Status,
    };
    let Verdict::Rejected(causes) = schema.judge(&write).verdict else { panic!() };
    assert_eq!(
        causes.iter().map(|cause| &*cause.field).collect::<Vec<_>>(),
        ["status.m", "status.n"]
    );
    let kept = Write { object: &json!({"status": {"phase": null, "z": {"y": 1}}}), ..write };
    let outcome = schema.judge(&kept);
    assert_eq!(outcome.verdict, Verdict::Accepted);
    assert_eq!(outcome.stored, json!({"status": {"phase": "Unknown"}}));
}

#[test]
fn defaults_on_reading_are_those_of_the_stored_version() {
    let stored = json!({"status": {"n": "x", "z": 1}});
    let read = |origin| defaulted().read(&stored, origin).unwrap();
    assert_eq!(read(Origin::This), json!({"status": {"n": "x", "phase": "Unknown"}}));
    assert_eq!(read(Origin::Other), json!({"status": {"n": "x"}}));
}

#[test]
fn a_write_of_the_status_takes_the_rest_from_the_stored_object() {
    let schema = Schema::compile(
        &json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
            "status": {"type": "object", "properties": {"a": {"type": "string"}}}}}),
        NEWEST,
    );
    let old = json!({"spec": {"a": "old"}, "status": {"a": "x"}});
    let new = json!({"spec": {"a": "new"}, "status": {"a": "y"}});
    let outcome = judge(&schema, Some(&old), &new, Endpoint::Status);
    assert_eq!(outcome.stored, json!({"spec": {"a": "old"}, "status": {"a": "y"}}));
    let invalid = json!({"spec": {"a": 5}, "status": {"a": "x"}});
    assert_eq!(judge(&schema, Some(&invalid), &new, Endpoint::Status).verdict, Verdict::Accepted);
}

#[test]
fn unchanged_values_are_forgiven_from_the_version_that_ratchets() {
    let status = json!({"type": "object", "required": ["b"], "properties": {
        "a": {"type": "string", "enum": ["A"]}, "c": {"type": "string"}}});
    let old = json!({"status": {"a": "B", "c": "x"}});
    for (minor, endpoint, expected) in [
        (33, Endpoint::Status, "accepted"),
        (32, Endpoint::Status, "rejected"),
        (30, Endpoint::Main, "accepted"),
        (29, Endpoint::Main, "rejected"),
    ] {
        let outcome = judge(&Schema::of_status(&status, minor), Some(&old), &old, endpoint);
        assert_eq!(word(&outcome.verdict), expected, "1.{minor} {endpoint:?}");
        assert_eq!(outcome.forgiven.len(), if expected == "accepted" { 2 } else { 0 });
    }
    // A change beside the value: the required sibling is no longer forgiven.
    let new = json!({"status": {"a": "B", "c": "y"}});
    let outcome = judge(&Schema::of_status(&status, NEWEST), Some(&old), &new, Endpoint::Status);
    let Verdict::Rejected(causes) = outcome.verdict else { panic!() };
    assert_eq!(causes[0].field, "status.b");
    assert_eq!((outcome.forgiven.len(), &*outcome.forgiven[0].field), (1, "status.a"));
    assert!(matches!(
        judge(&Schema::of_status(&status, NEWEST), None, &old, Endpoint::Main).verdict,
        Verdict::Rejected(_)
    ));
}

/// Whether a list that was valid under an older schema is forgiven when it changes.
fn list_fate(list: &Value, old: &Value, new: &Value) -> &'static str {
    let schema = Schema::of_status(&json!({"type": "object", "properties": {"l": list}}), NEWEST);
    let (old, new) = (json!({"status": {"l": old}}), json!({"status": {"l": new}}));
    word(&judge(&schema, Some(&old), &new, Endpoint::Status).verdict)
}

#[test]
fn elements_of_map_lists_correlate_by_key_and_atomic_lists_as_a_whole() {
    let item = json!({"type": "object", "required": ["m"], "properties": {
        "k": {"type": "string"}, "s": {"type": "string"}, "m": {"type": "string"}}});
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item});
    let atomic = json!({"type": "array", "items": item});
    let (a, b) = (json!({"k": "a", "s": "x"}), json!({"k": "b", "s": "x", "m": ""}));
    let changed = json!({"k": "b", "s": "y", "m": ""});
    let keyless = json!({"s": "x"});
    for (list, old, new, expected) in [
        (&map, json!([a, b]), json!([b, a]), "accepted"),
        (&map, json!([a, b]), json!([a, changed]), "accepted"),
        (&map, json!([a]), json!([a, {"k": "c"}]), "rejected"),
        (&map, json!([keyless]), json!([keyless]), "rejected"),
        (&atomic, json!([a, b]), json!([a, b]), "accepted"),
        (&atomic, json!([a, b]), json!([a, changed]), "rejected"),
        (&atomic, json!([a, b]), json!([b, a]), "rejected"),
    ] {
        assert_eq!(list_fate(list, &old, &new), expected, "{list} {old} {new}");
    }
}

#[test]
fn duplicates_are_forgiven_if_the_stored_object_has_any() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}});
    assert_eq!(list_fate(&set, &json!([1, 1]), &json!([1, 1, 2, 2])), "accepted");
    assert_eq!(list_fate(&set, &json!([1]), &json!([1, 1])), "rejected");
    let any = json!({"type": "array", "x-kubernetes-list-type": "set", "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(list_fate(&any, &json!([]), &json!([1, 1.0])), "accepted");
    assert_eq!(list_fate(&any, &json!([]), &json!([[1], [1.0]])), "rejected");
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}, "v": {}}}});
    assert_eq!(list_fate(&map, &json!([]), &json!([{"k": "a", "v": "1"}, {"k": "a"}])), "rejected");
    assert_eq!(list_fate(&map, &json!([]), &json!([{"k": "a", "n": 1}, {"k": "a"}])), "accepted");
}

#[test]
fn objects_with_unknown_members_and_junctors_are_never_forgiven() {
    let kept =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "maxProperties": 0});
    let junctor = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "allOf": [{"properties": {"a": {"enum": ["A"]}}}]});
    let status = json!({"type": "object", "properties": {"p": kept, "j": junctor}});
    let schema = Schema::of_status(&status, NEWEST);
    let fate = |old: Value, new: Value| {
        let (old, new) = (json!({"status": old}), json!({"status": new}));
        word(&judge(&schema, Some(&old), &new, Endpoint::Status).verdict)
    };
    assert_eq!(fate(json!({"p": {"u": 1}}), json!({"p": {"u": 1}})), "rejected");
    assert_eq!(fate(json!({"j": {"a": "B"}}), json!({"j": {"a": "B"}})), "accepted");
    assert_eq!(fate(json!({"j": {"a": "B"}}), json!({"j": {"a": "B", "b": "x"}})), "rejected");
}

#[test]
fn rules_that_are_not_evaluated_are_not_proven_even_if_nothing_changed() {
    let plain =
        |rule: &str| json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
    let status =
        |a: &Value| json!({"type": "object", "properties": {"a": a, "b": {"type": "string"}}});
    let fate = |schema: &Schema, a: &str, b: &str| {
        let old = json!({"spec": {}, "status": {"a": "B", "b": "x"}});
        let new = json!({"status": {"a": a, "b": b}});
        word(&judge(schema, Some(&old), &new, Endpoint::Status).verdict)
    };
    let schema = Schema::of_status(&status(&plain("self != 'B'")), NEWEST);
    assert_eq!((fate(&schema, "B", "y"), fate(&schema, "A", "x")), ("accepted", "accepted"));
    let schema = Schema::of_status(&status(&plain("oldSelf == self")), NEWEST);
    assert_eq!((fate(&schema, "B", "y"), fate(&schema, "A", "x")), ("accepted", "rejected"));
    let schema = Schema::of_status(&status(&plain("self.split('').size() > 1")), NEWEST);
    assert_eq!(fate(&schema, "B", "y"), "not proven");
    let schema = Schema::of_status(&status(&plain("self.split('').size() > 1")), 24);
    assert_eq!(fate(&schema, "A", "x"), "accepted", "no rules before 1.25");
    for (rules, expected) in
        [(json!(null), "accepted"), (json!([{"rule": "self.x == 1"}]), "not proven")]
    {
        let mut tree = json!({"type": "object", "properties": {"status": status(&json!({"type": "string"})), "spec": {"type": "object"}}});
        tree["x-kubernetes-validations"] = rules.clone();
        assert_eq!(fate(&Schema::compile(&tree, NEWEST), "B", "x"), expected, "at the root");
        tree["x-kubernetes-validations"] = json!(null);
        tree["properties"]["spec"]["x-kubernetes-validations"] = rules;
        assert_eq!(fate(&Schema::compile(&tree, NEWEST), "B", "x"), expected, "in the spec");
    }
}

#[test]
fn a_scale_subresource_checks_its_fields() {
    let scale = json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"});
    let schema = Schema { scale: Scale::new(&scale).map(Arc::new), ..Schema::free() };
    for (object, endpoint, expected) in [
        (json!({"status": {"n": 1, "s": "a=b"}}), Endpoint::Status, "accepted"),
        (json!({"status": {"n": -1}}), Endpoint::Status, "rejected"),
        (json!({"status": {"s": 1}}), Endpoint::Status, "rejected"),
        (json!({"status": "x"}), Endpoint::Status, "rejected"),
        (json!({"spec": {"n": 3_000_000_000_i64}}), Endpoint::Main, "rejected"),
        (json!({"spec": {"n": 1}}), Endpoint::Main, "accepted"),
    ] {
        assert_eq!(word(&judge(&schema, None, &object, endpoint).verdict), expected, "{object}");
    }
}

#[test]
fn embedded_objects_have_typed_metadata() {
    let schema = Schema::of_status(
        &json!({"type": "object", "properties": {"o": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}}}),
        NEWEST,
    );
    for (object, expected, stored) in [
        (
            json!({"kind": "Pod", "metadata": {"name": "", "labels": {"a": null}, "x": 1}}),
            "accepted",
            json!({"kind": "Pod", "metadata": {"labels": {"a": ""}}}),
        ),
        (json!({"kind": 5}), "rejected", json!({"kind": 5})),
        (json!({"metadata": []}), "rejected", json!({"metadata": []})),
        (json!({"metadata": {"finalizers": []}}), "not proven", json!({"metadata": {}})),
    ] {
        let outcome =
            judge(&schema, Some(&json!({})), &json!({"status": {"o": object}}), Endpoint::Status);
        assert_eq!(word(&outcome.verdict), expected, "{object}");
        if expected == "accepted" {
            assert_eq!(outcome.stored["status"]["o"], stored);
        }
    }
}

#[test]
fn what_no_server_accepts_is_not_proven() {
    for schema in [
        json!({"$ref": "#/definitions/a"}),
        json!({"type": "array", "uniqueItems": true}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"patternProperties": {"a": {}}}),
        json!([]),
        json!("x"),
    ] {
        assert_eq!(word(&fate(&schema, &json!("x"))), "not proven", "{schema}");
    }
    let mut deep = json!({"type": "string"});
    let mut value = json!("x");
    for _ in 0..120 {
        deep = json!({"type": "array", "items": deep});
        value = json!([value]);
    }
    assert_eq!(word(&fate(&deep, &value)), "not proven");
}

#[test]
fn any_keyword_may_have_any_value() {
    let keywords = [
        "type",
        "format",
        "pattern",
        "enum",
        "default",
        "required",
        "properties",
        "items",
        "additionalProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxItems",
        "nullable",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
        "x-kubernetes-int-or-string",
    ];
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!("("),
        json!([]),
        json!([null, 1, "a"]),
        json!({}),
        json!({"a": null}),
    ];
    for keyword in keywords {
        for value in &values {
            for data in &values {
                fate(&json!({keyword: value}), data);
                fate(
                    &json!({"type": "array", "x-kubernetes-list-type": "map", keyword: value}),
                    data,
                );
            }
        }
    }
}

/// A list that is invalid everywhere has a bounded number of causes, and correlates in linear time.
#[test]
fn large_lists_are_bounded() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["m"], "properties": {"k": {"type": "integer"}}}});
    let items: Vec<Value> = (0..20_000).map(|k| json!({"k": k})).collect();
    let Verdict::Rejected(causes) = fate(&list, &json!(items)) else { panic!() };
    assert_eq!(causes.len(), 256);
    let old = json!(items);
    assert_eq!(list_fate(&list, &old, &old), "accepted");
}
