//! The formats of most commands, and the colors of text.

use std::fmt;
use std::io::{self, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::AnsiColor;
use clap::ValueEnum;
use serde::Serialize;

use statusgate_core::engine::Action;

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    Table,
    Json,
}

/// Standard output. Text has colors if --color, the environment or a terminal allows them. Formats for programs are
/// written as they are.
pub(super) fn stdout(is_text: bool) -> AutoStream<StdoutLock<'static>> {
    let stdout = io::stdout().lock();
    let choice = if is_text { AutoStream::choice(&stdout) } else { ColorChoice::AlwaysAnsi };
    AutoStream::new(stdout, choice)
}

/// Writes each item as one line of JSON.
pub(super) fn json_lines(
    out: &mut impl Write,
    items: impl IntoIterator<Item: Serialize>,
) -> io::Result<()> {
    items.into_iter().try_for_each(|item| {
        serde_json::to_writer(&mut *out, &item)?;
        writeln!(out)
    })
}

/// A text in a color.
pub(super) fn painted(text: impl fmt::Display, color: AnsiColor) -> String {
    let style = color.on_default().bold();
    format!("{style}{text}{style:#}")
}

/// The label of an action in its color.
pub(super) fn severity(action: Action) -> String {
    painted(
        action.label(),
        match action {
            Action::Deny => AnsiColor::Red,
            Action::Repair | Action::Warn => AnsiColor::Yellow,
            Action::Audit => AnsiColor::Cyan,
        },
    )
}

/// A line of a diff in the color of its sign.
pub(super) fn diff_line(line: &str) -> String {
    match line.trim_start().chars().next() {
        Some('-') => painted(line, AnsiColor::Red),
        Some('+') => painted(line, AnsiColor::Green),
        _ => line.to_owned(),
    }
}
