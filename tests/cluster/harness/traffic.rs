//! Writers that keep writing while a test changes the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::objects::Objects;
use super::patience::until;

/// Some writers. Each has its own object and writes as fast as the server answers.
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    writers: JoinSet<Vec<Failure>>,
}

/// A failed write.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// When it was sent.
    pub(crate) sent: Instant,
    /// When the error arrived.
    pub(crate) failed: Instant,
    pub(crate) message: String,
}

impl Traffic {
    /// One writer for each of these objects.
    pub(crate) fn start(objects: Vec<(Objects, String)>) -> Self {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut writers = JoinSet::new();
        for (objects, name) in objects {
            let (stop, written) = (Arc::clone(&stop), Arc::clone(&written));
            writers.spawn(async move { write(&objects, &name, &stop, &written).await });
        }
        Self { stop, written, writers }
    }

    /// Waits until the writers have made progress.
    pub(crate) async fn go_on(&self) {
        let goal = self.written.load(Relaxed) + 40;
        until("the writers got on", async || (self.written.load(Relaxed) >= goal).then_some(()))
            .await;
    }

    /// Stops, and returns the errors.
    pub(crate) async fn failures(self) -> Vec<String> {
        self.failed().await.into_iter().map(|failure| failure.message).collect()
    }

    /// Stops, and returns the failed writes.
    pub(crate) async fn failed(self) -> Vec<Failure> {
        self.stop.store(true, Relaxed);
        let failures = self.writers.join_all().await.concat();
        println!("{} writes, {} failed", self.written.load(Relaxed), failures.len());
        failures
    }
}

async fn write(
    objects: &Objects,
    name: &str,
    stop: &AtomicBool,
    written: &AtomicU64,
) -> Vec<Failure> {
    let mut failures = Vec::new();
    for number in 0_u64.. {
        if stop.load(Relaxed) {
            break;
        }
        // Each write drops the phase, so each answer shows whether both webhooks were called.
        let status = json!({"phase": null, "currentVersion": number.to_string()});
        let sent = Instant::now();
        let message = match objects.merge_status(name, status).await {
            Ok(object) if object["status"]["phase"] == "Unknown" => None,
            Ok(object) => Some(format!("write {number} was not judged: {object}")),
            Err(error) => Some(format!("write {number} failed: {error}")),
        };
        failures.extend(message.map(|message| Failure { sent, failed: Instant::now(), message }));
        written.fetch_add(1, Relaxed);
    }
    failures
}
