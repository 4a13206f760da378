//! A page as text for a terminal, and as Markdown.

use std::iter;

pub use textwrap::core::display_width;

use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WordSplitter};

use super::page::{Block, Page};

/// The page for a terminal with this many columns.
pub fn text(page: &Page, width: usize) -> String {
    format!("# {}\n\n{}", page.title, body(page, width))
}

/// The same without the title.
pub fn body(page: &Page, width: usize) -> String {
    let mut out = String::new();
    // No empty line at the start and below a heading.
    let mut after_heading = true;
    for block in &page.blocks {
        if !after_heading {
            out.push('\n');
        }
        after_heading = matches!(block, Block::Heading(_));
        match block {
            Block::Heading(text) => out.push_str(&format!("## {text}\n")),
            Block::Text(text) => out.push_str(&wrapped(text, width, "", "")),
            Block::List(points) => {
                points.iter().for_each(|point| out.push_str(&wrapped(point, width, "- ", "  ")));
            }
            Block::Code(text) => out.push_str(text),
            Block::Table { head, rows } => {
                // `explain RULE-ID` prints the message and the source of a rule.
                let (head, rows) =
                    columns(head, rows, |name| !matches!(name, "message" | "source"));
                out.push_str(&table(&head, &rows, width));
            }
        }
    }
    out
}

/// Rows under a head, with two spaces between columns. If the columns do not fit into the width, each row becomes a
/// paragraph.
pub fn table(head: &[String], rows: &[Vec<String>], width: usize) -> String {
    let Some(widths) = widths(head, rows, width) else {
        return rows.iter().map(|row| paragraph(head, row, width)).collect();
    };
    let mut out = String::new();
    for row in iter::once(head).chain(rows.iter().map(Vec::as_slice)) {
        // A column may be narrower than a word.
        let separator = WordSeparator::Custom(words);
        let cells: Vec<_> = iter::zip(row, &widths)
            .map(|(cell, width)| textwrap::wrap(cell, options(*width, separator)))
            .collect();
        for at in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
                let part = cell.get(at).map(AsRef::as_ref).unwrap_or_default();
                let space = (width + GAP).saturating_sub(display_width(part));
                line.push_str(part);
                line.extend(iter::repeat_n(' ', space));
            }
            out.push_str(&format!("{}\n", line.trim_end()));
        }
    }
    out
}

/// Spaces between columns.
const GAP: usize = 2;

/// The widths of the columns, each at least as wide as its longest word. `None` if these do not fit.
fn widths(head: &[String], rows: &[Vec<String>], width: usize) -> Option<Vec<usize>> {
    struct Column {
        width: usize,
        longest: usize,
        /// The sum of the squares of the lengths of all lines.
        squares: usize,
    }
    impl Column {
        /// How much the squares of the heights of its cells decrease with one letter more.
        fn gain(&self) -> usize {
            (self.squares << 20) / self.width.max(1).pow(3)
        }
    }
    let column = |(at, name): (usize, &String)| {
        let cells = rows.iter().filter_map(|row| row.get(at)).chain([name]);
        let lines: Vec<&str> = cells.flat_map(|cell| cell.lines()).collect();
        let words = lines.iter().flat_map(|line| words(line));
        let lengths = || lines.iter().map(|line| display_width(line));
        Column {
            width: words.map(|word| display_width(&word)).max().unwrap_or_default(),
            longest: lengths().max().unwrap_or_default(),
            squares: lengths().map(|length| length * length).sum(),
        }
    };
    let mut columns: Vec<Column> = head.iter().enumerate().map(column).collect();
    let needed: usize = columns.iter().map(|column| column.width + GAP).sum();
    for _ in 0..(width + GAP).checked_sub(needed)? {
        let narrow = columns.iter_mut().filter(|column| column.width < column.longest);
        let Some(column) = narrow.max_by_key(|column| column.gain()) else { break };
        column.width += 1;
    }
    Some(columns.iter().map(|column| column.width).collect())
}

fn paragraph(head: &[String], row: &[String], width: usize) -> String {
    let filled = head.iter().zip(row).enumerate().filter(|(_, (_, cell))| !cell.is_empty());
    let parts = filled.map(|(at, (name, cell))| match at {
        0 => cell.clone(),
        _ => format!("{name}: {cell}"),
    });
    wrapped(&parts.collect::<Vec<_>>().join(" · "), width, "", "    ")
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
                let (head, rows) = columns(head, rows, |_| true);
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

/// The wanted columns that have any content.
fn columns(
    head: &[String],
    rows: &[Vec<String>],
    wanted: impl Fn(&str) -> bool,
) -> (Vec<String>, Vec<Vec<String>>) {
    let full = head
        .iter()
        .enumerate()
        .filter(|(at, _)| rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_empty())));
    let kept: Vec<usize> = full.filter(|(_, name)| wanted(name)).map(|(at, _)| at).collect();
    let pick = |cells: &[String]| -> Vec<String> {
        kept.iter().filter_map(|at| cells.get(*at).cloned()).collect()
    };
    (pick(head), rows.iter().map(|row| pick(row)).collect())
}

/// Lines that end with a line break.
fn wrapped(text: &str, width: usize, first: &str, others: &str) -> String {
    let options = options(width, WordSeparator::AsciiSpace);
    format!("{}\n", textwrap::fill(text, options.initial_indent(first).subsequent_indent(others)))
}

fn options<'o>(width: usize, separator: WordSeparator) -> Options<'o> {
    let options = Options::new(width).word_separator(separator).break_words(false);
    options.word_splitter(WordSplitter::NoHyphenation)
}

/// The parts between which a line can be wrapped. Users copy and search rule ids and paths of files, so these stay
/// whole. A long field or pattern has no spaces: it can be wrapped after a dot or slash.
fn words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let words = WordSeparator::AsciiSpace.find_words(line).flat_map(move |word| {
        let inner = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let whole = display_width(&word) <= LONG_WORD
            || inner.contains('/')
                && inner.chars().all(|sign| sign.is_ascii_alphanumeric() || "/.-_:".contains(sign));
        if whole {
            return vec![word];
        }
        let mut parts: Vec<Word<'_>> =
            word.word.split_inclusive(['.', '/']).map(Word::from).collect();
        if let Some(last) = parts.last_mut() {
            last.whitespace = word.whitespace;
        }
        parts
    });
    Box::new(words)
}

/// Letters of a word that can be wrapped.
const LONG_WORD: usize = 24;
