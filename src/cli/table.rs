//! Tables for a terminal.

use std::{fmt, io};

use terminal_size::{Width, terminal_size_of};

use statusgate_core::model::shortened;
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

    /// The rows without wrapped lines, as kubectl prints them. Lines of the last column are shortened to the end of the terminal.
    /// Without a line break at the end.
    pub(super) fn unwrapped(self) -> String {
        let width = terminal_size_of(io::stdout()).map(|(Width(width), _)| usize::from(width));
        self.unwrapped_at(width)
    }

    fn unwrapped_at(mut self, width: Option<usize>) -> String {
        let last = self.head.len().saturating_sub(1);
        let before: usize = (0..last).map(|at| self.column(at) + 2).sum();
        let room = width.map_or(LONGEST, |width| width.saturating_sub(before).max(SHORTEST));
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(last)) {
            let lines = cell.lines().map(|line| shortened(line, room.saturating_sub(1)));
            *cell = lines.collect::<Vec<_>>().join("\n");
        }
        let all = before + self.column(last);
        render::table(&self.head, &self.rows, all).trim_end().to_owned()
    }

    /// The columns of a terminal that the longest line of a column needs.
    fn column(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(at)).chain(self.head.get(at));
        cells.flat_map(|cell| cell.lines()).map(render::display_width).max().unwrap_or_default()
    }
}

/// The letters of a line in the last column, without a terminal: about a line of one.
const LONGEST: usize = 100;

/// The same on a terminal that has no room for it.
const SHORTEST: usize = 40;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stays_one_line_in_any_width_and_with_a_long_name() {
        let (name, reason) = ("x".repeat(60), "because ".repeat(20));
        for width in [None, Some(0), Some(80), Some(130), Some(400)] {
            let mut table = new(&["name", "health", "reason"]);
            table.add_row([&name, "failed", &reason]);
            table.add_row(["a", "current", ""]);
            let text = table.unwrapped_at(width);
            assert_eq!(text.lines().count(), 3, "{text}");
            assert!(text.contains(&format!("{name}  failed   because because")), "{text}");
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
            let expected = match width {
                None => 71 + LONGEST,
                Some(400) => 71 + reason.trim_end().len(),
                Some(width) => (71 + SHORTEST).max(width),
            };
            assert_eq!(longest, expected, "{width:?}\n{text}");
        }
    }
}
