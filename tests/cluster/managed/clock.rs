//! The wall clock of one replica is wrong.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::time::Instant;

use super::replica::{Installation, Replica};
use super::writes::writers;
use crate::harness::objects::{LEASE, SECRET};
use crate::harness::patience::until_within;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;
use crate::harness::traffic::Traffic;

/// A new authority has to settle, all Leases have to name it, and then the older one is retired.
const ROTATION: Duration = Duration::from_secs(180);

/// A clock for one process, by libfaketime.
struct Clock(PathBuf);

impl Clock {
    fn new(plane: &Plane) -> Self {
        let packages = concat!(env!("CARGO_MANIFEST_DIR"), "/hack/packages.sh");
        let installed = Command::new(packages).arg("libfaketime").status();
        assert!(installed.expect("bash starts").success());
        let clock = Self(plane.folder("clock").join("time"));
        clock.set("+0");
        clock
    }

    /// Sets the difference from the real time: `+1y`, `-2h`.
    fn set(&self, difference: &str) {
        let new = self.0.with_extension("new");
        fs::write(&new, difference).expect("a file");
        fs::rename(&new, &self.0).expect("a file");
    }

    fn environment(&self) -> Vec<String> {
        vec![
            // The dynamic linker replaces $LIB.
            "LD_PRELOAD=/usr/$LIB/faketime/libfaketimeMT.so.1".to_owned(),
            format!("FAKETIME_TIMESTAMP_FILE={}", self.0.display()),
            "FAKETIME_NO_CACHE=1".to_owned(),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
            "NO_FAKE_STAT=1".to_owned(),
        ]
    }
}

/// The authorities in the Secret, when all replicas serve its leaf and trust nothing else.
async fn agreed(plane: &Plane, replicas: &[Replica]) -> Option<String> {
    let secret = plane.objects(SECRET).get("statusgate-tls").await.ok()?;
    let text = STANDARD.decode(secret["data"]["ca.crt"].as_str()?).ok()?;
    let text = String::from_utf8(text).ok()?;
    let leases = plane.list(LEASE).await;
    let mut authorities: Vec<&Value> = leases
        .iter()
        .map(|lease| &lease["metadata"]["annotations"]["statusgate.dev/authority"])
        .collect();
    authorities.dedup();
    let mut ends = Vec::new();
    for replica in replicas {
        ends.push(replica.metric("statusgate_tls_certificate_not_after_seconds ").await?);
    }
    ends.dedup();
    let is_one = text.matches("BEGIN CERTIFICATE").count() == 1;
    (is_one && authorities.len() == 1 && ends.len() == 1).then_some(text)
}

/// If the certificate of the API server was valid for less than a year, the replica with the wrong clock
/// would lose its connection and could do no harm. So these replicas do not check it.
#[test]
fn after_jumps_of_a_clock_the_replicas_agree_again_without_a_busy_loop() {
    in_own_cluster(async |plane| {
        let flags = &["--failure-policy=fail", "--certificate-lifetime=60s"];
        let installation = Installation::unverified(plane, flags).await;
        plane.create_policy().await;
        let clock = Clock::new(plane);
        let wrong =
            installation.starting_at("wrong", ([127, 0, 0, 1], 0).into(), &clock.environment());
        let right = installation.starting("right");
        let replicas = [installation.ready(wrong).await, installation.ready(right).await];
        let traffic = Traffic::start(writers(plane).await);
        let start = Instant::now();
        let mut last =
            until_within(ROTATION, "the replicas agree", async || agreed(plane, &replicas).await)
                .await;
        for difference in ["+1y", "-2h"] {
            let set = Instant::now();
            clock.set(difference);
            last = until_within(ROTATION, "the replicas agree again", async || {
                agreed(plane, &replicas).await.filter(|authorities| *authorities != last)
            })
            .await;
            println!("with {difference} they agree after {:?}", set.elapsed());
            traffic.go_on().await;
        }
        clock.set("+0");
        traffic.go_on().await;
        // A certificate that has expired by a wrong clock is replaced at once. A registration may still have the
        // authority of the old one for a moment, so a handshake can fail then.
        println!("failed writes: {:?}", traffic.failures().await);
        for replica in &replicas {
            let name = "statusgate_handshake_failures_total{reason=\"not_trusted\"}";
            println!("{} handshakes not trusted", replica.sum(name).await);
            let requests = replica.sum("statusgate_api_requests_total{").await;
            let steps = replica.sum("statusgate_certificate_steps_total{").await;
            let time = start.elapsed();
            println!("{requests} requests and {steps} steps in {time:?}");
            assert!(requests < 200.0 + 10.0 * time.as_secs_f64(), "{requests} in {time:?}");
            assert!(steps < 40.0, "{steps} steps");
        }
        let named = "not valid by the clock of this server";
        assert!(replicas[0].log().contains(named), "{}", replicas[0].log());
        assert!(!replicas[1].log().contains(named), "{}", replicas[1].log());
        // libfaketime removes its shared memory at a clean end.
        replicas.iter().for_each(Replica::terminate);
    });
}
