//! The built-in conventions, held to what is known of the systems they speak for: the examples of
//! their pages, one change for each of their rules, the documents they come from, and the recorded
//! answers of apimachinery.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

mod examples;
mod judging;
mod oracles;
mod rules;
