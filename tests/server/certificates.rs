//! Certificates that change, and clients without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::server::{Desk, authority, client_of, swap_link};
use crate::{certificate_changes, is_served};

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_certificate_is_used_for_new_connections_only() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut open = served.connect().await;
    assert_eq!(open.review().await.status, 200);
    desk.write_pair(&desk.issue());
    certificate_changes(&served, &open.certificate()).await;
    assert_eq!(open.review().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_replaced_by_a_symlink_is_reloaded() {
    let desk = Desk::new();
    for generation in ["..1", "..2"] {
        std::fs::create_dir(desk.path(generation)).unwrap();
        let issued = desk.issue();
        std::fs::write(desk.path(generation).join("tls.crt"), issued.certificate).unwrap();
        std::fs::write(desk.path(generation).join("tls.key"), issued.key).unwrap();
    }
    swap_link("..1", &desk.path("..data"));
    swap_link("..data/tls.crt", &desk.path("tls.crt"));
    swap_link("..data/tls.key", &desk.path("tls.key"));
    let served = desk.start(|_| {}).await;
    let first = served.certificate().await;
    swap_link("..2", &desk.path("..data"));
    certificate_changes(&served, &first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_certificate_keeps_the_last_good_one_and_is_counted_once() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let good = served.certificate().await;
    desk.write("tls.crt", "not a certificate");
    served.metric_becomes(r#"statusgate_reload_failing{what="certificate"}"#, 1.0).await;
    sleep(Duration::from_millis(50)).await;
    assert_eq!(served.certificate().await, good);
    let failures = r#"statusgate_reloads_total{what="certificate",outcome="failure"}"#;
    assert_eq!(served.metric(failures).await, Some(1.0));
    assert_eq!(served.probe("/readyz").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_used_after_its_key_arrives() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let old = served.certificate().await;
    let next = desk.issue();
    desk.write("tls.crt", &next.certificate);
    served.metric_becomes(r#"statusgate_reload_failing{what="certificate"}"#, 1.0).await;
    assert_eq!(served.certificate().await, old);
    desk.write("tls.key", &next.key);
    served.metric_becomes(r#"statusgate_reload_failing{what="certificate"}"#, 0.0).await;
    assert_ne!(served.certificate().await, old);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_certificates_change_under_load() {
    let desk = Desk::new();
    let served = desk.start(|settings| settings.reload_every = Duration::from_millis(2)).await;
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let load = async || {
        let mut kept = served.connect().await;
        while !stop.load(Ordering::Relaxed) {
            assert_eq!(kept.review().await.status, 200);
            assert_eq!(served.connect().await.review().await.status, 200);
            answered.fetch_add(2, Ordering::Relaxed);
        }
    };
    let change = async {
        let taken = r#"statusgate_reloads_total{what="certificate",outcome="success"}"#;
        for round in 0..10 {
            let before = answered.load(Ordering::Relaxed);
            desk.write_pair(&desk.issue());
            served.metric_becomes(taken, f64::from(round) + 2.0).await;
            while answered.load(Ordering::Relaxed) < before + 6 {
                sleep(Duration::from_millis(1)).await;
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(load(), load(), load(), change);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_client_ca_other_clients_are_rejected() {
    let desk = Desk::new();
    let clients = authority();
    desk.write("clients.crt", clients.certificate());
    let served = desk.start(|settings| settings.client_ca = Some(desk.path("clients.crt"))).await;
    let mut trust = desk.trust();
    assert!(!is_served(&served, &trust).await, "no certificate");
    trust.identity = Some(client_of(&authority()));
    assert!(!is_served(&served, &trust).await, "a stranger's certificate");
    trust.identity = Some(client_of(&clients));
    assert!(is_served(&served, &trust).await);
    let refused = r#"statusgate_handshake_failures_total{reason="no_client_certificate"}"#;
    assert_eq!(served.metric(refused).await, Some(1.0));

    // Now the file contains another authority.
    let others = authority();
    desk.write("clients.crt", others.certificate());
    let taken = r#"statusgate_reloads_total{what="client_ca",outcome="success"}"#;
    served.metric_becomes(taken, 2.0).await;
    assert!(!is_served(&served, &trust).await, "yesterday's client");
    trust.identity = Some(client_of(&others));
    assert!(is_served(&served, &trust).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_rejects_the_certificate_is_counted() {
    let desk = Desk::new();
    let served = desk.start(|_| {}).await;
    let mut trust = desk.trust();
    trust.authority = authority().certificate().to_owned();
    assert!(served.connect_as(&trust).await.is_err());
    let counted = r#"statusgate_handshake_failures_total{reason="not_trusted"}"#;
    served.metric_becomes(counted, 1.0).await;
}
