//! Faults at the edges of a server: clients that leave or are slow, resources of the operating system that
//! run out, and an API server that fails.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests, and their helpers too"
)]

#[path = "../support/api.rs"]
#[allow(dead_code, reason = "each test crate uses a part of it")]
mod api;
#[path = "../support/command.rs"]
mod command;
#[path = "../support/server.rs"]
#[allow(dead_code, reason = "each test crate uses a part of it")]
mod server;

mod program;

mod api_server;
mod departures;
mod descriptors;
mod log;
mod slow_clients;
