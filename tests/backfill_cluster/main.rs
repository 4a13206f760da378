//! `statusgate backfill` and `statusgate doctor` on a real kube-apiserver with etcd. One test restarts it,
//! so these tests have their own control plane and run one by one.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests, and their helpers too"
)]

#[path = "../control_plane/launcher.rs"]
mod launcher;
#[path = "../control_plane/leash.rs"]
#[allow(dead_code, reason = "the other control plane tests use all of it")]
mod leash;
#[path = "../control_plane/objects.rs"]
#[allow(dead_code, reason = "the other control plane tests use all of it")]
mod objects;
#[path = "../control_plane/patience.rs"]
mod patience;
#[path = "../support/command.rs"]
mod process;

mod command;
mod plane;
mod writer;

mod doctor;
mod interrupted;
mod refused;
mod registrations;
mod shards;
