//! Tables for a terminal: columns as wide as what is in them, no lines.

use comfy_table::{ContentArrangement, Table, presets};

/// The text of a table, the columns two spaces apart.
pub(super) fn text(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// An empty table with these column names.
pub(super) fn new(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // Cut to the width of a terminal only by a terminal: elsewhere the text is searched.
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(|name| name.to_uppercase()));
    table
}
