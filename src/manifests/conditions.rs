//! The match conditions of a webhook: CEL expressions, all of which must be true for the API server to call
//! it. One that cannot be evaluated rejects the write under `failurePolicy: Fail`, so these have a value for
//! every object: a member is read only after its parent is known to be an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::resource::CustomResource;
use super::rules::judged;
use statusgate_core::model::{Pointer, Webhook};
use statusgate_core::policy::PolicySet;
use statusgate_core::relevance::{Missing, NoValue, Relevance, Relevances};

/// The name of the match condition that omits writes without a change of the status.
const STATUS_CHANGES: &str = "status-changes";

/// The names of those that omit changes that no rule reads begin with this.
const RELEVANT_CHANGES: &str = "relevant-changes";

/// For validating webhooks. A write that leaves the status as it is may not fail while no replica answers:
/// without the status subresource, it may remove a finalizer.
const STATUS_CHANGES_EXPRESSION: &str = "request.operation != 'UPDATE' \
    || has(object.status) != has(oldObject.status) \
    || (has(object.status) && object.status != oldObject.status)";

/// In addition for the mutating webhook: a write through `/status` without a change lets it set the defaults
/// of a stored object. The API server omits an empty `subResource`.
const THROUGH_STATUS_EXPRESSION: &str =
    "(has(request.subResource) && request.subResource == 'status')";

/// A webhook has at most 64 match conditions; the user may add some. The resources of further conditions
/// have none.
const MAX_CONDITIONS: usize = 32;

/// The words that CEL does not accept as the name of a member.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Whether a match condition of this name is one of statusgate's.
pub fn is_ours(name: &str) -> bool {
    name == STATUS_CHANGES || name.starts_with(RELEVANT_CHANGES)
}

/// The match conditions of a webhook.
pub fn match_conditions(
    policies: &PolicySet,
    resources: &[CustomResource],
    webhook: Webhook,
) -> Vec<Value> {
    let condition = |name, expression| json!({"name": name, "expression": expression});
    let status_changes = match webhook {
        Webhook::Mutate => format!("{THROUGH_STATUS_EXPRESSION} || {STATUS_CHANGES_EXPRESSION}"),
        _ => STATUS_CHANGES_EXPRESSION.to_owned(),
    };
    let mut groups: BTreeMap<Relevance, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    let mut unconditional = false;
    let relevances = Relevances::of(policies);
    for resource in judged(resources) {
        match resource.relevance(policies, &relevances, webhook) {
            Some(relevance) => {
                let plurals = groups.entry(relevance).or_default();
                plurals.entry(&resource.group).or_default().insert(&resource.plural);
            }
            None => unconditional |= resource.is_selected(policies),
        }
    }
    let is_only = groups.len() == 1 && !unconditional;
    let relevant =
        groups.iter().take(MAX_CONDITIONS).enumerate().map(|(index, (relevance, of))| {
            let others = (!is_only).then(|| others(of));
            let clauses: Vec<String> = others.into_iter().chain(clauses(relevance)).collect();
            condition(format!("{RELEVANT_CHANGES}-{}", index + 1), clauses.join("\n|| "))
        });
    std::iter::once(condition(STATUS_CHANGES.to_owned(), status_changes)).chain(relevant).collect()
}

/// The request is about another resource than these.
fn others(resources: &BTreeMap<&str, BTreeSet<&str>>) -> String {
    let of_group = |(group, plurals): (&&str, &BTreeSet<&str>)| {
        let plurals: Vec<String> = plurals.iter().map(|plural| format!("'{plural}'")).collect();
        let plurals = plurals.join(", ");
        format!("request.resource.group == '{group}' && request.resource.resource in [{plurals}]")
    };
    let these: Vec<String> = resources.iter().map(of_group).collect();
    format!("!({})", these.join("\n  || "))
}

