//! What lint reports, and what it does not.

use serde_json::Value;

use crate::search::{Extent, Outcome, for_every_convention};
use crate::small::Small;
use crate::webhook::Write;
use crate::world::{Random, World};

const EXTENT: Extent = Extent { every: 40, worlds: [4000, 20_000], pairs: [120, 4000], least: 100 };

/// "No fault" means that some first status passes, each phase can be written, and the list can have an element. A
/// reported contradiction means that no first write outside deletion passes.
#[test]
fn lint_is_right_about_what_can_be_written() {
    for_every_convention("lint is right about what can be written", EXTENT, claim);
}

fn claim(small: &Small, worlds: usize, random: &mut Random) -> Outcome {
    let rejects_all = small.faults().iter().any(|fault| {
        let rejects = ["every status", "but it is required"];
        fault.kind.name() == "contradiction"
            && rejects.iter().any(|text| fault.message.contains(text))
    });
    if !small.faults().is_empty() && !rejects_all {
        return Outcome::Outside;
    }
    let mut written = Written::default();
    for world in small.axes.first_writes(worlds, random) {
        let passed = written.add(small, &world);
        if let (true, Some(object)) = (rejects_all, passed) {
            let details = format!("{object}\n{}", small.faults()[0]);
            return Outcome::Broken(
                "a contradiction is reported, but a first write passes",
                details,
            );
        }
        if written.missing().is_none() {
            return Outcome::Held;
        }
    }
    if rejects_all {
        return Outcome::Held;
    }
    if written.statuses == 0 {
        return Outcome::Broken("no fault is reported, but no first write passes", String::new());
    }
    // A phase may need a stored one before it.
    for world in small.axes.worlds(worlds, random) {
        written.add(small, &world);
    }
    match written.missing() {
        Some(missing) => Outcome::Broken(missing, String::new()),
        None => Outcome::Held,
    }
}

/// What the writes that passed have stored.
#[derive(Default)]
struct Written {
    statuses: usize,
    /// As it was sent.
    a: bool,
    b: bool,
    element: bool,
}

impl Written {
    /// Tries a write. Returns the stored object if it passes.
    fn add(&mut self, small: &Small, world: &World) -> Option<Value> {
        let write = Write::of(&small.axes.stored(world), &small.axes.written(world));
        let stored = write.sending(write.mutate(&small.policies).object);
        if !stored.denials(&small.policies).is_empty() {
            return None;
        }
        let status = &stored.new["status"];
        let is_kept =
            |phase: &str| write.new["status"]["phase"] == phase && status["phase"] == phase;
        self.statuses += 1;
        self.a |= is_kept("A");
        self.b |= is_kept("B");
        self.element |= status["conditions"].as_array().is_some_and(|items| !items.is_empty());
        Some(stored.new)
    }

    fn missing(&self) -> Option<&'static str> {
        match self {
            Self { a: false, .. } => Some("no fault is reported, but phase A cannot be written"),
            Self { b: false, .. } => Some("no fault is reported, but phase B cannot be written"),
            Self { element: false, .. } => {
                Some("no fault is reported, but the list cannot have an element")
            }
            _ => None,
        }
    }
}
