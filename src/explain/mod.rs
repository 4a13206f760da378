//! A convention for people: its page, its truth table, its phase graph.
//!
//! The table is no second reading of the rules. Each combination of the facts that predicates can
//! tell apart is made into an object, and the engine is asked about that object.

mod clauses;
mod cubes;
pub mod data;
mod facts;
mod graph;
mod page;
pub mod render;
mod scene;
mod table;
mod words;

pub use cubes::Cube;
pub use facts::{Answer, Fact, Reason, Space};
pub use graph::Graph;
pub use page::{Block, Page};
pub use table::{PhaseOutcome, Table, has_evidence};

pub(crate) use clauses::{Clause, clauses};
pub(crate) use facts::{Left, NOW, Question, is_decided, left, versions_of};
pub(crate) use scene::{Scene, Stage};
pub(crate) use table::{phase_questions, space_of};
