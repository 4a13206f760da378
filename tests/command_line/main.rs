//! The commands: their input, output and exit codes, each in its own process. Those that need a cluster talk to
//! a fake API server.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests, and their helpers too")]

#[path = "../support/api.rs"]
mod api;
#[path = "../support/command.rs"]
mod command;
#[path = "../support/pages.rs"]
mod page_texts;
#[path = "../support/statuses.rs"]
mod statuses;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/wire.rs"]
mod wire;

mod backfill;
mod backfill_faults;
mod browser;
mod chart;
mod check;
mod commands_agree;
mod crds;
mod draft;
mod explain;
mod export;
mod health_checks;
mod lint;
mod manifests;
mod pages;
mod record;
mod status;
mod suites;
mod terminal;
mod test;
mod wait;
