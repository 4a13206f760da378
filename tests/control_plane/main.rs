//! statusgate beside a real kube-apiserver with etcd, both webhooks registered: what is stored,
//! and what clients are told.
//!
//! Every test has objects of its own, which it creates in the one control plane that the first
//! test starts (`hack/control-plane.sh`). That and everything else ends with this process.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests, and their helpers too"
)]

mod balancer;
mod cluster;
mod leash;
mod objects;
mod patience;
mod registration;
mod server;
mod traffic;

mod apply;
mod audit;
mod backfill;
mod crossplane;
mod deletion;
mod disagreement;
mod lifecycle;
mod no_subresource;
mod nulls;
