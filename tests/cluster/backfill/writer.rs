//! Another client that keeps writing while a backfill runs.

use std::collections::HashMap;

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::harness::objects::{Kind, Objects, WIDGET};
use crate::harness::plane::Plane;

/// An operator that writes one status after the other.
pub(crate) struct Writer {
    stop: watch::Sender<bool>,
    task: JoinHandle<HashMap<String, String>>,
}

impl Writer {
    /// Starts to write the objects of these kinds and names in turn.
    pub(crate) fn start(plane: &Plane, kinds: &[(Kind, Vec<String>)]) -> Self {
        let names: Vec<(Kind, Objects, String)> = kinds
            .iter()
            .flat_map(|(kind, names)| {
                names.iter().map(|name| (*kind, plane.objects(*kind), name.clone()))
            })
            .collect();
        let (stop, mut stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut last = HashMap::new();
            // A step that is coprime to the number of objects visits all of them, in another order than a
            // list.
            let mut at = 0;
            for turn in 0_u64.. {
                if *stopped.borrow_and_update() {
                    break;
                }
                at = (at + 7919) % names.len();
                let (kind, objects, name) = &names[at];
                let value = format!("turn-{turn}");
                let status = json!({"instanceNamespace": value});
                let written = if *kind == WIDGET {
                    objects.merge(name, json!({"status": status})).await
                } else {
                    objects.merge_status(name, status).await
                };
                let key = format!("{}/{name}", kind.kind);
                // The API server is unavailable for a while; skip this write.
                if written.is_ok() {
                    last.insert(key, value);
                } else {
                    last.remove(&key);
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            }
            last
        });
        Self { stop, task }
    }

    /// Stops it, and returns its last write to each object.
    pub(crate) async fn finish(self) -> HashMap<String, String> {
        self.stop.send(true).expect("it runs");
        self.task.await.expect("it ends well")
    }
}
