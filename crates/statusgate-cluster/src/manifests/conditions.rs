//! The match conditions of a webhook: CEL expressions, all of which must be true for the API server to call
//! it. One that cannot be evaluated rejects the write under `failurePolicy: Fail`, so these have a value for
//! every object: a member is read only after its parent is known to be an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::resource::CustomResource;
use super::rules::judged;
use statusgate_analysis::relevance::{Missing, NoValue, Relevance, Relevances};
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

/// The name of the match condition that omits writes without a change of the status.
const STATUS_CHANGES: &str = "status-changes";

/// The names of those that omit changes that no rule reads begin with this.
const RELEVANT_CHANGES: &str = "relevant-changes";

/// For resources without a condition of their own. A write that leaves the status as it is may not fail while
/// no replica answers: without the status subresource, it may remove a finalizer.
const STATUS_CHANGES_EXPRESSION: &str = "request.operation != 'UPDATE' \
    || has(object.status) != has(oldObject.status) \
    || (has(object.status) && object.status != oldObject.status)";

/// In addition for the mutating webhook: a write through `/status` without a change lets it set the defaults
/// of a stored object. The API server omits an empty `subResource`.
const THROUGH_STATUS_EXPRESSION: &str =
    "(has(request.subResource) && request.subResource == 'status')";

/// A webhook has at most 64 match conditions; the user may add some. The resources of further sets only have
/// [`STATUS_CHANGES`].
const MAX_CONDITIONS: usize = 32;

/// The API server parses no expression of more than 100,000 characters (cel-go's
/// `ExpressionSizeCodePointLimit`). The same for resources whose condition would be longer.
const MAX_LENGTH: usize = 90_000;

/// The words that CEL does not accept as the name of a member.
const RESERVED: &str = "as break const continue else false for function if import in let loop namespace null \
     package return true var void while";

/// Whether a match condition of this name is one of statusgate's.
pub fn is_ours(name: &str) -> bool {
    name == STATUS_CHANGES || name.starts_with(RELEVANT_CHANGES)
}

/// The match conditions of a webhook: each resource has one, and the others are true for it, because the API
/// server always evaluates all of them.
pub fn match_conditions(
    policies: &PolicySet,
    resources: &[CustomResource],
    webhook: Webhook,
) -> Vec<Value> {
    let mut sets: BTreeMap<Option<Relevance>, Resources<'_>> = BTreeMap::new();
    let relevances = Relevances::of(policies);
    for resource in judged(resources).filter(|resource| resource.is_selected(policies)) {
        let set = sets.entry(resource.relevance(policies, &relevances, webhook)).or_default();
        set.entry(&resource.group).or_default().insert(&resource.plural);
    }
    let is_only = sets.len() == 1;
    let expression = |clauses: Vec<String>, of: &Resources<'_>| {
        let others = (!is_only).then(|| others(of));
        others.into_iter().chain(clauses).collect::<Vec<_>>().join("\n|| ")
    };
    let mut rest = sets.remove(&None).unwrap_or_default();
    let mut relevant = Vec::new();
    for (relevance, resources) in &sets {
        let expression = expression(relevance.iter().flat_map(clauses).collect(), resources);
        if expression.len() <= MAX_LENGTH && relevant.len() < MAX_CONDITIONS {
            let name = format!("{RELEVANT_CHANGES}-{}", relevant.len() + 1);
            relevant.push(json!({"name": name, "expression": expression}));
        } else {
            for (group, plurals) in resources {
                rest.entry(group).or_default().extend(plurals);
            }
        }
    }
    if !rest.is_empty() {
        let through_status = (webhook == Webhook::Mutate).then_some(THROUGH_STATUS_EXPRESSION);
        let clauses = through_status.into_iter().chain([STATUS_CHANGES_EXPRESSION]);
        let expression = expression(clauses.map(str::to_owned).collect(), &rest);
        relevant.insert(0, json!({"name": STATUS_CHANGES, "expression": expression}));
    }
    relevant
}

