//! Certificates: [`issue`] creates them, [`bundle`] reads them, [`expiry`] watches them, and
//! [`config`] puts them into a running listener.
//!
//! Nothing here reads a file or a clock: texts and times are arguments.

pub mod bundle;
pub mod config;
pub mod expiry;
pub mod issue;

pub use bundle::{Bundle, BundleError, ClientAuthorities, Pem, subject};
pub use config::ServerTls;
pub use expiry::Expiry;
pub use issue::{Authority, IssueError, Issued, LEAF_NAME};
