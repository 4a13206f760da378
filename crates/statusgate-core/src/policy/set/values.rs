//! The values that documents name, compared with the schemas of the objects that they are about: defaults, phases,
//! enums, the values of predicates, and what lists of conditions and checks expect.

use serde_json::Value as Json;

use crate::model::Pointer;
use crate::schema::{FieldSchema, Node as Declared, Verdict};
use crate::source::tree::{At, Node, Value, did_you_mean};

use crate::policy::Defined;

/// A field in the schemas of the selected versions.
struct Compared<'d> {
    pointer: Pointer,
    defined: &'d [&'d Defined],
}

/// Compares what a mapping of a document names. `key`: under which key it is, or the list that has it.
/// `list`: the list of conditions that it belongs to.
pub(super) fn compare(key: &str, at: At<'_>, list: Option<&Pointer>, defined: &[&Defined]) {
    let node = at.node();
    let own = ["path", "field"].iter().find_map(|key| node.text_of(key));
    let list =
        node.text_of("list").and_then(|text| Pointer::of_list(text).ok()).or_else(|| list.cloned());
    // With `condition`, the member is that of a condition, perhaps in another list.
    let list = list.filter(|_| node.member("condition").is_none());
    let member = node.text_of("member").zip(list).map(|(name, list)| element(&list, name));
    let pointer = own.and_then(|text| Pointer::of_list(text).ok()).or(member);
    let Some(pointer) = pointer.filter(|pointer| pointer.is_below_status()) else { return };
    let compared = Compared { pointer, defined };
    if own.is_none() {
        compared.exists(at.key("member"));
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

/// Compares a text in CEL with the schemas of the field that it is compared with. The empty text asks whether it is set.
pub(super) fn compare_constant(path: Vec<String>, text: &str, at: At<'_>, defined: &[&Defined]) {
    let compared = Compared { pointer: Pointer::from_tokens(path), defined };
    if !text.is_empty() && compared.pointer.is_below_status() {
        compared.some_accepts_value(&text.into(), at);
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

    fn some_accepts_value(&self, value: &Json, at: At<'_>) {
        let rejecting = self.rejecting(value);
        let Some((version, cause)) = rejecting.first() else { return };
        if rejecting.len() < self.defined.len() {
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
        if let Some(name) = node.member("transitionTime").and_then(|time| time.text_of("member")) {
            names.push((name, at.key("transitionTime").key("member")));
        }
        let reason = Compared { pointer: element(&self.pointer, "reason"), ..*self };
        let types = at.key("types");
        if let Some(Node { value: Value::Map(entries), .. }) = node.member("types") {
            for (key, kind) in entries {
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
            (&["minimum", "maximum"], &["integer", "number"], "numbers"),
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
            "nodes": {"type": "object", "additionalProperties": {"type": "object", "properties": {"state": {"type": "string"}}}},
            "conditions": {"type": "array", "items": condition}}});
        let schema = json!({"type": "object", "properties": {"status": status}});
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
}
