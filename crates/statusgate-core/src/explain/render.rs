//! A page as text for a terminal, and as Markdown.

use comfy_table::{ContentArrangement, Table, presets};

use super::page::{Block, Page};

/// The width of a page as text.
const WIDTH: u16 = 120;

/// The page for a terminal.
pub fn text(page: &Page) -> String {
    let mut out = format!("{}\n{}\n", page.title, "=".repeat(page.title.chars().count()));
    for block in &page.blocks {
        out.push('\n');
        match block {
            Block::Heading(text) => {
                out.push_str(&format!("{text}\n{}\n", "-".repeat(text.chars().count())));
            }
            Block::Text(text) => out.push_str(&format!("{}\n", wrapped(text, ""))),
            Block::List(points) => {
                for point in points {
                    out.push_str(&format!("{}\n", wrapped(&format!("- {point}"), "  ")));
                }
            }
            Block::Code(text) => out.push_str(text),
            Block::Table { head, rows } => {
                let (head, rows) = without_empty_columns(head, rows);
                out.push_str(&table(head, rows));
                out.push('\n');
            }
        }
    }
    out
}

/// Rows under a head, at most as wide as a page. Lines separate the rows if cells are wrapped.
pub fn table(head: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let count = rows.len();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(head)
        .add_rows(rows);
    if table.lines().count() > count + 1 {
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect::<String>().trim_end().to_owned()
}

/// The page in Markdown, as in `docs/conventions`.
pub fn markdown(page: &Page) -> String {
    let mut out = format!("# {}\n", page.title);
    for block in &page.blocks {
        out.push('\n');
        match block {
            Block::Heading(text) => out.push_str(&format!("## {text}\n")),
            Block::Text(text) => out.push_str(&format!("{}\n", plain(text))),
            Block::List(points) => {
                points.iter().for_each(|point| out.push_str(&format!("- {}\n", plain(point))));
            }
            Block::Code(text) => out.push_str(&format!("```yaml\n{text}```\n")),
            Block::Table { head, rows } => {
                let (head, rows) = without_empty_columns(head, rows);
                let line = |cells: &[String]| {
                    let cells = cells.iter().map(|cell| plain(cell).replace('|', "\\|"));
                    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
                };
                out.push_str(&line(&head));
                out.push_str(&format!("|{}\n", "---|".repeat(head.len())));
                rows.iter().for_each(|row| out.push_str(&line(row)));
            }
        }
    }
    out
}

/// Escapes the characters that have a meaning in Markdown, except in code.
fn plain(text: &str) -> String {
    let mut code = false;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter == '`' {
            code = !code;
        } else if !code && matches!(letter, '*' | '<' | '_') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

fn without_empty_columns(head: &[String], rows: &[Vec<String>]) -> (Vec<String>, Vec<Vec<String>>) {
    let full =
        |at: &usize| rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_empty()));
    let columns: Vec<usize> = (0..head.len()).filter(full).collect();
    let pick = |cells: &[String]| -> Vec<String> {
        columns.iter().filter_map(|at| cells.get(*at).cloned()).collect()
    };
    (pick(head), rows.iter().map(|row| pick(row)).collect())
}

fn wrapped(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let letters = word.chars().count();
        if length > 0 && length + 1 + letters > usize::from(WIDTH) {
            out.push('\n');
            out.push_str(indent);
            length = indent.len();
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += letters;
    }
    out
}
