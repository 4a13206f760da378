//! statusgate keeps the `.status` of Kubernetes custom resources true to a *status convention*.
//!
//! This package is the program: the commands, and the page of `statusgate ui`. Everything else is in packages that know no
//! command ([`statusgate_core`] decides, [`statusgate_analysis`] proves and [`statusgate_pages`] writes pages and exports, all without IO). Data goes from left to right and never back:
//!
//! ```text
//! bytes ─► server ─► core ─► server ─► bytes
//! file/stdin ─► files ─► cli ─► core ─► cli (report)
//! cluster list ─► cluster ─► core ─► cluster (patch /status)
//! ```
//!
//! Only [`cli`] prints, reads arguments and ends the process; nothing here decides about an object. Begin with [`cli::run`].

pub mod cli;
pub mod ui;

/// The stack of a thread that reads policies. Without optimization, the parser of CEL needs more than 2 MiB, the default of
/// tokio, for the 20 levels of brackets that it accepts.
const STACK: usize = if cfg!(debug_assertions) { 8 << 20 } else { 2 << 20 };
