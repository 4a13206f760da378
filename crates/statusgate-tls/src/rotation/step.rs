//! The next step of a replica, from what it knows.

use jiff::{SignedDuration, Timestamp};

use super::lifetimes::Lifetimes;
use super::registered::Registered;
use crate::Validity;

/// A trusted authority.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The fingerprint of its certificate.
    pub id: String,
    /// When it is valid.
    pub validity: Validity,
}

/// A serving certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// The fingerprint of the certificate.
    pub id: String,
    /// The fingerprint of the authority that signed it.
    pub authority: String,
    /// When it is valid.
    pub validity: Validity,
    /// Its DNS names and IP addresses.
    pub names: Vec<String>,
}

/// The content of a valid Secret, without keys and PEM texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SecretSummary {
    /// The authority with the key.
    pub newest: Authority,
    /// The other trusted authorities.
    pub older: Vec<Authority>,
    /// Whether the key of the newest authority is there.
    pub can_sign: bool,
    /// The leaf. One of the authorities signed it.
    pub leaf: Leaf,
}

/// The leaf that this server uses for handshakes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Served {
    /// The leaf.
    pub leaf: Leaf,
    /// The authority that signed it.
    pub authority: Authority,
    /// The uptime of this server when it began to use leaves of this authority.
    pub since: SignedDuration,
}

/// Everything that a step depends on.
#[derive(Clone, Copy, Debug)]
pub struct World<'w> {
    /// The wall clock, for the validity of certificates.
    pub now: Timestamp,
    /// The uptime of this server, for waits: a clock that jumps does not shorten them.
    pub uptime: SignedDuration,
    /// The Secret, as this replica last read it; none if it is missing or invalid.
    pub secret: Option<&'w SecretSummary>,
    /// The last valid content of the Secret, which this server still has in memory.
    pub held: Option<&'w SecretSummary>,
    /// The leaf in use; none while the server starts.
    pub served: Option<&'w Served>,
    /// The caBundles.
    pub registered: &'w Registered,
    /// The authorities of the leaves of all replicas that may serve, this one included, also of those that
    /// cannot reach the API server; empty if it is unknown.
    pub replicas: &'w [String],
    /// Whether another replica may have the Secret in memory, and will write it back.
    pub rescuer: bool,
    /// The names that a leaf must have.
    pub names: &'w [String],
    /// The configured times.
    pub lifetimes: &'w Lifetimes,
}

/// The next step. All steps but `Serve` and `Wait` write the Secret, and fail if it changed in the
/// meantime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// Create an authority and a leaf: the Secret is missing or invalid, and no replica remembers it.
    Create {
        /// For the authority.
        authority: Validity,
        /// For the leaf.
        leaf: Validity,
    },
    /// Write back the content in memory: the Secret is missing or invalid.
    Restore,
    /// Add the authority of the leaf in use to the trusted ones: the Secret was replaced.
    Trust,
    /// Create an authority for the next leaf. The leaf stays.
    AddAuthority(Validity),
    /// Issue a leaf from the newest authority.
    Issue {
        /// For the leaf.
        validity: Validity,
        /// The wanted names and those of the current leaf: another replica may want them.
        names: Vec<String>,
        /// The current leaf is not valid any more.
        late: bool,
    },
    /// Remove the older authorities.
    Retire,
    /// Use the leaf of the Secret for new handshakes.
    Serve,
    /// Do nothing until something changes, or for this time.
    Wait(Pause, SignedDuration),
}

/// What a replica waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pause {
    /// The next renewal.
    Renewal,
    /// Another replica, which will write back the Secret.
    Rescue,
    /// The caBundles do not contain the newest authority yet, or not for long enough.
    Registrations,
    /// Other replicas serve a leaf of an older authority.
    Replicas,
}

/// The next step of a replica.
pub fn step(world: &World<'_>) -> RotationStep {
    match world.secret {
        Some(summary) => next(summary, world),
        None if world.held.is_some() => RotationStep::Restore,
        None if world.rescuer => RotationStep::Wait(Pause::Rescue, SignedDuration::MAX),
        None => {
            let authority = world.lifetimes.new_authority(None, world.now);
            let leaf = world.lifetimes.new_leaf(None, authority, world.now);
            RotationStep::Create { authority, leaf }
        }
    }
}

