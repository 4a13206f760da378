//! The self-managed certificate (`--manage-certificates`): one Secret holds the authorities and the leaf,
//! and every replica keeps it valid without a leader.
//!
//! ```text
//! Secret ─► stored (parse) ─► step (what to do next) ─► stored (new content) ─► compare-and-swap
//! caBundles ─► registered ──────┘
//! ```
//!
//! [`step()`] is pure, and decides everything. It works on summaries of the Secret, so that the tests can
//! try all interleavings of two replicas without creating one.

mod lifetimes;
mod registered;
mod step;
mod stored;
#[cfg(test)]
mod tests;

#[cfg(test)]
use super::Validity;
pub use lifetimes::Lifetimes;
pub use registered::Registered;
pub use step::{Authority, Leaf, Pause, RotationStep, SecretSummary, Served, World, step};
pub use stored::{Stored, fingerprints, wanted_names};
