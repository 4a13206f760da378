//! Compares the schema module with recorded answers of kube-apiserver, and prints the wrong ones.
//!
//!     xz -dc schema.jsonl.xz > schema.jsonl
//!     cargo run --example schema_oracle schema.jsonl
//!
//! `tests/support/schema_oracle.rs` describes the format. With `-v`, it also prints the cases that are not
//! proven, and those with other causes. It fails if a case is wrong.

#![expect(clippy::print_stdout, reason = "it prints a report")]

#[path = "../../../tests/support/schema_oracle.rs"]
mod schema_oracle;

use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let tally = schema_oracle::compare(&std::fs::read_to_string(path)?)?;
    if arguments.next().as_deref() == Some("-v") {
        tally.not_proven.iter().for_each(|case| println!("not proven: {case}"));
        tally.other_causes.iter().for_each(|case| println!("other causes: {case}"));
    }
    tally.wrong.iter().for_each(|case| println!("wrong: {case}"));
    println!(
        "cases: {}, wrong: {}, not proven: {}, other causes: {}",
        tally.cases,
        tally.wrong.len(),
        tally.not_proven.len(),
        tally.other_causes.len()
    );
    Ok(if tally.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
