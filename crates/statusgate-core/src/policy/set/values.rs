//! The values that documents name, compared with the schemas of the objects that they are about: defaults, phases,
//! enums, the values of predicates, and what lists of conditions and checks expect.

use serde_json::Value as Json;

use crate::model::Pointer;
use crate::schema::{FieldSchema, Node as Declared, Verdict};
use crate::source::tree::{At, Node, Value, did_you_mean};

use super::pointers::Around;
use crate::policy::Defined;

/// A field in the schemas of the selected versions.
struct Compared<'d> {
    pointer: Pointer,
    defined: &'d [&'d Defined],
}

/// Compares what a mapping of a document names. `key`: under which key it is, or the list that has it.
pub(super) fn compare(key: &str, at: At<'_>, around: &Around, defined: &[&Defined]) {
    let node = at.node();
    let list_of = |key| node.text_of(key).and_then(|text| Pointer::of_list(text).ok());
    if let Some(list) = list_of("length") {
        Compared { pointer: list, defined }.has_items(at.key("length"));
    }
    if let Some(list) = &around.conditions
        && ["condition", "oldCondition"].iter().any(|key| node.text_of(key).is_some())
    {
        return of_condition(at, list, defined);
    }
    let own = ["path", "field", "oldField"].iter().find_map(|key| node.text_of(key));
    let list = list_of("list").or_else(|| around.list.clone());
    let key_of_member = if node.member("oldMember").is_some() { "oldMember" } else { "member" };
    let name = node.text_of(key_of_member);
    let member = name.zip(list.as_ref()).map(|(name, list)| element(list, name));
    let pointer = own.and_then(|text| Pointer::of_list(text).ok()).or(member);
    let Some(pointer) = pointer.filter(is_judged) else { return };
    let compared = Compared { pointer, defined };
    if own.is_none() {
        compared.exists(at.key(key_of_member));
    }
    for key in OTHERS.into_iter().filter(|_| name.is_some()) {
        if let Some((name, list)) = node.text_of(key).zip(list.as_ref())
            && !name.starts_with('/')
        {
            Compared { pointer: element(list, name), defined }.exists(at.key(key));
        }
    }
    match key {
        "conditions" => compared.list(at),
        "backfill" if node.member("value").is_some() => {
            let is_null = matches!(node.member("value"), Some(Node { value: Value::Null, .. }));
            let nullable = node.member("nullable").map(|node| &node.value);
            let is_written = !is_null || matches!(nullable, Some(Value::Bool(true)));
            // A predicate may leave out the resources that reject the value.
            if node.member("when").is_none() {
                compared.each_accepts(at.key("value"), is_written);
            } else if is_written {
                compared.some_accepts(at.key("value"));
            }
        }
        "phase" => {
            compared.each_accepts(at.key("default"), node.text_of("default").is_some());
            let values = at.key("values");
            for (index, value) in node.items_of("values").iter().enumerate() {
                let name = value.text_of("phase");
                if name.is_some() && name != node.text_of("default") {
                    compared.some_accepts(values.item(index).key("phase"));
                }
            }
            let reason = node.member("reason").and_then(|reason| reason.text_of("path"));
            if let Some(pointer) = reason.and_then(|path| Pointer::of_list(path).ok()) {
                let reason = Compared { pointer, defined };
                let always = node.member("reason").and_then(|reason| reason.member("always"));
                always.into_iter().for_each(|_| reason.some_accept(at.key("reason").key("always")));
                let listed = node.items_of("values").iter().enumerate();
                let listed = listed.filter(|(_, value)| value.member("reasons").is_some());
                listed.for_each(|(index, _)| reason.some_accept(values.item(index).key("reasons")));
            }
        }
        _ => {}
    }
    for key in ["enum", "is", "isNot"].into_iter().filter(|key| node.member(key).is_some()) {
        compared.some_accept(at.key(key));
    }
    compared.types(at);
}

/// Keys of a predicate that may name another member.
const OTHERS: [&str; 5] = ["equals", "before", "atLeast", "atMost", "since"];

