//! All interleavings of two replicas and their registrations, with the real [`step()`] and summaries
//! instead of certificates. An explicit state model: [`explore`] visits every reachable state once.
//!
//! Time passes only when no replica has anything left to do: a replica needs milliseconds for what
//! [`Lifetimes::settle`] gives it seconds.

mod fault;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use self::fault::Fault;
use super::*;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The seconds since the start.
    time: i64,
    /// The difference of the clocks of API servers.
    offset: i64,
    /// The resourceVersion.
    version: u32,
    /// The number of writes since the time last changed.
    writes: u32,
    /// `None`: missing. `Some(None)`: invalid.
    secret: Option<Option<Rc<SecretSummary>>>,
    /// The authorities of the caBundles; `None` while there are no registrations.
    bundles: Option<Vec<String>>,
    replicas: [Replica; 2],
    certificates: u32,
    signers: BTreeSet<String>,
    faults: usize,
    /// The end of an outage.
    down_until: i64,
    /// The start and the end of a partition of the first replica.
    partition: (i64, i64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Replica {
    /// The difference of its clock.
    offset: i64,
    /// What it read last, and the version.
    seen: Option<(u32, Option<Option<Rc<SecretSummary>>>)>,
    held: Option<Rc<SecretSummary>>,
    served: Option<Rc<Served>>,
    registered: Registered,
    seen_bundles: Option<Option<Vec<String>>>,
    /// The authority in its Lease; empty before the first.
    lease: String,
}

fn lifetimes() -> Lifetimes {
    let seconds = SignedDuration::from_secs;
    Lifetimes { leaf: seconds(6), authority: seconds(24), settle: seconds(1), grace: seconds(2) }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn uptime(second: i64) -> SignedDuration {
    SignedDuration::from_secs(second)
}

fn names() -> Vec<String> {
    vec!["a".to_owned()]
}

impl State {
    fn start(faults: usize) -> Self {
        Self {
            time: 0,
            offset: 0,
            version: 0,
            writes: 0,
            secret: None,
            bundles: None,
            replicas: Default::default(),
            certificates: 0,
            signers: BTreeSet::new(),
            faults,
            down_until: 0,
            partition: (0, 0),
        }
    }

    fn is_up(&self, index: usize) -> bool {
        let is_apart = index == 0 && self.partition.1 > self.time;
        !is_apart && self.down_until <= self.time
    }

    /// The states after each action that is possible now.
    fn next(&self, faults: &[Fault], last_fault: i64) -> Vec<Self> {
        let mut next = Vec::new();
        for replica in 0..2 {
            next.extend(self.actions(replica));
        }
        if next.is_empty() {
            next.push(self.tick());
        }
        // Late faults leave no time to converge.
        let count = if self.time < last_fault { self.faults } else { 0 };
        for (index, fault) in faults.iter().enumerate().take(count) {
            next.extend(
                self.fault(*fault).into_iter().map(|state| Self { faults: index, ..state }),
            );
        }
        next
    }

    fn tick(&self) -> Self {
        let mut state = Self { time: self.time + 1, writes: 0, ..self.clone() };
        for index in 0..2 {
            if !self.is_up(index) {
                state.replicas[index].registered.restart(uptime(state.time));
            }
        }
        state
    }

    fn actions(&self, index: usize) -> Vec<Self> {
        let mut next = Vec::new();
        let replica = &self.replicas[index];
        let up = self.is_up(index);
        // Publish the Lease.
        let served = replica.served.as_ref().map_or("", |served| &served.authority.id);
        if up && replica.lease != served {
            next.push(self.with(index, |replica| replica.lease = served.to_owned()));
        }
        // Read the Secret.
        if up && replica.seen.as_ref().is_none_or(|(version, _)| *version != self.version) {
            next.push(self.with(index, |replica| {
                replica.seen = Some((self.version, self.secret.clone()));
                if let Some(Some(summary)) = &self.secret {
                    replica.held = Some(Rc::clone(summary));
                }
            }));
        }
        // Read the registrations.
        if up && replica.seen_bundles.as_ref() != Some(&self.bundles) {
            let mut state = self.with(index, |replica| {
                replica.seen_bundles = Some(self.bundles.clone());
            });
            state.observe(index);
            next.push(state);
        }
        // Update the registrations, or create them.
        if let (Some((_, Some(Some(seen)))), true) = (&replica.seen, up)
            && replica.seen_bundles.as_ref() == Some(&self.bundles)
        {
            let stored = self.secret.as_ref().and_then(Option::as_ref);
            let wanted: Vec<String> = ids(stored.unwrap_or(seen));
            if self.bundles.as_ref() != Some(&wanted) {
                next.push(Self { bundles: Some(wanted), ..self.clone() });
            }
        }
        // Perform the step.
        next.extend(self.perform(index, up));
        next
    }

    fn perform(&self, index: usize, up: bool) -> Option<Self> {
        let replica = &self.replicas[index];
        let (version, seen) = replica.seen.as_ref()?;
        let now = at(self.time + replica.offset);
        let (names, lifetimes) = (names(), lifetimes());
        let leases = self.replicas.iter().enumerate();
        // The other replica deletes a Lease that is not renewed.
        let leases = leases.filter(|(index, _)| {
            self.is_up(*index) || now < lifetimes.last_handshake(at(self.partition.0))
        });
        let leases: Vec<String> = leases.map(|(_, replica)| replica.lease.clone()).collect();
        let step = step(&World {
            now,
            uptime: uptime(self.time),
            secret: seen.as_ref().and_then(Option::as_deref),
            held: replica.held.as_deref(),
            served: replica.served.as_deref(),
            registered: &replica.registered,
            replicas: &leases,
            rescuer: self.replicas[1 - index].served.is_some(),
            names: &names,
            lifetimes: &lifetimes,
        });
        let summary = || Some(seen.as_ref()?.as_ref()?.as_ref().clone());
        let mut state = self.clone();
        let mut id = |kind: &str| {
            state.certificates += 1;
            format!("{kind}{}", state.certificates)
        };
        let written = match step {
            RotationStep::Wait(..) => return None,
            RotationStep::Serve => {
                let summary = summary()?;
                let authority = summary.authority(&summary.leaf.authority)?.clone();
                let replica = &mut state.replicas[index];
                let since = match &replica.served {
                    Some(served) if served.authority == authority => served.since,
                    _ => uptime(self.time),
                };
                replica.served = Some(Rc::new(Served { leaf: summary.leaf, authority, since }));
                return Some(state);
            }
            RotationStep::Create { authority, leaf } => {
                let newest = Authority { id: id("ca"), validity: authority };
                let leaf = signed(&newest, id("leaf"), leaf, &names);
                SecretSummary { newest, older: Vec::new(), can_sign: true, leaf }
            }
            RotationStep::Restore => replica.held.as_ref()?.as_ref().clone(),
            RotationStep::Trust => {
                let mut summary = summary()?;
                summary.older.push(replica.served.as_ref()?.authority.clone());
                summary
            }
            RotationStep::AddAuthority(validity) => {
                let mut summary = summary()?;
                let newest = Authority { id: id("ca"), validity };
                summary.older.insert(0, std::mem::replace(&mut summary.newest, newest));
                summary.can_sign = true;
                summary
            }
            RotationStep::Issue { validity, names, .. } => {
                let summary = summary()?;
                let leaf = signed(&summary.newest, id("leaf"), validity, &names);
                SecretSummary { leaf, ..summary }
            }
            RotationStep::Retire => SecretSummary { older: Vec::new(), ..summary()? },
        };
        // A conflict: the replica reads again, which is an action of its own.
        if !up || *version != self.version {
            return None;
        }
        state.signers.insert(written.leaf.authority.clone());
        state.version += 1;
        state.writes += 1;
        state.secret = Some(Some(Rc::new(written)));
        Some(state)
    }

    fn with(&self, index: usize, change: impl FnOnce(&mut Replica)) -> Self {
        let mut state = self.clone();
        change(&mut state.replicas[index]);
        state
    }

    fn observe(&mut self, index: usize) {
        let replica = &mut self.replicas[index];
        let bundles = match &replica.seen_bundles {
            None => None,
            Some(None) => Some(Vec::new()),
            Some(Some(bundle)) => Some(vec![bundle.clone()]),
        };
        replica.registered.observe(bundles.as_deref(), uptime(self.time));
    }

    /// The registrations contain the authority of every served leaf that has not expired.
    fn no_handshake_fails(&self) {
        for replica in &self.replicas {
            if let (Some(served), Some(bundles)) = (&replica.served, &self.bundles)
                && served.leaf.validity.contains(at(self.time + self.offset))
            {
                assert!(bundles.contains(&served.authority.id), "a handshake fails: {self:?}");
            }
        }
    }

    fn no_fight(&self) {
        assert!(self.writes < 12, "the replicas replace each other's content: {self:?}");
    }

    /// Nothing is left to do: all replicas serve the leaf of the Secret.
    fn converged(&self) {
        let summary = self.secret.as_ref().and_then(Option::as_ref).expect("a valid Secret");
        let served = self.replicas.each_ref().map(|replica| replica.served.as_ref().unwrap());
        for served in served {
            assert_eq!(served.leaf, summary.leaf, "{self:?}");
            let true_time = at(self.time + self.offset);
            assert!(served.leaf.validity.contains(true_time), "an expired leaf: {self:?}");
            assert!(served.authority.validity.contains(true_time), "an expired CA: {self:?}");
        }
        assert_eq!(self.bundles, Some(ids(summary)), "{self:?}");
    }
}

fn signed(by: &Authority, id: String, validity: Validity, names: &[String]) -> Leaf {
    Leaf { id, authority: by.id.clone(), validity, names: names.to_vec() }
}

fn ids(summary: &SecretSummary) -> Vec<String> {
    let all = std::iter::once(&summary.newest).chain(&summary.older);
    all.map(|authority| authority.id.clone()).collect()
}

/// Visits every state until a time, with each combination of the faults, in this order. Returns the number
/// of states and the least number of authorities that signed leaves.
fn explore(until: i64, faults: &[Fault], check: impl Fn(&State)) -> (usize, usize) {
    let mut faults = faults.to_vec();
    faults.reverse();
    let mut seen = HashSet::new();
    let mut open = vec![State::start(faults.len())];
    let mut fewest = usize::MAX;
    while let Some(state) = open.pop() {
        if seen.contains(&state) {
            continue;
        }
        check(&state);
        if state.time < until {
            open.extend(state.next(&faults, until - 9));
        } else {
            let actions: Vec<State> = (0..2).flat_map(|index| state.actions(index)).collect();
            if actions.is_empty() {
                state.converged();
                fewest = fewest.min(state.signers.len());
            }
            open.extend(actions);
        }
        seen.insert(state);
    }
    (seen.len(), fewest)
}

fn strict(state: &State) {
    state.no_handshake_fails();
    state.no_fight();
}

#[test]
fn no_interleaving_of_two_replicas_breaks_a_handshake_over_several_rotations() {
    let (states, signers) = explore(60, &[], strict);
    assert!(states > 500, "{states}");
    assert!(signers >= 4, "{signers}");
}

#[test]
fn no_lost_secret_and_no_restart_at_any_moment_breaks_a_handshake() {
    for fault in [Fault::Delete, Fault::Garble, Fault::Crash, Fault::Outage(1)] {
        explore(28, &[fault], strict);
    }
}

/// The certificate of the replica may expire meanwhile. Then it cannot serve in any case.
#[test]
fn no_rotation_breaks_the_handshakes_of_a_replica_without_a_path_to_the_api_server() {
    for seconds in [3, 8] {
        for faults in [
            [Fault::Partition(seconds), Fault::Disclose],
            [Fault::Disclose, Fault::Partition(seconds)],
        ] {
            explore(20, &faults, strict);
        }
    }
}

#[test]
fn no_wrong_clock_of_one_replica_breaks_a_handshake() {
    for seconds in [1, -1, 1000, -1000] {
        explore(28, &[Fault::Jump(seconds)], strict);
    }
}

/// Expired certificates cannot be verified until they are replaced, which needs the API server.
#[test]
fn after_an_expiry_the_replicas_converge_without_a_fight() {
    for fault in [Fault::Outage(7), Fault::JumpAll(1000), Fault::JumpAll(-1000)] {
        explore(28, &[fault], State::no_fight);
    }
}
