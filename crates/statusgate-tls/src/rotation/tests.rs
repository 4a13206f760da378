//! The next step, situation by situation.

mod model;

use jiff::{SignedDuration, Timestamp};

use super::*;

const DAY: i64 = 86_400;

fn days(from: i64, until: i64) -> Validity {
    let at = |day: i64| Timestamp::from_second(1_700_000_000 + day * DAY).unwrap();
    Validity { not_before: at(from), not_after: at(until) }
}

fn authority(id: &str, until: i64) -> Authority {
    Authority { id: id.to_owned(), validity: days(until - 540, until) }
}

/// A situation on day 0: the leaf of `ca1` ends on day 80, and this server uses it.
struct Situation {
    secret: Option<SecretSummary>,
    held: Option<SecretSummary>,
    served: Option<Served>,
    registered: Registered,
    replicas: Vec<String>,
    rescuer: bool,
    names: Vec<String>,
    /// Seconds.
    uptime: i64,
}

fn steady() -> Situation {
    let newest = authority("ca1", 350);
    let leaf = Leaf {
        id: "leaf1".to_owned(),
        authority: newest.id.clone(),
        validity: days(-55, 80),
        names: vec!["a".to_owned()],
    };
    let served =
        Served { leaf: leaf.clone(), authority: newest.clone(), since: SignedDuration::ZERO };
    let summary = SecretSummary { newest, older: Vec::new(), can_sign: true, leaf };
    Situation {
        secret: Some(summary.clone()),
        held: Some(summary),
        served: Some(served),
        registered: registered(&["ca1"]),
        replicas: vec!["ca1".to_owned(), "ca1".to_owned()],
        rescuer: false,
        names: vec!["a".to_owned()],
        uptime: 1000,
    }
}

/// After `ca2` was added.
fn spreading() -> Situation {
    let mut situation = steady();
    let summary = situation.secret.as_mut().unwrap();
    summary.older = vec![std::mem::replace(&mut summary.newest, authority("ca2", 360))];
    situation
}

/// After a leaf of `ca2` was issued.
fn switching() -> Situation {
    let mut situation = spreading();
    let summary = situation.secret.as_mut().unwrap();
    summary.leaf.id = "leaf2".to_owned();
    summary.leaf.authority = "ca2".to_owned();
    situation.registered = registered(&["ca2", "ca1"]);
    situation
}

/// After this server uses that leaf.
fn switched() -> Situation {
    let mut situation = switching();
    let summary = situation.secret.as_ref().unwrap();
    situation.served = Some(Served {
        leaf: summary.leaf.clone(),
        authority: summary.newest.clone(),
        since: SignedDuration::ZERO,
    });
    situation.replicas = vec!["ca2".to_owned(), "ca2".to_owned()];
    situation
}

/// In every caBundle for 100 seconds.
fn registered(ids: &[&str]) -> Registered {
    let since = |id: &&str| ((*id).to_owned(), SignedDuration::from_secs(900));
    Registered::Everywhere(ids.iter().map(since).collect())
}

impl Situation {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn leaf(&mut self) -> &mut Leaf {
        &mut self.secret.as_mut().unwrap().leaf
    }

    fn step(&self) -> RotationStep {
        step(&World {
            now: days(0, 0).not_before,
            uptime: SignedDuration::from_secs(self.uptime),
            secret: self.secret.as_ref(),
            held: self.held.as_ref(),
            served: self.served.as_ref(),
            registered: &self.registered,
            replicas: &self.replicas,
            rescuer: self.rescuer,
            names: &self.names,
            lifetimes: &Lifetimes::default(),
        })
    }

    /// The name of the step.
    fn name(&self) -> String {
        match self.step() {
            RotationStep::Wait(pause, time) if time < SignedDuration::from_hours(1) => {
                format!("{pause:?} {}s", time.as_secs())
            }
            RotationStep::Wait(pause, time) => format!("{pause:?} {}d", time.as_secs() / DAY),
            step => format!("{step:?}").split([' ', '(']).next().unwrap().to_owned(),
        }
    }
}

#[test]
fn a_missing_or_invalid_secret_is_written_again() {
    let lost = || steady().with(|it| it.secret = None);
    assert_eq!(lost().name(), "Restore");
    let starting = || lost().with(|it| (it.held, it.served) = (None, None));
    assert_eq!(starting().name(), "Create");
    assert!(starting().with(|it| it.rescuer = true).name().starts_with("Rescue"));
}

#[test]
fn a_starting_replica_serves_the_leaf_of_the_secret() {
    let starting = || steady().with(|it| (it.held, it.served) = (None, None));
    assert_eq!(starting().name(), "Serve");
    assert_eq!(starting().with(|it| it.registered = Registered::Unknown).name(), "Serve");
    assert_eq!(starting().with(|it| it.registered = registered(&["other"])).name(), "Serve");
    assert_eq!(starting().with(|it| it.leaf().validity = days(-90, 0)).name(), "Issue");
}

