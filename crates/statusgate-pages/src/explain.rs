//! A convention for people: its page, its truth table, its phase graph.
//!
//! The tables do not interpret the rules a second time. [`statusgate_analysis::table`] builds an object for each
//! combination of facts, and the engine judges it.

pub mod data;
mod explained;
mod graph;
mod page;
mod play;
pub mod render;
mod rule;

pub use explained::Explained;
pub use graph::Graph;
pub use page::{Block, Page};
pub use play::Play;
pub use rule::{RuleText, Violation};
