//! Two replicas with a self-managed certificate, as loops in this process. Registrations are only a value:
//! each replica copies the authorities of the Secret into it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use statusgate_core::policy::PolicySet;
use statusgate_manager::certificates::Certificates;
use statusgate_manager::exchange::Exchange;
use statusgate_manager::replicas::Replicas;
use statusgate_manager::{Context, ManagerOptions};
use statusgate_server::PolicyStore;
use statusgate_server::telemetry::Metrics;
use statusgate_tls::{Bundle, Pem};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::cluster::{Cluster, in_cluster};
use crate::harness::patience::until;

/// The namespace of a test, with what its replicas share.
struct Place {
    client: Client,
    namespace: String,
    lifetime: Duration,
    registrations: Arc<watch::Sender<String>>,
}

/// The loops of a replica. They end with it.
struct Replica {
    served: Arc<Mutex<Bundle>>,
    replicas: Replicas,
    _tasks: JoinSet<()>,
}

#[test]
fn two_replicas_that_start_at_once_share_one_secret_and_write_it_back() {
    in_cluster(async |cluster| {
        let place = Place::new(cluster, Duration::from_secs(90 * 86_400)).await;
        let (a, b) = tokio::join!(place.replica(cluster, "a"), place.replica(cluster, "b"));
        assert_eq!(a.leaf(), b.leaf(), "both serve the leaf of one Secret");
        let first = place.secret().await.expect("it exists").data.unwrap();
        assert_eq!(first.len(), 4);
        until("the registrations follow the Secret", async || {
            a.is_trusted(&place.bundle()).then_some(())
        })
        .await;

        place.secrets().delete(SECRET, &DeleteParams::default()).await.unwrap();
        let back = until("the Secret is back", async || place.secret().await?.data).await;
        assert!(back == first, "with the same certificates");

        let mut garbage = place.secret().await.unwrap();
        let text = ByteString(b"garbage".to_vec());
        garbage.data.as_mut().unwrap().insert("tls.crt".to_owned(), text);
        place.secrets().replace(SECRET, &PostParams::default(), &garbage).await.unwrap();
        until("the Secret is valid again", async || {
            (place.secret().await?.data.as_ref() == Some(&first)).then_some(())
        })
        .await;
        assert_eq!(a.leaf(), b.leaf());

        // A replica without a memory of the Secret leaves it to the others.
        drop(b);
        place.secrets().delete(SECRET, &DeleteParams::default()).await.unwrap();
        let b = place.replica(cluster, "b").await;
        assert_eq!(a.leaf(), b.leaf());
    });
}

#[test]
fn a_rotation_of_the_authority_breaks_no_handshake() {
    in_cluster(async |cluster| {
        let place = Place::new(cluster, Duration::from_secs(5)).await;
        // Somebody else's Secret of another type.
        let metadata = ObjectMeta { name: Some(SECRET.to_owned()), ..ObjectMeta::default() };
        let data = [("tls.crt".to_owned(), ByteString(b"garbage".to_vec()))];
        let garbage = Secret { metadata, data: Some(data.into()), ..Secret::default() };
        place.secrets().create(&PostParams::default(), &garbage).await.unwrap();

        let (a, b) = tokio::join!(place.replica(cluster, "a"), place.replica(cluster, "b"));
        let first = place.authorities().await;
        until("the registrations follow the Secret", async || {
            [&a, &b].iter().all(|replica| replica.is_trusted(&place.bundle())).then_some(())
        })
        .await;
        let mut overlap = false;
        until("a new authority has replaced the first", async || {
            let authorities = place.authorities().await;
            for replica in [&a, &b] {
                assert!(replica.is_trusted(&place.bundle()), "{} authorities", authorities.len());
            }
            overlap |= authorities.len() == 2;
            (authorities.len() == 1 && authorities != first).then_some(())
        })
        .await;
        assert!(overlap, "both authorities were trusted for some time");
        for replica in [&a, &b] {
            assert!(replica.is_trusted(&place.bundle()));
        }
        let leases = place.leases().await;
        assert_eq!(leases.len(), 2);
        assert_eq!(leases[0].1, leases[1].1, "both publish the new authority");

        a.replicas.leave().await;
        assert_eq!(place.leases().await.len(), 1);
    });
}

