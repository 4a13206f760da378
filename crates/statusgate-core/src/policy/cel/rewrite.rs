//! Rewrites a tree to count its work and to compile its patterns once.
//!
//! Both use variables that no expression can name. Before each round of a loop, the tree reads
//! `@step0`; the resolver counts and returns false when the budget is used up. `x.matches("…")` becomes
//! `x in @pattern0`, a value that contains the strings it matches.

use cel::common::ast::{CallExpr, Expr, IdedExpr, ListExpr, LiteralValue, SourceInfo, operators};
use cel::common::ast::{ComprehensionExpr, EntryExpr};
use cel::{Context, Value};

use super::Mistake;
use super::names::place;
use super::reads::{COMPARISONS, path};
use crate::language::Pattern;

/// The variable that counts a round of loop N is this prefix and N.
pub const STEP: &str = "@step";

/// The variable of pattern N is this prefix and N.
pub const PATTERN: &str = "@pattern";

/// A function that returns the sorted keys of a map, and any other value unchanged.
pub const ORDERED: &str = "@ordered";

/// Operations with a cost that depends on the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Operations that may visit all values: `==`, `in`, list literals.
    pub values: u32,
    /// Operations that may read a whole string: `contains`, `matches`, `+`.
    pub texts: u32,
}

/// What a rewritten tree needs in addition to its data.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// The patterns, by number.
    pub patterns: Vec<Pattern>,
    /// The work per round of each loop, by number.
    pub rounds: Vec<Work>,
    /// The work outside loops.
    pub once: Work,
}

/// Rewrites a checked tree.
pub(super) fn rewrite(
    tree: &mut IdedExpr,
    text: &str,
    places: &SourceInfo,
) -> Result<Needs, Vec<Mistake>> {
    let mut rewriter = Rewriter {
        text,
        places,
        needs: Needs::default(),
        mistakes: Vec::new(),
        work: Work::default(),
    };
    rewriter.visit(tree);
    rewriter.needs.once = rewriter.work;
    if rewriter.mistakes.is_empty() { Ok(rewriter.needs) } else { Err(rewriter.mistakes) }
}

struct Rewriter<'t> {
    text: &'t str,
    places: &'t SourceInfo,
    needs: Needs,
    mistakes: Vec<Mistake>,
    /// The work since the start of the innermost loop.
    work: Work,
}

impl Rewriter<'_> {
    fn visit(&mut self, tree: &mut IdedExpr) {
        match &mut tree.expr {
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Call(call) => {
                if call.func_name == "matches" {
                    let pattern = call.args.pop();
                    let subject =
                        call.target.take().map(|target| *target).or_else(|| call.args.pop());
                    let number = pattern.and_then(|pattern| self.pattern(&pattern));
                    let (Some(subject), Some(number)) = (subject, number) else { return };
                    call.func_name = operators::IN.to_owned();
                    call.args = vec![subject, ident(format!("{PATTERN}{number}"))];
                }
                self.constant(call);
                self.count(call);
                call.target.iter_mut().for_each(|target| self.visit(target));
                call.args.iter_mut().for_each(|argument| self.visit(argument));
            }
            Expr::Select(select) => self.visit(&mut select.operand),
            Expr::List(ListExpr { elements, .. }) => {
                // The evaluator copies the elements of a list.
                self.work.values += elements.iter().map(copies).sum::<u32>();
                elements.iter_mut().for_each(|element| self.visit(element));
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        self.work.values += copies(&entry.value);
                        self.visit(&mut entry.key);
                        self.visit(&mut entry.value);
                    }
                }
            }
            Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn comprehension(&mut self, comprehension: &mut ComprehensionExpr) {
        self.visit(&mut comprehension.iter_range);
        let outside = std::mem::take(&mut self.work);
        let variable = comprehension.iter_var.as_str();
        match appended(&mut comprehension.loop_step) {
            Some((guard, element)) => {
                // An element of the iterated list is copied once; any other value in each round.
                let own = path(element).is_some_and(|(root, _)| root == variable);
                self.work.values += if own { 0 } else { copies(element) };
                guard.into_iter().for_each(|guard| self.visit(guard));
                self.visit(element);
            }
            None => self.visit(&mut comprehension.loop_step),
        }
        let round = std::mem::replace(&mut self.work, outside);
        let step = ident(format!("{STEP}{}", self.needs.rounds.len()));
        self.needs.rounds.push(round);
        // `map` and `filter` append in place only if their loop condition is a literal. Then the count
        // guards the step; otherwise it becomes a part of the condition.
        if matches!(comprehension.loop_cond.expr, Expr::Literal(_)) {
            let mut body = std::mem::take(&mut comprehension.loop_step);
            match &mut body.expr {
                Expr::Call(CallExpr { func_name, args, .. })
                    if func_name == operators::CONDITIONAL && !args.is_empty() =>
                {
                    let guard = std::mem::take(&mut args[0]);
                    args[0] = call(operators::LOGICAL_AND, vec![step, guard]);
                }
                _ => {
                    let kept = ident(comprehension.accu_var.clone());
                    body = call(operators::CONDITIONAL, vec![step, body, kept]);
                }
            }
            comprehension.loop_step = body;
        } else {
            let condition = std::mem::take(&mut comprehension.loop_cond);
            comprehension.loop_cond = call(operators::LOGICAL_AND, vec![step, condition]);
        }
        // The evaluator's maps have a random order; results must be stable.
        let range = std::mem::take(&mut comprehension.iter_range);
        comprehension.iter_range = call(ORDERED, vec![range]);
    }

    fn pattern(&mut self, tree: &IdedExpr) -> Option<usize> {
        let Expr::Literal(LiteralValue::String(pattern)) = &tree.expr else {
            let at = place(self.text, self.places, tree, "");
            let mistake = Mistake::new(at, "the pattern of matches must be a string literal")
                .help("patterns are compiled once, when the policy is loaded");
            self.mistakes.push(mistake);
            return None;
        };
        match pattern.inner().parse::<Pattern>() {
            Ok(pattern) => {
                self.needs.patterns.push(pattern);
                Some(self.needs.patterns.len() - 1)
            }
            Err(error) => {
                let at = place(self.text, self.places, tree, "");
                self.mistakes.push(Mistake::new(at, error));
                None
            }
        }
    }

    /// Reports the conversion of a text that always fails: the rule could never be evaluated.
    fn constant(&mut self, call: &CallExpr) {
        let [argument] = call.args.as_slice() else { return };
        let Expr::Literal(LiteralValue::String(text)) = &argument.expr else { return };
        let example = match call.func_name.as_str() {
            "timestamp" => "2026-01-01T00:00:00Z",
            "duration" => "24h",
            "int" | "uint" => "3",
            "double" => "0.5",
            "bool" => "true",
            _ => return,
        };
        let tree = IdedExpr { id: 0, expr: Expr::Call(call.clone()) };
        if Value::resolve(&tree, &Context::default()).is_err() {
            let at = place(self.text, self.places, argument, "");
            let message = format!("{} never accepts {:?}", call.func_name, text.inner());
            let help = format!("for example {}('{example}')", call.func_name);
            self.mistakes.push(Mistake::new(at, message).help(help));
        }
    }

    fn count(&mut self, call: &CallExpr) {
        let literal = |argument: &IdedExpr| matches!(argument.expr, Expr::Literal(_));
        let (values, texts) = match call.func_name.as_str() {
            operators::EQUALS | operators::NOT_EQUALS if !call.args.iter().any(literal) => (1, 1),
            operators::IN => (1, 1),
            operators::ADD if !call.args.iter().any(is_number) => (1, 1),
            name if COMPARISONS.contains(&name) && !call.args.iter().any(literal) => (0, 1),
            "contains" | "size" | "bytes" | "string" | "int" | "uint" | "double" | "timestamp"
            | "duration" => (0, 1),
            _ => (0, 0),
        };
        self.work.values += values;
        self.work.texts += texts;
    }
}

