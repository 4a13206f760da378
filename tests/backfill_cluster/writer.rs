//! Another client, which goes on writing while a backfill runs.

use std::collections::HashMap;

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::objects::{Kind, Objects, WIDGET};
use crate::plane::Plane;

/// What an operator does: one status field after the other, for ever.
pub(crate) struct Writer {
    stop: watch::Sender<bool>,
    task: JoinHandle<HashMap<String, String>>,
}

impl Writer {
    /// Begins to write the objects of these kinds and names, in turns.
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
            // A step that is prime to the number of objects visits them all, and not in the order
            // in which they are listed.
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
                // The API server is away for a while; this turn is then not counted on.
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

    /// Ends it, and tells what it wrote last to each object.
    pub(crate) async fn finish(self) -> HashMap<String, String> {
        self.stop.send(true).expect("it runs");
        self.task.await.expect("it ends well")
    }
}
