//! The parts of an object that an expression reads. Only these are converted to CEL values.

use std::collections::BTreeMap;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators};
use serde_json::Value;

use super::names::place;
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

/// The name of the elements of a list, and of the values of a map.
pub(crate) const ELEMENT: &str = "0";

/// What an expression names of the written and the stored object.
#[derive(Clone, Debug, Default)]
pub struct Mentions {
    /// The names to each member that it reads, also in loops.
    pub members: BTreeMap<Pointer, Place>,
    /// The constants that are equal to members, or not.
    pub constants: Vec<(Pointer, Value, Place)>,
    /// The members that are equal to other members, or not.
    pub pairs: Vec<(Pointer, Pointer, Place)>,
    /// What it takes members for.
    pub uses: BTreeMap<(Pointer, Use), Place>,
}

/// The byte of the expression where something is first, if known.
pub type Place = Option<usize>;

/// What an expression takes a value for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A number: it is smaller or larger than one.
    Number,
    /// A text: it has a beginning, or is smaller or larger than one.
    Text,
    /// Something with a size.
    Sized,
    /// A time in a text.
    Time,
    /// A list: its elements have members.
    List,
    /// A map: it has a value for each of its keys.
    Map,
}

impl Mentions {
    pub(super) fn of(tree: &IdedExpr, text: &str, places: &SourceInfo) -> Self {
        let mut search = Search { text, places, loops: Vec::new(), found: Self::default() };
        search.visit(tree, &mut Vec::new());
        search.found
    }
}

/// The search for what an expression names.
struct Search<'e> {
    text: &'e str,
    places: &'e SourceInfo,
    /// The lists of the loops around an expression, each with the position of its variable.
    loops: Vec<(usize, Option<Vec<&'e str>>)>,
    found: Mentions,
}

