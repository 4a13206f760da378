//! The validation of a value: `SchemaValidator` of kube-openapi with the ratcheting of
//! apiextensions-apiserver.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::cause::{Cause, INVALID};
use super::list::Keyed;
use super::node::{Bound, Junctor, Limits, Node};
use super::number::{Number, is_equal, is_member};
use super::path::Path;
use super::verdict::Fault;

/// The most causes that are kept. The API server keeps all.
const MAX_FAULTS: usize = 256;

/// One validation.
#[derive(Debug, Default)]
pub(super) struct Check {
    pub(super) faults: Vec<Fault>,
    pub(super) forgiven: Vec<Fault>,
    /// Whether unchanged values are forgiven.
    pub(super) ratchets: bool,
    /// Whether this is in a junctor, where rules are ignored.
    pub(super) in_junctor: bool,
    /// Whether embedded objects are validated.
    pub(super) validates_embedded: bool,
}

impl Check {
    /// Validates a value. `old` is the value that it correlates with.
    pub(super) fn node(
        &mut self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
    ) {
        let before = self.faults.len();
        self.value(node, value, old, path);
        if self.ratchets
            && self.faults.len() > before
            && old.is_some_and(|old| is_unchanged(node, value, old))
        {
            let found = self.faults.split_off(before);
            let (forgiven, kept): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|fault| fault.ratchets);
            self.faults.extend(kept);
            self.forgiven.extend(forgiven);
        }
    }

    fn value(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        if let Some(keyword) = node.unknown {
            return self.unknown(path, keyword);
        }
        self.kind(node, value, path);
        let limits = node.limits.as_deref();
        if let Some(limits) = limits
            && !limits.members.is_empty()
            && !limits.members.iter().any(|member| is_member(value, member))
        {
            self.found(Cause::unsupported(path.field(), value, &limits.members));
        }
        if value.is_null() {
            return;
        }
        self.rules(node, value, old, path);
        for (junctor, nodes) in &node.junctors {
            self.junctor(*junctor, nodes, value, path);
        }
        match value {
            Value::String(text) => {
                if let Some(limits) = limits {
                    self.text(limits, value, text, path);
                }
            }
            Value::Number(_) => {
                if let (Some(limits), Some(number)) = (limits, Number::of(value)) {
                    self.number(node, limits, value, number, path);
                }
            }
            Value::Array(items) => self.array(node, items, old, path),
            Value::Object(members) => self.object(node, members, old, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// `typeValidator`.
    fn kind(&mut self, node: &Node, value: &Value, path: &Path<'_>) {
        let has = |kind: &str| node.types.contains(&kind);
        let format = node.format().unwrap_or_default();
        let number = Number::of(value);
        let (kind, go_format) = match (value, number) {
            (Value::Null, _) => {
                if !node.types.is_empty() && !node.nullable {
                    let types = node.types.join(",");
                    self.found(Cause::wrong_type(path.field(), &path.name(), &types, "null"));
                }
                return;
            }
            (Value::Bool(_), _) => ("boolean", ""),
            (Value::String(_), _) => ("string", ""),
            (Value::Array(_), _) => ("array", ""),
            (Value::Object(_), _) => ("object", ""),
            (_, Some(Number::Integer(_))) => ("integer", "int64"),
            (Value::Number(_), _) => ("number", "float64"),
        };
        if node.types.is_empty() && format.is_empty() {
            return;
        }
        let is_fitting = has(kind)
            || (kind == "number" && has("integer") && number.is_some_and(Number::is_integral))
            || (kind == "integer" && has("number"));
        // A text has its format checked instead; a list passes.
        let is_formatted = matches!(kind, "string" | "array") && !format.is_empty();
        if is_fitting || (is_formatted && !has("number") && !has("integer")) {
            return;
        }
        let cause = if format.is_empty() || is_formatted {
            Cause::wrong_type(path.field(), &path.name(), &node.types.join(","), kind)
        } else {
            Cause::wrong_type(path.field(), &path.name(), format, go_format)
        };
        self.found(cause);
    }

    /// `stringValidator`, which reports its first error, and `formatValidator`.
    fn text(&mut self, limits: &Limits, value: &Value, text: &str, path: &Path<'_>) {
        let count = text.chars().count();
        if let Some(most) = limits.length.max.filter(|_| limits.length.is_above(count)) {
            self.found(Cause::too_long(path.field(), most));
        } else if let Some(least) = limits.length.min.filter(|_| limits.length.is_below(count)) {
            self.broken(value, path, &format!("should be at least {least} chars long"));
        } else if let Some(pattern) = &limits.pattern {
            match pattern.is_match(text) {
                Some(true) => {}
                Some(false) => {
                    self.broken(value, path, &format!("should match '{}'", pattern.as_str()));
                }
                None => self.unknown(path, &format!("the pattern '{}'", pattern.as_str())),
            }
        }
        if let Some((format, name)) = &limits.format {
            match format.is_match(text) {
                Some(true) => {}
                Some(false) => {
                    self.found(Cause::wrong_type(path.field(), &path.name(), name, text));
                }
                None => self.unknown(path, &format!("the format {name}")),
            }
        }
    }

    /// `numberValidator`.
    fn number(
        &mut self,
        node: &Node,
        limits: &Limits,
        value: &Value,
        number: Number,
        path: &Path<'_>,
    ) {
        let format = limits.format.as_ref().map_or("", |(_, name)| name);
        let kind = if limits.has_ranges { node.types.first().copied().unwrap_or("") } else { "" };
        if !number.is_in_range(kind, format) {
            self.out_of_range("Checked", kind, format, path);
        }
        let bounds = [
            (
                "Maximum boundary",
                limits.maximum,
                Ordering::Greater,
                ["less than or equal to", "less than"],
            ),
            (
                "Minimum boundary",
                limits.minimum,
                Ordering::Less,
                ["greater than or equal to", "greater than"],
            ),
        ];
        for (what, bound, beyond, words) in bounds {
            let Some(Bound { value: limit, is_exclusive }) = bound else { continue };
            let is_general = !Number::Float(limit).is_in_range(kind, format);
            if is_general {
                self.out_of_range(what, kind, format, path);
            }
            let Some(limit) = number.limit(limit, is_general) else {
                self.unknown(path, "a bound beyond 64 bits");
                continue;
            };
            let order = number.compare(limit);
            if order == Some(beyond) || (is_exclusive && order == Some(Ordering::Equal)) {
                let why = format!("should be {} {limit}", words[usize::from(is_exclusive)]);
                self.broken(&general(value, number, is_general), path, &why);
            }
        }
        if let Some(factor) = limits.multiple_of {
            self.multiple(value, number, factor, (kind, format), path);
        }
    }

    fn multiple(
        &mut self,
        value: &Value,
        number: Number,
        factor: f64,
        kind: (&str, &str),
        path: &Path<'_>,
    ) {
        let is_general = !Number::Float(factor).is_in_range(kind.0, kind.1);
        if is_general {
            self.out_of_range("MultipleOf", kind.0, kind.1, path);
        }
        let Some(factor) = number.limit(factor, is_general) else {
            return self.unknown(path, "a factor beyond 64 bits");
        };
        if factor.float() <= 0.0 {
            let name = path.name();
            let why = format!(
                "Invalid value: {factor}: factor MultipleOf declared for {name} must be positive: {factor}"
            );
            self.found(Cause::new(path.field(), INVALID, why));
        } else if !number.is_multiple_of(factor) {
            let value = general(value, number, is_general);
            self.broken(&value, path, &format!("should be a multiple of {factor}"));
        }
    }

    fn out_of_range(&mut self, what: &str, kind: &str, format: &str, path: &Path<'_>) {
        let format = if format.is_empty() {
            "(default format)".to_owned()
        } else {
            format!("with format {format}")
        };
        let why = format!(
            "Invalid value: \"\": {what} value must be of type {kind} {format} in {}",
            path.name()
        );
        self.found(Cause::new(path.field(), INVALID, why));
    }

    /// `schemaSliceValidator`. Only the elements of map lists correlate.
    fn array(&mut self, node: &Node, items: &[Value], old: Option<&Value>, path: &Path<'_>) {
        if let Some(inner) = &node.items {
            let keyed = old.and_then(Value::as_array).and_then(|old| Keyed::new(node, old));
            for (index, item) in items.iter().enumerate() {
                let old = keyed.as_ref().and_then(|keyed| keyed.get(item));
                self.node(inner, item, old, &path.index(index));
            }
        }
        let Some(Limits { items: range, .. }) = node.limits.as_deref() else { return };
        self.count(items.len(), range.min.filter(|_| range.is_below(items.len())), "items", path);
        if let Some(most) = range.max.filter(|_| range.is_above(items.len())) {
            self.found(Cause::too_many(path.field(), items.len(), most));
        }
    }

    /// `objectValidator`.
    fn object(
        &mut self,
        node: &Node,
        members: &Map<String, Value>,
        old: Option<&Value>,
        path: &Path<'_>,
    ) {
        if let Some(Limits { properties: range, .. }) = node.limits.as_deref() {
            let count = members.len();
            self.count(count, range.min.filter(|_| range.is_below(count)), "properties", path);
            if let Some(most) = range.max.filter(|_| range.is_above(count)) {
                self.found(Cause::too_many(path.field(), count, most));
            }
        }
        for (name, value) in members {
            if let Some(member) = node.member(name) {
                // At the root, the API server does not see changes of these.
                let is_hidden = path.is_root() && matches!(&**name, "apiVersion" | "kind");
                let old = old.and_then(|old| old.get(name)).filter(|_| !is_hidden);
                self.node(member, value, old, &path.key(name));
            }
        }
        for name in node.required.iter().filter(|name| !members.contains_key(&***name)) {
            self.found(Cause::required(path.key(name).field()));
        }
        if node.is_embedded && self.validates_embedded && !path.is_root() {
            self.unknown(path, "the metadata of an embedded object");
        }
    }

    fn count(&mut self, count: usize, least: Option<i64>, what: &str, path: &Path<'_>) {
        if let Some(least) = least {
            let why = format!("should have at least {least} {what}");
            self.broken(&count.into(), path, &why);
        }
    }

    /// `schemaPropsValidator`. Nothing in a junctor is ratcheted.
    fn junctor(&mut self, junctor: Junctor, nodes: &[Node], value: &Value, path: &Path<'_>) {
        let (mut accepted, mut rejected, mut open) = (0_usize, 0_usize, Vec::new());
        let mut causes = Vec::new();
        for node in nodes {
            let mut check = Self { in_junctor: true, ..Self::default() };
            check.value(node, value, None, path);
            let (found, unknown): (Vec<_>, Vec<_>) =
                check.faults.into_iter().partition(|fault| fault.is_proven);
            match (found.is_empty(), unknown.is_empty()) {
                (true, true) => accepted += 1,
                (true, false) => open.extend(unknown),
                (false, _) => {
                    rejected += 1;
                    causes.extend(found);
                }
            }
        }
        let is_open = !open.is_empty();
        let verdict = match junctor {
            Junctor::AllOf if rejected > 0 => Some(false),
            Junctor::AnyOf if accepted > 0 => Some(true),
            Junctor::OneOf if accepted > 1 => Some(false),
            Junctor::Not if rejected > 0 => Some(true),
            _ if is_open => None,
            Junctor::AllOf => Some(true),
            Junctor::AnyOf | Junctor::Not => Some(false),
            Junctor::OneOf => Some(accepted == 1),
        };
        let why = match junctor {
            Junctor::AllOf if accepted == 0 && !is_open => {
                "must validate all the schemas (allOf). None validated"
            }
            Junctor::AllOf => "must validate all the schemas (allOf)",
            Junctor::AnyOf => "must validate at least one schema (anyOf)",
            Junctor::OneOf => "must validate one and only one schema (oneOf)",
            Junctor::Not => "must not validate the schema (not)",
        };
        match verdict {
            Some(true) => {}
            None => open.into_iter().for_each(|fault| self.push(fault)),
            Some(false) => {
                if junctor == Junctor::AllOf {
                    causes.into_iter().for_each(|fault| self.push(fault));
                }
                let why = format!("Invalid value: \"\": \"{}\" {why}", path.name());
                self.found(Cause::new(path.field(), INVALID, why));
            }
        }
    }

    /// The rules of a node, without those below it.
    pub(super) fn rules(
        &mut self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
    ) {
        if self.in_junctor {
            return;
        }
        if node.has_junctor_rules {
            self.unknown(path, "x-kubernetes-validations in allOf");
        }
        for rule in &node.rules {
            match rule.holds(value, old) {
                Some(true) => {}
                Some(false) => {
                    let cause = Cause::invalid(path.field(), value, &rule.message());
                    let ratchets = !rule.is_transition();
                    self.push(Fault { ratchets, is_rule: true, ..Fault::proven(cause) });
                }
                // If the evaluation fails, an unchanged value is rejected too.
                None => {
                    let fault = Fault::unknown(path.field(), &format!("the rule {}", rule.text()));
                    self.push(Fault { ratchets: false, is_rule: true, ..fault });
                }
            }
        }
    }

    /// A value that breaks a limit.
    fn broken(&mut self, value: &Value, path: &Path<'_>, why: &str) {
        self.found(Cause::invalid(path.field(), value, &format!("{} in body {why}", path.name())));
    }

    fn unknown(&mut self, path: &Path<'_>, what: &str) {
        self.push(Fault::unknown(path.field(), what));
    }

    fn found(&mut self, cause: Cause) {
        self.push(Fault::proven(cause));
    }

    fn push(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS || !fault.ratchets {
            self.faults.push(fault);
        }
    }
}

/// A value as it is compared with a limit: as a float if the limit is not in the range of the type.
fn general(value: &Value, number: Number, is_general: bool) -> Value {
    if is_general { number.float().into() } else { value.clone() }
}

/// `CachedDeepEqual`: whether a value is that of its correlated old one. Map lists may change their order. An
/// object with members that the schema does not know is never unchanged.
fn is_unchanged(node: &Node, value: &Value, old: &Value) -> bool {
    match (value, old) {
        (Value::Array(items), Value::Array(before)) => {
            let (Some(keyed), Some(inner)) = (Keyed::new(node, before), &node.items) else {
                return is_equal(value, old);
            };
            items.len() == before.len()
                && items
                    .iter()
                    .all(|item| keyed.get(item).is_some_and(|old| is_unchanged(inner, item, old)))
        }
        (Value::Object(members), Value::Object(old)) => {
            members.len() == old.len()
                && members.iter().all(|(name, value)| {
                    let pair = node.member(name).zip(old.get(name));
                    pair.is_some_and(|(member, old)| is_unchanged(member, value, old))
                })
        }
        _ => is_equal(value, old),
    }
}
