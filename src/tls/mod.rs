//! Key material and its life: made ([`issue`]), read ([`bundle`]), watched for its end
//! ([`expiry`]), and put under a running listener ([`resolver`], [`config`]).
//!
//! Nothing here reads a file or a clock; texts and times are handed in.

pub mod bundle;
pub mod config;
pub mod expiry;
pub mod issue;
pub mod resolver;

pub use bundle::{Bundle, BundleError, ClientAuthorities, Pem, subject};
pub use config::ServerTls;
pub use expiry::Expiry;
pub use issue::{Authority, IssueError, Issued, LEAF_NAME};
pub use resolver::Resolver;
