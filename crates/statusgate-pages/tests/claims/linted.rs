//! What lint reports, and what it does not.

use serde_json::Value;
use statusgate_analysis::lint::Remark;

use crate::search::{EVERY_PAIR, Extent, Outcome, for_every_convention};
use crate::small::Small;
use crate::webhook::Write;
use crate::world::{Random, World};

const EXTENT: Extent =
    Extent { every: 40, worlds: [4000, 20_000], pairs: [120, EVERY_PAIR], least: 100 };

/// "No fault" means that some first status passes, each phase can be written, and the list can have an element. A
/// reported contradiction means that no first write outside deletion passes.
#[test]
fn lint_is_right_about_what_can_be_written() {
    for_every_convention("lint is right about what can be written", EXTENT, claim);
}

fn claim(small: &Small, worlds: usize, random: &mut Random) -> Outcome {
    let contradictions: Vec<&Remark> =
        small.faults().iter().filter(|fault| fault.kind.name() == "contradiction").collect();
    // Contradictions are those of a policy that denies.
    let denies = !["disagreement: ", "enforcement: "].iter().any(|key| small.text.contains(key));
    if !small.faults().is_empty() && (contradictions.is_empty() || !denies) {
        return Outcome::Outside;
    }
    let mut written = Written::default();
    for world in small.axes.first_writes(worlds, random) {
        if let Some(object) = written.add(small, &world)
            && let Some(fault) =
                contradictions.iter().find(|fault| rejects(fault, &object["status"]))
        {
            let details = format!("{object}\n{fault}");
            return Outcome::Broken(
                "a contradiction is reported, but a first write passes",
                details,
            );
        }
        if contradictions.is_empty() && written.missing().is_none() {
            return Outcome::Held;
        }
    }
    if !contradictions.is_empty() {
        let is_checked = |fault: &&&Remark| !fault.message.ends_with(" every condition");
        let checked = contradictions.iter().find(is_checked);
        return checked.map_or(Outcome::Trivial, |_| Outcome::Held);
    }
    if written.statuses == 0 {
        return Outcome::Broken("no fault is reported, but no first write passes", String::new());
    }
    // A phase may need a stored one before it.
    for world in small.axes.worlds(worlds, random) {
        written.add(small, &world);
    }
    match written.missing() {
        // A phase that is only for other resources is no fault.
        Some(missing) if missing.contains("phase") && depends_on_resource(small) => {
            Outcome::Outside
        }
        Some(missing) => Outcome::Broken(missing, String::new()),
        None => Outcome::Held,
    }
}

/// Whether the line of the phase asks for the resource.
fn depends_on_resource(small: &Small) -> bool {
    small.text.lines().any(|line| line.contains("phase: {path") && line.contains("{resource: "))
}

/// Whether a contradiction says that this first status is rejected.
fn rejects(fault: &Remark, status: &Value) -> bool {
    let items = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let (what, every) = match fault.message.split_once("no value of ") {
        Some((_, rest)) => (rest.split_once(" passes").unwrap().0, false),
        None => (fault.message.split_once(" every ").unwrap().1, true),
    };
    if every {
        return match what.strip_prefix("condition") {
            // Lint is about conditions that have a status.
            None => items.iter().all(|item| !item["status"].is_null()),
            // It may be about another list.
            Some("") => false,
            Some(kinds) => items.iter().any(|item| {
                !item["status"].is_null()
                    && kinds.split([' ', ',']).any(|kind| item["type"].as_str() == Some(kind))
            }),
        };
    }
    let is_set = match what.strip_prefix("member ").and_then(|rest| rest.split_once(' ')) {
        Some((member, _)) => items.iter().any(|item| !item[member].is_null()),
        None => !status[what.trim_start_matches("status.")].is_null(),
    };
    is_set || fault.message.contains("but it is required")
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
    /// Tries a write of an owner, who may write everything. Returns the stored object if it passes.
    fn add(&mut self, small: &Small, world: &World) -> Option<Value> {
        let write = Write::by_owner(&small.axes.stored(world), &small.axes.written(world));
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
