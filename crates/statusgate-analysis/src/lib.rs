//! What can be said about a convention before any object is judged.
//!
//! ```text
//! convention ─► lines of rules ─► facts that they ask for ─► scenes (objects) ─► the engine's verdicts
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`line`] | the rules of a convention, one line for each way to violate one |
//! | [`facts`] | what predicates distinguish, and all combinations of it |
//! | [`scene`] | an object for a combination |
//! | [`table`] | the combinations with their outcomes; [`minimize`] makes few lines of many |
//! | [`lint`] | what can be proven of a convention or a policy: [`lint::lint_policy`] |
//! | [`relevance`] | which writes can matter to a webhook |
//!
//! It never interprets a rule a second time: it builds objects and asks [`statusgate_core::engine`] about them. It is as pure
//! as the core. Begin with [`lint`] or [`table`]; both need [`facts`].

pub mod facts;
pub mod line;
pub mod lint;
pub mod minimize;
pub mod relevance;
pub mod scene;
pub mod table;
pub mod words;
