//! Writes that were once judged wrongly, each under the smallest policy that shows the fault. Most pass
//! both webhooks, as the API server calls them.

mod defaults;
mod duplicates;
mod lists;
mod owned_conditions;
mod owners;
mod ownership;
mod phases;
mod values;
mod words;

use crate::support::T0;
use serde_json::{Value, json};

const FAR: &str = "2999-01-01T00:00:00Z";

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": T0})
}

fn ready(status: &str) -> Value {
    json!([condition("Ready", status)])
}

fn with(mut object: Value, member: &str, value: impl Into<Value>) -> Value {
    object[member] = value.into();
    object
}
