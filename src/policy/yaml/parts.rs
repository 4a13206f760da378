//! Where one document of a text ends and the next begins.

use std::ops::Range;

/// The parts of a text between `---` and `...` lines, without those that hold only comments.
///
/// Both markers end a document wherever they stand at the start of a line: YAML forbids them even
/// inside quoted and block scalars, and a JSON text has no line that begins so. Cutting first is
/// what lets one broken document leave the others alone.
pub(crate) fn parts(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let marker = |marker: &str| {
            line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with(BLANK))
        };
        if marker("---") {
            parts.push(start..at);
            start = at;
        } else if marker("...") {
            parts.push(start..at);
            start = at + line.len();
        }
        at += line.len();
    }
    parts.push(start..at);
    parts.retain(|part| content(text, part) < part.end);
    parts
}

/// The first byte of a part that is neither blank nor comment, directive or marker; its end where
/// there is none.
pub(crate) fn content(text: &str, part: &Range<usize>) -> usize {
    let mut at = part.start;
    for line in text[part.clone()].split_inclusive('\n') {
        let marker = line.strip_prefix("---").filter(|rest| rest.starts_with(BLANK));
        let rest = marker.unwrap_or(line);
        let inner = rest.trim_start();
        if !(inner.is_empty() || inner.starts_with('#') || line.starts_with('%') || inner == "---")
        {
            return at + (line.len() - inner.len());
        }
        at += line.len();
    }
    part.end
}

const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];
