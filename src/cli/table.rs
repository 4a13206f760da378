//! Tables for a terminal.

use std::{fmt, io};

use terminal_size::{Width, terminal_size_of};

use statusgate_pages::explain::render;

/// Rows under a head.
pub(super) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Creates an empty table with these columns.
pub(super) fn new(header: &[&str]) -> Table {
    Table { head: header.iter().map(|name| name.to_uppercase()).collect(), rows: Vec::new() }
}

impl Table {
    pub(super) fn add_row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

/// Without a line break at the end.
impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(render::table(&self.head, &self.rows, width()).trim_end())
    }
}

/// The columns of the terminal. In a wider one, lines would be hard to follow.
pub(super) fn width() -> usize {
    terminal_size_of(io::stdout())
        .map_or(100, |(Width(width), _)| usize::from(width).clamp(80, 200))
}
