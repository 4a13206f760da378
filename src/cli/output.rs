//! The formats of most commands, and the colors of text.

use std::fmt;
use std::io::{self, StdoutLock};

use anstream::{AutoStream, ColorChoice};
use anstyle::AnsiColor;
use clap::ValueEnum;

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
