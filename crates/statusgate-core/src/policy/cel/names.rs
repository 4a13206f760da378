//! Checks an expression without data: names, functions, loops, the result.
//!
//! The `cel` crate has no types: without these checks, a misspelled member would fail at the first write.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators};

use super::Mistake;
use super::reads::{children, path};
use crate::source::tree::did_you_mean;

/// Nested loops. Two levels can compare every element with every other; no known rule needs a third.
const MAX_LOOPS: usize = 2;

const VARIABLES: [&str; 3] = ["self", "oldSelf", "writer"];

/// Type names are values, for `type(x) == string`.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

/// The members of an object.
const OBJECT: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];
const METADATA: [&str; 7] = [
    "name",
    "namespace",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
];
const WRITER: [&str; 2] = ["user", "groups"];

/// Functions and their number of arguments.
const FUNCTIONS: [(&str, usize); 12] = [
    ("size", 1),
    ("int", 1),
    ("uint", 1),
    ("double", 1),
    ("string", 1),
    ("bool", 1),
    ("bytes", 1),
    ("dyn", 1),
    ("type", 1),
    ("matches", 2),
    ("timestamp", 1),
    ("duration", 1),
];

/// Methods and their number of arguments; the last four are those of optional values. The parts of a time
/// (`getHours`) are missing: without a zone, cel 0.15 returns them in that of the text, cel-go in UTC.
const METHODS: [(&str, usize); 9] = [
    ("contains", 1),
    ("startsWith", 1),
    ("endsWith", 1),
    ("matches", 1),
    ("size", 0),
    ("hasValue", 0),
    ("value", 0),
    ("or", 1),
    ("orValue", 1),
];

/// The parser expands these to loops if they are called correctly.
const MACROS: [&str; 5] = ["all", "exists", "exists_one", "map", "filter"];

/// All errors in a tree.
pub(super) fn check(tree: &IdedExpr, text: &str, places: &SourceInfo) -> Vec<Mistake> {
    let mut checker = Checker { text, places, mistakes: Vec::new() };
    checker.visit(tree, &mut Vec::new(), 0);
    if checker.mistakes.is_empty()
        && let Some(kind) = never_boolean(tree)
    {
        let message = format!("an expression must return true or false, this one returns {kind}");
        checker.mistakes.push(Mistake::new(None, message));
    }
    checker.mistakes
}

struct Checker<'t> {
    text: &'t str,
    places: &'t SourceInfo,
    mistakes: Vec<Mistake>,
}