/// The clauses of which one must hold.
fn clauses(relevance: &Relevance) -> Vec<String> {
    let mut clauses = vec![
        "request.operation != 'UPDATE'".to_owned(),
        "!has(object.status) || type(object.status) != map".to_owned(),
        "!has(oldObject.status) || type(oldObject.status) != map || size(oldObject.status) == 0"
            .to_owned(),
    ];
    if relevance.deleting {
        clauses.push("has(object.metadata.deletionTimestamp)".to_owned());
    }
    clauses.extend(relevance.missing.iter().map(missing));
    clauses.extend(relevance.null.iter().map(|path| {
        let (there, value) = place("object", path.below_status());
        format!("{there} && {value} == null")
    }));
    clauses.extend(relevance.changed.iter().map(|member| {
        let member = std::slice::from_ref(member);
        let ((has, new), (had, old)) = (place("object", member), place("oldObject", member));
        format!("{has} != {had} || {has} && {new} != {old}")
    }));
    clauses
}

/// None of the places has a value.
fn missing(Missing { places, none }: &Missing) -> String {
    let missing = |path: &Pointer| {
        let (there, value) = place("object", path.below_status());
        match none {
            NoValue::Absent => format!("!({there})"),
            NoValue::Null => format!("(!({there}) || {value} == null)"),
            NoValue::Empty => format!("(!({there}) || {value} == null || {value} == '')"),
        }
    };
    let places: Vec<String> = places.iter().map(missing).collect();
    places.join(" && ")
}

/// Whether a place in the status exists, and its value then.
fn place(object: &str, names: &[String]) -> (String, String) {
    let mut tests = Vec::new();
    let mut value = format!("{object}.status");
    for (depth, name) in names.iter().enumerate() {
        if depth > 0 {
            tests.push(format!("type({value}) == map"));
        }
        let is_word = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
            && !name.starts_with(|char: char| char.is_ascii_digit())
            && !RESERVED.contains(&name.as_str());
        if is_word {
            value = format!("{value}.{name}");
            tests.push(format!("has({value})"));
        } else {
            let name = Value::from(name.as_str());
            tests.push(format!("{name} in {value}"));
            value = format!("{value}[{name}]");
        }
    }
    (tests.join(" && "), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the API server sends an UPDATE to the mutating and to the validating webhooks.
    fn is_sent(subresource: &str, old: &Value, new: &Value) -> [bool; 2] {
        let mut request = json!({"operation": "UPDATE"});
        if !subresource.is_empty() {
            request["subResource"] = subresource.into();
        }
        is_matched(&request, old, new)
    }

    fn is_matched(request: &Value, old: &Value, new: &Value) -> [bool; 2] {
        [Webhook::Mutate, Webhook::Validate].map(|webhook| {
            let conditions = match_conditions(&PolicySet::compile(&[]).unwrap(), &[], webhook);
            let [Value::Object(condition)] = &conditions[..] else { panic!("{conditions:?}") };
            let expression = condition["expression"].as_str().unwrap();
            let program = cel::Program::compile(expression).unwrap();
            let mut context = cel::Context::default();
            context.add_variable("request", request).unwrap();
            context.add_variable("object", new).unwrap();
            context.add_variable("oldObject", old).unwrap();
            program.execute(&context).unwrap() == cel::Value::Bool(true)
        })
    }

    #[test]
    fn a_write_that_leaves_the_status_as_it_is_can_never_fail() {
        let old = json!({"metadata": {"finalizers": ["a"]}, "status": {"phase": "Ready"}});
        let without_finalizer = json!({"metadata": {}, "status": {"phase": "Ready"}});
        assert_eq!(is_sent("", &old, &without_finalizer), [false, false]);
        let (empty, old_empty) = (json!({"metadata": {}}), json!({"metadata": {"finalizers": []}}));
        assert_eq!(is_sent("", &old_empty, &empty), [false, false]);
        // The mutating webhook sets defaults of the stored object.
        assert_eq!(is_sent("status", &old, &old), [true, false]);
        assert_eq!(is_sent("status", &empty, &empty), [true, false]);
    }

    #[test]
    fn a_write_that_changes_the_status_is_judged() {
        let (ready, failed) =
            (json!({"status": {"phase": "Ready"}}), json!({"status": {"phase": "Failed"}}));
        for subresource in ["", "status"] {
            assert_eq!(is_sent(subresource, &ready, &failed), [true; 2]);
            assert_eq!(is_sent(subresource, &json!({}), &ready), [true; 2]);
            assert_eq!(is_sent(subresource, &ready, &json!({})), [true; 2]);
        }
        let create = json!({"operation": "CREATE"});
        assert_eq!(is_matched(&create, &Value::Null, &json!({})), [true; 2]);
    }
}
