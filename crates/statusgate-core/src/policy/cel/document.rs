//! The `rules` of a `StatusPolicy`: from YAML to [`CelRule`].

use super::{CelRule, Mistake, compile};
use crate::documents;
use crate::policy::Disposition;
use crate::policy::compile::Compiler;
use crate::policy::convention::{Backfill, Convention, Trigger};
use crate::policy::rules::{DeclaredRule, Declarer};
use crate::source::tree::{At, Span};

impl Compiler<'_> {
    /// Compiles the rules of a policy. Whether they can read the phase depends on the convention and on the
    /// defaults of the policy.
    pub(crate) fn cel_rules(
        &self,
        documents: &[documents::CelRule],
        convention: Option<&Convention>,
        backfill: &[Backfill],
        at: At<'_>,
    ) -> Vec<CelRule> {
        let rules = at.each(documents).enumerate().filter_map(|(index, (at, document))| {
            if documents[..index].iter().any(|other| other.name == document.name) {
                at.key("name").report(format!("rule {} is listed twice", *document.name));
            }
            let trigger = self.trigger(document.trigger.as_ref(), at);
            let text = &document.expression;
            let expression = compile(text)
                .map_err(|mistakes| report(at.key("expression"), text, mistakes))
                .ok()?;
            let action = document.action.unwrap_or(Disposition::Deny);
            let message = document.message.to_string();
            let rules = self.tables(&[&document.source]).by(Declarer::Rule);
            let declared =
                DeclaredRule { message: Some(message.clone()), ..rules.declared(action) };
            Some(CelRule {
                id: self.declare(&document.name, declared),
                name: document.name.to_string(),
                sees_the_phase: sees_the_phase(&expression, &trigger, convention, backfill),
                expression,
                message,
                action,
                path: document.path.as_deref().cloned().or_else(|| "/status".parse().ok())?,
                trigger,
            })
        });
        rules.collect()
    }
}

/// Whether a write that sets nothing but the phase, and what the mutating webhook adds to it, could
/// violate a rule that the stored object does not violate.
///
/// A rule with the trigger `introduced` that reads neither of these answers the same before and
/// after. With another trigger, an old violation may count for the write, and `oldSelf` is another object
/// at each write.
fn sees_the_phase(
    expression: &super::Expression,
    trigger: &Trigger,
    convention: Option<&Convention>,
    backfill: &[Backfill],
) -> bool {
    let Some(phase) = convention.and_then(|convention| convention.phase.as_ref()) else {
        return false;
    };
    let time = phase.transition_time.iter().map(|time| &*time.path);
    let mut moved = phase.paths().chain(time).chain(backfill.iter().map(Backfill::path));
    let reads = &expression.reads;
    !trigger.is_introduced()
        || reads.stored.is_some()
        || moved.any(|path| reads.written.as_ref().is_some_and(|part| part.covers(path.tokens())))
}

fn report(at: At<'_>, text: &str, mistakes: Vec<Mistake>) {
    for Mistake { at: byte, message, help } in mistakes {
        let node = at.node();
        match byte.map(|byte| (byte, within(&node.span, text, byte))) {
            Some((_, Some(span))) => at.report_at(&span, message, help),
            Some((byte, None)) => {
                let before = &text[..byte];
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
                let message = format!("{message} (line {line}, column {column} of the expression)");
                at.report_at(&node.span, message, help);
            }
            None => at.report_at(&node.span, message, help),
        }
    }
}

/// The bytes of the document that byte `at` of a text comes from, up to the end of the word there.
/// Known only where the document has the text as it is, plain or in quotes: folding and escapes make
/// it another length.
pub(crate) fn within(span: &Span, text: &str, at: usize) -> Option<Span> {
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
