//! `x-kubernetes-validations`. Few are evaluated: only CEL about a plain string or boolean, which no typed
//! value, optional member or cost can change, and only functions with the same results as in cel-go.

use std::sync::OnceLock;

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use serde_json::{Map, Value};

use super::pattern::Pattern;
use crate::policy::cel::parse;

/// A rule of a node.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) text: Box<str>,
    pub(super) message: Box<str>,
    /// Whether the value is a plain string or boolean.
    is_plain: bool,
    /// `optionalOldSelf`.
    is_optional: bool,
    /// Whether it sees the previous value.
    correlates: bool,
    /// The expression, and whether it reads `oldSelf`.
    parsed: OnceLock<Option<(IdedExpr, bool)>>,
}

impl Rule {
    pub(super) fn new(rule: &Value, node: &Map<String, Value>, correlates: bool) -> Self {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).map(str::trim);
        let kind = node.get("type").and_then(Value::as_str);
        let (rule_text, message) = (text("rule").unwrap_or_default(), text("message"));
        let message = message.filter(|message| !message.is_empty()).map(Into::into);
        Self {
            text: rule_text.into(),
            message: message.unwrap_or_else(|| format!("failed rule: {rule_text}").into()),
            // A format gives a value another type in CEL.
            is_plain: matches!(kind, Some("string" | "boolean")) && !node.contains_key("format"),
            is_optional: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
            correlates,
            parsed: OnceLock::new(),
        }
    }

    fn parsed(&self) -> Option<&(IdedExpr, bool)> {
        self.parsed.get_or_init(|| parse(&self.text)).as_ref()
    }

    /// Whether it compares the value with the previous one.
    pub(super) fn is_transition(&self) -> bool {
        self.parsed().is_some_and(|(_, is_transition)| *is_transition)
    }

    /// Whether a value follows the rule. `None` if that is not known.
    pub(super) fn holds(&self, value: &Value, old: Option<&Value>) -> Option<bool> {
        let (tree, is_transition) = self.parsed()?;
        let old = old.filter(|_| self.correlates);
        // Without a previous value, the API server skips it.
        if *is_transition && !self.is_optional && old.is_none_or(Value::is_null) {
            return Some(true);
        }
        if !self.is_plain || (*is_transition && self.is_optional) {
            return None;
        }
        let variables = [("self", Some(value)), ("oldSelf", old)];
        evaluate(tree, &variables)?.flag()
    }
}

/// A value in CEL.
#[derive(Clone, Debug, PartialEq)]
enum Term<'v> {
    Text(&'v str),
    Flag(bool),
    Number(i64),
    List(Vec<Self>),
}

impl Term<'_> {
    fn flag(self) -> Option<bool> {
        if let Self::Flag(flag) = self { Some(flag) } else { None }
    }

    /// `==`; `None` for two types, which CEL's type checker rejects, and for lists.
    fn equals(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Text(_), Self::Text(_))
            | (Self::Flag(_), Self::Flag(_))
            | (Self::Number(_), Self::Number(_)) => Some(self == other),
            _ => None,
        }
    }
}

type Variables<'v> = [(&'static str, Option<&'v Value>)];

fn evaluate<'v>(tree: &'v IdedExpr, variables: &Variables<'v>) -> Option<Term<'v>> {
    match &tree.expr {
        Expr::Ident(name) => {
            let (_, value) = variables.iter().find(|(known, _)| known == name)?;
            match value.as_ref()? {
                Value::String(text) => Some(Term::Text(text)),
                Value::Bool(flag) => Some(Term::Flag(*flag)),
                _ => None,
            }
        }
        Expr::Literal(LiteralValue::String(text)) => Some(Term::Text(text.inner())),
        Expr::Literal(LiteralValue::Boolean(flag)) => Some(Term::Flag(*flag.inner())),
        Expr::Literal(LiteralValue::Int(number)) => Some(Term::Number(*number.inner())),
        Expr::List(list) if list.optional_indices.is_empty() => {
            let items = list.elements.iter().map(|item| evaluate(item, variables));
            Some(Term::List(items.collect::<Option<_>>()?))
        }
        Expr::Call(call) => function(call, variables),
        _ => None,
    }
}

