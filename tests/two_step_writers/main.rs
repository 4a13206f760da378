//! Can writers that need several requests reach their goal? The tests try every interleaving.
//!
//! Each write passes both webhooks. A model has a few thousand states, so the search visits all of
//! them and finds every state from which the goal is out of reach.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and their helpers too")]

mod cluster_api;
mod crossplane;
mod search;
#[path = "../support/mod.rs"]
mod support;
