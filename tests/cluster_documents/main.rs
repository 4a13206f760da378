//! StatusPolicies and StatusConventions in a real kube-apiserver: their definitions, the policies in use, their
//! status, and the webhook that reviews them.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests, and their helpers too"
)]

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

mod plane;

mod definitions;
mod following;
mod reviewing;