fn function<'v>(call: &'v CallExpr, variables: &Variables<'v>) -> Option<Term<'v>> {
    let target = call.target.as_deref();
    let terms: Vec<_> =
        target.into_iter().chain(&call.args).map(|part| evaluate(part, variables)).collect();
    let flags: Vec<_> = terms.iter().map(|term| term.clone().and_then(Term::flag)).collect();
    let name = call.func_name.as_str();
    let is_method = target.is_some();
    match (name, flags.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, flags) => {
            // One operand may decide; the others may even fail.
            let decisive = name == operators::LOGICAL_OR;
            let is_decided = flags.contains(&Some(decisive));
            let is_known = is_decided || flags.iter().all(Option::is_some);
            let flag = if is_decided { decisive } else { !decisive };
            return is_known.then_some(Term::Flag(flag));
        }
        (operators::CONDITIONAL, [Some(flag), ..]) => {
            return terms.into_iter().nth(if *flag { 1 } else { 2 })?;
        }
        _ => {}
    }
    let terms: Vec<Term<'_>> = terms.into_iter().collect::<Option<_>>()?;
    let flag = match (name, is_method, terms.as_slice()) {
        (operators::LOGICAL_NOT, _, [Term::Flag(flag)]) => !flag,
        (operators::EQUALS, _, [one, other]) => one.equals(other)?,
        (operators::NOT_EQUALS, _, [one, other]) => !one.equals(other)?,
        (operators::LESS, _, [Term::Number(one), Term::Number(other)]) => one < other,
        (operators::LESS_EQUALS, _, [Term::Number(one), Term::Number(other)]) => one <= other,
        (operators::GREATER, _, [Term::Number(one), Term::Number(other)]) => one > other,
        (operators::GREATER_EQUALS, _, [Term::Number(one), Term::Number(other)]) => one >= other,
        (operators::IN, _, [one, Term::List(items)]) => {
            let equal = items.iter().map(|item| one.equals(item));
            equal.collect::<Option<Vec<_>>>()?.contains(&true)
        }
        ("startsWith", true, [Term::Text(text), Term::Text(part)]) => text.starts_with(part),
        ("endsWith", true, [Term::Text(text), Term::Text(part)]) => text.ends_with(part),
        ("contains", true, [Term::Text(text), Term::Text(part)]) => text.contains(part),
        ("matches", _, [Term::Text(text), Term::Text(pattern)]) => {
            Pattern::new(pattern).is_match(text)?
        }
        ("size", _, [Term::Text(text)]) => {
            return i64::try_from(text.chars().count()).ok().map(Term::Number);
        }
        _ => return None,
    };
    Some(Term::Flag(flag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn holds(rule: &str, value: &Value, old: Option<&Value>) -> Option<bool> {
        let node = json!({"type": if value.is_string() { "string" } else { "boolean" }});
        Rule::new(&json!({"rule": rule}), node.as_object().unwrap(), true).holds(value, old)
    }

    #[test]
    fn rules_on_plain_values_are_evaluated() {
        for (rule, expected) in [
            ("self != 'B'", Some(true)),
            ("self in ['Ready', 'Failed']", Some(true)),
            ("self == 'A' || self.startsWith('Re')", Some(true)),
            ("!(self.endsWith('y')) && self.foo()", Some(false)),
            ("size(self) <= 5 && self.size() > 4", Some(true)),
            ("self.matches('^[A-Z][a-z]+$')", Some(true)),
            ("self.contains('x') ? self.foo() : true", Some(true)),
            ("self == 1", None),
            ("self.foo() == 'x'", None),
            ("self.matches('[')", None),
            ("[self].all(x, x == 'Ready')", None),
            ("(", None),
        ] {
            assert_eq!(holds(rule, &json!("Ready"), None), expected, "{rule}");
        }
        assert_eq!(holds("!self", &json!(false), None), Some(true));
        let long = format!("self == '{}'", "x".repeat(5000));
        assert_eq!(holds(&long, &json!("x"), None), None);
    }

    #[test]
    fn a_transition_rule_needs_a_previous_value() {
        let (ready, failed) = (json!("Ready"), json!("Failed"));
        for (old, expected) in [
            (None, Some(true)),
            (Some(&Value::Null), Some(true)),
            (Some(&ready), Some(true)),
            (Some(&failed), Some(false)),
        ] {
            assert_eq!(holds("self == oldSelf", &ready, old), expected, "{old:?}");
        }
        let rule = json!({"rule": "oldSelf.hasValue() || self == 'x'", "optionalOldSelf": true});
        let node = json!({"type": "string"});
        assert_eq!(Rule::new(&rule, node.as_object().unwrap(), true).holds(&ready, None), None);
    }

    #[test]
    fn typed_values_are_not_proven() {
        let node = json!({"type": "string", "format": "date-time"});
        let rule = Rule::new(&json!({"rule": "self != ''"}), node.as_object().unwrap(), true);
        assert_eq!(rule.holds(&json!("2024-01-01T00:00:00Z"), None), None);
    }
}
