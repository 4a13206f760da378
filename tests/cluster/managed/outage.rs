//! The API server does not answer for a minute, or does not exist for a minute.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::caller::{Caller, Write};
use super::replica::{Installation, Replica};
use crate::harness::objects::{LEASE, POLICY};
use crate::harness::patience::until;
use crate::harness::pool::in_own_cluster;

const OUTAGE: Duration = Duration::from_secs(60);

/// Lines of a log about something else than a review. Each loop logs each different error once.
const LINES: usize = 50;

/// A write of this status.
fn write(status: Value) -> Write {
    Write { group: "vshn.appcat.vshn.io".to_owned(), plural: "xvshnpostgresqls", status }
}

/// Reviews writes at all replicas, and returns the longest time of a review and how many there were.
async fn review_all(replicas: &[Replica], caller: &Caller) -> (Duration, usize) {
    let (start, mut slowest, mut count) = (Instant::now(), Duration::ZERO, 0);
    while start.elapsed() < OUTAGE {
        for replica in replicas {
            assert!(replica.is_ready().await);
            for (path, status) in [
                ("/mutate", json!({"currentVersion": "1"})),
                ("/validate", json!({"phase": "Nonsense"})),
            ] {
                let sent = Instant::now();
                let response = caller.review(replica.address(), path, &write(status)).await;
                (slowest, count) = (slowest.max(sent.elapsed()), count + 1);
                let is_right = match path {
                    "/mutate" => response["patch"].is_string(),
                    _ => response["allowed"] == false,
                };
                assert!(is_right, "{path}: {response:#}");
            }
        }
        sleep(Duration::from_millis(200)).await;
    }
    (slowest, count)
}

#[test]
fn reviews_go_on_while_the_api_server_hangs_and_changes_are_live_soon_after() {
    outlive(true);
}

#[test]
fn reviews_go_on_without_an_api_server_and_changes_are_live_soon_after() {
    outlive(false);
}

fn outlive(hangs: bool) {
    in_own_cluster(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let policies = plane.objects(POLICY);
        // Without it, the match conditions of the registrations do not depend on the enforcement.
        let no_repair = json!({"spec": {"writers": null}});
        policies.merge("appcat", no_repair).await.expect("a changed policy");
        let replicas = installation.two().await;
        let name = plane.composite("outage").await;
        plane.judged(&name).await;
        plane.enforced(2).await;
        let (kept_before, caller) = (plane.kept().await, Caller::new(plane).await);
        let lines = || {
            let logs = replicas.iter().map(Replica::log);
            logs.map(|log| log.lines().filter(|line| !line.contains("\"decision\"")).count())
        };
        let before: Vec<usize> = lines().collect();
        if hangs {
            plane.signal("STOP")
        } else {
            plane.stop().await
        }
        let (slowest, count) = review_all(&replicas, &caller).await;
        let logged: Vec<usize> = lines().zip(before).map(|(all, before)| all - before).collect();
        println!("{count} reviews, at most {slowest:?}; {logged:?} lines");
        assert!(logged.iter().all(|lines| *lines <= LINES), "{}", replicas[0].log());

        if hangs {
            plane.signal("CONT")
        } else {
            plane.restart().await
        }
        let change = json!({"spec": {"enforcement": "Warn"}});
        until("the policy changes", async || policies.merge("appcat", change.clone()).await.ok())
            .await;
        let changed = Instant::now();
        let wrong = write(json!({"phase": "Nonsense"}));
        caller.live(&replicas, changed, &wrong, true).await;
        plane.enforced(2).await;
        assert_eq!(plane.kept().await, kept_before);
        assert_eq!(plane.list(LEASE).await.len(), 2);
        for replica in &replicas {
            assert!(!replica.log().contains("\"ERROR\""), "{}", replica.log());
        }
    });
}
