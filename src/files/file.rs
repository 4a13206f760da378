//! One text that was read, and its lines.

use std::sync::OnceLock;

/// A file's name and text.
#[derive(Debug)]
pub struct File {
    /// The path as it was typed; `stdin` for standard input.
    pub name: String,
    /// The whole text, without a byte order mark.
    pub text: String,
    /// Where each line starts. Most files have nothing to point at and are never counted.
    starts: OnceLock<Vec<usize>>,
}

impl File {
    /// A text under a name.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        Self { name: name.into(), text, starts: OnceLock::new() }
    }

    /// The line (from 0) that holds a byte, and the bytes of that line without its end.
    pub(super) fn line_at(&self, offset: usize) -> (usize, std::ops::Range<usize>) {
        let starts = self.starts.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect()
        });
        let line = starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = starts.get(line).copied().unwrap_or(0);
        let end = starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let end = if self.text[start..end].ends_with('\r') { end - 1 } else { end };
        (line, start..end)
    }

    /// Whether the name says that this is JSON and nothing else.
    pub(super) fn is_named_json(&self) -> bool {
        std::path::Path::new(&self.name).extension().is_some_and(|extension| extension == "json")
    }
}
