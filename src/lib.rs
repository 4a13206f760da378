//! statusgate keeps the `.status` of Kubernetes custom resources true to a *status convention*.
//!
//! The way of the data is left to right and never back:
//!
//! ```text
//! bytes ─► server ─► wire ─► engine ─► wire ─► server ─► bytes
//! file/stdin ─► source ─► cli ─► engine ─► cli (report)
//! cluster list ─► cluster ─► engine ─► cluster (patch /status)
//! documents ─► policy (parse, compile) ─► PolicySet ─► engine
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | the vocabulary: JSON as borrowed text, pointers, the subject of a judgement |
//! | [`source`] | input text as trees with locations; diagnostics with carets |
//! | [`language`] | the words of predicates, one file each |
//! | [`documents`] | `StatusPolicy` and `StatusConvention` as types; their schemas and the structural check |
//! | [`kstatus`] | what kstatus concludes from an object: [`kstatus::compute`] |
//! | [`policy`] | documents as written, compiled to a [`policy::PolicySet`]; diagnostics |
//! | [`engine`] | [`engine::decide`]: the only place where a verdict is reached |
//! | [`explain`] | a convention for people: its page, its truth table, its phase graph |
//! | [`lint`] | what can be proven of a convention by walking that table |
//! | [`wire`] | `admission.k8s.io/v1` in and out |
//! | [`manifests`] | CRDs, webhook registrations and the installation, generated |
//! | [`server`] | the HTTPS listener, the handler, the probes |
//! | [`tls`] | issuing, reading and swapping certificates |
//! | [`cluster`] | everything that talks to the API server |
//! | [`manager`] | keeps policies, certificates and registrations in the cluster up to date |
//! | [`telemetry`] | metrics, logs and traces |
//! | [`cli`] | one file a command |
//!
//! All down to `manifests`, except `source`, are pure: no IO, no clock, no async and no Kubernetes client.
//! `tests/pure/architecture.rs` has the table of which folder may use which.

pub mod cli;
pub mod cluster;
pub mod documents;
pub mod engine;
pub mod explain;
pub mod kstatus;
pub mod language;
pub mod lint;
pub mod manager;
pub mod manifests;
pub mod model;
pub mod policy;
pub mod server;
pub mod source;
pub mod telemetry;
pub mod tls;
pub mod wire;
