//! The API server does not answer for a minute, or does not exist for a minute.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::patience::until;
use crate::plane::{LEASE, POLICY, Plane, SECRET, alone};
use crate::replica::{Installation, Replica};

const OUTAGE: Duration = Duration::from_secs(60);

/// Lines of a log about something else than a review. Each loop logs each different error once.
const LINES: usize = 50;

/// A caller that trusts the authorities of the Secret, as an API server does.
struct Caller {
    authorities: Vec<Vec<u8>>,
}

impl Caller {
    async fn new(plane: &Plane) -> Self {
        let secret = plane.objects(SECRET).get("statusgate-tls").await.expect("a Secret");
        let text = STANDARD.decode(secret["data"]["ca.crt"].as_str().expect("a text"));
        let text = text.expect("base64");
        let authorities = CertificateDer::pem_slice_iter(&text);
        let authorities = authorities.map(|der| der.expect("a certificate").to_vec()).collect();
        Self { authorities }
    }

    /// The `response` of a webhook to a write of this status, on a new connection.
    async fn review(&self, address: SocketAddr, path: &str, status: &Value) -> Value {
        let object = json!({
            "apiVersion": "vshn.appcat.vshn.io/v1",
            "kind": "XVSHNPostgreSQL",
            "metadata": {"name": "direct"},
            "status": status,
        });
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "direct",
                "kind": {"group": "vshn.appcat.vshn.io", "version": "v1", "kind": "XVSHNPostgreSQL"},
                "resource": {
                    "group": "vshn.appcat.vshn.io", "version": "v1", "resource": "xvshnpostgresqls",
                },
                "subResource": "status",
                "name": "direct",
                "operation": "UPDATE",
                "userInfo": {"username": "writer"},
                "object": object,
                "oldObject": {"metadata": {"name": "direct"}, "status": {"phase": "Unknown"}},
            },
        });
        let mut config = Config::new(format!("https://{address}").parse().expect("a URL"));
        config.root_cert = Some(self.authorities.clone());
        (config.default_retry, config.proxy_url) = (false, None);
        // The longest time that an API server waits by default.
        config.read_timeout = Some(Duration::from_secs(10));
        let client = Client::try_from(config).expect("a client");
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(review.to_string().into_bytes()).expect("a request");
        let answer: Value = client.request(request).await.expect("a review");
        answer["response"].clone()
    }
}

/// Reviews writes at all replicas, and returns the longest time of a review and how many there were.
async fn review_all(replicas: &[Replica], caller: &Caller, denies: bool) -> (Duration, usize) {
    let (start, mut slowest, mut count) = (Instant::now(), Duration::ZERO, 0);
    while start.elapsed() < OUTAGE {
        for replica in replicas {
            assert!(replica.is_ready().await);
            for (path, status) in [
                ("/mutate", json!({"currentVersion": "1"})),
                ("/validate", json!({"phase": "Nonsense"})),
            ] {
                let sent = Instant::now();
                let response = caller.review(replica.address(), path, &status).await;
                (slowest, count) = (slowest.max(sent.elapsed()), count + 1);
                let is_right = match path {
                    "/mutate" => response["patch"].is_string(),
                    _ => response["allowed"] != denies,
                };
                assert!(is_right, "{path}: {response:#}");
            }
        }
        sleep(Duration::from_millis(200)).await;
    }
    (slowest, count)
}

#[test]
fn reviews_go_on_without_an_api_server_and_changes_are_live_soon_after() {
    alone(async |plane| {
        let installation = Installation::new(plane, &[]).await;
        plane.create_policy().await;
        let replicas = installation.two().await;
        let name = plane.composite("outage").await;
        plane.judged(&name).await;
        plane.enforced(2).await;
        let (kept_before, caller) = (plane.kept().await, Caller::new(plane).await);
        let policies = plane.objects(POLICY);
        for (hangs, enforcement) in [(true, "Warn"), (false, "Deny")] {
            let what = if hangs { "hangs" } else { "is down" };
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
            let (slowest, count) = review_all(&replicas, &caller, enforcement == "Warn").await;
            let logged: Vec<usize> =
                lines().zip(before).map(|(all, before)| all - before).collect();
            println!(
                "the API server {what}: {count} reviews, at most {slowest:?}; {logged:?} lines"
            );
            assert!(logged.iter().all(|lines| *lines <= LINES), "{}", replicas[0].log());

            if hangs {
                plane.signal("CONT")
            } else {
                plane.restart(2).await
            }
            let change = json!({"spec": {"enforcement": enforcement}});
            until("the policy changes", async || {
                policies.merge("appcat", change.clone()).await.ok()
            })
            .await;
            let changed = Instant::now();
            for replica in &replicas {
                until("the changed policy is live", async || {
                    let wrong = json!({"phase": "Nonsense"});
                    let response = caller.review(replica.address(), "/validate", &wrong).await;
                    (response["allowed"] == (enforcement == "Warn")).then_some(())
                })
                .await;
                println!("a changed policy is live after {:?}", changed.elapsed());
            }
            plane.enforced(2).await;
            assert_eq!(plane.kept().await, kept_before);
            assert_eq!(plane.list(LEASE).await.len(), 2);
        }
        for replica in &replicas {
            assert!(!replica.log().contains("\"ERROR\""), "{}", replica.log());
        }
    });
}
