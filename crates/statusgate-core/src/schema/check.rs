//! The validation of a value: `SchemaValidator` of kube-openapi with the ratcheting of
//! apiextensions-apiserver.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::cause::{Cause, INVALID};
use super::list::Keyed;
use super::node::{Bound, Junctor, Limits, Node, Range};
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

/// A value and where it is.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) node: &'a Node,
    pub(super) value: &'a Value,
    /// The value that it correlates with.
    pub(super) old: Option<&'a Value>,
    pub(super) path: &'a Path<'a>,
}

impl Check {
    /// Validates a value.
    pub(super) fn node(&mut self, at: At<'_>) {
        let before = self.faults.len();
        self.value(at);
        let is_forgiven = self.ratchets
            && self.faults.len() > before
            && at.old.is_some_and(|old| is_unchanged(at.node, at.value, old));
        if is_forgiven {
            let found = self.faults.split_off(before).into_iter();
            let (forgiven, kept): (Vec<_>, Vec<_>) = found.partition(|fault| fault.ratchets);
            self.faults.extend(kept);
            self.forgiven.extend(forgiven);
        }
    }

    fn value(&mut self, at: At<'_>) {
        let At { node, value, path, .. } = at;
        if let Some(keyword) = node.unknown {
            return self.unknown(path, keyword);
        }
        self.kind(at);
        let members = node.members();
        if !members.is_empty() && !members.iter().any(|member| is_member(value, member)) {
            self.found(Cause::unsupported(path.field(), value, members));
        }
        if value.is_null() {
            return;
        }
        self.rules(at);
        self.junctors(at);
        match value {
            Value::String(text) => self.text(at, text),
            Value::Array(items) => self.array(at, items),
            Value::Object(members) => self.object(at, members),
            _ => {
                if let Some(number) = Number::of(value) {
                    self.number(at, number);
                }
            }
        }
    }

    /// `typeValidator`.
    fn kind(&mut self, at: At<'_>) {
        let At { node, value, path, .. } = at;
        let has = |kind: &str| node.types.contains(&kind);
        let format = node.format().unwrap_or_default();
        let number = Number::of(value);
        let (kind, go_format) = match (value, number) {
            (Value::Null, _) => ("null", ""),
            (Value::Bool(_), _) => ("boolean", ""),
            (Value::String(_), _) => ("string", ""),
            (Value::Array(_), _) => ("array", ""),
            (Value::Object(_), _) => ("object", ""),
            (_, Some(Number::Integer(_))) => ("integer", "int64"),
            (Value::Number(_), _) => ("number", "float64"),
        };
        // A text has its format checked instead; a list passes.
        let is_formatted = matches!(kind, "string" | "array") && !format.is_empty();
        let is_fitting = has(kind)
            || (kind == "null" && (node.types.is_empty() || node.is_nullable))
            || (kind == "number" && has("integer") && number.is_some_and(Number::is_integral))
            || (kind == "integer" && has("number"))
            || (node.types.is_empty() && format.is_empty())
            || (is_formatted && !has("number") && !has("integer"));
        if is_fitting {
            return;
        }
        let (wanted, found) = if format.is_empty() || is_formatted || kind == "null" {
            (node.types.join(","), kind)
        } else {
            (format.to_owned(), go_format)
        };
        self.found(Cause::wrong_type(path.field(), &path.name(), &wanted, found));
    }

    /// `stringValidator`, which reports its first error, and `formatValidator`.
    fn text(&mut self, at: At<'_>, text: &str) {
        let At { node, value, path, .. } = at;
        let Limits { length, pattern, format, .. } = node.limits();
        let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = length.max.filter(|most| count > *most) {
            self.found(Cause::too_long(path.field(), most));
        } else if let Some(least) = length.min.filter(|least| count < *least) {
            self.broken(value, path, &format!("should be at least {least} chars long"));
        } else if let Some(pattern) = pattern {
            let text_of = &pattern.text;
            match pattern.is_match(text) {
                Some(true) => {}
                Some(false) => self.broken(value, path, &format!("should match '{text_of}'")),
                None => self.unknown(path, &format!("the pattern '{text_of}'")),
            }
        }
        if let Some((is_match, name)) = format {
            match is_match(text) {
                Some(true) => {}
                Some(false) => {
                    self.found(Cause::wrong_type(path.field(), &path.name(), name, text));
                }
                None => self.unknown(path, &format!("the format {name}")),
            }
        }
    }

