//! The parts of an object that an expression reads. Only these are converted to CEL values.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use serde_json::Value;

use crate::model::Pointer;

/// The parts of each variable that an expression reads; `None` if it does not name the variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Of `self`, the written object.
    pub written: Option<Part>,
    /// Of `oldSelf`, the stored object.
    pub stored: Option<Part>,
    /// Of `writer`.
    pub writer: Option<Part>,
}

/// A part of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The complete value.
    pub whole: bool,
    /// Only these members; if empty, only whether the value exists.
    pub members: BTreeMap<String, Self>,
}

impl Reads {
    pub(super) fn of(tree: &IdedExpr) -> Self {
        let mut reads = Self::default();
        reads.visit(tree, &mut Vec::new());
        reads
    }

    fn visit<'e>(&mut self, tree: &'e IdedExpr, bound: &mut Vec<&'e str>) {
        let test = matches!(&tree.expr, Expr::Select(select) if select.test);
        if let Some((root, path)) = path(tree)
            && !bound.contains(&root)
        {
            let variable = match root {
                "self" => &mut self.written,
                "oldSelf" => &mut self.stored,
                "writer" => &mut self.writer,
                _ => return,
            };
            let end = path.iter().fold(variable.get_or_insert_default(), |part, name| {
                part.members.entry((*name).to_owned()).or_default()
            });
            end.whole |= !test;
            return;
        }
        children(tree, bound, &mut |child, bound| self.visit(child, bound));
    }
}

impl Part {
    /// Whether the value at `path`, a part of it, or a complete parent is read.
    pub fn covers(&self, path: &[impl AsRef<str>]) -> bool {
        self.whole
            || match path.split_first() {
                None => true,
                Some((name, rest)) => {
                    self.members.get(name.as_ref()).is_some_and(|member| member.covers(rest))
                }
            }
    }

    /// The longest paths to what is read.
    pub fn paths(&self) -> Vec<Vec<String>> {
        if self.members.is_empty() {
            return vec![Vec::new()];
        }
        let members = self.members.iter().flat_map(|(name, inner)| {
            let below = inner.paths().into_iter();
            below.map(move |path| [vec![name.clone()], path].concat())
        });
        members.collect()
    }
}

/// What an expression names of the written and the stored object. Elements of a list have the name 0.
#[derive(Clone, Debug, Default)]
pub struct Mentions {
    /// The names to each member that it reads, also in loops.
    pub members: BTreeSet<Pointer>,
    /// The constants that it compares with members.
    pub constants: Vec<(Pointer, Value)>,
}

impl Mentions {
    pub(super) fn of(tree: &IdedExpr) -> Self {
        let mut search = Search::default();
        search.visit(tree, &mut Vec::new());
        search.found
    }
}

/// The search for what an expression names.
#[derive(Default)]
struct Search<'e> {
    /// The lists of the loops around an expression, each with the position of its variable.
    loops: Vec<(usize, Option<Vec<&'e str>>)>,
    found: Mentions,
}

