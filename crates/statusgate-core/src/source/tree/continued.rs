//! Quoted texts that continue at the indentation of their key or before it. YAML 1.2 forbids that, and so does the
//! parser. kubectl reads it: libyaml does not look at the indentation of such lines.

use std::borrow::Cow;
use std::ops::Range;

use super::super::Diagnostic;
use super::{Node, Value};

/// How many quoted texts of a document are indented. The parser starts again after each.
const MAX_TEXTS: usize = 32;

/// A text in which the lines of such quoted texts are indented more.
pub(super) struct Continued<'t> {
    pub(super) text: Cow<'t, str>,
    /// The document in it.
    pub(super) part: Range<usize>,
    /// The places and numbers of the added spaces, in their order.
    added: Vec<(usize, usize)>,
    texts: usize,
}

impl<'t> Continued<'t> {
    pub(super) const fn of(text: &'t str, part: Range<usize>) -> Self {
        Self { text: Cow::Borrowed(text), part, added: Vec::new(), texts: 0 }
    }

    /// Indents the lines of the text with its opening quote here, more than this. Returns whether it ends.
    pub(super) fn indent(&mut self, quote: usize, indentation: usize) -> bool {
        self.texts += 1;
        let Some(end) =
            end_of(&self.text[..self.part.end], quote).filter(|_| self.texts <= MAX_TEXTS)
        else {
            return false;
        };
        let spaces = " ".repeat(indentation + 1);
        let mut text = self.text[..quote].to_owned();
        for line in self.text[quote..end].split_inclusive('\n') {
            text.push_str(line);
            if line.ends_with('\n') {
                self.added.push((text.len(), spaces.len()));
                text.push_str(&spaces);
            }
        }
        let more = text.len() - end;
        text.push_str(&self.text[end..]);
        self.part.end += more;
        self.text = text.into();
        true
    }

    /// The same place in the text as it was written.
    fn written(&self, at: usize) -> usize {
        let before = self.added.iter().filter(|(place, _)| *place < at);
        at - before.map(|(_, count)| count).sum::<usize>()
    }

    /// Moves the locations of a tree and of warnings to the text as it was written.
    pub(super) fn restore(&self, root: &mut Node, warnings: &mut [Diagnostic]) {
        if self.added.is_empty() {
            return;
        }
        self.restore_node(root);
        for Diagnostic { span, .. } in warnings {
            self.restore_bytes(&mut span.bytes);
        }
    }

    fn restore_node(&self, node: &mut Node) {
        self.restore_bytes(&mut node.span.bytes);
        match &mut node.value {
            Value::List(items) => items.iter_mut().for_each(|item| self.restore_node(item)),
            Value::Map(entries) => {
                for (key, node) in entries {
                    self.restore_bytes(&mut key.span.bytes);
                    self.restore_node(node);
                }
            }
            _ => {}
        }
    }

    fn restore_bytes(&self, bytes: &mut Range<usize>) {
        *bytes = self.written(bytes.start)..self.written(bytes.end);
    }
}

/// The place of the closing quote.
pub(super) fn end_of(text: &str, quote: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mark = *bytes.get(quote)?;
    let mut at = quote + 1;
    loop {
        at += match *bytes.get(at)? {
            b'\\' if mark == b'"' => 2,
            byte if byte == mark && mark == b'\'' && bytes.get(at + 1) == Some(&mark) => 2,
            byte if byte == mark => return Some(at),
            _ => 1,
        };
    }
}
