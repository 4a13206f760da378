//! The `rules` of a `StatusPolicy`: from YAML to [`CelRule`].

use super::{CelRule, Mistake, compile};
use crate::model::Pointer;
use crate::policy::Action;
use crate::policy::convention::{Backfill, Convention, Trigger, read_trigger};
use crate::source::tree::{Node, Problems, Span};

/// Reads the rules of the policy `policy`. What they say of the phase depends on the convention and on
/// what the policy fills in.
pub(crate) fn read(
    policy: &str,
    node: &Node,
    problems: &Problems,
    convention: Option<&Convention>,
    backfill: &[Backfill],
) -> Vec<CelRule> {
    let mut names: Vec<&str> = Vec::new();
    problems.list(node, |item| {
        let map = problems.map(item)?;
        let name = map.required("name");
        let name = name.and_then(|node| {
            let text = problems.identifier(node)?;
            if names.contains(&text) {
                problems.report(&node.span, format!("rule {text} is listed twice"));
            }
            names.push(text);
            Some(text)
        });
        let expression = map.required("expression").and_then(|node| {
            let text = problems.string(node)?;
            compile(text).map_err(|mistakes| report(problems, node, text, mistakes)).ok()
        });
        let message = map.required("message").and_then(|node| problems.sentence(node, "message"));
        let action =
            map.get("action").map_or(Some(Action::Deny), |node| Action::read(node, problems));
        let path = match map.get("path") {
            Some(node) => status_pointer(node, problems),
            None => "/status".parse().ok(),
        };
        let trigger = match map.get("trigger") {
            Some(node) => read_trigger(node, problems),
            None => Some(Trigger::Introduced),
        };
        let source = map.get("source").and_then(|node| problems.string(node)).unwrap_or_default();
        map.close();
        let (name, expression, trigger) = (name?, expression?, trigger?);
        let sees_the_phase = sees_the_phase(&expression, &trigger, convention, backfill);
        Some(CelRule {
            id: format!("{policy}/{name}"),
            name: name.to_owned(),
            expression,
            message: message?.to_owned(),
            action: action?,
            path: path?,
            trigger,
            source: source.to_owned(),
            sees_the_phase,
        })
    })
}

/// Whether a write that sets nothing but the phase, and what the mutating webhook adds to it, could
/// violate a rule that the stored object does not violate.
///
/// A rule with the trigger `introduced` that reads neither of these answers the same before and
/// after. With another trigger it may be a violation of old that is held against the write, and
/// `oldSelf` is another object at each write.
fn sees_the_phase(
    expression: &super::Expression,
    trigger: &Trigger,
    convention: Option<&Convention>,
    backfill: &[Backfill],
) -> bool {
    let Some(phase) = convention.and_then(|convention| convention.phase.as_ref()) else {
        return false;
    };
    let time = phase.transition_time.iter().map(|time| &time.path);
    let mut moved =
        std::iter::once(&phase.path).chain(time).chain(backfill.iter().map(Backfill::path));
    let reads = &expression.reads;
    *trigger != Trigger::Introduced
        || reads.stored.is_some()
        || moved.any(|path| reads.written.as_ref().is_some_and(|part| part.covers(path.tokens())))
}

/// `/status`, or something below it.
fn status_pointer(node: &Node, problems: &Problems) -> Option<Pointer> {
    let pointer: Pointer = problems.parsed(node)?;
    if pointer.tokens().first().is_none_or(|first| first != "status") {
        problems.report(&node.span, "this must be /status or point below it");
        return None;
    }
    Some(pointer)
}

fn report(problems: &Problems, node: &Node, text: &str, mistakes: Vec<Mistake>) {
    for Mistake { at, message, help } in mistakes {
        match at.map(|at| (at, within(&node.span, text, at))) {
            Some((_, Some(span))) => problems.report_with_help(&span, message, help),
            Some((at, None)) => {
                let before = &text[..at];
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                let message = format!("{message} (line {line}, column {column} of the expression)");
                problems.report_with_help(&node.span, message, help);
            }
            None => problems.report_with_help(&node.span, message, help),
        }
    }
}

/// The bytes of the document that byte `at` of a text comes from, up to the end of the word there.
/// Known only where the document has the text as it is, plain or in quotes: folding and escapes make
/// it another length.
fn within(span: &Span, text: &str, at: usize) -> Option<Span> {
    let quote = match span.bytes.len().checked_sub(text.len())? {
        0 => 0,
        2 => 1,
        _ => return None,
    };
    let rest = &text[at..];
    let word = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let length = word.unwrap_or(rest.len()).max(1);
    let start = span.bytes.start + quote + at;
    Some(Span { bytes: start..(start + length).min(span.bytes.end), ..*span })
}