impl Place {
    async fn new(cluster: &Cluster, lifetime: Duration) -> Self {
        let client = cluster.plane().client("admin").clone();
        let namespace = cluster.unique("certificates");
        let metadata = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        let object = Namespace { metadata, ..Namespace::default() };
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &object).await.expect("a namespace");
        let registrations = Arc::new(watch::Sender::new(String::new()));
        Self { client, namespace, lifetime, registrations }
    }

    async fn replica(&self, cluster: &Cluster, name: &str) -> Replica {
        let kubeconfig = cluster.plane().kubeconfig();
        let connected = statusgate_cluster::Cluster::connect(Some(&kubeconfig), None);
        let connected = connected.await.expect("a connection");
        let exchange =
            Arc::new(Exchange::new(watch::Sender::new(Arc::new(PolicySet::compile(&[]).unwrap()))));
        let options = ManagerOptions {
            namespace: self.namespace.clone(),
            webhook_url: Some("https://127.0.0.1".to_owned()),
            certificate_lifetime: self.lifetime,
            manage_certificates: true,
            ..ManagerOptions::new(name)
        };
        let metrics = Arc::new(Metrics::new(None));
        let context = Context {
            cluster: connected,
            options: Arc::new(options),
            store: PolicyStore::new(Vec::new(), &metrics).unwrap(),
            exchange: Arc::clone(&exchange),
            metrics,
            clock,
        };
        let (certificates, bundle) = Certificates::first(context.clone()).await;
        let served = Arc::new(Mutex::new(bundle));
        let replicas = Replicas(context);
        let mut tasks = JoinSet::new();
        let (beating, target) = (replicas.clone(), Arc::clone(&served));
        tasks.spawn(async move { beating.run().await });
        tasks.spawn(certificates.run(move |bundle| *target.lock().unwrap() = bundle));
        tasks.spawn(register(exchange, Arc::clone(&self.registrations)));
        // A replica is one when its Lease exists.
        until("the replica has a Lease", async || {
            let leases = self.leases().await;
            leases
                .iter()
                .any(|(lease, authority)| lease == name && !authority.is_empty())
                .then_some(())
        })
        .await;
        Replica { served, replicas, _tasks: tasks }
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn secret(&self) -> Option<Secret> {
        self.secrets().get_opt(SECRET).await.expect("a response")
    }

    /// The certificates of `ca.crt`.
    async fn authorities(&self) -> Vec<String> {
        let data = self.secret().await.expect("a Secret").data.expect("data");
        let text = String::from_utf8(data["ca.crt"].0.clone()).unwrap();
        let end = "-----END CERTIFICATE-----\n";
        text.split_inclusive(end).map(str::to_owned).collect()
    }

    /// The Leases by name, with the authority of their replica.
    async fn leases(&self) -> Vec<(String, String)> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let list = leases.list(&ListParams::default()).await.expect("Leases");
        let named = |lease: Lease| {
            let mut annotations = lease.metadata.annotations.unwrap_or_default();
            let authority = annotations.remove("statusgate.dev/authority");
            (lease.metadata.name.unwrap_or_default(), authority.unwrap_or_default())
        };
        list.items.into_iter().map(named).collect()
    }

    fn bundle(&self) -> String {
        self.registrations.borrow().clone()
    }
}

/// Copies the authorities of a replica into the registrations, and reports them to it.
async fn register(exchange: Arc<Exchange>, registrations: Arc<watch::Sender<String>>) {
    let mut authorities = exchange.authorities.subscribe();
    let mut registered = registrations.subscribe();
    authorities.mark_changed();
    loop {
        tokio::select! {
            Ok(()) = authorities.changed() => {
                let authorities = authorities.borrow_and_update().clone();
                // As long as a slow API server needs for a write.
                sleep(Duration::from_millis(50)).await;
                registrations.send_replace(authorities);
            }
            Ok(()) = registered.changed() => {
                let bundle = registered.borrow_and_update().clone();
                exchange.registered.send_replace(Some(vec![bundle]));
            }
        }
    }
}

impl Replica {
    fn leaf(&self) -> Vec<u8> {
        self.served.lock().unwrap().key.cert[0].to_vec()
    }

    /// Whether a handshake succeeds now.
    fn is_trusted(&self, bundle: &str) -> bool {
        let authority = Pem { name: "the caBundle", text: bundle.as_bytes() };
        self.served.lock().unwrap().is_trusted_by(authority, clock())
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge that reads the clock")]
fn clock() -> Timestamp {
    Timestamp::now()
}

const SECRET: &str = "statusgate-tls";
