//! The replicas that are alive: each renews a Lease, and reads those of the others.
//!
//! A replica is alive while its Lease changes. As in client-go's leader election, times of other machines
//! are not compared with the own clock. Unlike there, the measure is the number of lists in which a Lease
//! did not change: after an outage of the API server, all Leases are old, but no replica has ended.
//!
//! A replica that lost only its path to the API server still serves. So its Lease stays as long as its
//! certificate may be valid: the older authorities must not be removed before.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::context::{Context, Trouble, set_if_changed};
use super::exchange::Replica;
use statusgate_cluster::{ClusterError, Lease};
use statusgate_tls::rotation::Lifetimes;

/// Keeps the Lease of this replica, and publishes [`Exchange::replicas`](super::exchange::Exchange::replicas).
#[derive(Clone)]
pub struct Replicas(pub Context);

impl Replicas {
    /// Renews the Lease until it is dropped.
    pub async fn run(&self) {
        let mut authority = self.0.exchange.served.subscribe();
        let (mut observed, mut trouble) = (Observed::default(), Trouble::default());
        let mut is_beat = true;
        loop {
            let current = authority.borrow_and_update().clone();
            match self.beat(&current, &mut observed, is_beat).await {
                Ok(()) => trouble.end("renew the Lease of this replica"),
                Err(error) => trouble.begin("renew the Lease of this replica", &error),
            }
            is_beat = tokio::select! {
                () = sleep(BEAT) => true,
                // The others wait for this change, to remove older authorities.
                Ok(()) = authority.changed() => false,
            };
        }
    }

    /// Deletes the Lease of this replica at the end, so that the others need not wait until it expires.
    pub async fn leave(&self) {
        let Context { cluster, options, .. } = &self.0;
        let deleted = cluster.delete_lease(&options.namespace, &options.replica, "").await;
        if let Err(error) = deleted {
            Trouble::default().begin("delete the Lease of this replica", &error);
        }
    }

    async fn beat(
        &self,
        authority: &str,
        observed: &mut Observed,
        is_beat: bool,
    ) -> Result<(), ClusterError> {
        let Context { cluster, options, exchange, metrics, .. } = &self.0;
        let (now, namespace) = (self.0.now(), &options.namespace);
        let lease = Lease {
            name: options.replica.clone(),
            holder: options.replica.clone(),
            authority: authority.to_owned(),
            renewed: now,
            version: String::new(),
        };
        cluster.renew_lease(namespace, &lease).await?;
        let leases = cluster.leases(namespace).await?;
        let lifetimes = options.lifetimes();
        let (abandoned, kept): (Vec<_>, Vec<_>) = observed
            .observe(&leases, is_beat)
            .into_iter()
            .partition(|(lease, beats)| is_abandoned(lease, *beats, &lifetimes, now));
        let replica = |(lease, beats): (&Lease, u32)| Replica {
            name: lease.holder.clone(),
            authority: lease.authority.clone(),
            is_live: beats < LEASE_BEATS,
        };
        let replicas: Vec<Replica> = kept.into_iter().map(replica).collect();
        metrics.replicas(replicas.iter().filter(|replica| replica.is_live).count());
        set_if_changed(&exchange.replicas, replicas);
        for (Lease { name, holder, version, .. }, _) in abandoned {
            tracing::info!(replica = holder, "deleting the Lease of a replica that ended");
            cluster.delete_lease(namespace, name, version).await?;
        }
        Ok(())
    }
}

/// Whether a Lease can be deleted: its replica has ended, or its certificate has expired.
fn is_abandoned(lease: &Lease, beats: u32, lifetimes: &Lifetimes, now: Timestamp) -> bool {
    let serves = !lease.authority.is_empty() && now < lifetimes.last_handshake(lease.renewed);
    beats >= ABANDONED_BEATS && !serves
}

/// How often each Lease was read without a change.
#[derive(Debug, Default)]
struct Observed(BTreeMap<String, (String, u32)>);

impl Observed {
    /// Returns each Lease with the number of beats without a change. `is_beat` is false for a list in
    /// between, so it is no measure of the age of a Lease.
    fn observe<'l>(&mut self, leases: &'l [Lease], is_beat: bool) -> Vec<(&'l Lease, u32)> {
        let known = std::mem::take(&mut self.0);
        let mut counted = Vec::with_capacity(leases.len());
        for lease in leases {
            let unchanged = match known.get(&lease.name) {
                Some((version, count)) if *version == lease.version => count + u32::from(is_beat),
                _ => 0,
            };
            self.0.insert(lease.name.clone(), (lease.version.clone(), unchanged));
            counted.push((lease, unchanged));
        }
        counted
    }
}

/// A write of a small object every ten seconds, as kubelet's for its node.
pub const BEAT: Duration = Duration::from_secs(10);

/// A Lease that did not change in this many beats belongs to a replica that ended or cannot reach the API
/// server.
const LEASE_BEATS: u32 = 4;

/// Three durations: then a replica that only was slow would have renewed it.
const ABANDONED_BEATS: u32 = 3 * LEASE_BEATS;

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn lease(name: &str, version: u32) -> Lease {
        Lease {
            name: name.to_owned(),
            holder: name.to_owned(),
            authority: String::new(),
            renewed: Timestamp::UNIX_EPOCH,
            version: version.to_string(),
        }
    }

    /// The beats without a change of each Lease.
    fn beats(observed: &mut Observed, leases: &[Lease], is_beat: bool) -> Vec<u32> {
        observed.observe(leases, is_beat).into_iter().map(|(_, beats)| beats).collect()
    }

    #[test]
    fn beats_count_while_a_lease_does_not_change() {
        let mut observed = Observed::default();
        for beat in 0..=12 {
            let leases = [lease("a", beat), lease("b", 0)];
            assert_eq!(beats(&mut observed, &leases, true), [0, beat]);
        }
        let leases = [lease("a", 13), lease("b", 1)];
        assert_eq!(beats(&mut observed, &leases, true), [0, 0], "it renewed its Lease again");
    }

    #[test]
    fn a_lease_stays_while_the_certificate_of_its_replica_may_be_valid() {
        let lifetimes = Lifetimes::of_leaf(SignedDuration::from_hours(90 * 24));
        let renewed = Timestamp::UNIX_EPOCH;
        let abandoned = |authority: &str, beats, days: i64| {
            let lease = Lease { authority: authority.to_owned(), ..lease("a", 0) };
            is_abandoned(&lease, beats, &lifetimes, renewed + SignedDuration::from_hours(days * 24))
        };
        assert!(!abandoned("ca1", 1000, 89));
        assert!(abandoned("ca1", 12, 90));
        assert!(!abandoned("ca1", 11, 90));
        assert!(abandoned("", 12, 0));
        assert!(!abandoned("", 11, 0));
    }

    #[test]
    fn lists_between_two_beats_do_not_count() {
        let mut observed = Observed::default();
        for _ in 0..20 {
            assert_eq!(beats(&mut observed, &[lease("a", 0)], false), [0]);
        }
    }
}
