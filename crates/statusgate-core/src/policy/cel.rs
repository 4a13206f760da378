//! Rules in CEL, for what a convention cannot express: compiled and checked when a policy is loaded.
//!
//! The `cel` crate parses and evaluates. This module and `engine::cel` add what it lacks. It has no
//! types, so names are checked by walking the tree. It has no cost limit, so the tree is rewritten:
//! each round of a loop first reads a variable that counts. It compiles a pattern at each use, so
//! patterns become variables too.

mod content;
mod document;
mod names;
mod nesting;
mod reads;
mod rewrite;
mod syntax;

use std::panic::{AssertUnwindSafe, catch_unwind};

use cel::common::ast::{IdedExpr, SourceInfo};

use crate::model::Pointer;

use super::convention::Trigger;
use super::{Disposition, Id};

pub(crate) use document::within;
pub(crate) use reads::ELEMENT;
pub use reads::{Mentions, Part, Place, Reads, Use};
pub use rewrite::{Needs, ORDERED, PATTERN, STEP, Work};

/// The longest expression, in bytes: five times the longest rule known from CRDs in use.
const MAX_LENGTH: usize = 2048;

/// A rule of a policy.
#[derive(Clone, Debug)]
pub struct CelRule {
    /// `local/failed-needs-a-message`: the policy's name and its own.
    pub id: Id,
    /// Its own name.
    pub name: String,
    /// What must hold.
    pub expression: Expression,
    /// The message of its findings.
    pub message: String,
    /// What happens when it does not hold.
    pub action: Disposition,
    /// The field that its findings name.
    pub path: Pointer,
    /// Which writes it judges.
    pub trigger: Trigger,
    /// Whether a write of the default phase alone can violate it. Such a write must never be rejected.
    pub sees_the_phase: bool,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// The rewritten tree.
    pub tree: IdedExpr,
    /// The variables of the rewritten tree in addition to its data, and its cost.
    pub needs: Needs,
    /// The parts of the written and the stored object that it reads.
    pub reads: Reads,
    /// What it names of them.
    pub mentions: Mentions,
}

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Its byte offset in the expression, if known.
    pub(crate) at: Option<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Mistake {
    fn new(at: Option<usize>, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Compiles an expression.
///
/// # Errors
/// All errors that can be found without data.
pub(crate) fn compile(text: &str) -> Result<Expression, Vec<Mistake>> {
    let (mut tree, places) = tree(text)?;
    let mistakes = names::check(&tree, text, &places);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let (reads, mentions) = (Reads::of(&tree), Mentions::of(&tree, text, &places));
    let needs = rewrite::rewrite(&mut tree, text, &places)?;
    Ok(Expression { tree, needs, reads, mentions })
}

/// Parses the rule of a schema, and finds whether it reads `oldSelf`. `None` if it cannot be parsed within
/// the limits of a policy's rules.
pub(crate) fn parse(text: &str) -> Option<(IdedExpr, bool)> {
    let (tree, _) = tree(text).ok()?;
    let reads_stored = Reads::of(&tree).stored.is_some();
    Some((tree, reads_stored))
}

/// What an expression names of the objects.
pub(crate) fn mentions(text: &str) -> Mentions {
    tree(text).map(|(tree, places)| Mentions::of(&tree, text, &places)).unwrap_or_default()
}

fn tree(text: &str) -> Result<(IdedExpr, SourceInfo), Vec<Mistake>> {
    let one = |mistake| Err(vec![mistake]);
    if text.trim().is_empty() {
        return one(Mistake::new(None, "an expression must not be empty"));
    }
    if text.len() > MAX_LENGTH {
        let message =
            format!("an expression has at most {MAX_LENGTH} bytes, this one has {}", text.len());
        return one(Mistake::new(None, message).help("split it into several rules"));
    }
    let depth = nesting::nesting(text);
    if depth > nesting::MAX_NESTING {
        let message = format!(
            "an expression nests at most {} levels deep, this one {depth}",
            nesting::MAX_NESTING
        );
        return one(Mistake::new(None, message).help("split it into several rules"));
    }
    let parser = cel::parser::Parser::new().enable_optional_syntax(true);
    let parsed = catch_unwind(AssertUnwindSafe(|| parser.parse_with_source_info(text)));
    match parsed {
        Ok(Ok(parsed)) => Ok(parsed),
        Ok(Err(errors)) => one(syntax::mistake(text, &errors)),
        Err(_) => one(Mistake::new(None, "invalid CEL: the parser failed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<Mistake> {
        compile(text).unwrap_err()
    }

    #[test]
    fn the_location_of_an_error_is_a_byte_offset() {
        for (text, word) in [
            ("'äöü€' == self.stats.x", "stats"),
            ("'ä' == 'ö' || 'ü' == selff.x", "selff"),
            ("'äö' == self.kind && self.kind.startWith('ü')", "startWith"),
        ] {
            let found = mistakes(text);
            let at = found[0].at.unwrap_or_else(|| panic!("{found:?}"));
            assert!(text[at..].starts_with(word), "{text}: {found:?}");
        }
    }

    #[test]
    fn any_invalid_text_is_reported() {
        for text in [
            "ä",
            "'",
            "\"",
            "\0",
            "'\\u{}'",
            "'\\ud800' == self.kind",
            "r'",
            "1.",
            "9".repeat(99).as_str(),
            "a..b",
            "has()",
            "self.status.all(1, true)",
            "self.status.all(a.b, true)",
            "\u{202e}",
            "`a`",
            "{}{}",
            "[1,]",
            "self.`a-b`",
            "0x",
            "1u.1",
            "b'\\xff'",
            ".self",
            "self.status.x?.y",
            "self.status.?",
            "self.status[?]",
        ] {
            assert!(!mistakes(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn expressions_compile_up_to_the_limits_of_length_and_nesting() {
        let filler = " ".repeat(MAX_LENGTH - 4);
        assert!(compile(&format!("true{filler}")).is_ok());
        assert!(compile(&format!("true {filler}")).is_err());
        let deep = |levels: usize| format!("{}true{}", "(".repeat(levels), ")".repeat(levels));
        assert!(compile(&deep(nesting::MAX_NESTING)).is_ok());
        assert!(compile(&deep(nesting::MAX_NESTING + 1)).is_err());
    }

    /// Otherwise an expression could overflow the stack of a thread.
    #[test]
    fn every_kind_of_nesting_is_counted() {
        let many = 600;
        for (open, middle, close) in [
            ("(", "true", ")"),
            ("[", "1", "]"),
            ("{1:", "1", "}"),
            ("!", "true", ""),
            ("-", "1", ""),
            ("- -", "1", ""),
            ("1+", "1", ""),
            ("1==", "1", ""),
            ("true?true:", "true", ""),
            ("dyn(", "1", ")"),
            ("", "self", ".a"),
            ("", "self", "[0]"),
            ("", "self", ".a()"),
            ("[1].all(x,", "true", ")"),
            ("1 in ", "[1]", ""),
        ] {
            let times = many.min((MAX_LENGTH - middle.len()) / (open.len() + close.len()));
            let text = format!("{}{middle}{}", open.repeat(times), close.repeat(times));
            let found = mistakes(&text);
            assert!(found[0].message.contains("nests"), "{open}{middle}{close}: {found:?}");
        }
    }
}
