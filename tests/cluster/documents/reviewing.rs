//! The webhook for documents, called by the API server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::json;
use statusgate_core::policy::Source;
use statusgate_manager::documents::Documents;
use statusgate_manager::review::reviewer;
use statusgate_server::{CertificateSource, Opening, ServerSettings};
use statusgate_tls::{Authority, Validity};

use super::following::{convention, policy};
use super::replica::context;
use crate::harness::objects::{CONVENTION, Outcome, POLICY, VALIDATING};
use crate::harness::patience::until;
use crate::harness::pool::in_own_cluster;

#[test]
fn documents_with_mistakes_of_their_own_are_rejected_and_everything_else_is_allowed() {
    in_own_cluster(async |plane| {
        let validity = Validity::from_now(Duration::from_secs(86_400), Timestamp::now());
        let authority = Authority::make("test", validity).unwrap();
        let issued = authority.issue(&["127.0.0.1".to_owned()], validity).unwrap();
        let bundle = issued.bundle().unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let settings = ServerSettings {
            listen: any,
            probe_listen: any,
            ..ServerSettings::new(CertificateSource::Given(bundle))
        };
        let opening = Opening::of(&settings).unwrap();
        let file = Source::new("file.yaml", policy("of-a-file", "metav1").to_string());
        let store = opening.policies(vec![file]).unwrap();
        let metrics = Arc::clone(opening.metrics());
        let context = context(plane, "one", metrics, store.clone()).await;
        let documents = Documents::first(context).await;
        let review = reviewer(documents.shared(), store.clone());
        let running = opening.start(&settings, &store, Some(review)).unwrap();
        let following = tokio::spawn(documents.run());

        let registrations = plane.objects(VALIDATING);
        let registration = json!({
            "apiVersion": VALIDATING.api_version, "kind": VALIDATING.kind,
            "metadata": {"name": "statusgate-documents"},
            "webhooks": [{
                "name": "documents.statusgate.dev",
                "clientConfig": {
                    "url": format!("https://{}/documents", running.address()),
                    "caBundle": STANDARD.encode(authority.certificate()),
                },
                "rules": [{"apiGroups": ["statusgate.dev"], "apiVersions": ["v1alpha1"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["*"]}],
                "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            }],
        });
        registrations.create(&registration).await.unwrap();
        let (policies, conventions) = (plane.objects(POLICY), plane.objects(CONVENTION));
        let mut wrong = policy("wrong", "metav1");
        wrong["spec"]["enforcement"] = json!("Never");
        wrong["spec"]["typo"] = json!(1);
        let message = until("the webhook is called", async || {
            let refused = message_of(policies.create(&wrong).await);
            if refused.is_none() {
                policies.delete("wrong").await.unwrap();
            }
            refused
        })
        .await;
        let start = "admission webhook \"documents.statusgate.dev\" denied the request: StatusPolicy \"wrong\" \
                     is invalid:\n\nerror: unknown value \"Never\"\n --> StatusPolicy/wrong:7:16";
        assert!(message.starts_with(start), "{message}");
        assert!(message.contains("unknown key \"typo\""), "every mistake: {message}");

        // A policy before its convention.
        let mut uses = policy("p", "c");
        uses["spec"]["enable"] = json!(["x"]);
        policies.create(&uses).await.unwrap();
        conventions.create(&convention("c", "x")).await.unwrap();
        until("the policy is in use", async || {
            store.current().names().any(|name| name == "p").then_some(())
        })
        .await;
        // This change is valid with a change of the policy that follows.
        let other = json!({"spec": convention("c", "y")["spec"]});
        conventions.merge("c", other).await.unwrap();
        policies.merge("p", json!({"spec": {"enable": ["y"]}})).await.unwrap();
        until("both changes are in use", async || {
            let set = store.current();
            let policy = set.policies().iter().find(|policy| *policy.name == *"p")?;
            let mut defaults = policy.backfill.iter();
            defaults.any(|default| default.name == "y").then_some(())
        })
        .await;

        // A document with mistakes can be changed and deleted.
        registrations.delete("statusgate-documents").await.unwrap();
        until("the webhook is not called", async || policies.create(&wrong).await.ok()).await;
        registrations.create(&registration).await.unwrap();
        until("the webhook is called", async || {
            let mut other = wrong.clone();
            other["metadata"]["name"] = json!("other");
            let refused = message_of(policies.create(&other).await);
            if refused.is_none() {
                policies.delete("other").await.unwrap();
            }
            refused
        })
        .await;
        let label = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["test.dev/x"]}});
        policies.merge("wrong", label).await.unwrap();
        policies.delete("wrong").await.unwrap();
        policies.merge("wrong", json!({"metadata": {"finalizers": null}})).await.unwrap();
        registrations.delete("statusgate-documents").await.unwrap();
        following.abort();
    });
}

fn message_of(outcome: Outcome) -> Option<String> {
    match outcome {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}
