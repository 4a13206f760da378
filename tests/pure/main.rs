//! What the library decides: no process, no socket, no cluster.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests, and their helpers too"
)]

mod appcat;
mod calls;
#[path = "../support/case.rs"]
mod case;
mod cel;
mod extends;
mod goldens;
mod health;
mod json_schemas;
mod judgements;
mod kstatus;
mod large_statuses;
mod lint;
mod map_values;
mod messages;
mod nested_lists;
mod pointers;
mod policies;
#[path = "../support/schema_oracle.rs"]
mod recorded_schemas;
mod requests;
mod reviews;
mod schema_oracle;
#[path = "../support/settings.rs"]
mod settings;
#[path = "../support/statuses.rs"]
mod statuses;
#[path = "../support/mod.rs"]
mod support;
mod too_large;
mod two_step_writers;
mod value_ratchet;
#[path = "../support/wire.rs"]
mod wire;
mod withheld;
