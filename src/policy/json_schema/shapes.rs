//! The shapes that both documents use.

use serde_json::{Map, Value, json};

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

pub(super) fn array(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

pub(super) fn strings() -> Value {
    array(json!({"type": "string"}))
}

/// One, or a list of them.
pub(super) fn one_or_many(item: Value) -> Value {
    json!({"anyOf": [item.clone(), array(item)]})
}

pub(super) fn described(mut schema: Value, text: &str) -> Value {
    schema["description"] = text.into();
    schema
}

/// A mapping with these keys and no others.
pub(super) fn object(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "required": required, "additionalProperties": false, "properties": properties})
}

/// What `$ref` refers to.
pub(super) fn definitions() -> Value {
    let text = || json!({"type": "string"});
    let flag = || json!({"type": "boolean"});
    let number = || json!({"type": "number"});
    let size = || json!({"type": "integer", "minimum": 0});
    let mut definitions = Map::new();
    let mut define = |name: &str, schema: Value| {
        definitions.insert(name.to_owned(), schema);
    };
    define("action", json!({"enum": ["Deny", "Warn", "Audit"]}));
    define("disagreement", json!({"enum": ["Deny", "Repair", "Warn", "Audit"]}));
    define(
        "disposition",
        described(
            json!({"enum": ["Disagreement", "Deny", "Warn", "Audit"]}),
            "Disagreement: what the policy says of disagreements of this writer.",
        ),
    );
    define(
        "pointer",
        described(
            json!({"type": "string", "pattern": "^/status/."}),
            "A JSON pointer below /status.",
        ),
    );
    define(
        "anyPointer",
        described(
            json!({"type": "string", "pattern": "^/(status|spec)/."}),
            "A JSON pointer below /status or /spec.",
        ),
    );
    define("scalar", json!({"type": ["string", "number", "boolean"]}));
    let check = |more: Value| {
        let mut properties = json!({
            "id": text(),
            "required": flag(),
            "forbidden": flag(),
            "nullable": described(flag(), "Whether null counts as absent (true)."),
            "type": {"enum": ["string", "integer", "number", "boolean", "object", "array"]},
            "enum": strings(),
            "pattern": text(),
            "minLength": size(),
            "maxLength": described(size(), "In characters."),
            "maxBytes": described(size(), "In bytes of UTF-8."),
            "minimum": number(),
            "maximum": number(),
            "format": {"enum": ["date-time", "quantity", "qualified-name"]},
            "action": reference("action"),
            "source": text(),
        });
        if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
            properties.extend(more);
        }
        properties
    };
    define("check", object(&[], check(json!({}))));
    define("field", object(&["path"], check(json!({"path": reference("pointer")}))));
    define(
        "trigger",
        json!({"anyOf": [
            {"enum": ["state", "introduced"]},
            object(&["moved"], json!({"moved": one_or_many(text())})),
            object(&["coWritten"], json!({"coWritten": one_or_many(text())})),
        ]}),
    );
    define(
        "celRule",
        object(
            &["name", "expression", "message"],
            json!({
                "name": text(),
                "expression": described(text(), "What must hold, in CEL, of self, oldSelf and writer."),
                "message": text(),
                "action": reference("action"),
                "path": described(
                    json!({"type": "string", "pattern": "^/status(/.|$)"}),
                    "The field that the answer names (/status).",
                ),
                "trigger": reference("trigger"),
                "source": text(),
            }),
        ),
    );
    define(
        "valueSource",
        json!({"anyOf": [
            {"enum": ["stored", "/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/generation"]},
            reference("pointer"),
            object(&["condition", "member"], json!({"condition": text(), "member": text()})),
        ]}),
    );
    let fill = object(&[], fill());
    let mut optional = fill.clone();
    optional["properties"]["optional"] =
        described(flag(), "Off, unless a policy enables it by name.");
    define("fill", fill);
    define("backfill", optional);
    define("predicate", predicate());
    Value::Object(definitions)
}

/// What an entry of `backfill` may say in a policy.
fn fill() -> Value {
    let text = || json!({"type": "string"});
    let flag = || json!({"type": "boolean"});
    json!({
        "name": text(),
        "when": reference("predicate"),
        "source": text(),
        "path": described(reference("pointer"), "The field to fill in."),
        "nullable": described(flag(), "With value null: whether an explicit null is added."),
        "value": {},
        "copyOf": one_or_many(reference("valueSource")),
        "list": described(reference("pointer"), "The list of conditions to fill in."),
        "member": text(),
        "steadyWhile": described(strings(), "Put the stored member back while these are as they were."),
        "absentWhere": described(reference("predicate"), "Take the member out of the elements of which this holds."),
        "element": described(json!({
            "type": "object",
            "required": ["type"],
            "additionalProperties": {"anyOf": [reference("scalar"), object(&["copyOf"], json!({
                "copyOf": one_or_many(reference("valueSource")),
            }))]},
        }), "A condition, added where there is none of its type."),
    })
}

fn predicate() -> Value {
    let text = || json!({"type": "string"});
    let flag = || json!({"type": "boolean"});
    let names = || one_or_many(text());
    let polarity = json!({"enum": ["positive", "negative", "neutral"]});
    let observed = json!({"enum": ["behind", "current", "ahead"]});
    let size = || json!({"type": "integer", "minimum": 0});
    described(
        json!({
            "type": "object",
            "minProperties": 1,
            "additionalProperties": false,
            "properties": {
                "all": array(reference("predicate")),
                "any": array(reference("predicate")),
                "not": reference("predicate"),
                "condition": described(text(), "A condition of this write; ask is, isNot, reason, present or changed."),
                "oldCondition": described(text(), "A condition of the stored object."),
                "field": described(reference("anyPointer"), "A field of this write."),
                "oldField": described(reference("anyPointer"), "A field of the stored object."),
                "member": described(text(), "A member of the element, in rules about each element."),
                "oldMember": described(text(), "A member of the stored element."),
                "is": one_or_many(reference("scalar")),
                "isNot": one_or_many(reference("scalar")),
                "reason": names(),
                "present": flag(),
                "changed": flag(),
                "decreased": flag(),
                "future": flag(),
                "matches": text(),
                "equals": text(),
                "before": text(),
                "set": described(json!({"type": ["string", "boolean"]}), "Of field and member: whether there is something. Alone: the field that holds something."),
                "phase": names(),
                "oldPhase": names(),
                "deleting": flag(),
                "observed": one_or_many(observed),
                "length": reference("anyPointer"),
                "atLeast": size(),
                "atMost": size(),
                "gates": reference("anyPointer"),
                "polarity": one_or_many(polarity),
                "resource": names(),
            },
        }),
        "Several keys must all hold.",
    )
}