/// The clauses that match conditions of ours have for a resource.
pub(super) fn clauses_for<'c>(conditions: &'c [Value], resource: &CustomResource) -> Vec<&'c str> {
    let (group, plural) = (of_group(&resource.group), format!("'{}'", resource.plural));
    let ours = conditions.iter().filter(|of| of["name"].as_str().is_some_and(is_ours));
    let clauses = ours.filter_map(|of| {
        let expression = of["expression"].as_str()?;
        let guard = expression.strip_prefix("!(request.resource.group ");
        match guard.and_then(|_| expression.split_once(")\n|| ")) {
            Some((others, clauses)) => {
                let mut lists = others.lines().filter_map(|line| Some(line.split_once(&group)?.1));
                lists.any(|plurals| plurals.contains(&plural)).then_some(clauses)
            }
            None => Some(expression),
        }
    });
    clauses.collect()
}

/// Plurals by API group.
type Resources<'r> = BTreeMap<&'r str, BTreeSet<&'r str>>;

/// The request is about another resource than these.
fn others(resources: &Resources<'_>) -> String {
    let these = resources.iter().map(|(group, plurals)| {
        let plurals: Vec<String> = plurals.iter().map(|plural| format!("'{plural}'")).collect();
        format!("{}{}]", of_group(group), plurals.join(", "))
    });
    format!("!({})", these.collect::<Vec<_>>().join("\n  || "))
}

