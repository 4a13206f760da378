//! statusgate with a real kube-apiserver and etcd, and both webhooks registered: the stored objects and
//! the answers to clients.
//!
//! Every test creates its own objects in one control plane, which the first test starts
//! (`hack/control-plane.sh`). All child processes end with this process.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests, and their helpers too"
)]

mod balancer;
mod cluster;
#[path = "../support/command.rs"]
mod command;
mod launcher;
mod leash;
#[allow(dead_code, reason = "the other control plane tests use all of it")]
mod objects;
mod patience;
mod probes;
mod registration;
mod server;
mod traffic;

mod apply;
mod audit;
mod backfill;
mod certificates;
mod crossplane;
mod deletion;
mod disagreement;
mod lifecycle;
mod no_subresource;
mod nulls;
