//! What holds for every policy, every stored status and every write. The statuses use the words of the
//! policy's convention and contain hostile values.

#![expect(clippy::unwrap_used, reason = "tests, and their helpers too")]

mod case;
mod judging;
mod requests;
mod settings;
mod stale_writer;
#[path = "../support/statuses.rs"]
mod statuses;
#[path = "../support/mod.rs"]
mod support;
