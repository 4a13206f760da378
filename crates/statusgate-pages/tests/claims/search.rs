//! The search for counterexamples.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::thread;

use serde_json::Value;

use crate::grammar::{Sketch, pairs, singles};
use crate::small::Small;
use crate::world::{Random, World};

/// What a claim says of one case.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The claim is not about this case.
    Outside,
    /// It holds, and could not have failed.
    Trivial,
    /// It holds.
    Held,
    /// It does not hold: why, without values of this world, and the details.
    Broken(&'static str, String),
}

/// Every two places that fit together, with changing predicates.
pub(crate) const EVERY_PAIR: usize = usize::MAX;

/// The threads of a claim about conventions: one alone needs longer than all other claims together.
const PARTS: usize = 2;

/// A part of the conventions and worlds that a claim is tried on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// One convention of so many is tried by `make test`.
    pub(crate) every: usize,
    /// The worlds of each, for `make test` and for `make enumerate`.
    pub(crate) worlds: [usize; 2],
    /// The pairs of conventions, for both: a sample, or [`EVERY_PAIR`].
    pub(crate) pairs: [usize; 2],
    /// The least number of cases that can fail, for `make test`.
    pub(crate) least: usize,
}

/// What a run tries, by variables of the environment.
struct Settings {
    /// `CLAIMS=all`: everything instead of a fixed part.
    everything: bool,
    /// `CLAIMS_SEED`: where samples begin.
    seed: u64,
    /// `CLAIMS_ONLY`: conventions with this text in their name.
    only: Option<String>,
}

impl Settings {
    fn read() -> Self {
        Self {
            everything: variable("CLAIMS").is_some_and(|value| value == "all"),
            seed: variable("CLAIMS_SEED").and_then(|seed| seed.parse().ok()).unwrap_or(42),
            only: variable("CLAIMS_ONLY"),
        }
    }

    fn of<T: Copy>(&self, [part, everything]: [T; 2]) -> T {
        if self.everything { everything } else { part }
    }

