//! What can be said of an expression without data: whether it is constant, and its literals.

use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};
use serde_json::Value;

use super::Expression;
use super::reads::{children, json};
use crate::language::Pattern;

impl Expression {
    /// The result, if it is the same for all data.
    pub fn constant(&self) -> Option<bool> {
        constant(&self.tree)
    }

    /// Whether it reads anything of a write.
    pub fn reads_something(&self) -> bool {
        let reads = &self.reads;
        reads.written.is_some() || reads.stored.is_some() || reads.writer.is_some()
    }

    /// The texts and numbers that it names, and the patterns.
    pub fn literals(&self) -> (Vec<Value>, &[Pattern]) {
        let mut found = Vec::new();
        collect(&self.tree, &mut found);
        (found, &self.needs.patterns)
    }
}

fn constant(tree: &IdedExpr) -> Option<bool> {
    match &tree.expr {
        Expr::Literal(LiteralValue::Boolean(value)) => Some(*value.inner()),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, [operand]) => constant(operand).map(|value| !value),
            // One operand can decide alone.
            (operators::LOGICAL_OR, [one, other]) => decided(one, other, true),
            (operators::LOGICAL_AND, [one, other]) => decided(one, other, false),
            (operators::CONDITIONAL, [_, one, other]) => {
                constant(one).filter(|value| constant(other) == Some(*value))
            }
            _ => None,
        },
        _ => None,
    }
}

fn decided(one: &IdedExpr, other: &IdedExpr, by: bool) -> Option<bool> {
    let (one, other) = (constant(one), constant(other));
    if one == Some(by) || other == Some(by) { Some(by) } else { one.and(other) }
}

fn collect(tree: &IdedExpr, found: &mut Vec<Value>) {
    if let Expr::Literal(literal) = &tree.expr {
        let value = json(literal).filter(|value| !value.is_boolean());
        found.extend(value.filter(|value| !found.contains(value)));
    }
    children(tree, &mut Vec::new(), &mut |child, _| collect(child, found));
}

#[cfg(test)]
mod tests {
    use crate::policy::cel::compile;

    #[test]
    fn a_part_that_decides_alone_makes_the_result_constant() {
        for (text, expected) in [
            ("true", Some(true)),
            ("!true", Some(false)),
            ("has(self.status.x) || true", Some(true)),
            ("false && self.status.x == 1", Some(false)),
            ("has(self.status.x) ? true : !false", Some(true)),
            ("true && self.status.x == 1", None),
            ("has(self.status.x) ? true : false", None),
        ] {
            assert_eq!(compile(text).unwrap().constant(), expected, "{text}");
        }
    }
}