    /// `numberValidator`.
    fn number(&mut self, at: At<'_>, number: Number) {
        let At { node, value, path, .. } = at;
        let limits = node.limits();
        let format = node.format().unwrap_or_default();
        let kind = if node.has_ranges { node.types.first().copied().unwrap_or("") } else { "" };
        if !number.is_in_range(kind, format) {
            self.out_of_range("Checked", kind, format, path);
        }
        let factor = limits.multiple_of.map(|value| Bound { value, is_exclusive: false });
        let (above, below) = (Some(Ordering::Greater), Some(Ordering::Less));
        for (what, bound, wrong, wanted) in [
            ("MultipleOf", factor, None, "a multiple of"),
            ("Maximum boundary", limits.maximum, above, "less than"),
            ("Minimum boundary", limits.minimum, below, "greater than"),
        ] {
            let Some(Bound { value: limit, is_exclusive }) = bound else { continue };
            let is_general = !Number::Float(limit).is_in_range(kind, format);
            if is_general {
                self.out_of_range(what, kind, format, path);
            }
            let Some(limit) = number.limit(limit, is_general) else {
                self.unknown(path, "a limit beyond 64 bits");
                continue;
            };
            let order = number.compare(limit);
            let is_broken = match wrong {
                None if limit.float() <= 0.0 => {
                    let name = path.name();
                    let why =
                        format!("factor MultipleOf declared for {name} must be positive: {limit}");
                    let message = format!("Invalid value: {limit}: {why}");
                    self.found(Cause::new(path.field(), INVALID, message));
                    continue;
                }
                None => !number.is_multiple_of(limit),
                Some(_) => order == wrong || (is_exclusive && order == Some(Ordering::Equal)),
            };
            if is_broken {
                // Without a common type, both are floats.
                let general = Value::from(number.float());
                let value = if is_general { &general } else { value };
                let or_equal = if wrong.is_none() || is_exclusive { "" } else { " or equal to" };
                self.broken(value, path, &format!("should be {wanted}{or_equal} {limit}"));
            }
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
    fn array(&mut self, at: At<'_>, items: &[Value]) {
        if let Some(node) = &at.node.items {
            let keyed = at.old.and_then(Value::as_array).and_then(|old| Keyed::new(at.node, old));
            for (index, value) in items.iter().enumerate() {
                let old = keyed.as_ref().and_then(|keyed| keyed.get(value));
                self.node(At { node, value, old, path: &Path::Index(at.path, index) });
            }
        }
        self.elements(at.node, items.len(), at.path);
    }

    /// A list, apart from its elements.
    pub(super) fn elements(&mut self, node: &Node, count: usize, path: &Path<'_>) {
        self.count(node.limits().items, count, "items", path);
    }

    /// `objectValidator`.
    fn object(&mut self, at: At<'_>, members: &Map<String, Value>) {
        for (name, value) in members {
            let Some(node) = at.node.member(name) else { continue };
            // At the root, the API server does not see changes of these.
            let is_hidden = at.path.is_root() && matches!(&**name, "apiVersion" | "kind");
            let old = at.old.and_then(|old| old.get(name)).filter(|_| !is_hidden);
            self.node(At { node, value, old, path: &Path::Key(at.path, name) });
        }
        self.members(at.node, members.len(), |name| members.contains_key(name), at.path);
        if at.node.is_embedded && self.validates_embedded && !at.path.is_root() {
            self.unknown(at.path, "the metadata of an embedded object");
        }
    }

    /// An object with these members, apart from their values.
    pub(super) fn members(
        &mut self,
        node: &Node,
        count: usize,
        has: impl Fn(&str) -> bool,
        path: &Path<'_>,
    ) {
        self.count(node.limits().properties, count, "properties", path);
        for name in node.required.iter().filter(|name| !has(name)) {
            self.found(Cause::required(Path::Key(path, name).field()));
        }
    }

    fn count(&mut self, range: Range, count: usize, what: &str, path: &Path<'_>) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if let Some(least) = range.min.filter(|least| count < *least) {
            self.broken(&count.into(), path, &format!("should have at least {least} {what}"));
        }
        if let Some(most) = range.max.filter(|most| count > *most) {
            self.found(Cause::too_many(path.field(), count, most));
        }
    }

    pub(super) fn junctors(&mut self, at: At<'_>) {
        for (junctor, nodes) in &at.node.junctors {
            self.junctor(*junctor, nodes, at);
        }
    }

    /// `schemaPropsValidator`. Nothing in a junctor is ratcheted.
    fn junctor(&mut self, junctor: Junctor, nodes: &[Node], at: At<'_>) {
        let path = at.path;
        let (mut accepted, mut rejected, mut open) = (0_usize, 0_usize, Vec::new());
        let mut causes = Vec::new();
        for node in nodes {
            let mut check = Self { in_junctor: true, ..Self::default() };
            check.value(At { node, old: None, ..at });
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
    pub(super) fn rules(&mut self, at: At<'_>) {
        let At { node, value, old, path } = at;
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
                    let cause = Cause::invalid(path.field(), value, &rule.message);
                    let ratchets = !rule.is_transition();
                    self.push(Fault { ratchets, is_rule: true, ..Fault::proven(cause) });
                }
                // If the evaluation fails, an unchanged value is rejected too.
                None => {
                    let fault = Fault::unknown(path.field(), &format!("the rule {}", rule.text));
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