fn next(summary: &SecretSummary, world: &World<'_>) -> RotationStep {
    let World { now, uptime, served, registered, lifetimes, .. } = *world;
    let SecretSummary { newest, leaf, .. } = summary;
    let leaf_works = leaf.validity.contains(now)
        && summary.authority(&leaf.authority).is_some_and(|signer| signer.validity.contains(now));
    if served.is_none() && leaf_works {
        return RotationStep::Serve;
    }
    // Before anything else: the registrations follow the Secret within moments.
    if let Some(Served { authority, .. }) = served
        && summary.authority(&authority.id).is_none()
        && authority.validity.contains(now)
    {
        return RotationStep::Trust;
    }
    let authority_works = summary.can_sign && newest.validity.contains(now);
    if !authority_works || lifetimes.authority_due(newest.validity) <= now {
        return RotationStep::AddAuthority(lifetimes.new_authority(Some(newest.validity), now));
    }
    let by_newest = leaf.authority == newest.id;
    let lacks_name = world.names.iter().any(|name| !leaf.names.contains(name));
    let leaf_due = lifetimes.leaf_due(leaf.validity) <= now;
    let can_issue = by_newest || registered.accepts(&newest.id, !leaf_works, lifetimes, uptime);
    if can_issue && (!by_newest || !leaf_works || leaf_due || lacks_name) {
        let mut names = world.names.to_vec();
        names.extend(leaf.names.iter().filter(|name| !world.names.contains(name)).cloned());
        let validity = lifetimes.new_leaf(Some(leaf.validity), newest.validity, now);
        return RotationStep::Issue { validity, names, late: !leaf_works };
    }
    let can_serve = served.is_none_or(|served| {
        let urgent =
            !served.leaf.validity.contains(now) || !served.authority.validity.contains(now);
        served.leaf.authority == leaf.authority
            || registered.accepts(&leaf.authority, urgent, lifetimes, uptime)
    });
    let is_served = served.is_some_and(|served| served.leaf == *leaf);
    if can_serve && !is_served {
        return RotationStep::Serve;
    }
    let (retires, grace_end) = retirement(summary, world);
    if retires {
        return RotationStep::Retire;
    }
    let pause = if !by_newest || !is_served {
        Pause::Registrations
    } else if summary.older.is_empty() {
        Pause::Renewal
    } else {
        Pause::Replicas
    };
    let times = [
        Some(lifetimes.leaf_due(leaf.validity)),
        Some(lifetimes.authority_due(newest.validity)),
        Some(leaf.validity.not_after),
        served.map(|served| served.leaf.validity.not_after),
    ];
    let settled = |id, urgent| registered.settled(id, urgent, lifetimes);
    let uptimes = [
        settled(&newest.id, true),
        settled(&newest.id, false),
        settled(&leaf.authority, true),
        settled(&leaf.authority, false),
        grace_end,
    ];
    let times = times.into_iter().flatten().map(|time| time.duration_since(now));
    let uptimes = uptimes.into_iter().flatten().map(|time| time.saturating_sub(uptime));
    let ahead = times.chain(uptimes).filter(SignedDuration::is_positive);
    RotationStep::Wait(pause, ahead.min().unwrap_or(SignedDuration::MAX))
}

/// Whether the older authorities can be removed now, and at which uptime it may become possible.
fn retirement(summary: &SecretSummary, world: &World<'_>) -> (bool, Option<SignedDuration>) {
    let newest = &summary.newest.id;
    let Some(served) = world.served else { return (false, None) };
    if summary.older.is_empty()
        || summary.leaf.authority != *newest
        || served.authority.id != *newest
    {
        return (false, None);
    }
    // A replica without an authority serves with a certificate of another source.
    let mut others = world.replicas.iter().filter(|authority| !authority.is_empty());
    let unused = !world.replicas.is_empty() && others.all(|authority| authority == newest);
    let end = served.since.saturating_add(world.lifetimes.grace);
    (unused && end <= world.uptime, Some(end))
}

impl SecretSummary {
    /// The trusted authority with this fingerprint.
    pub fn authority(&self, id: &str) -> Option<&Authority> {
        std::iter::once(&self.newest).chain(&self.older).find(|authority| authority.id == id)
    }
}