impl<'e> Search<'e> {
    fn visit(&mut self, tree: &'e IdedExpr, bound: &mut Vec<&'e str>) {
        if let Some(names) = self.names(tree, bound).filter(|names| !names.is_empty()) {
            // The elements of a list are no members.
            if names.last() != Some(&ELEMENT) {
                let place = self.place(tree, &names);
                self.found.members.entry(pointer(names)).or_insert(place);
            }
            return;
        }
        if let Expr::Call(call) = &tree.expr {
            self.call(call, bound);
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

    /// Adds the constants that are compared, and what a function or an operator takes its operands for.
    fn call(&mut self, call: &'e CallExpr, bound: &[&str]) {
        let subject = call.target.as_deref().or_else(|| call.args.first());
        let function = call.func_name.as_str();
        let taken = match function {
            "size" => Some(Use::Sized),
            "startsWith" | "endsWith" | "contains" | "matches" => Some(Use::Text),
            "timestamp" => Some(Use::Time),
            _ => None,
        };
        if let Some((value, taken)) = subject.zip(taken) {
            self.takes(value, taken, bound);
        }
        let [one, other] = call.args.as_slice() else { return };
        match (function, &other.expr) {
            (operators::EQUALS | operators::NOT_EQUALS, _) => {
                self.equals(one, other, None, bound);
                self.equals(other, one, None, bound);
                if let Some((names, others)) = self.names(one, bound).zip(self.names(other, bound))
                {
                    let place = self.place(other, &others);
                    self.found.pairs.push((pointer(names), pointer(others), place));
                }
            }
            (operators::IN, Expr::List(list)) => {
                list.elements.iter().for_each(|item| self.equals(one, item, None, bound));
            }
            (operators::IN, _) => self.equals(other, one, Some(ELEMENT), bound),
            (function, _) if COMPARISONS.contains(&function) => {
                for (value, limit) in [(one, other), (other, one)] {
                    let taken = match &limit.expr {
                        Expr::Literal(LiteralValue::Int(_) | LiteralValue::Double(_)) => {
                            Use::Number
                        }
                        Expr::Literal(LiteralValue::String(_)) => Use::Text,
                        _ => continue,
                    };
                    self.takes(value, taken, bound);
                }
            }
            _ => {}
        }
    }

    /// Adds a constant that is equal to a value, or to the elements of one, or not.
    fn equals(
        &mut self,
        value: &'e IdedExpr,
        constant: &IdedExpr,
        below: Option<&'e str>,
        bound: &[&str],
    ) {
        let Expr::Literal(literal) = &constant.expr else { return };
        if let Some((names, value)) = self.names(value, bound).zip(json(literal)) {
            let names = names.into_iter().chain(below).collect();
            let word = value.as_str().unwrap_or_default();
            let place = place(self.text, self.places, constant, word);
            self.found.constants.push((pointer(names), value, place));
        }
    }

    fn takes(&mut self, value: &'e IdedExpr, taken: Use, bound: &[&str]) {
        if let Some(names) = self.names(value, bound) {
            self.uses(value, names, taken);
        }
    }

    fn uses(&mut self, tree: &IdedExpr, names: Vec<&str>, taken: Use) {
        let place = self.place(tree, &names);
        self.found.uses.entry((pointer(names), taken)).or_insert(place);
    }

    /// Where the last name is.
    fn place(&self, tree: &IdedExpr, names: &[&str]) -> Place {
        let name = names.iter().rfind(|name| **name != ELEMENT)?;
        place(self.text, self.places, without_default(tree), name)
    }

    /// The names from the object to what an expression reads. `None` for anything else.
    fn names(&mut self, tree: &'e IdedExpr, bound: &[&str]) -> Option<Vec<&'e str>> {
        let tree = without_default(tree);
        if let Some(value) = self.value_of_map(tree, bound) {
            return Some(value);
        }
        if let Expr::Select(select) = &tree.expr
            && let Some(above) = self.value_of_map(&select.operand, bound)
        {
            return Some([&above[..], &[&select.field]].concat());
        }
        let (root, names) = path(tree)?;
        let Some(list) = self.looped(root, bound) else {
            let is_object = !bound.contains(&root) && ["self", "oldSelf"].contains(&root);
            return is_object.then_some(names);
        };
        // The variable alone may be the key of a map.
        if !names.is_empty() {
            self.uses(tree, list.clone(), Use::List);
        }
        Some([&list[..], &[ELEMENT], &names].concat())
    }

    /// `self.a[k]` in a loop over `self.a`: the value of each key.
    fn value_of_map(&mut self, tree: &'e IdedExpr, bound: &[&str]) -> Option<Vec<&'e str>> {
        let Expr::Call(call) = &tree.expr else { return None };
        let [map, IdedExpr { expr: Expr::Ident(key), .. }] = call.args.as_slice() else {
            return None;
        };
        if !MEMBERS.contains(&call.func_name.as_str()) {
            return None;
        }
        let (map, looped) = (self.names(map, bound)?, self.looped(key, bound)?);
        if map != looped {
            return None;
        }
        self.uses(tree, map.clone(), Use::Map);
        Some([&map[..], &[ELEMENT]].concat())
    }

    /// The names to a list or map; the variable has its elements or keys.
    fn looped(&self, variable: &str, bound: &[&str]) -> Option<Vec<&'e str>> {
        let place = bound.iter().rposition(|name| *name == variable)?;
        let (_, list) = self.loops.iter().rfind(|(position, _)| *position == place)?;
        list.clone()
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

pub(super) fn json(literal: &LiteralValue) -> Option<Value> {
    Some(match literal {
        LiteralValue::String(text) => text.inner().into(),
        LiteralValue::Int(number) => (*number.inner()).into(),
        LiteralValue::Double(number) => (*number.inner()).into(),
        LiteralValue::Boolean(value) => (*value.inner()).into(),
        _ => return None,
    })
}

/// The operators that compare two numbers, or two texts.
pub(super) const COMPARISONS: [&str; 4] =
    [operators::LESS, operators::LESS_EQUALS, operators::GREATER, operators::GREATER_EQUALS];

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
