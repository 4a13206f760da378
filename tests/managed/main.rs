//! `statusgate serve` with everything managed: policies, certificate and registrations in a real
//! kube-apiserver with etcd, and two server processes behind a load balancer.
//!
//! A cluster has one installation of statusgate, so these tests run one by one. Each starts with an empty
//! cluster: no policies, no Secret, no registrations. Tests that take minutes have their own cluster and run
//! at the same time.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests, and their helpers too"
)]

#[path = "../control_plane/balancer.rs"]
mod balancer;
#[path = "../control_plane/launcher.rs"]
#[allow(dead_code, reason = "the other control plane tests use all of it")]
mod launcher;
#[path = "../control_plane/leash.rs"]
#[allow(dead_code, reason = "the other control plane tests use all of it")]
mod leash;
#[path = "../control_plane/objects.rs"]
#[allow(dead_code, reason = "the other control plane tests use all of it")]
mod objects;
#[path = "../control_plane/patience.rs"]
mod patience;
#[path = "../control_plane/probes.rs"]
mod probes;
#[path = "../support/command.rs"]
mod process;
#[path = "../control_plane/traffic.rs"]
mod traffic;

mod caller;
mod plane;
mod replica;

mod clock;
mod doctor;
mod files;
mod killed;
mod many;
mod outage;
mod permissions;
mod policies;
mod soak;
mod unavailable;
mod versions;
mod writes;
