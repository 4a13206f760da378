//! Compares the module `schema` with recorded answers of kube-apiserver 1.36.
//!
//! One schema of `.status` a line: `{id, schema, cases}`, for an upgrade of the definition also `oldschema`,
//! `rules` of the root, and `newver` if the object was stored in another version. A case has `k` (the kind
//! of write), `v` (what was sent), `old` (what was stored), `ok`, `causes` (the first two: field, reason,
//! start of the message), and what was stored then: `same` as `v`, or `out`.
//!
//! | `k` | write |
//! |---|---|
//! | `c`, `w` | of a new status, by a client or by the patch of a webhook |
//! | `r`, `x` | of a status that was stored through a version without schema, by a client or a webhook |
//! | `u`, `m` | of the status or of the object, by a client after an upgrade |

use serde::Deserialize;
use serde_json::{Value, json};

use statusgate_core::schema::{Cause, Endpoint, NEWEST, Origin, Schema, Sender, Verdict, Write};

/// What a comparison found.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The number of cases.
    pub(crate) cases: usize,
    /// The cases with another answer.
    pub(crate) wrong: Vec<String>,
    /// The cases without an answer.
    pub(crate) not_proven: Vec<String>,
    /// The rejected cases in which a recorded cause is missing. Junctors report the causes of one branch.
    pub(crate) other_causes: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    schema: Value,
    #[serde(default)]
    rules: Value,
    #[serde(default)]
    newver: bool,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    k: String,
    v: Value,
    #[serde(default)]
    old: Value,
    ok: bool,
    #[serde(default)]
    causes: Vec<[String; 3]>,
    same: Option<u8>,
    #[serde(default)]
    out: Value,
}

/// Compares all cases of a file.
///
/// # Errors
/// When a line is not in this format.
pub(crate) fn compare(text: &str) -> serde_json::Result<Tally> {
    let mut tally = Tally::default();
    for line in text.lines() {
        let line: Line = serde_json::from_str(line)?;
        let mut tree = json!({"type": "object", "properties": {"status": line.schema}});
        tree["x-kubernetes-validations"] = line.rules.clone();
        let schema = Schema::compile(&tree, NEWEST);
        for case in &line.cases {
            tally.cases += 1;
            tally.case(&schema, &line, case);
        }
    }
    Ok(tally)
}

impl Tally {
    fn case(&mut self, schema: &Schema, line: &Line, case: &Case) {
        let name = || format!("{} {} {} over {}", line.id, case.k, case.v, case.old);
        let kind = case.k.as_str();
        let stored = match kind {
            "c" | "w" => json!({}),
            _ => json!({"status": case.old}),
        };
        let is_other = line.newver || matches!(kind, "r" | "x");
        let origin = if is_other { Origin::Other } else { Origin::This };
        let old = match schema.read(&stored, origin) {
            Ok(old) => old,
            // The write needs the object.
            Err(Verdict::Rejected(_)) if !case.ok => return,
            Err(verdict) => {
                self.not_proven.push(format!("{}: {verdict:?}", name()));
                return;
            }
        };
        let is_patch = matches!(kind, "w" | "x");
        let outcome = schema.judge(&Write {
            object: &json!({"status": case.v}),
            old: Some(&old),
            sender: if is_patch { Sender::Webhook } else { Sender::Client },
            endpoint: if kind == "m" { Endpoint::Main } else { Endpoint::Status },
        });
        let expected = if case.same.is_some() { &case.v } else { &case.out };
        match outcome.verdict {
            Verdict::NotProven(causes) => self.not_proven.push(format!("{}: {causes:?}", name())),
            Verdict::Accepted if !case.ok => self.wrong.push(format!("{}: accepted", name())),
            Verdict::Rejected(causes) if case.ok => {
                self.wrong.push(format!("{}: rejected: {causes:?}", name()));
            }
            Verdict::Accepted => {
                let found = outcome.stored.get("status").unwrap_or(&Value::Null);
                if !is_same(found, expected) {
                    self.wrong.push(format!("{}: stored {found}, not {expected}", name()));
                }
            }
            Verdict::Rejected(causes) => {
                let missing = case.causes.iter().find(|recorded| !is_among(recorded, &causes));
                if let Some(missing) = missing {
                    self.other_causes.push(format!("{}: {missing:?} is not in {causes:?}", name()));
                }
            }
        }
    }
}

/// Numbers are the same if they are equal: etcd returns 1.0 as 1.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other
                || one.as_f64() == other.as_f64()
                    && (one.is_f64() || other.is_f64() || one.as_i64().is_none())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

/// Composite causes name the parent in the recording.
fn is_among([field, reason, start]: &[String; 3], causes: &[Cause]) -> bool {
    causes.iter().any(|cause| {
        let is_composite = field == "status" && start.starts_with("Invalid value: \"\"");
        cause.reason == format!("FieldValue{reason}")
            && cause.message.starts_with(start.as_str())
            && (cause.field == *field || is_composite)
    })
}