/// Whether a schema of a CRD declares the field.
fn is_judged(pointer: &Pointer) -> bool {
    matches!(pointer.tokens(), [root, _, ..] if root == "spec" || root == "status")
}

/// Compares what a predicate asks of a condition, or the member of a condition that it names.
fn of_condition(at: At<'_>, list: &Pointer, defined: &[&Defined]) {
    let node = at.node();
    let of = |name: &str| Compared { pointer: element(list, name), defined };
    for key in ["condition", "oldCondition"].into_iter().filter(|key| node.member(key).is_some()) {
        of("type").some_accepts(at.key(key));
    }
    for name in ["reason", "severity"].into_iter().filter(|name| node.member(name).is_some()) {
        of(name).exists(at.key(name));
        of(name).some_accept(at.key(name));
    }
    if let Some(name) = node.text_of("member") {
        of(name).exists(at.key("member"));
    }
}

/// Compares a constant in CEL with the schemas of the field that it is compared with.
pub(super) fn compare_constant(pointer: Pointer, value: &Json, at: At<'_>, defined: &[&Defined]) {
    if is_judged(&pointer) {
        Compared { pointer, defined }.some_accepts_value(value, at);
    }
}

/// The pointer of a member of the elements of a list, or of the values of a map.
pub(super) fn element(list: &Pointer, member: &str) -> Pointer {
    let mut tokens = list.tokens().to_vec();
    if tokens.last().is_none_or(|last| last != "*") {
        tokens.push("0".to_owned());
    }
    tokens.push(member.to_owned());
    Pointer::from_tokens(tokens)
}

