//! The lines of the log on their way to stderr: none is longer than 8 KB, and those that are lost count.
//!
//! Names in a review come from its sender, who can be anybody. Containers split lines of 16 KB (CRI), and an open bracket in a
//! part of a line is no JSON.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking};

use super::Format;

/// The most bytes of a line, with its end.
pub(super) const MAX_LINE: usize = 8 << 10;

/// The lines that were lost.
#[derive(Clone, Debug)]
pub struct LostLines {
    /// Because the queue was full.
    pub(super) dropped: ErrorCounter,
    /// Because they could not be written.
    pub(super) failed: Arc<AtomicU64>,
}

impl LostLines {
    /// How many.
    pub fn count(&self) -> u64 {
        self.dropped.dropped_lines() as u64 + self.failed.load(Ordering::Relaxed)
    }
}

/// Writes lines, and counts those that cannot be written.
pub(super) struct Counting<W> {
    pub(super) inner: W,
    pub(super) failed: Arc<AtomicU64>,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    /// The queue writes a line with one call.
    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        let written = self.inner.write_all(line);
        if written.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Puts lines into the queue, and cuts long ones.
#[derive(Clone)]
pub(super) struct Cutting {
    pub(super) queue: NonBlocking,
    pub(super) format: Format,
}

impl Write for Cutting {
    /// A line comes with one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.len() <= MAX_LINE {
            self.queue.write_all(line)?;
        } else {
            self.queue.write_all(&cut(line, self.format))?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.queue.flush()
    }
}

/// A line with its long texts cut.
fn cut(line: &[u8], format: Format) -> Vec<u8> {
    if format == Format::Json
        && let Ok(mut event) = serde_json::from_slice::<Value>(line)
    {
        for longest in [1 << 10, 1 << 8, 1 << 6] {
            cut_texts(&mut event, longest);
            let mut line = event.to_string().into_bytes();
            line.push(b'\n');
            if line.len() <= MAX_LINE {
                return line;
            }
        }
    }
    let text = String::from_utf8_lossy(&line[..MAX_LINE.min(line.len())]);
    let end = last_boundary(&text, MAX_LINE - "…\n".len());
    format!("{}…\n", &text[..end]).into_bytes()
}

fn cut_texts(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) if text.len() > longest => {
            text.truncate(last_boundary(text, longest));
            text.push('…');
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, longest)),
        Value::Object(members) => {
            members.values_mut().for_each(|value| cut_texts(value, longest));
        }
        _ => {}
    }
}

/// The last byte up to this one at which a text can be cut.
pub fn last_boundary(text: &str, limit: usize) -> usize {
    (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_line_is_cut_and_stays_json() {
        for text in ["x".repeat(3 << 20), "ä\"\n".repeat(1 << 20), "\u{1}".repeat(1 << 20)] {
            let event =
                json!({"level": "INFO", "uid": text, "user": text, "rules": text, "dry_run": true});
            let line = cut(format!("{event}\n").as_bytes(), Format::Json);
            assert!(line.len() <= MAX_LINE && line.ends_with(b"\n"), "{}", line.len());
            let read: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(read["level"], "INFO");
            assert!(read["user"].as_str().unwrap().len() > 60, "{read}");
            let line = cut(format!("INFO {text}\n").as_bytes(), Format::Pretty);
            assert!(line.len() <= MAX_LINE && line.ends_with("…\n".as_bytes()));
        }
    }

    #[test]
    fn a_line_that_cannot_be_written_counts() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let failed = Arc::new(AtomicU64::default());
        let mut writer = Counting { inner: Full, failed: Arc::clone(&failed) };
        for count in 1..3 {
            assert!(writer.write_all(b"line\n").is_err());
            assert_eq!(failed.load(Ordering::Relaxed), count);
        }
    }
}
