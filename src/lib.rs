//! statusgate keeps the `.status` of Kubernetes custom resources true to a *status convention*.
//!
//! This package has the edges: the server, the client of the cluster and the commands. The decisions are in
//! [`statusgate_core`], what is said about conventions in [`statusgate_analysis`] and [`statusgate_pages`]; these do no IO. The way of the data is left to right and never back:
//!
//! ```text
//! bytes ─► server ─► core ─► server ─► bytes
//! file/stdin ─► files ─► cli ─► core ─► cli (report)
//! cluster list ─► cluster ─► core ─► cluster (patch /status)
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`manifests`] | CRDs, webhook registrations and the installation, generated |
//! | [`files`] | opens files, folders and standard input |
//! | [`server`] | the HTTPS listener, the handler, the probes |
//! | [`tls`] | issuing, reading and swapping certificates |
//! | [`cluster`] | everything that talks to the API server |
//! | [`manager`] | keeps policies, certificates and registrations in the cluster up to date |
//! | [`telemetry`] | metrics, logs and traces |
//! | [`ui`] | the page of `statusgate ui` and its calls |
//! | `values` | parsers of the values of arguments |
//! | [`cli`] | one file a command |
//!
//! `manifests` is pure, too: no IO, no clock, no async and no Kubernetes client.

pub mod cli;
pub mod cluster;
pub mod files;
pub mod manager;
pub mod manifests;
pub mod server;
pub mod telemetry;
pub mod tls;
pub mod ui;
mod values;

/// The stack of a thread that reads policies. Without optimization, the parser of CEL needs more than 2 MiB, the default of
/// tokio, for the 20 levels of brackets that it accepts.
const STACK: usize = if cfg!(debug_assertions) { 8 << 20 } else { 2 << 20 };