impl Compared<'_> {
    /// The schemas that declare the field. The others keep any value, or prune it, which another check reports.
    fn declared(&self) -> impl Iterator<Item = (&Defined, &Declared)> {
        self.defined.iter().filter_map(|version| match version.schema.at(self.pointer.tokens()) {
            FieldSchema::Declared(node) => Some((*version, node)),
            FieldSchema::Free | FieldSchema::Pruned => None,
        })
    }

    /// Reports a value that the webhook sets and that a version rejects.
    fn each_accepts(&self, at: At<'_>, is_set: bool) {
        let rejecting = value_at(at).map(|value| self.rejecting(&value)).unwrap_or_default();
        if let Some((version, cause)) = rejecting.into_iter().next().filter(|_| is_set) {
            let help =
                "the API server would reject each write in which the webhook sets this default";
            at.report_with_help(format!("the schema of {version} rejects this: {cause}"), help);
        }
    }

    /// Reports the values of a list, or one value, that every version rejects.
    fn some_accept(&self, at: At<'_>) {
        match &at.node().value {
            Value::List(items) => {
                (0..items.len()).for_each(|index| self.some_accepts(at.item(index)))
            }
            _ => self.some_accepts(at),
        }
    }

    /// Reports a value that every version rejects.
    fn some_accepts(&self, at: At<'_>) {
        value_at(at).into_iter().for_each(|value| self.some_accepts_value(&value, at));
    }

    /// The empty text asks whether the field is set.
    fn some_accepts_value(&self, value: &Json, at: At<'_>) {
        let rejecting = self.rejecting(value);
        let Some((version, cause)) = rejecting.first() else { return };
        if rejecting.len() < self.defined.len() || value == "" {
            return;
        }
        let message = format!("the schema of {version} rejects this: {cause}");
        let members = self.declared().flat_map(|(_, node)| node.members());
        let texts: Vec<&str> = members.filter_map(Json::as_str).collect();
        match value.as_str().filter(|_| !texts.is_empty()) {
            Some(found) => at.report_with_help(message, did_you_mean(found, texts.into_iter())),
            None => at.report(message),
        }
    }

    /// The versions that reject a value, each with the API server's cause.
    fn rejecting(&self, value: &Json) -> Vec<(String, String)> {
        let rejected = self.defined.iter().filter_map(|version| {
            match version.schema.accepts(&self.pointer, value) {
                Verdict::Rejected(causes) => {
                    Some((version.name.clone(), causes.first()?.message.clone()))
                }
                Verdict::Accepted | Verdict::NotProven(_) => None,
            }
        });
        rejected.collect()
    }

    /// Reports a member of the elements of a list that every version prunes.
    fn exists(&self, at: At<'_>) {
        let pruned =
            self.defined.iter().filter_map(|version| version.schema.pruned(self.pointer.tokens()));
        let pruned: Vec<_> = pruned.collect();
        if pruned.len() < self.defined.len() {
            return;
        }
        let Some((place, names)) = pruned.first() else { return };
        let name = self.pointer.tokens().get(*place).map_or("", String::as_str);
        let message =
            format!("{} is not in the schema of {}", self.pointer.field(), self.defined[0].name);
        at.report_with_help(message, did_you_mean(name, names.iter().copied()));
    }

    /// Reports a field that is no list.
    fn has_items(&self, at: At<'_>) {
        if let Some(types) = self.types_without(&["array"]).filter(|_| is_judged(&self.pointer)) {
            at.report(format!("this must be a list, but its type in the schema is {types}"));
        }
    }

    /// Reports a path that is not a list, and members that the elements do not have.
    fn list(&self, at: At<'_>) {
        let node = at.node();
        let is_map = self.pointer.tokens().last().is_some_and(|last| last == "*");
        let wanted = if is_map { "object" } else { "array" };
        if let Some(types) = self.types_without(&[wanted]) {
            let what =
                if is_map { "the values of a map here are objects" } else { "this must be a list" };
            return at.key("path").report(format!("{what}, but its type in the schema is {types}"));
        }
        // With `parentKey`, a `*` before other names is for the elements of a list.
        let tokens = self.pointer.tokens();
        let reads_map = is_map || node.member("parentKey").is_none();
        let star = tokens.iter().position(|token| token == "*").filter(|_| reads_map);
        if let Some(above) = star.and_then(|at| tokens.get(..at)) {
            let above = Compared { pointer: Pointer::from_tokens(above.to_vec()), ..*self };
            if above.types_without(&["object"]).is_some() {
                let help = "leave out `/*`; for lists in the elements of a list, add `parentKey`";
                return at
                    .key("path")
                    .report_with_help("this is a list, and `/*` reads maps", help);
            }
        }
        let members = at.key("members");
        let mut names: Vec<(&str, At<'_>)> = Vec::new();
        if let Some(Node { value: Value::Map(entries), .. }) = node.member("members") {
            // A null removes what is inherited.
            let own = entries.iter().filter(|(_, check)| !matches!(check.value, Value::Null));
            names.extend(own.map(|(key, _)| (key.name.as_str(), members.key(&key.name).name())));
        }
        let keys = node.items_of("key").iter().enumerate();
        names
            .extend(keys.filter_map(|(index, key)| Some((key.text()?, at.key("key").item(index)))));
        if let Some(star) = tokens.iter().position(|token| token == "*") {
            let outer = Pointer::from_tokens(tokens[..star].to_vec());
            let keys = node.items_of("parentKey").iter().enumerate();
            for (index, name) in keys.filter_map(|(index, key)| Some((index, key.text()?))) {
                let key = Compared { pointer: element(&outer, name), ..*self };
                key.exists(at.key("parentKey").item(index));
            }
        }
        if let Some(name) = node.member("transitionTime").and_then(|time| time.text_of("member")) {
            names.push((name, at.key("transitionTime").key("member")));
        }
        let reason = Compared { pointer: element(&self.pointer, "reason"), ..*self };
        let types = at.key("types");
        if let Some(Node { value: Value::Map(entries), .. }) = node.member("types") {
            let kinds = Compared { pointer: element(&self.pointer, "type"), ..*self };
            for (key, kind) in entries {
                if !key.name.contains('*') && node.member("element").is_none() {
                    kinds
                        .some_accepts_value(&key.name.as_str().into(), types.key(&key.name).name());
                }
                let reasons = types.key(&key.name).key("reasons");
                for status in ["True", "False", "Unknown"] {
                    let all = kind.member("reasons").and_then(|reasons| reasons.member(status));
                    all.into_iter().for_each(|_| reason.some_accept(reasons.key(status)));
                }
            }
        }
        for (name, at) in names {
            let member = Compared { pointer: element(&self.pointer, name), defined: self.defined };
            member.exists(at);
            if let Some(check) = node.member("members").and_then(|members| members.member(name)) {
                member.check(members.key(name), check);
            }
        }
    }

    /// Compares the checks of a member, one or a list of them.
    fn check(&self, at: At<'_>, check: &Node) {
        match &check.value {
            Value::List(items) => {
                items.iter().enumerate().for_each(|(index, item)| self.check(at.item(index), item))
            }
            _ => {
                if check.member("enum").is_some() {
                    self.some_accept(at.key("enum"));
                }
                self.types(at);
            }
        }
    }

    /// Reports a test of texts or numbers about a field of another type.
    fn types(&self, at: At<'_>) {
        let node = at.node();
        for (keys, wanted, what) in [
            (
                &["pattern", "minLength", "maxLength", "maxBytes", "matches", "format"][..],
                &["string"][..],
                "strings",
            ),
            (&["minimum", "maximum", "atLeast", "atMost"], &["integer", "number"], "numbers"),
            (&["before", "future", "past"], &["string"], "times"),
            (&["decreased"], &["integer", "number", "string"], "numbers and times"),
        ] {
            let key = keys.iter().find(|key| node.member(key).is_some());
            // A plain number is a quantity.
            let is_quantity = node.text_of("format") == Some("quantity");
            if let Some((key, types)) = key.zip(self.types_without(wanted)).filter(|_| !is_quantity)
            {
                let message =
                    format!("this is a test of {what}, but the type in the schema is {types}");
                at.key(key).report(message);
            }
        }
        let Some(kind) = node.text_of("type") else { return };
        // The schema may be stricter or wider: each integer is a number.
        let wanted = if matches!(kind, "integer" | "number") {
            vec!["integer", "number"]
        } else {
            vec![kind]
        };
        if let Some(types) = self.types_without(&wanted) {
            at.key("type").report(format!("the type in the schema is {types}"));
        }
    }

    /// The types of the field, if no version has one of these types, and each has a type.
    fn types_without(&self, wanted: &[&str]) -> Option<String> {
        let nodes: Vec<&Declared> = self.declared().map(|(_, node)| node).collect();
        let all = !nodes.is_empty()
            && nodes.len() == self.defined.len()
            && nodes.iter().all(|node| {
                !node.types.is_empty() && !node.types.iter().any(|kind| wanted.contains(kind))
            });
        all.then(|| nodes[0].types.join(" or "))
    }
}

