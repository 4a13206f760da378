//! A first convention from recorded status writes.
//!
//! ```text
//! manifests ─► recordings (one for each resource) ─► facts (counts) ─► a draft ─► engine and lint remove what fails ─► YAML
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`Recording`] | the writes of one resource, each with its stored object |
//! | `places` | the values of a status |
//! | `tally` | counts of objects and writes, with a bound |
//! | `facts`, `lists`, `pairs` | what the writes have in common |
//! | `mine` | which of that becomes a rule, and which a question |
//! | [`Draft`] | the rules with their support, and their YAML |
//! | `prove` | the engine judges the recording, lint judges the draft |
//!
//! A rule needs five objects. Objects count, not writes: one object that writes a hundred times proves no more than one that
//! writes once. A draft never denies, repairs or sets a value. What was recorded becomes a rule, also if it is a bug.
//!
//! It is as pure as the core. Begin with [`draft`].

mod base;
mod conditions;
mod document;
mod facts;
mod lists;
mod mine;
mod pairs;
mod places;
mod prove;
mod recording;
mod schema;
mod tally;
mod text;

pub use document::Draft;
pub use recording::{MAX_WRITES, MAX_WRITES_OF_OBJECT, Recording};

use base::Base;
use facts::Facts;
use statusgate_core::policy::{Diagnostics, Source};
use statusgate_core::schema::Schema;

/// The objects that a rule needs.
pub const MIN_OBJECTS: u32 = 5;

/// The objects that must be expected to contradict a rule by chance. Otherwise what was always so proves nothing.
pub(crate) const MIN_EXPECTED: f64 = 3.0;

/// The objects from which on a set of names can be closed, and the most names that the next object may be expected to add.
pub(crate) const CLOSED_OBJECTS: u32 = 10;
pub(crate) const CLOSED_EXPECTED: f64 = 0.02;

/// The list that predicates read.
pub(crate) const CONDITIONS: &str = "/status/conditions";

/// The lines of a draft, with its policy, comments and questions.
pub const MAX_LINES: usize = 80;

/// An existing convention to compare a recording with.
#[derive(Clone, Copy, Debug)]
pub struct Against<'a> {
    /// Its name.
    pub convention: &'a str,
    /// The documents that define it; none for a built-in convention.
    pub sources: &'a [Source],
}

/// Mines a draft. It extends the built-in convention that fits best; or another one, of which it then also lists the rules that
/// never fired and the values that it does not know.
///
/// # Errors
/// Mistakes in the documents of the existing convention, or an unknown name.
pub fn draft(
    recording: &Recording<'_>,
    schema: &Schema,
    against: Option<Against<'_>>,
) -> Result<Draft, Diagnostics> {
    let facts = Facts::of(recording);
    let base = match against {
        Some(against) => Base::named(against, recording)?,
        None => Base::best(recording, &facts)?,
    };
    let mut draft = Draft::new(recording, base.name());
    mine::mine(&mut draft, &facts, schema, &base);
    if against.is_some() {
        base.compare(&mut draft, &facts);
    }
    prove::prove(&mut draft, recording, &base);
    Ok(draft)
}

#[cfg(test)]
mod tests;