fn is_number(tree: &IdedExpr) -> bool {
    let Expr::Literal(literal) = &tree.expr else { return false };
    !matches!(literal, LiteralValue::String(_) | LiteralValue::Bytes(_))
}

/// The guard and the element of a step that appends an element, as in `filter` and `map`.
fn appended(step: &mut IdedExpr) -> Option<(Option<&mut IdedExpr>, &mut IdedExpr)> {
    let Expr::Call(call) = &mut step.expr else { return None };
    match (call.func_name.as_str(), call.args.as_mut_slice()) {
        (operators::CONDITIONAL, [guard, step, _]) => {
            appended(step).map(|(_, element)| (Some(guard), element))
        }
        (operators::ADD, [_, IdedExpr { expr: Expr::List(list), .. }]) => {
            list.elements.first_mut().map(|element| (None, element))
        }
        _ => None,
    }
}

/// The cost of copying an element into a list, of any size. An allocation costs as much as visiting 16
/// values.
fn copies(element: &IdedExpr) -> u32 {
    if matches!(element.expr, Expr::Literal(_)) { 0 } else { 16 }
}

fn ident(name: String) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Ident(name) }
}

fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::cel::compile;

    fn needs(text: &str) -> Needs {
        compile(text).unwrap().needs
    }

    #[test]
    fn a_constant_that_never_converts_is_a_mistake() {
        for (text, word) in [
            ("timestamp(self.status.t) > timestamp('2026-01-01')", "'2026-01-01'"),
            ("duration('1d') > duration('1h')", "'1d'"),
            ("int('3.5') == 3", "'3.5'"),
            ("uint('-1') == 1u", "'-1'"),
            ("double('a') > 1.0", "'a'"),
        ] {
            let mistakes = compile(text).unwrap_err();
            let at = mistakes[0].at.unwrap();
            assert!(mistakes.len() == 1 && text[at..].starts_with(word), "{text}: {mistakes:?}");
        }
        let sound = "timestamp('2026-01-01T00:00:00Z') < timestamp(self.status.t) && \
                     duration('1h30m') > duration('1s') && int('3') == 3 && uint('3') == 3u && \
                     double('1e3') > 1.0";
        assert!(compile(sound).is_ok(), "{:?}", compile(sound).err());
    }

    #[test]
    fn work_is_counted_for_the_innermost_loop() {
        let needs = needs("self.status.a.all(x, self.status.b.exists(y, x == y || x.contains(y)))");
        let [inner, outer] = needs.rounds.as_slice() else { panic!("{needs:?}") };
        assert_eq!(*inner, Work { values: 1, texts: 2 });
        assert_eq!((*outer, needs.once), (Work::default(), Work::default()));
    }

    #[test]
    fn common_rules_about_conditions_cost_only_their_rounds() {
        for text in [
            "self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
            "self.status.conditions.filter(c, c.type == 'Ready').all(c, has(c.reason))",
            "'Ready' == self.status.conditions.map(c, c.type)[0]",
            "self.status.conditions.exists_one(c, c.type == 'Ready')",
        ] {
            let needs = needs(text);
            assert!(
                needs.rounds.iter().all(|round| *round == Work::default()),
                "{text}: {needs:?}"
            );
        }
    }

    #[test]
    fn both_forms_of_matches_compile_their_pattern_at_load() {
        for text in ["self.kind.matches('^[a-z]+$')", "matches(self.kind, '^[a-z]+$')"] {
            assert_eq!(needs(text).patterns.len(), 1, "{text}");
        }
    }
}
