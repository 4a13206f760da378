//! A convention for people: its page, its truth table, its phase graph.
//!
//! The tables do not interpret the rules a second time. They are made by [`statusgate_analysis::table`], whose objects the
//! engine judges.

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
