//! The kinds of remarks that lint makes, and each with an example.

use anyhow::bail;
use serde_json::{Value, json};

use super::{Output, print_page};
use statusgate_analysis::lint::Kind;
use statusgate_core::source::tree::did_you_mean;
use statusgate_pages::explain::{Block, Page};

/// The first part of the ids of kinds: `lint/never-fires`.
pub(super) const LINT: &str = "lint";

/// The text of one kind, or the list of all.
pub(super) fn explain(id: &str, output: Output) -> anyhow::Result<String> {
    let (page, data) = match id.split_once('/') {
        None => (list(), Kind::ALL.into_iter().map(data).collect()),
        Some((_, name)) => {
            let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) else {
                let names = Kind::ALL.into_iter().map(Kind::name);
                bail!("unknown kind of remark \"{name}\"; {}", did_you_mean(name, names));
            };
            (page(kind), data(kind))
        }
    };
    print_page(&page, &data, output, "a kind of remark")
}

fn list() -> Page {
    let rows = Kind::ALL.into_iter().map(|kind| {
        let first = kind.meaning().split_inclusive('.').next().unwrap_or_default();
        [kind.name(), level(kind), first].map(str::to_owned).to_vec()
    });
    let head = ["kind", "level", "meaning"].map(str::to_owned).to_vec();
    let table = Block::Table { head, rows: rows.collect() };
    Page { title: LINT.to_owned(), blocks: vec![table] }
}

fn page(kind: Kind) -> Page {
    let (meaning, help) = (kind.meaning(), kind.help());
    let article = if kind.is_fault() { "A fault" } else { "A note" };
    let blocks = vec![
        Block::Text(format!("{article}. {meaning}")),
        Block::Text(format!("Help: {help}")),
        Block::Text("Example:".to_owned()),
        Block::Code(kind.example().to_owned()),
    ];
    Page { title: kind.name().to_owned(), blocks }
}

fn data(kind: Kind) -> Value {
    json!({
        "kind": kind.name(),
        "level": level(kind),
        "meaning": kind.meaning(),
        "help": kind.help(),
        "example": kind.example(),
    })
}

fn level(kind: Kind) -> &'static str {
    if kind.is_fault() { "fault" } else { "note" }
}
