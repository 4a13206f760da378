//! Calls the webhooks of one replica, as an API server does.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::replica::Replica;
use crate::harness::objects::SECRET;
use crate::harness::patience::until;
use crate::harness::plane::Plane;

/// A caller that trusts the authorities of the Secret.
pub(crate) struct Caller {
    authorities: Vec<Vec<u8>>,
}

/// A write of a status.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) group: String,
    pub(crate) plural: &'static str,
    pub(crate) status: Value,
}

impl Caller {
    pub(crate) async fn new(plane: &Plane) -> Self {
        let secret = plane.objects(SECRET).get("statusgate-tls").await.expect("a Secret");
        let text = STANDARD.decode(secret["data"]["ca.crt"].as_str().expect("a text"));
        let text = text.expect("base64");
        let authorities = CertificateDer::pem_slice_iter(&text);
        let authorities = authorities.map(|der| der.expect("a certificate").to_vec()).collect();
        Self { authorities }
    }

    /// The `response` of a webhook to a write, on a new connection.
    pub(crate) async fn review(&self, address: SocketAddr, path: &str, write: &Write) -> Value {
        review(&self.client(address), path, write).await
    }

    /// A client that keeps its connection.
    pub(crate) fn client(&self, address: SocketAddr) -> Client {
        let mut config = Config::new(format!("https://{address}").parse().expect("a URL"));
        config.root_cert = Some(self.authorities.clone());
        (config.default_retry, config.proxy_url) = (false, None);
        // The longest time that an API server waits by default.
        config.read_timeout = Some(Duration::from_secs(10));
        Client::try_from(config).expect("a client")
    }

    /// Waits until each replica allows or denies a write. Prints how long after a change this is.
    pub(crate) async fn live(
        &self,
        replicas: &[Replica],
        changed: Instant,
        write: &Write,
        allowed: bool,
    ) {
        let live = replicas.iter().map(async |replica| {
            let client = self.client(replica.address());
            until("the change is live", async || {
                let response = review(&client, "/validate", write).await;
                (response["allowed"] == allowed).then_some(changed.elapsed())
            })
            .await
        });
        let times = futures_util::future::join_all(live).await;
        println!("a changed policy is live after {times:?}, one time for each replica");
    }
}

/// The `response` of a webhook to a write.
pub(crate) async fn review(client: &Client, path: &str, write: &Write) -> Value {
    let Write { group, plural, status } = write;
    let object = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "Reviewed",
        "metadata": {"name": "direct"},
        "status": status,
    });
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "direct",
            "kind": {"group": group, "version": "v1", "kind": "Reviewed"},
            "resource": {"group": group, "version": "v1", "resource": plural},
            "subResource": "status",
            "name": "direct",
            "operation": "UPDATE",
            "userInfo": {"username": "writer"},
            "object": object,
            "oldObject": {"metadata": {"name": "direct"}, "status": {"phase": "Unknown"}},
        },
    });
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(review.to_string().into_bytes()).expect("a request");
    let answer: Value = client.request(request).await.expect("a review");
    answer["response"].clone()
}
