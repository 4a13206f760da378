//! A controller that writes a new time whenever its object changes, without `steady-times` and with it.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::cluster::in_cluster;
use super::registration::{FailurePolicy, Registration};
use super::server::Server;
use crate::harness::objects::{COMPOSITE, Objects, condition};
use crate::harness::patience::until;

#[test]
fn steady_times_ends_the_loop_of_a_controller_that_changes_only_times() {
    in_cluster(async |cluster| {
        let server = Server::new(cluster, "steady").start().await;
        let registration = Registration::of(&server, "steady", FailurePolicy::Fail);
        let registration = registration.apply(cluster).await;
        let name = registration.object(cluster, COMPOSITE).await;
        let objects = cluster.operator(COMPOSITE);
        let mut controller = Controller { objects: &objects, name: &name, second: 0 };
        controller.write().await;
        let without = controller.run().await;

        let policy = fs::read_to_string(server.home().policy()).unwrap();
        let steady =
            policy.replacen("  disagreement:", "  enable: [steady-times]\n  disagreement:", 1);
        fs::write(server.home().policy(), steady).unwrap();
        let stored = objects.get(&name).await.unwrap();
        until("the part is in force", async || {
            let written = objects.dry_merge_status(&name, status(0)).await.unwrap();
            (written["status"] == stored["status"]).then_some(())
        })
        .await;
        let with = controller.run().await;
        println!("resourceVersions a minute: {} without, {} with", without * 12, with * 12);
        assert!(without > 20, "{without}");
        assert!(with <= 1, "{with}");
        let changed = json!({"instanceNamespace": "n"});
        let written = objects.merge_status(&name, changed).await.unwrap();
        assert_eq!(written["status"]["instanceNamespace"], "n");
    });
}

struct Controller<'c> {
    objects: &'c Objects,
    name: &'c str,
    second: u32,
}

impl Controller<'_> {
    /// Runs for five seconds: writes at its start and after each change of the object. Returns how many
    /// versions of the object were stored.
    async fn run(&mut self) -> u32 {
        let end = Instant::now() + Duration::from_secs(5);
        let (mut seen, mut versions) = (self.version().await, 0);
        self.write().await;
        while Instant::now() < end {
            let version = self.version().await;
            if version == seen {
                sleep(Duration::from_millis(5)).await;
                continue;
            }
            (seen, versions) = (version, versions + 1);
            self.write().await;
        }
        versions
    }

    async fn version(&self) -> Value {
        self.objects.get(self.name).await.unwrap()["metadata"]["resourceVersion"].clone()
    }

    async fn write(&mut self) {
        self.second += 1;
        self.objects.merge_status(self.name, status(self.second)).await.unwrap();
    }
}

fn status(second: u32) -> Value {
    json!({"conditions": [condition("Ready", "False", second)]})
}
