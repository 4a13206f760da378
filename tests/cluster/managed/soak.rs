//! A long run with restarts, rotations and edits, for `make soak`.
//!
//! SOAK_SECONDS is its duration, and SOAK_SEED repeats its actions. One replica runs all the time and is
//! measured; the other one is restarted.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::replica::{Installation, Usage};
use super::writes::writers;
use crate::harness::objects::{POLICY, SECRET};
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::pool::in_own_cluster;
use crate::harness::traffic::Traffic;

#[test]
#[ignore = "takes minutes: make soak"]
fn a_long_run_loses_no_write_and_grows_nothing() {
    let length = Duration::from_secs(variable("SOAK_SECONDS").unwrap_or(600));
    let seed = variable("SOAK_SEED").unwrap_or_else(|| std::process::id().into());
    println!("soak: {} seconds, SEED={seed}", length.as_secs());
    in_own_cluster(async |plane| {
        // The certificate is replaced every 40 s, and its authority more rarely.
        let flags = &["--failure-policy=fail", "--certificate-lifetime=60s"];
        let installation = Installation::new(plane, flags).await;
        plane.create_policy().await;
        let [measured, second] = installation.two().await;
        let traffic = Traffic::start(writers(plane).await);
        let mut second = Some(second);
        let (mut dice, mut done) = (Dice(seed), Done::default());
        // Each sample has the same number of policies.
        replace_policy(plane, done.edits).await;
        done.edits += 1;
        let (begin, mut samples) = (Instant::now(), Vec::new());
        while begin.elapsed() < length {
            match dice.roll(6) {
                0 | 1 => {
                    let old = second.take().expect("there is always a second replica");
                    let next = if dice.roll(2) == 0 {
                        let next = installation.replica("next").await;
                        installation.stop(&old);
                        next
                    } else {
                        // The measured replica is alone for some time.
                        installation.stop(&old);
                        installation.replica("next").await
                    };
                    assert!(!old.log().contains(BUG), "{}", old.log());
                    second = Some(next);
                    done.restarts += 1;
                }
                2 => {
                    delete_secret(plane).await;
                    done.deleted_secrets += 1;
                }
                3 => {
                    replace_policy(plane, done.edits).await;
                    done.edits += 1;
                }
                _ => {
                    let enforcement = ["Warn", "Deny"][dice.roll(2)];
                    let edit = json!({"spec": {"enforcement": enforcement}});
                    plane.objects(POLICY).merge("appcat", edit).await.expect("an edit");
                    done.edits += 1;
                }
            }
            traffic.go_on().await;
            let secret = plane.objects(SECRET).get("statusgate-tls").await.expect("a Secret");
            done.certificates.insert(secret["data"]["tls.crt"].to_string());
            for _ in 0..=dice.roll(4) {
                sleep(Duration::from_secs(1)).await;
                samples.push(measured.usage().await);
            }
        }
        println!(
            "soak: {} restarts, {} deleted Secrets, {} certificates, {} edits of policies",
            done.restarts,
            done.deleted_secrets,
            done.certificates.len(),
            done.edits
        );
        let failures = traffic.failures().await;
        let first = &failures[..failures.len().min(10)];
        assert_eq!(first, [""; 0], "of {}; repeat with SEED={seed}", failures.len());
        assert!(!measured.log().contains(BUG), "{}", measured.log());
        does_not_grow(&samples);
    });
}

/// What was done.
#[derive(Default)]
struct Done {
    restarts: usize,
    deleted_secrets: usize,
    edits: usize,
    certificates: BTreeSet<String>,
}

async fn delete_secret(plane: &Plane) {
    let secrets = plane.objects(SECRET);
    let before = secrets.get("statusgate-tls").await.expect("a Secret")["metadata"]["uid"].clone();
    secrets.delete("statusgate-tls").await.expect("a deletion");
    until("the Secret is back", async || {
        let secret = secrets.get("statusgate-tls").await.ok()?;
        (secret["metadata"]["uid"] != before).then_some(())
    })
    .await;
}

/// Creates a policy with a new name and deletes the one before: metrics of deleted policies must not stay.
async fn replace_policy(plane: &Plane, number: usize) {
    let policies = plane.objects(POLICY);
    for policy in plane.list(POLICY).await {
        let name = policy["metadata"]["name"].as_str().expect("a name");
        if name.starts_with("gadgets-") {
            policies.delete(name).await.expect("a deletion");
        }
    }
    let mut policy = policies.named(&format!("gadgets-{number}"));
    policy["spec"] = json!({
        "convention": "metav1",
        "resources": [{
            "apiGroups": ["test.statusgate.dev"], "apiVersions": ["v1"], "resources": ["gadgets"],
        }],
    });
    policies.create(&policy).await.expect("a policy");
}

/// Compares the lowest values of the second fifth of the run with those of the last fifth. What is kept forever
/// also raises the lowest value; what is freed again does not.
fn does_not_grow(samples: &[Usage]) {
    let fifth = samples.len() / 5;
    let lowest = |samples: &[Usage], of: Of| samples.iter().map(of).min();
    let (early, late) = (&samples[fifth..2 * fifth], &samples[samples.len() - fifth..]);
    let bounds: [(&str, Of, u64); 3] = [
        ("KiB of resident memory", |usage| usage.memory, 6 << 10),
        ("file descriptors", |usage| usage.descriptors, 16),
        ("series of metrics", |usage| usage.series, 20),
    ];
    let mut grown = Vec::new();
    for (what, of, margin) in bounds {
        let (early, late) =
            (lowest(early, of).expect("samples"), lowest(late, of).expect("samples"));
        let bound = early + early / 10 + margin;
        println!("soak: {what}: {early} early, {late} late; the bound is {bound}");
        if late > bound {
            grown.push(format!("{what} grew from {early} to {late}, above {bound}"));
        }
    }
    assert_eq!(grown, [""; 0]);
}

type Of = fn(&Usage) -> u64;

/// Pseudo-random numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((bits ^ (bits >> 31)) % sides as u64).expect("less than the sides")
    }
}

/// A number in the environment.
#[expect(clippy::disallowed_methods, reason = "a test has no command line of its own")]
fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// The log says this after a panic, and where an error should be impossible.
const BUG: &str = "a bug in statusgate";
