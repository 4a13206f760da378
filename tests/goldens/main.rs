//! The built-in conventions match the systems they describe: the examples of their pages, one change
//! for each of their rules, the documents they come from, and recorded answers of apimachinery.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests, and their helpers too"
)]

mod examples;
mod judging;
mod oracles;
mod recorded;
mod rules;
#[path = "../support/mod.rs"]
mod support;
