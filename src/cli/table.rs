//! Tables for a terminal: columns as wide as their content, no lines.

use comfy_table::{ContentArrangement, Table, presets};

/// The text of a table, with two spaces between columns.
pub(super) fn text(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// Creates an empty table with these columns.
pub(super) fn new(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // Never truncated: users search the text.
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(|name| name.to_uppercase()));
    table
}
