//! A controller that writes a new time whenever its object changes, without `steady-times` and with it.

use std::fs;

use serde_json::{Value, json};

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
        assert_eq!(controller.run().await, ENDLESS);

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
        assert_eq!(controller.run().await, 0);
        let changed = json!({"instanceNamespace": "n"});
        let written = objects.merge_status(&name, changed).await.unwrap();
        assert_eq!(written["status"]["instanceNamespace"], "n");
    });
}

/// So many versions in a row are a loop without an end.
const ENDLESS: u32 = 20;

struct Controller<'c> {
    objects: &'c Objects,
    name: &'c str,
    second: u32,
}

impl Controller<'_> {
    /// Writes at its start and after each change of the object. Returns how many versions were stored until a write
    /// changed nothing, at most [`ENDLESS`].
    async fn run(&mut self) -> u32 {
        let (mut seen, mut versions) = (self.version().await, 0);
        while versions < ENDLESS {
            self.write().await;
            let version = self.version().await;
            if version == seen {
                break;
            }
            (seen, versions) = (version, versions + 1);
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