    fn sketches(&self, extent: Extent, random: &mut Random) -> Vec<Sketch> {
        let singles = singles();
        let step = self.of([extent.every, 1]);
        let mut sketches: Vec<Sketch> =
            singles.iter().skip(random.below(step)).step_by(step).cloned().collect();
        match self.of(extent.pairs) {
            EVERY_PAIR => sketches.extend(pairs()),
            count => {
                let singles: Vec<&Sketch> =
                    singles.iter().filter(|sketch| sketch.has_predicate()).collect();
                let pairs = std::iter::from_fn(|| {
                    let [one, other] = [(); 2].map(|()| &singles[random.below(singles.len())]);
                    Some(one.with(other))
                });
                sketches.extend(pairs.flatten().take(count));
            }
        }
        sketches.retain(|sketch| self.only.as_ref().is_none_or(|only| sketch.name.contains(only)));
        sketches
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no command line of its own")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

#[derive(Default)]
struct Tally {
    conventions: usize,
    judged: usize,
    could_fail: usize,
    /// By convention and reason: how often, and the smallest case.
    broken: BTreeMap<(String, &'static str), (usize, String)>,
}

/// Tries a claim about worlds.
///
/// # Panics
/// If it does not hold, with the smallest counterexamples.
pub(crate) fn in_every_world(name: &str, extent: Extent, claim: fn(&Small, &World) -> Outcome) {
    let settings = Settings::read();
    let (mut tally, mut random) = (Tally::default(), Random(settings.seed));
    for sketch in settings.sketches(extent, &mut random) {
        let Some(small) = Small::compile(&sketch) else { continue };
        tally.conventions += 1;
        for world in small.axes.worlds(settings.of(extent.worlds), &mut random) {
            if let Some((reason, details)) = tally.count(claim(&small, &world)) {
                let found = tally.broken.entry((small.sketch.name.clone(), reason)).or_default();
                found.0 += 1;
                if found.0 == 1 {
                    found.1 = shrink(&small, world, reason, details, claim);
                }
            }
        }
    }
    tally.report(name, extent, &settings);
}

/// Tries a claim about conventions. It gets the number of worlds to try.
///
/// # Panics
/// As [`in_every_world`].
pub(crate) fn for_every_convention(
    name: &str,
    extent: Extent,
    claim: fn(&Small, usize, &mut Random) -> Outcome,
) {
    let settings = Settings::read();
    let sketches = settings.sketches(extent, &mut Random(settings.seed));
    let part = |first: usize| {
        let mut tally = Tally::default();
        for (index, sketch) in sketches.iter().enumerate().skip(first).step_by(PARTS) {
            let Some(small) = Small::compile(sketch) else { continue };
            tally.conventions += 1;
            let mut random = Random(settings.seed.wrapping_add(index as u64));
            let outcome = claim(&small, settings.of(extent.worlds), &mut random);
            if let Some((reason, details)) = tally.count(outcome) {
                let text = format!("{details}\n--- policy.yaml\n{}", small.text);
                tally.broken.insert((small.sketch.name.clone(), reason), (1, text));
            }
        }
        tally
    };
    let mut tally = Tally::default();
    thread::scope(|scope| {
        let parts = Vec::from_iter((0..PARTS).map(|first| scope.spawn(move || part(first))));
        parts.into_iter().for_each(|part| tally.add(part.join().unwrap()));
    });
    tally.report(name, extent, &settings);
}

/// Reduces a counterexample while it remains one for the same reason, and prints its files.
fn shrink(
    small: &Small,
    mut world: World,
    reason: &'static str,
    mut details: String,
    claim: fn(&Small, &World) -> Outcome,
) -> String {
    loop {
        let next = small.axes.smaller(&world).find_map(|smaller| match claim(small, &smaller) {
            Outcome::Broken(other, details) if other == reason => Some((smaller, details)),
            _ => None,
        });
        let Some(next) = next else { break };
        (world, details) = next;
    }
    let text = |object: &Value| serde_json::to_string(object).unwrap();
    let (old, new) = (small.axes.stored(&world), small.axes.written(&world));
    format!(
        "{details}\n--- policy.yaml\n{}--- old.json\n{}\n--- new.json\n{}",
        small.text,
        text(&old),
        text(&new)
    )
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.conventions += other.conventions;
        self.judged += other.judged;
        self.could_fail += other.could_fail;
        self.broken.extend(other.broken);
    }

    /// Counts a case. Returns why it is a counterexample, if it is one.
    fn count(&mut self, outcome: Outcome) -> Option<(&'static str, String)> {
        match outcome {
            Outcome::Outside => {}
            Outcome::Trivial => self.judged += 1,
            Outcome::Held => {
                self.judged += 1;
                self.could_fail += 1;
            }
            Outcome::Broken(reason, details) => return Some((reason, details)),
        }
        None
    }

    fn report(self, name: &str, extent: Extent, settings: &Settings) {
        let Self { conventions, judged, could_fail, broken } = self;
        eprintln!(
            "claim: {name}: {conventions} conventions, {judged} cases judged, {could_fail} could have failed, \
             {} counterexamples (CLAIMS_SEED={})",
            broken.len(),
            settings.seed
        );
        if !broken.is_empty() {
            let mut message = String::new();
            for (at, ((sketch, reason), (count, text))) in broken.iter().enumerate() {
                writeln!(message, "{sketch}: {reason} ({count} times)").unwrap();
                if at < 5 || settings.only.is_some() {
                    writeln!(message, "{text}\n").unwrap();
                }
            }
            panic!("{} counterexamples:\n{message}", broken.len());
        }
        assert!(
            settings.only.is_some() || could_fail >= extent.least,
            "only {could_fail} cases could fail"
        );
    }
}