impl Checker<'_> {
    fn visit<'e>(&mut self, tree: &'e IdedExpr, bound: &mut Vec<&'e str>, loops: usize) {
        let mut inside = loops;
        match &tree.expr {
            Expr::Ident(name) => self.variable(tree, name, bound),
            Expr::Select(_) => self.members(tree, bound),
            Expr::Call(call) => {
                self.members(tree, bound);
                self.function(tree, call);
                self.operands(call, bound);
            }
            Expr::Comprehension(_) => {
                inside += 1;
                if inside == MAX_LOOPS + 1 {
                    let message = format!("at most {MAX_LOOPS} nested loops");
                    self.report(tree, "", message, "split it into several rules");
                }
            }
            Expr::Struct(message) => {
                let what = format!("unknown type \"{}\"", message.type_name);
                self.report(tree, &message.type_name, what, "use a map: {\"name\": value}");
            }
            Expr::Unspecified => {
                self.report(tree, "", "invalid CEL: a part is missing".to_owned(), "complete it");
            }
            Expr::List(_) | Expr::Map(_) | Expr::Literal(_) => {}
        }
        children(tree, bound, &mut |child, bound| self.visit(child, bound, inside));
    }

    fn variable(&mut self, tree: &IdedExpr, name: &str, bound: &[&str]) {
        if !bound.contains(&name) && VARIABLES.iter().chain(&TYPES).all(|known| *known != name) {
            let bound = bound.iter().copied().filter(|name| !name.starts_with('@'));
            let near = did_you_mean(name, VARIABLES.into_iter().chain(bound));
            self.report(tree, name, format!("unknown variable \"{name}\""), &near);
        }
    }

    /// Checks the last name of a path to known members.
    fn members(&mut self, tree: &IdedExpr, bound: &[&str]) {
        let Some((root, names)) = path(tree) else { return };
        let Some((name, before)) = names.split_last() else { return };
        let known: &[&str] = match (root, before) {
            _ if bound.contains(&root) => return,
            ("self" | "oldSelf", []) => &OBJECT,
            ("self" | "oldSelf", ["metadata"]) => &METADATA,
            ("writer", []) => &WRITER,
            _ => return,
        };
        if known.contains(name) {
            return;
        }
        let owner = before.iter().fold(root.to_owned(), |owner, name| owner + "." + name);
        let message = format!("unknown member \"{name}\" of {owner}");
        let help = did_you_mean(name, known.iter().copied());
        self.report(tree, name, message, &help);
    }

    fn function(&mut self, tree: &IdedExpr, call: &CallExpr) {
        let name = call.func_name.as_str();
        let is_operator = !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            || operators::find_operator(name).is_some()
            || name.starts_with('_') && name.ends_with('_');
        if is_operator {
            return;
        }
        let (known, macros): (&[(&str, usize)], &[&str]) =
            if call.target.is_some() { (&METHODS, &MACROS) } else { (&FUNCTIONS, &["has"]) };
        if macros.contains(&name) {
            let help = if name == "has" {
                "write has(self.status.field)".to_owned()
            } else {
                format!("write list.{name}(x, …)")
            };
            return self.report(tree, name, format!("wrong call of {name}"), &help);
        }
        match known.iter().find(|(known, _)| *known == name) {
            None => {
                let names = known.iter().map(|(known, _)| *known).chain(macros.iter().copied());
                let help = did_you_mean(name, names);
                self.report(tree, name, format!("unknown function \"{name}\""), &help);
            }
            Some((_, wanted)) if *wanted != call.args.len() => {
                let noun = if *wanted == 1 { "argument" } else { "arguments" };
                let message = format!("{name} takes {wanted} {noun} here, not {}", call.args.len());
                self.report(tree, name, message, "docs/policies.md lists the functions");
            }
            Some(_) => {}
        }
    }

    /// Checks the operands that must be true or false; `all` and `exists` use the same operators.
    fn operands(&mut self, call: &CallExpr, bound: &[&str]) {
        let wanted = match call.func_name.as_str() {
            operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => 2,
            operators::CONDITIONAL => 1,
            _ => 0,
        };
        for operand in call.args.iter().take(wanted) {
            if matches!(&operand.expr, Expr::Ident(name) if bound.contains(&name.as_str())) {
                continue;
            }
            if let Some(kind) = never_boolean(operand) {
                let message = format!("this must be true or false, but it is {kind}");
                self.report(operand, "", message, "compare it with a value, or test it with has");
            }
        }
    }

    /// Reports an error at `word`. The parser's location of a member is its dot, of a call its bracket.
    fn report(&mut self, tree: &IdedExpr, word: &str, message: String, help: &str) {
        let mistake = Mistake::new(place(self.text, self.places, tree, word), message).help(help);
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }
}

/// The byte offset of `word` nearest to the parser's location of the expression.
pub(super) fn place(text: &str, places: &SourceInfo, tree: &IdedExpr, word: &str) -> Option<usize> {
    let (start, _) = places.offset_for(tree.id)?;
    let mut start = usize::try_from(start).ok()?.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let behind = text[start..].find(word).map(|at| start + at);
    let before = || text[..start].rfind(word);
    // The location of a call is its bracket, after its name.
    if text[..start].ends_with(word) { before() } else { behind.or_else(before) }
}

/// The type of an expression's result, if it cannot be a boolean.
fn never_boolean(tree: &IdedExpr) -> Option<&'static str> {
    match &tree.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => None,
        Expr::Literal(LiteralValue::String(_)) => Some("a string"),
        Expr::Literal(LiteralValue::Null) => Some("null"),
        Expr::Literal(_) => Some("a number"),
        Expr::List(_) => Some("a list"),
        Expr::Map(_) => Some("a map"),
        Expr::Ident(name) if VARIABLES.contains(&name.as_str()) => Some("an object"),
        Expr::Ident(name) if TYPES.contains(&name.as_str()) => Some("a type"),
        Expr::Call(call) => match call.func_name.as_str() {
            "size" | "int" | "uint" | "double" => Some("a number"),
            "string" => Some("a string"),
            "bytes" => Some("bytes"),
            "type" => Some("a type"),
            "timestamp" => Some("a timestamp"),
            "duration" => Some("a duration"),
            operators::OPT_SELECT | operators::OPT_INDEX => Some("an optional value"),
            operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::NEGATE => Some("a number"),
            operators::ADD => Some("a sum"),
            operators::CONDITIONAL => call.args.iter().skip(1).find_map(never_boolean),
            _ => None,
        },
        // `map` and `filter` return a list.
        Expr::Comprehension(comprehension) => never_boolean(&comprehension.accu_init)
            .filter(|_| matches!(comprehension.result.expr, Expr::Ident(_))),
        _ => None,
    }
}
