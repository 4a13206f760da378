//! Servers start and stop while writers write. With `failurePolicy: Fail`, a call without an answer is a
//! failed write.

use std::fs;

use serde_json::json;

use super::cluster::in_cluster;
use super::registration::{FailurePolicy, Registration};
use super::server::Server;
use crate::harness::balancer::Balancer;
use crate::harness::objects::{COMPOSITE, condition};
use crate::harness::patience::until;
use crate::harness::traffic::Traffic;

#[test]
fn no_write_fails_when_a_successor_takes_over_the_port() {
    in_cluster(async |cluster| {
        let mut server = Server::new(cluster, "port").reuse_port().start().await;
        let registration = Registration::of(&server, "port", FailurePolicy::Fail);
        let registration = registration.apply(cluster).await;
        let traffic = Traffic::start(registration.writers(cluster).await);
        for _ in 0..2 {
            traffic.go_on().await;
            let successor = server.successor().start().await;
            assert_eq!(successor.address(), server.address());
            server.terminate();
            server.ended_well();
            server = successor;
        }
        traffic.go_on().await;
        assert_eq!(traffic.failures().await, [""; 0]);
    });
}

#[test]
fn no_write_fails_during_a_rolling_update_behind_a_service() {
    in_cluster(async |cluster| {
        let first = Server::new(cluster, "rolling").start().await;
        let mut servers = [first.another().start().await, first];
        let service = Balancer::start().await;
        servers.iter().for_each(|server| service.add(server.address(), server.probes()));
        let registration = Registration::of(&servers[0], "rolling", FailurePolicy::Fail);
        let registration = registration.at(service.address()).apply(cluster).await;
        let traffic = Traffic::start(registration.writers(cluster).await);
        for server in &mut servers {
            traffic.go_on().await;
            let next = server.another().start().await;
            service.add(next.address(), next.probes());
            server.terminate();
            server.ended_well();
            *server = next;
        }
        traffic.go_on().await;
        assert_eq!(traffic.failures().await, [""; 0]);
    });
}

#[test]
fn no_write_fails_when_the_certificate_is_renewed() {
    in_cluster(async |cluster| {
        let server = Server::new(cluster, "renewal").start().await;
        let registration = Registration::of(&server, "renewal", FailurePolicy::Fail);
        let registration = registration.apply(cluster).await;
        let traffic = Traffic::start(registration.writers(cluster).await);
        for name in ["--dns=one.example", "--dns=two.example"] {
            traffic.go_on().await;
            let (ca, before) = (server.home().ca(), server.shown_certificate().await);
            server.home().issue(&[name]);
            assert_eq!(server.home().ca(), ca);
            let renewed = server.home().leaf();
            assert_ne!(renewed, before);
            until("the new certificate is shown", async || {
                (server.shown_certificate().await == renewed).then_some(())
            })
            .await;
        }
        traffic.go_on().await;
        assert_eq!(traffic.failures().await, [""; 0]);
    });
}

#[test]
fn with_failure_policy_ignore_writes_succeed_without_a_server() {
    in_cluster(async |cluster| {
        let server = Server::new(cluster, "killed").start().await;
        let registration = Registration::of(&server, "killed", FailurePolicy::Ignore);
        let registration = registration.apply(cluster).await;
        let name = registration.object(cluster, COMPOSITE).await;
        let objects = cluster.operator(COMPOSITE);
        server.kill();
        for phase in ["Ready", "Nonsense"] {
            let status = json!({"phase": phase, "conditions": [condition("Ready", "False", 0)]});
            let written = objects.merge_status(&name, status).await.unwrap();
            assert_eq!(written["status"]["phase"], phase, "no replica judged the write");
        }
        // The next server tolerates the faults that were stored meanwhile.
        let _server = server.successor().start().await;
        let written = until("the successor is asked", async || {
            let edit = objects.merge_status(&name, json!({"currentVersion": "15"})).await.unwrap();
            let gone = objects.dry_merge_status(&name, json!({"phase": null})).await.unwrap();
            (gone["status"]["phase"] == "Unknown").then_some(edit)
        })
        .await;
        assert_eq!(written["status"]["phase"], "Nonsense");
    });
}

#[test]
fn an_edited_policy_takes_effect_and_a_broken_one_does_not() {
    in_cluster(async |cluster| {
        let server = Server::new(cluster, "edited").start().await;
        let registration = Registration::of(&server, "edited", FailurePolicy::Fail);
        let registration = registration.apply(cluster).await;
        let name = registration.object(cluster, COMPOSITE).await;
        let objects = cluster.operator(COMPOSITE);
        let status = json!({"conditions": [condition("Ready", "False", 0)]});
        objects.merge_status(&name, status).await.unwrap();
        let disagree = async || objects.dry_merge_status(&name, json!({"phase": "Ready"})).await;
        assert!(disagree().await.is_err(), "the example policy denies");

        let policy = fs::read_to_string(server.home().policy()).unwrap();
        let milder = policy.replace("disagreement: Deny", "disagreement: Warn");
        fs::write(server.home().policy(), &milder).unwrap();
        until("the milder policy is in force", async || disagree().await.ok()).await;

        fs::write(server.home().policy(), milder.replace("convention: appcat", "convention: cat"))
            .unwrap();
        until("the broken policy was noticed", async || {
            server.log().contains("\"level\":\"ERROR\"").then_some(())
        })
        .await;
        disagree().await.expect("the last good policy is in force");

        fs::write(server.home().policy(), policy).unwrap();
        until("the first policy is in force again", async || disagree().await.err()).await;
    });
}