#[test]
fn a_leaf_is_renewed_when_a_third_of_its_lifetime_is_left() {
    assert_eq!(steady().name(), "Renewal 50d");
    let left = |days_left| steady().with(|it| it.leaf().validity = days(-90, days_left));
    assert_eq!(
        left(31).with(|it| it.served.as_mut().unwrap().leaf = left(31).leaf().clone()).name(),
        "Renewal 1d"
    );
    assert_eq!(left(30).name(), "Issue");
    let RotationStep::Issue { validity, late, .. } = left(30).step() else { panic!() };
    assert_eq!((validity, late), (days(-45, 90), false));
    assert_eq!(left(30).with(|it| it.registered = Registered::Unknown).name(), "Issue");
}

#[test]
fn a_missing_name_is_added_to_those_of_the_leaf() {
    let situation = steady().with(|it| it.names = vec!["b".to_owned()]);
    let RotationStep::Issue { names, late, .. } = situation.step() else { panic!() };
    assert_eq!((names, late), (vec!["b".to_owned(), "a".to_owned()], false));
}

#[test]
fn an_authority_is_replaced_before_it_could_not_sign_a_whole_leaf() {
    let left = |day| steady().with(|it| it.secret.as_mut().unwrap().newest = authority("ca1", day));
    assert_eq!(left(121).name(), "Renewal 1d");
    assert_eq!(left(120).step(), RotationStep::AddAuthority(days(-180, 360)));
    let no_key = steady().with(|it| it.secret.as_mut().unwrap().can_sign = false);
    assert_eq!(no_key.name(), "AddAuthority");
}

#[test]
fn a_leaf_of_a_new_authority_waits_for_the_registrations() {
    assert_eq!(spreading().name(), "Registrations 50d");
    let both = || spreading().with(|it| it.registered = registered(&["ca2", "ca1"]));
    assert_eq!(both().with(|it| it.uptime = 929).name(), "Registrations 1s");
    assert_eq!(both().with(|it| it.uptime = 930).name(), "Issue");
    assert_eq!(spreading().with(|it| it.registered = Registered::Nothing).name(), "Issue");
    let unknown = || spreading().with(|it| it.registered = Registered::Unknown);
    assert_eq!(unknown().name(), "Registrations 50d");
    let expired = unknown().with(|it| it.leaf().validity = days(-90, 0));
    assert!(matches!(expired.step(), RotationStep::Issue { late: true, .. }));
}

#[test]
fn a_new_leaf_is_served_when_its_authority_is_registered() {
    assert_eq!(switching().name(), "Serve");
    assert_eq!(switching().with(|it| it.uptime = 929).name(), "Registrations 1s");
    let unknown = || switching().with(|it| it.registered = Registered::Unknown);
    assert_eq!(unknown().name(), "Registrations 50d");
    let expired = unknown().with(|it| it.served.as_mut().unwrap().leaf.validity = days(-90, 0));
    assert_eq!(expired.name(), "Serve");
    let renewed = steady().with(|it| it.leaf().id = "leaf2".to_owned());
    assert_eq!(renewed.with(|it| it.registered = Registered::Unknown).name(), "Serve");
}

#[test]
fn an_old_authority_is_removed_when_no_replica_needs_it() {
    assert_eq!(switched().name(), "Retire");
    assert_eq!(switched().with(|it| it.uptime = 79).name(), "Replicas 1s");
    let replicas = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        switched().with(|it| it.replicas = names).name()
    };
    assert_eq!(replicas(&["ca2", "ca1"]), "Replicas 50d");
    assert_eq!(replicas(&[]), "Replicas 50d");
    assert_eq!(replicas(&["ca2", ""]), "Retire");
}

#[test]
fn a_replica_adds_the_authority_that_it_serves_to_a_replaced_secret() {
    let replaced = || {
        steady().with(|it| {
            let summary = it.secret.as_mut().unwrap();
            summary.newest.id = "ca9".to_owned();
            summary.leaf.authority = "ca9".to_owned();
        })
    };
    assert_eq!(replaced().name(), "Trust");
    let expired =
        |it: &mut Situation| it.served.as_mut().unwrap().authority.validity = days(-99, 0);
    assert_eq!(replaced().with(expired).name(), "Registrations 50d");
}

#[test]
fn a_certificate_of_the_future_is_replaced_by_one_that_is_valid_in_both_times() {
    let future = steady().with(|it| it.leaf().validity = days(10, 145));
    let RotationStep::Issue { validity, late, .. } = future.step() else { panic!() };
    assert_eq!((validity, late), (days(-45, 145), true));
}
