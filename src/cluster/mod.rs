//! The API server. Only this folder connects to it.
//!
//! ```text
//! Cluster::connect ─► targets ─► pages ─► engine::decide ─► backfill (PATCH /status)
//!                        ├────► crd ─► precheck  └─► audit (counts, reports)
//!                        └────► registrations ─► doctor's checks
//! ```
//!
//! A page of objects is split into texts without parsing them, and [`crate::model::Object::parse`]
//! borrows from these texts. So a list of any length needs the memory of two pages.
//!
//! The kube client is used for kubeconfigs, authentication and TLS. Its retries are disabled: they end
//! after seconds, but the restart of an API server takes a minute.

pub mod audit;
pub mod backfill;
mod check;
mod client;
mod crd;
mod discovery;
pub mod doctor;
mod error;
mod fingerprint;
mod hash;
mod identity;
mod pages;
mod patience;
pub mod precheck;
mod target;

pub use check::{Check, Level};
pub use client::{Answer, Cluster};
pub use crd::{Definition, Place, Schema};
pub use discovery::{Gap, Targets};
pub use error::{ClusterError, with_causes};
pub use identity::object_path;
pub use pages::{Page, Pages, Query};
pub use patience::{Backoff, Patience};
pub use target::Target;
