//! Do writers that need several requests reach their goal? All interleavings.
//!
//! Each write goes through the real engine and the real convention, as the API server sends it:
//! mutate, apply the patch, validate the result. The states are few (some thousands), so every one
//! is visited, and from every one it is asked whether the goal can still be reached. No scheduling,
//! no chance: a dead end that exists is found, with the way there.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests, and their helpers too"
)]

mod cluster_api;
mod crossplane;
mod search;
