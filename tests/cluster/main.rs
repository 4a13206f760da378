//! statusgate with a real kube-apiserver and etcd.
//!
//! The tests of `webhooks` create their own objects in one control plane. The other tests need the whole cluster: each
//! takes a control plane of a pool (`harness/pool.rs`). All child processes end with this process.
//!
//! Most tests wait most of the time, so `make test` runs more of them at once than the machine has cores.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests, and their helpers too"
)]

#[path = "../support/command.rs"]
mod command;
mod harness;
#[path = "../support/pages.rs"]
mod page_texts;

mod backfill;
mod documents;
mod managed;
mod pages;
mod webhooks;
