//! A replica is killed while all writes depend on it.
//!
//! The API server sends a review once: client-go repeats only a GET after a broken connection, and Go's
//! HTTP client only a request of which nothing was written (client-go, rest/request.go; net/http,
//! transport.go). So a review that the killed process was answering fails its write, and so does one that
//! reaches its address before the Service drops it.

use std::net::{SocketAddr, TcpListener};
use std::process;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::replica::Installation;
use super::writes::writers;
use crate::harness::objects::{LEASE, POLICY, name_of};
use crate::harness::patience::{until, until_within};
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;
use crate::harness::traffic::{Failure, Traffic};

/// A replica is alive until its Lease did not change in four lists, one every ten seconds.
const LEASE_ENDS: Duration = Duration::from_secs(240);

/// A port that a replica can use again after its end. The kernel uses higher ports for outgoing connections.
fn address() -> SocketAddr {
    let start = u16::try_from(process::id() % 5000).unwrap();
    let addresses = (start..).map(|number| SocketAddr::from(([127, 0, 0, 1], 15000 + number)));
    let mut free = addresses.filter(|address| TcpListener::bind(address).is_ok());
    free.next().expect("a free port")
}

/// The names in `status.replicas` of the policy.
async fn entries(plane: &Plane) -> Option<Vec<String>> {
    let policy = plane.objects(POLICY).get("appcat").await.ok()?;
    let entries = policy["status"]["replicas"].as_array()?;
    Some(entries.iter().map(|entry| name_of(&json!({"metadata": entry})).to_owned()).collect())
}

#[test]
fn a_killed_replica_fails_no_write_after_the_service_dropped_it_and_leaves_only_its_lease() {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &["--failure-policy=fail"]).await;
        plane.create_policy().await;
        let address = address();
        let (one, two) =
            (installation.starting_at("killed", address, &[]), installation.starting("two"));
        let (mut one, two) = (installation.ready(one).await, installation.ready(two).await);
        let traffic = Traffic::start(writers(plane).await);
        plane.enforced(2).await;
        let kept_before = plane.kept().await;
        let mut kills = Vec::new();
        for _ in 0..3 {
            traffic.go_on().await;
            let killed = Instant::now();
            one.kill();
            until("the Service drops the replica", async || {
                (!installation.reaches(&one)).then_some(())
            })
            .await;
            kills.push((killed, Instant::now()));
            traffic.go_on().await;
            // It has the same name as before, like a restarted container.
            one = installation.ready(installation.starting_at("again", address, &[])).await;
        }
        traffic.go_on().await;
        let failed = traffic.failed().await;
        for (killed, dropped) in &kills {
            let after =
                failed.iter().filter(|failure| (*killed..=*dropped).contains(&failure.sent));
            println!(
                "{} failed of those sent {:?} after a kill",
                after.count(),
                *dropped - *killed
            );
        }
        for Failure { sent, failed, message } in &failed {
            let was_killed =
                kills.iter().any(|(killed, dropped)| sent <= dropped && failed >= killed);
            assert!(was_killed && message.contains("failed calling webhook"), "{message}");
        }

        plane.enforced(2).await;
        assert_eq!(plane.list(LEASE).await.len(), 2);
        assert_eq!(entries(plane).await.expect("entries").len(), 2);
        assert_eq!(plane.kept().await, kept_before);
        for log in [one.log(), two.log()] {
            assert!(!log.contains("\"ERROR\"") && !log.contains("\"WARN\""), "{log}");
        }

        one.kill();
        let name = format!("-{}", address.port());
        until_within(LEASE_ENDS, "its entry is removed", async || {
            let entries = entries(plane).await?;
            (!entries.iter().any(|entry| entry.ends_with(&name))).then_some(())
        })
        .await;
        plane.enforced(1).await;
        // It could be a replica that serves without a path to the API server.
        let leases = plane.list(LEASE).await;
        assert!(leases.iter().any(|lease| name_of(lease).ends_with(&name)));
        assert_eq!(plane.kept().await, kept_before);
    });
}
