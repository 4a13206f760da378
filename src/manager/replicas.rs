//! The replicas that are alive: each renews a Lease, and reads those of the others.
//!
//! A replica is alive while its Lease changes. As in client-go's leader election, times of other machines
//! are not compared with the own clock. Unlike there, the measure is the number of lists in which a Lease
//! did not change: after an outage of the API server, all Leases are old, but no replica has ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::sleep;

use super::exchange::{Exchange, Replica};
use super::trouble::Trouble;
use crate::cluster::{Cluster, ClusterError, Lease};
use crate::telemetry::Metrics;

/// Keeps the Lease of this replica, and publishes [`Exchange::replicas`].
pub struct Replicas {
    cluster: Cluster,
    namespace: String,
    name: String,
    exchange: Arc<Exchange>,
    metrics: Arc<Metrics>,
    authority: watch::Receiver<String>,
    clock: fn() -> Timestamp,
}

impl Replicas {
    /// `name` is the name of this replica and of its Lease. `authority` is the fingerprint of the authority
    /// of its serving certificate; empty if it does not manage certificates.
    pub const fn new(
        cluster: Cluster,
        namespace: String,
        name: String,
        exchange: Arc<Exchange>,
        metrics: Arc<Metrics>,
        authority: watch::Receiver<String>,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self { cluster, namespace, name, exchange, metrics, authority, clock }
    }

    /// Renews the Lease until it is dropped.
    pub async fn run(&self) {
        let mut authority = self.authority.clone();
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
        let deleted = self.cluster.delete_lease(&self.namespace, &self.name, "").await;
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
        let lease = Lease {
            name: self.name.clone(),
            holder: self.name.clone(),
            authority: authority.to_owned(),
            renewed: (self.clock)(),
            version: String::new(),
        };
        self.cluster.renew_lease(&self.namespace, &lease, LEASE_SECONDS).await?;
        let leases = self.cluster.leases(&self.namespace).await?;
        let (live, abandoned) = observed.observe(&leases, is_beat);
        let replicas: Vec<Replica> = live.into_iter().map(replica).collect();
        self.metrics.replicas(replicas.len());
        self.exchange.replicas.send_if_modified(|known| {
            let ids = |replicas: &[Replica]| -> Vec<(String, String)> {
                let id = |replica: &Replica| (replica.name.clone(), replica.authority.clone());
                replicas.iter().map(id).collect()
            };
            let is_new = ids(known) != ids(&replicas);
            *known = replicas;
            is_new
        });
        for Lease { name, holder, version, .. } in abandoned {
            tracing::info!(replica = holder, "deleting the Lease of a replica that ended");
            self.cluster.delete_lease(&self.namespace, name, version).await?;
        }
        Ok(())
    }
}

fn replica(lease: &Lease) -> Replica {
    Replica { name: lease.holder.clone(), authority: lease.authority.clone() }
}

/// How often each Lease was read without a change.
#[derive(Debug, Default)]
struct Observed(BTreeMap<String, (String, u32)>);

impl Observed {
    /// Returns the Leases of live replicas, and those that are unchanged for long. `is_beat` is false for
    /// a list in between, which says nothing about how old a Lease is.
    fn observe<'l>(
        &mut self,
        leases: &'l [Lease],
        is_beat: bool,
    ) -> (Vec<&'l Lease>, Vec<&'l Lease>) {
        let known = std::mem::take(&mut self.0);
        let unchanged = |lease: &Lease| match known.get(&lease.name) {
            Some((version, count)) if *version == lease.version => count + u32::from(is_beat),
            _ => 0,
        };
        let (mut live, mut abandoned) = (Vec::new(), Vec::new());
        for lease in leases {
            let count = unchanged(lease);
            if count < LEASE_BEATS {
                live.push(lease);
            } else if count >= ABANDONED_BEATS {
                abandoned.push(lease);
            }
            self.0.insert(lease.name.clone(), (lease.version.clone(), count));
        }
        (live, abandoned)
    }
}

/// A write of a small object every ten seconds, as kubelet's for its node.
const BEAT: Duration = Duration::from_secs(10);

/// A Lease that did not change in this many beats belongs to a replica that ended.
const LEASE_BEATS: u32 = 4;

const LEASE_SECONDS: u32 = 40;

/// Three durations: then a replica that only was slow would have renewed it.
const ABANDONED_BEATS: u32 = 3 * LEASE_BEATS;

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_replica_is_alive_while_its_lease_changes() {
        let mut observed = Observed::default();
        let mut counts = Vec::new();
        for beat in 0..=12 {
            let leases = [lease("a", beat), lease("b", 0)];
            let (live, abandoned) = observed.observe(&leases, true);
            counts.push((live.len(), abandoned.len()));
        }
        assert_eq!(counts[..4], [(2, 0); 4]);
        assert_eq!(counts[4..12], [(1, 0); 8]);
        assert_eq!(counts[12], (1, 1));
        let leases = [lease("a", 13), lease("b", 1)];
        let (live, _) = observed.observe(&leases, true);
        assert_eq!(live.len(), 2, "it renewed its Lease again");
    }

    #[test]
    fn lists_between_two_beats_do_not_count() {
        let mut observed = Observed::default();
        for _ in 0..20 {
            let leases = [lease("a", 0)];
            assert_eq!(observed.observe(&leases, false).0.len(), 1);
        }
    }
}