fn of_group(group: &str) -> String {
    format!("request.resource.group == '{group}' && request.resource.resource in [")
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
        clauses.push("has(oldObject.metadata.deletionTimestamp)".to_owned());
    }
    if relevance.status {
        clauses.push("object.status != oldObject.status".to_owned());
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
    let places = places.iter().map(|path| {
        let (there, value) = place("object", path.below_status());
        match none {
            NoValue::Absent => format!("!({there})"),
            NoValue::Null => format!("(!({there}) || {value} == null)"),
            NoValue::Empty => format!("(!({there}) || {value} == null || {value} == '')"),
        }
    });
    places.collect::<Vec<_>>().join(" && ")
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
            && !RESERVED.split(' ').any(|word| word == name);
        if is_word {
            value = format!("{value}.{name}");
            tests.push(format!("has({value})"));
        } else {
            let name = Value::from(name.as_str());
            tests.push(format!("({name} in {value})"));
            value = format!("{value}[{name}]");
        }
    }
    (tests.join(" && "), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::resource::ServedVersion;
    use statusgate_core::model::Pointer;
    use statusgate_core::policy::Source;

    fn policy(name: &str, status_subresource: bool, more: &str) -> Source {
        let text = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: {name}}}\n\
             spec: {{convention: metav1, resources: [{{apiGroups: [g], apiVersions: [v1], resources: [{name}], statusSubresource: {status_subresource}}}], {more}}}"
        );
        Source { name: format!("{name}.yaml"), text }
    }

    fn resource(plural: &str, status_subresource: bool) -> CustomResource {
        CustomResource {
            group: "g".to_owned(),
            plural: plural.to_owned(),
            kind: "K".to_owned(),
            versions: vec![ServedVersion { name: "v1".to_owned(), status_subresource }],
        }
    }

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
            let policies = PolicySet::compile(&[policy("r1", false, "")]).unwrap();
            let conditions = match_conditions(&policies, &[resource("r1", false)], webhook);
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

    fn pointer(path: &str) -> Pointer {
        path.parse().unwrap()
    }

    #[test]
    fn a_condition_has_a_value_for_every_object() {
        let missing = |path: &str, none| Missing { places: vec![pointer(path)], none };
        let relevance = Relevance {
            changed: ["phase", "some-thing", "namespace", "a'b\"c"].map(String::from).into(),
            missing: [
                missing("/status/a/b", NoValue::Empty),
                missing("/status/in/x", NoValue::Null),
                missing("/status/c", NoValue::Absent),
            ]
            .into(),
            null: [pointer("/status/a/d")].into(),
            deleting: true,
            status: false,
        };
        let expression = clauses(&relevance).join("\n|| ");
        let program = cel::Program::compile(&expression).unwrap();
        let whole = json!({"a": {"b": 1}, "in": {"x": 1}, "c": 1});
        let mut statuses = vec![json!(null), json!("text"), json!([1]), json!({}), whole.clone()];
        for member in ["a", "in", "c", "phase", "some-thing", "namespace", "a'b\"c"] {
            for value in
                [json!(null), json!(""), json!("x"), json!([]), json!({"b": null, "d": null})]
            {
                let mut status = whole.clone();
                status[member] = value;
                statuses.push(status);
            }
        }
        let is_called = |old: &Value, new: &Value| {
            let mut context = cel::Context::default();
            context.add_variable("request", json!({"operation": "UPDATE"})).unwrap();
            context.add_variable("object", json!({"metadata": {}, "status": new})).unwrap();
            context.add_variable("oldObject", json!({"metadata": {}, "status": old})).unwrap();
            program.execute(&context).unwrap() == cel::Value::Bool(true)
        };
        for old in &statuses {
            for new in &statuses {
                is_called(old, new);
            }
        }
        assert!(!is_called(&whole, &whole));
        let called = |member: &str, value: Value| {
            let mut new = whole.clone();
            new[member] = value;
            is_called(&whole, &new)
        };
        assert!(
            ["phase", "some-thing", "namespace", "a'b\"c"]
                .iter()
                .all(|name| called(name, json!(1)))
        );
        assert!(called("a", json!({"b": ""})) && called("in", json!({"x": null})));
        assert!(called("a", json!({"b": 1, "d": null})));
        assert!(!called("c", json!(null)) && !called("unread", json!(1)));
    }

    #[test]
    fn each_resource_has_one_condition_with_those_of_the_same_needs() {
        let names = |policies: &[Source]| -> Vec<String> {
            let policies = PolicySet::compile(policies).unwrap();
            let plurals = (0..40).map(|number| format!("r{number}")).chain(["s".to_owned()]);
            let resources: Vec<CustomResource> =
                plurals.map(|plural| resource(&plural, true)).collect();
            let conditions = match_conditions(&policies, &resources, Webhook::Validate);
            let text = |of: &Value| {
                let first = of["expression"].as_str().unwrap().lines().next().unwrap();
                format!("{}: {first}", of["name"].as_str().unwrap())
            };
            conditions.iter().map(text).collect()
        };
        let of = |name: &str, plurals: &str| {
            format!(
                "{name}: !(request.resource.group == 'g' && request.resource.resource in [{plurals}])"
            )
        };
        let field = "fields: [{path: /status/x, type: string}]";
        let alone = [policy("r1", true, ""), policy("r2", true, "")];
        assert_eq!(names(&alone), ["relevant-changes-1: request.operation != 'UPDATE'"]);
        let two = [policy("r1", true, ""), policy("r2", true, ""), policy("r3", true, field)];
        let sets = [of("relevant-changes-1", "'r1', 'r2'"), of("relevant-changes-2", "'r3'")];
        assert_eq!(names(&two), sets);
        let state =
            "rules: [{name: r, message: m, trigger: state, expression: 'self.status.x == 1'}]";
        let judges_all = [policy("r1", true, ""), policy("s", true, state)];
        let sets = [of("status-changes", "'s'"), of("relevant-changes-1", "'r1'")];
        assert_eq!(names(&judges_all), sets);
        let many = (0..34).map(|number| {
            policy(
                &format!("r{number}"),
                true,
                &format!("fields: [{{path: /status/x{number}, type: string}}]"),
            )
        });
        let many = names(&many.collect::<Vec<_>>());
        assert_eq!(many.len(), 1 + MAX_CONDITIONS);
        // In the order of their fields.
        assert_eq!(many[0], of("status-changes", "'r8', 'r9'"));
    }
}
