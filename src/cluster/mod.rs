//! The API server: the only folder that talks to it.
//!
//! ```text
//! Cluster::connect ─► targets ─► pages ─► engine::decide ─► backfill (PATCH /status)
//!                        ├────► crd ─► precheck  └─► audit (counts, reports)
//!                        └────► registrations ─► doctor's checks
//! ```
//!
//! Objects travel as the texts that the server sent, and are split out of a page without being
//! parsed: [`crate::model::Object::parse`] borrows from them, so that a list of a hundred thousand
//! objects costs the memory of two pages.
//!
//! The client is kube's for what is hard (kubeconfigs, logins, TLS) and nothing more. Its own
//! retries are off: they hide how often something was tried, and stop after seconds, where a
//! restart of an API server takes a minute.

pub mod audit;
pub mod backfill;
mod check;
mod client;
mod crd;
mod discovery;
pub mod doctor;
mod error;
mod fingerprint;
mod identity;
mod pages;
mod patience;
pub mod precheck;
mod target;

pub use check::{Check, Level};
pub use client::{Answer, Cluster};
pub use crd::{Definition, Place, Schema};
pub use discovery::{Gap, Targets};
pub use error::{ClusterError, told};
pub use fingerprint::Fingerprint;
pub use identity::Identity;
pub use pages::{Page, Pages, Query};
pub use patience::{Backoff, Patience};
pub use target::Target;
