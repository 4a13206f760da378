//! The schema of a StatusConvention's spec.

use serde_json::{Value, json};

use super::shapes::{array, described, object, one_or_many, reference, strings};

/// Null removes what is inherited, wherever something can be.
fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn disposition() -> Value {
    or_null(reference("disposition"))
}

pub(super) fn spec() -> Value {
    object(
        &[],
        json!({
            "title": text(),
            "source": text(),
            "differences": described(one_or_many(text()), "Where the system differs from what was written about it."),
            "extends": described(text(), "A convention of which this is one with differences."),
            "without": described(strings(), "Inherited rules and defaults that are not wanted."),
            "conditions": or_null(array(condition_list())),
            "generation": or_null(generation()),
            "phase": or_null(phase()),
            "fields": or_null(array(reference("field"))),
            "rules": or_null(array(rule())),
            "backfill": or_null(array(reference("backfill"))),
        }),
    )
}

fn condition_list() -> Value {
    object(
        &["path"],
        json!({
            "path": reference("pointer"),
            "like": described(text(), "A convention whose first list this is, at another path."),
            "apiVersions": or_null(strings()),
            "source": or_null(text()),
            "key": or_null(one_or_many(text())),
            "duplicate": disposition(),
            "maxItems": {"type": ["integer", "null"], "minimum": 0},
            "tooLong": disposition(),
            "history": or_null(object(&[], json!({
                "distinct": one_or_many(text()),
                "rewritten": disposition(),
                "repeated": disposition(),
            }))),
            "members": or_null(json!({
                "type": "object",
                "additionalProperties": or_null(one_or_many(reference("check"))),
            })),
            "otherMembers": disposition(),
            "types": or_null(json!({"type": "object", "additionalProperties": or_null(condition_type())})),
            "otherTypes": disposition(),
            "order": disposition(),
            "polarityFrom": or_null(array(reference("anyPointer"))),
            "transitionTime": or_null(transition_time()),
            "each": or_null(array(object(&["id", "when", "action", "message"], json!({
                "id": text(),
                "when": reference("predicate"),
                "action": reference("disposition"),
                "member": text(),
                "message": text(),
                "source": text(),
                "optional": flag(),
            })))),
        }),
    )
}

fn transition_time() -> Value {
    object(
        &[],
        json!({
            "member": text(),
            "mustMoveOn": or_null(one_or_many(text())),
            "mayMoveOn": described(or_null(one_or_many(text())), "Members, or \"anything\"."),
            "kept": disposition(),
            "moved": disposition(),
            "backwards": disposition(),
            "backwardsUnchanged": disposition(),
            "future": disposition(),
            "skewSeconds": {"type": ["integer", "null"]},
            "source": or_null(text()),
        }),
    )
}

fn condition_type() -> Value {
    let presence = || {
        json!({"anyOf": [
            reference("disposition"),
            object(&["when", "action"], json!({"when": reference("predicate"), "action": reference("disposition")})),
            {"type": "null"},
        ]})
    };
    object(
        &[],
        json!({
            "polarity": or_null(json!({"enum": ["positive", "negative", "neutral"]})),
            "aliases": or_null(one_or_many(text())),
            "meaning": or_null(text()),
            "source": or_null(text()),
            "missing": presence(),
            "present": presence(),
            "notTrue": disposition(),
            "removed": disposition(),
            "reverted": disposition(),
            "mirrored": or_null(flag()),
            "key": or_null(one_or_many(text())),
            "reasons": or_null(json!({
                "type": "object",
                "additionalProperties": {"anyOf": [
                    one_or_many(reference("scalar")),
                    {
                        "type": "object",
                        "properties": {"action": reference("disposition")},
                        "additionalProperties": one_or_many(reference("scalar")),
                    },
                ]},
            })),
            "otherReasons": disposition(),
        }),
    )
}

fn generation() -> Value {
    object(
        &[],
        json!({
            "paths": or_null(array(reference("pointer"))),
            "ahead": disposition(),
            "aheadAtFirst": disposition(),
            "decreased": disposition(),
            "reset": disposition(),
            "minimum": {"type": ["integer", "null"]},
            "belowMinimum": disposition(),
            "source": or_null(text()),
        }),
    )
}

fn phase() -> Value {
    let names = || one_or_many(text());
    let evidence = || reference("predicate");
    let value = object(
        &["phase"],
        json!({
            "phase": text(),
            "meaning": text(),
            "source": text(),
            "necessary": described(evidence(), "What must hold; only what is definitely contradicted counts."),
            "sufficient": described(evidence(), "What settles it."),
            "imposed": object(&["when", "since"], json!({
                "when": evidence(),
                "since": {"enum": ["/metadata/deletionTimestamp", "/metadata/creationTimestamp"]},
            })),
            "reasons": names(),
        }),
    );
    object(
        &[],
        json!({
            "path": one_or_many(reference("pointer")),
            "default": or_null(text()),
            "source": or_null(text()),
            "transitionTime": or_null(json!({"anyOf": [
                reference("pointer"),
                object(&["path"], json!({
                    "path": reference("pointer"),
                    "inStep": flag(),
                    "kept": reference("disposition"),
                    "moved": reference("disposition"),
                })),
            ]})),
            "reason": or_null(object(&["path"], json!({
                "path": reference("pointer"),
                "always": names(),
                "action": reference("disposition"),
            }))),
            "moves": or_null(object(&["from"], json!({
                "anyTo": names(),
                "from": {"type": "object", "additionalProperties": names()},
                "action": reference("disposition"),
            }))),
            "values": described(array(value), "Highest priority first."),
            "repair": or_null(array(object(&["to"], json!({
                "to": described(text(), "A phase, requested or stored."),
                "when": evidence(),
            })))),
        }),
    )
}

fn rule() -> Value {
    object(
        &["id", "when", "action", "message"],
        json!({
            "id": text(),
            "when": described(reference("predicate"), "The violation."),
            "action": reference("disposition"),
            "message": text(),
            "path": reference("pointer"),
            "in": described(reference("pointer"), "The list of conditions it speaks of, where that is not the first."),
            "trigger": reference("trigger"),
            "source": text(),
            "optional": flag(),
        }),
    )
}
