//! The API server, and what statusgate puts into it. Only this package connects to it.
//!
//! ```text
//! Cluster::connect ─► targets ─► pages ─► engine::decide ─► backfill (PATCH /status)
//!                        ├────► crd ─► precheck  └─► audit (counts, reports)
//!                        └────► registrations ─► doctor's checks
//! Cluster::kinds ─► object ─► Target::health (wait)
//! ```
//!
//! A page of objects is split into texts without parsing them, and [`statusgate_core::model::Object::parse`]
//! borrows from these texts. So a list of any length needs the memory of two pages, and 16 bytes for each object,
//! by which an object is known again after a list has started anew.
//!
//! [`manifests`] is pure: it generates CRDs, registrations and the installation. It does no IO, reads no clock and knows no client.
//!
//! kube's client connects, from kubeconfigs to TLS. `kube::Api` serves single objects of known kinds;
//! objects of arbitrary kinds are read and patched as text. kube's retries are disabled: they end after
//! seconds, but the restart of an API server takes a minute.
//!
//! Nothing here serves or prints: the manager and the commands do. Begin with [`Cluster`] and [`Targets`].

pub mod audit;
pub mod backfill;
mod call;
mod check_result;
mod client;
mod crd;
mod discovery;
pub mod doctor;
mod documents;
mod error;
mod hash;
mod identity;
mod kinds;
mod kubeconfig;
mod lease;
pub mod manifests;
mod pages;
mod patience;
pub mod precheck;
pub mod registrations;
mod requests;
mod secret;
mod target;
mod watch;

pub use check_result::{CheckResult, Level};
pub use client::Cluster;
pub use crd::Definition;
pub use discovery::{Gap, Targets};
pub use documents::{DocumentEvent, DocumentWatch, StatusTarget, StoredDocument};
pub use error::{ClusterError, RunError};
pub use identity::object_path;
pub use kinds::Kinds;
pub use lease::Lease;
pub use pages::{Page, Pages, Query};
pub use patience::{Backoff, Patience};
pub use secret::Secret;
pub use target::{Otherwise, Target};