impl<'e> Search<'e> {
    fn visit(&mut self, tree: &'e IdedExpr, bound: &mut Vec<&'e str>) {
        if let Some(names) = self.names(tree, bound).filter(|names| !names.is_empty()) {
            self.found.members.insert(pointer(names));
            return;
        }
        if let Expr::Call(call) = &tree.expr
            && let [one, other] = call.args.as_slice()
        {
            let pairs = match call.func_name.as_str() {
                operators::EQUALS | operators::NOT_EQUALS => vec![(one, other), (other, one)],
                operators::IN => match &other.expr {
                    Expr::List(list) => list.elements.iter().map(|item| (one, item)).collect(),
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            };
            for (value, constant) in pairs {
                let Expr::Literal(constant) = &constant.expr else { continue };
                let value = without_default(value);
                if let Some((names, constant)) = self.names(value, bound).zip(json(constant)) {
                    self.found.constants.push((pointer(names), constant));
                }
            }
        }
        let Expr::Comprehension(comprehension) = &tree.expr else {
            return children(tree, bound, &mut |child, bound| self.visit(child, bound));
        };
        // With two variables, the first one is an index or a key.
        let list = self.names(&comprehension.iter_range, bound);
        let list = list.filter(|_| comprehension.iter_var2.is_none());
        self.loops.push((bound.len(), list));
        children(tree, bound, &mut |child, bound| self.visit(child, bound));
        self.loops.pop();
    }

    /// The names from the object to what an expression reads. `None` for anything else, and for the variable of a loop
    /// alone, which may be the key of a map.
    fn names(&self, tree: &'e IdedExpr, bound: &[&str]) -> Option<Vec<&'e str>> {
        let (root, names) = path(tree)?;
        let Some(variable) = bound.iter().rposition(|name| *name == root) else {
            return ["self", "oldSelf"].contains(&root).then_some(names);
        };
        let (_, list) = self.loops.iter().rfind(|(position, _)| *position == variable)?;
        let list = list.as_ref().filter(|_| !names.is_empty())?;
        Some([list, &["0"][..], &names].concat())
    }
}

/// The value before `.orValue(…)`.
fn without_default(tree: &IdedExpr) -> &IdedExpr {
    match &tree.expr {
        Expr::Call(call) if call.func_name == "orValue" => call.target.as_deref().unwrap_or(tree),
        _ => tree,
    }
}

fn pointer(names: Vec<&str>) -> Pointer {
    Pointer::from_tokens(names.into_iter().map(str::to_owned).collect())
}

fn json(literal: &LiteralValue) -> Option<Value> {
    Some(match literal {
        LiteralValue::String(text) => text.inner().into(),
        LiteralValue::Int(number) => (*number.inner()).into(),
        LiteralValue::Double(number) => (*number.inner()).into(),
        LiteralValue::Boolean(value) => (*value.inner()).into(),
        _ => return None,
    })
}

/// The operators that read a member by its name.
const MEMBERS: [&str; 3] = [operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT];

/// The variable and the member names of a path such as `self.a["b"].?c`.
pub(super) fn path(tree: &IdedExpr) -> Option<(&str, Vec<&str>)> {
    match &tree.expr {
        Expr::Ident(name) => Some((name, Vec::new())),
        Expr::Select(select) => {
            let (root, mut names) = path(&select.operand)?;
            names.push(&select.field);
            Some((root, names))
        }
        Expr::Call(call) if MEMBERS.contains(&call.func_name.as_str()) => {
            match call.args.as_slice() {
                [value, IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }] => {
                    let (root, mut names) = path(value)?;
                    names.push(name.inner());
                    Some((root, names))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Visits the direct parts of an expression, with the loop variables in scope.
pub(super) fn children<'e>(
    tree: &'e IdedExpr,
    bound: &mut Vec<&'e str>,
    visit: &mut dyn FnMut(&'e IdedExpr, &mut Vec<&'e str>),
) {
    match &tree.expr {
        Expr::Call(call) => {
            call.target.iter().for_each(|target| visit(target, bound));
            call.args.iter().for_each(|argument| visit(argument, bound));
        }
        Expr::Select(select) => visit(&select.operand, bound),
        Expr::List(list) => list.elements.iter().for_each(|element| visit(element, bound)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    visit(&entry.key, bound);
                    visit(&entry.value, bound);
                }
            }
        }
        Expr::Comprehension(comprehension) => {
            visit(&comprehension.iter_range, bound);
            visit(&comprehension.accu_init, bound);
            let outside = bound.len();
            bound.push(&comprehension.iter_var);
            bound.extend(comprehension.iter_var2.as_deref());
            bound.push(&comprehension.accu_var);
            visit(&comprehension.loop_cond, bound);
            visit(&comprehension.loop_step, bound);
            visit(&comprehension.result, bound);
            bound.truncate(outside);
        }
        Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::cel::compile;

    fn reads(text: &str) -> Reads {
        compile(text).unwrap().reads
    }

    #[test]
    fn only_named_members_are_read() {
        let reads = reads("!has(self.status.phase) || self.status['phase'] == oldSelf.kind");
        let written = reads.written.unwrap();
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        assert!(written.covers(&path("status.phase")));
        assert!(!written.covers(&path("status.conditions")));
        assert!(!written.covers(&path("spec")));
        assert!(reads.stored.unwrap().covers(&path("kind")));
        assert_eq!(reads.writer, None);
    }

    #[test]
    fn a_value_that_is_an_argument_is_read_completely() {
        for text in ["size(self.status) > 0", "self.status.exists(name, self.status[name] == 1)"] {
            let written = reads(text).written.unwrap();
            assert!(written.members["status"].whole, "{text}");
        }
    }

    #[test]
    fn an_optional_member_is_read_like_any_other() {
        let written = reads("self.?status.?a[?'b'].orValue(1) == self.status[?0]").written.unwrap();
        assert!(written.members["status"].whole, "an index of a list is no name");
        let written = reads("self.?status.?a[?'b'].orValue(1) == 1").written.unwrap();
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        assert!(written.covers(&path("status.a.b")));
        assert!(!written.covers(&path("status.a.c")));
    }

    #[test]
    fn has_reads_no_content() {
        let written = reads("has(self.status.conditions)").written.unwrap();
        assert_eq!(written.members["status"].members["conditions"], Part::default());
    }

    #[test]
    fn a_loop_variable_shadows_a_variable_of_the_same_name() {
        assert_eq!(reads("[1].all(self, self > 0)").written, None);
    }
}
