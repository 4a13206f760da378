//! What people and other tools read of statusgate.
//!
//! | module | holds |
//! |---|---|
//! | [`explain`] | a convention for people: its page, its truth table, its graph of phases |
//! | [`dictionary`] | what conditions and phases mean, for portals |
//! | [`readers`] | health in the formats of other tools |
//! | [`calls`] | one JSON interface to all of this, for a page: [`calls::call`] |
//!
//! It decides nothing: verdicts come from [`statusgate_core::engine`], proofs and tables from [`statusgate_analysis`]. It is as
//! pure as both, and compiles for `wasm32-unknown-unknown` (`make wasm`). Begin with [`calls`], which names every other part.

pub mod calls;
pub mod dictionary;
pub mod explain;
pub mod readers;