fn value_at(at: At<'_>) -> Option<Json> {
    serde_json::to_value(at.node()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::policy::{Defined, PolicySet, Source};
    use crate::schema::{NEWEST, Schema};

    /// The mistakes of a convention about one kind, without help.
    fn mistakes(convention: &str) -> Vec<String> {
        let kind = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: c}\nspec:\n";
        mistakes_in(format!("{kind}{convention}"))
    }

    fn mistakes_in(text: String) -> Vec<String> {
        let condition = json!({"type": "object", "properties": {
            "type": {"type": "string", "enum": ["Ready", "Synced"]}, "status": {"type": "string"},
            "reason": {"type": "string", "maxLength": 9}, "lastTransitionTime": {"type": "string", "format": "date-time"}}});
        let status = json!({"type": "object", "properties": {
            "phase": {"type": "string", "enum": ["Ready", "Failed", "Unknown"]},
            "code": {"type": "integer", "enum": [0, 1, 2]}, "ready": {"type": "boolean"},
            "tier": {"type": "string", "maxLength": 3}, "count": {"type": "integer", "maximum": 5},
            "when": {"type": "string", "format": "date-time"},
            "size": {"x-kubernetes-int-or-string": true},
            "parents": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "conditions": {"type": "array", "items": condition}}}},
            "nodes": {"type": "object", "additionalProperties": {"type": "object", "properties": {"state": {"type": "string"}}}},
            "conditions": {"type": "array", "items": condition}}});
        let spec = json!({"type": "object", "properties": {"plan": {"type": "string", "enum": ["Small", "Large"]}}});
        let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
        let defined = Defined {
            name: "things.l.io v1".to_owned(),
            group: "l.io".to_owned(),
            version: "v1".to_owned(),
            plural: "things".to_owned(),
            schema: Schema::compile(&schema, NEWEST),
        };
        let sources = [Source::new("c.yaml", text)];
        let policies = PolicySet::compile(&sources).unwrap_or_else(|error| panic!("{error}"));
        let defined = [defined];
        let found = policies.mistakes_in_pointers(&sources, &defined).into_iter();
        found
            .chain(policies.mistakes_in_settings(&sources, &defined))
            .map(|mistake| mistake.message)
            .collect()
    }

    #[test]
    fn what_a_schema_accepts_is_no_mistake() {
        let sound = "  phase: {path: /status/phase, default: Unknown, values: [{phase: Ready}, {phase: Failed}, {phase: Unknown}]}
  conditions: [{path: /status/conditions, members: {reason: {type: string, enum: [A]}}, each: [{id: e, when: {member: reason, is: A}, action: Deny, message: m}]}, {path: /status/nodes/*, members: {state: {pattern: a}}}]
  fields: [{path: /status/code, type: number, enum: [0, 1]}, {path: /status/size, type: string, pattern: a}, {path: /status/count, format: quantity}]
  backfill: [{path: /status/tier, value: a}, {path: /status/ready, value: null}, {path: /status/count, value: null, nullable: false}, {list: /status/conditions, member: reason, value: A}]
  rules: [{id: r, path: /status/phase, when: {all: [{field: /status/ready, is: true}, {condition: Ready, present: true}]}, action: Warn, message: m}]
";
        assert_eq!(mistakes(sound), [""; 0]);
    }

    #[test]
    fn texts_in_cel_and_the_messages_of_health_are_compared_with_the_schema() {
        let policy = |expression: &str| {
            format!(
                "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec: \
                 {{convention: metav1, resources: [{{apiGroups: [l.io], apiVersions: [v1], resources: [things]}}], \
                 rules: [{{name: r, path: /status/phase, expression: \"{expression}\", action: Warn, message: m}}]}}\n"
            )
        };
        let guard = "!has(self.status.phase) || ";
        for (expression, wrong) in [
            ("self.status.phase == 'Ready'", None),
            ("self.status.phase != ''", None),
            ("self.status.phase in ['Failed', 'ready']", Some("\"ready\"")),
            ("'Up' != oldSelf.status['phase']", Some("\"Up\"")),
            (
                "self.metadata.name == 'Up' || self.status.tier == 'abcd'",
                Some("may not be more than 3"),
            ),
            ("['Up'].all(self, self == 'Up')", None),
            ("self.status.conditions.exists(c, c.type == 'Ready')", None),
            ("self.status.conditions.exists(c, c.type == 'Reday')", Some("\"Reday\"")),
            (
                "self.status.conditions.all(c, ['x'].exists(d, c.type == 'Up' || d == 'Up'))",
                Some("\"Up\""),
            ),
            ("self.status.nodes.exists(n, n == 'Up')", None),
            ("self.status.count == 5 && self.status.ready == true", None),
            ("self.status.phase == 5", Some("must be of type string")),
            ("self.spec.plan != 'Huge'", Some("\"Huge\"")),
            ("self.status.conditions.all(c, has(c.reason))", None),
            (
                "self.status.conditions.all(c, has(c.raeson))",
                Some("/status/conditions/0/raeson is not in"),
            ),
            ("self.status.nodes.exists(type, self.status.nodes[type].state == 'Up')", None),
        ] {
            let found = mistakes_in(policy(&format!("{guard}{expression}")));
            let expected: Vec<&str> = wrong.into_iter().collect();
            assert_eq!(found.len(), expected.len(), "{expression}: {found:#?}");
            assert!(
                expected.iter().all(|text| found[0].contains(text)),
                "{expression}: {found:#?}"
            );
        }
        let health = |field: &str| {
            format!(
                "  phase: {{path: /status/phase, values: [{{phase: Ready, health: current}}]}}\n  \
                 health: {{rules: [{{name: h, when: {{phase: Ready}}, is: failed, message: /status/{field}}}]}}\n"
            )
        };
        assert_eq!(mistakes(&health("tier")), [""; 0]);
        let found = mistakes(&health("teir"));
        assert!(found.len() == 1 && found[0].contains("/status/teir is not in"), "{found:#?}");
    }

    /// The webhook sets the values of a built-in convention, too.
    #[test]
    fn the_defaults_of_the_convention_are_compared_for_each_policy() {
        let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: {convention: appcat, \
                      resources: [{apiGroups: [l.io], apiVersions: [v1], resources: [things]}]}\n";
        let found = mistakes_in(policy.to_owned());
        let imposed =
            "things.l.io v1: the API server rejects status.phase: Unsupported value: \"Deleting\"";
        assert!(found.iter().any(|message| message.starts_with(imposed)), "{found:#?}");
        assert_eq!(mistakes_in(policy.replace("l.io", "m.io")), [""; 0], "another group");
    }

    #[test]
    fn each_kind_of_value_is_compared_with_the_schema() {
        for (spec, expected) in [
            (
                "  phase: {path: /status/phase, default: Unknown, values: [{phase: Unknown}, {phase: Up}]}\n",
                "Unsupported value: \"Up\"",
            ),
            ("  phase: {path: /status/ready, values: [{phase: Up}]}\n", "must be of type boolean"),
            (
                "  phase: {path: /status/tier, default: Good, values: [{phase: Good}]}\n",
                "may not be more than 3",
            ),
            (
                "  fields: [{path: /status/phase, enum: [Ready, down]}]\n",
                "Unsupported value: \"down\"",
            ),
            ("  fields: [{path: /status/code, enum: [0, 3]}]\n", "Unsupported value: 3"),
            (
                "  fields: [{path: /status/ready, type: string}]\n",
                "the type in the schema is boolean",
            ),
            (
                "  fields: [{path: /status/ready, maximum: 3}]\n",
                "this is a test of numbers, but the type in the schema is boolean",
            ),
            (
                "  fields: [{path: /status/count, minLength: 3}]\n",
                "this is a test of strings, but the type in the schema is integer",
            ),
            (
                "  rules: [{id: r, path: /status/phase, when: {field: /status/count, is: five}, action: Warn, message: m}]\n",
                "must be of type integer",
            ),
            (
                "  rules: [{id: r, path: /status/phase, when: {field: /status/phase, isNot: [Ready, failed]}, action: Warn, message: m}]\n",
                "Unsupported value: \"failed\"",
            ),
            (
                "  rules: [{id: r, path: /status/phase, when: {field: /status/ready, matches: ^a}, action: Warn, message: m}]\n",
                "this is a test of strings",
            ),
            (
                "  conditions: [{path: /status/tier}]\n",
                "this must be a list, but its type in the schema is string",
            ),
            (
                "  conditions: [{path: /status/nodes}]\n",
                "this must be a list, but its type in the schema is object",
            ),
            (
                "  conditions: [{path: /status/conditions, members: {resaon: {required: true}}}]\n",
                "status.conditions[0].resaon is not in the schema",
            ),
            (
                "  conditions: [{path: /status/conditions, members: {reason: {type: integer}}}]\n",
                "the type in the schema is string",
            ),
            (
                "  conditions: [{path: /status/conditions, key: [typ]}]\n",
                "status.conditions[0].typ is not in the schema",
            ),
            (
                "  conditions: [{path: /status/conditions, transitionTime: {member: lastTransition}}]\n",
                "lastTransition is not in the schema",
            ),
            (
                "  conditions: [{path: /status/conditions, each: [{id: e, when: {member: raeson, is: A}, action: Deny, message: m}]}]\n",
                "raeson is not in the schema",
            ),
            (
                "  conditions: [{path: /status/nodes/*, members: {stat: {type: string}}}]\n",
                "stat is not in the schema",
            ),
            // Every write of such a list would be rejected.
            (
                "  conditions: [{path: /status/conditions/*, members: {reason: {type: string}}}]\n",
                "this is a list, and `/*` reads maps",
            ),
            (
                "  conditions: [{path: /status/conditions, types: {Ready: {reasons: {'True': Up, 'False': [Down, NobodyKnows], action: Warn}}}}]\n",
                "may not be more than 9",
            ),
            (
                "  phase: {path: /status/phase, reason: {path: /status/tier, always: [Odd], action: Warn}, values: [{phase: Ready, reasons: [Up]}, {phase: Failed, reasons: [Down, No]}]}\n",
                "may not be more than 3",
            ),
            (
                "  conditions: [{path: /status/conditions, types: {Raedy: {polarity: positive}}}]\n",
                "Unsupported value: \"Raedy\"",
            ),
            (
                "  conditions: [{path: /status/parents/*/conditions, parentKey: [nmae]}]\n",
                "status.parents[0].nmae is not in the schema",
            ),
            ("  backfill: [{path: /status/phase, value: New}]\n", "Unsupported value: \"New\""),
            (
                "  backfill: [{path: /status/phase, value: Old, when: {deleting: true}}]\n",
                "Unsupported value: \"Old\"",
            ),
            ("  backfill: [{path: /status/ready, value: yes}]\n", "must be of type boolean"),
            (
                "  backfill: [{path: /status/count, value: 9}]\n",
                "should be less than or equal to 5",
            ),
            ("  backfill: [{path: /status/when, value: now}]\n", "date-time"),
            (
                "  backfill: [{path: /status/ready, value: null, nullable: true}]\n",
                "must be of type boolean",
            ),
            (
                "  conditions: [{path: /status/conditions}]\n  backfill: [{list: /status/conditions, member: reason, value: 5}]\n",
                "must be of type string",
            ),
        ] {
            let found = mistakes(spec);
            assert!(found.len() == 1 && found[0].contains(expected), "{spec}{found:#?}");
        }
    }

    #[test]
    fn each_word_of_a_predicate_is_compared_with_the_schema() {
        for (when, expected) in [
            ("condition: Ready, reason: [Down, '']", ""),
            ("length: /status/conditions, atLeast: 1", ""),
            ("field: /status/count, atMost: 3", ""),
            ("field: /status/when, before: /status/tier", ""),
            ("field: /spec/plan, is: Large", ""),
            ("condition: Raedy, present: true", "Unsupported value: \"Raedy\""),
            ("condition: Ready, reason: NobodyKnows", "may not be more than 9"),
            ("condition: Ready, severity: Error", "severity is not in the schema"),
            (
                "field: /status/when, equals: {condition: Ready, member: time}",
                "status.conditions[0].time is not in the schema",
            ),
            ("length: /status/count, atLeast: 1", "this must be a list"),
            ("field: /status/tier, atMost: 3", "this is a test of numbers"),
            ("field: /status/ready, before: /status/when", "this is a test of times"),
            ("field: /status/ready, decreased: true", "this is a test of numbers and times"),
            ("field: /spec/plan, is: Huge", "Unsupported value: \"Huge\""),
            ("oldField: /status/phase, is: Huge", "Unsupported value: \"Huge\""),
        ] {
            let lists = "  conditions: [{path: /status/conditions}]\n";
            let rule = format!(
                "{lists}  rules: [{{id: r, path: /status/phase, when: {{{when}}}, action: Warn, message: m}}]\n"
            );
            let found = mistakes(&rule);
            let is_expected = match expected {
                "" => found.is_empty(),
                _ => found.len() == 1 && found[0].contains(expected),
            };
            assert!(is_expected, "{when}: {found:#?}");
        }
        let each = |when: &str| {
            mistakes(&format!(
                "  conditions: [{{path: /status/conditions, each: [{{id: e, when: {{{when}}}, action: Deny, message: m}}]}}]\n"
            ))
        };
        assert_eq!(each("member: reason, equals: type"), [""; 0]);
        for when in ["member: reason, equals: typ", "oldMember: typ, is: Ready"] {
            let found = each(when);
            assert!(found.len() == 1 && found[0].contains("typ is not in"), "{when}: {found:#?}");
        }
    }
}
