//! A convention for people: its page, its truth table, its phase graph.
//!
//! The tables do not interpret the rules a second time. Explain builds an object for each combination of
//! the facts that predicates distinguish, and the engine judges that object.

mod cubes;
pub mod data;
mod facts;
mod graph;
mod line;
mod page;
mod play;
pub mod render;
mod rule;
mod scene;
mod table;
mod words;

pub use cubes::Cube;
pub use facts::{Answer, Fact, Represents, Space};
pub use graph::Graph;
pub use page::{Block, Page};
pub use play::Play;
pub use rule::{RuleText, Violation};
pub use table::{PhaseOutcome, Table, has_evidence};

pub(crate) use facts::{FUTURE, LATER, NOW, PAST};
pub(crate) use facts::{Left, Question, is_decided, left, matching, refused, values, versions_of};
pub(crate) use line::{Clause, clauses};
pub(crate) use scene::{Scene, Stage, put, yaml};
pub(crate) use table::{health_space, phase_questions, space_of};
