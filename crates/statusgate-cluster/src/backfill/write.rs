//! Writes one object: from a judgement to an outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use tokio::sync::watch;

use super::super::identity::read_object;
use super::judge::{Named, Proposal, judge};
use super::pace::Pace;
use super::{ObjectReport, Outcome, Plan, Target};
use crate::call::{Call, Received, Reply, is_internal, is_no_request, retry_after};
use crate::{Backoff, Cluster, ClusterError, Patience};
use statusgate_core::policy::PolicySet;

/// The state that all writers share.
pub(super) struct Shared {
    pub(super) cluster: Cluster,
    pub(super) policies: Arc<PolicySet>,
    pub(super) plan: Plan,
    pub(super) pace: Pace,
    /// True when the run must end.
    pub(super) stop: watch::Receiver<bool>,
    /// True when no more objects of the current target can be written. Without it, each queued object
    /// would use up its patience with the same failure.
    pub(super) hopeless: watch::Sender<bool>,
    /// Whether a write of this account has succeeded.
    pub(super) allowed: AtomicBool,
    /// Whether a read of a single object has succeeded.
    pub(super) allowed_to_read: AtomicBool,
}

/// The result for one object.
pub(super) struct WriteResult {
    /// The resourceVersion after the write.
    pub(super) version: Option<String>,
    pub(super) end: Result<ObjectReport, Abort>,
}

/// Why an object and all later ones are not written.
pub(super) enum Abort {
    /// The run must end, or another write was hopeless.
    Stopped,
    /// No write can succeed.
    Hopeless(ClusterError),
}

impl Shared {
    /// Writes an object, with retries.
    pub(super) async fn write(&self, target: &Target, judged: Proposal) -> WriteResult {
        let mut job = Job {
            shared: self,
            target,
            judged,
            conflicts: 0,
            version: None,
            unsure: false,
            server: Patience::LONG.start(),
            own: Patience::OBJECT.start(),
        };
        let end = job.run().await;
        if matches!(end, Err(Abort::Hopeless(_))) {
            self.hopeless.send_replace(true);
        }
        let Job { judged, conflicts, version, .. } = job;
        let report = end.map(|outcome| ObjectReport { outcome, conflicts, ..judged.report });
        WriteResult { version, end: report }
    }

    /// Waits, unless the run must end.
    async fn unless_stopped(&self, wait: impl Future<Output = ()>) -> Result<(), Abort> {
        let (mut stop, mut hopeless) = (self.stop.clone(), self.hopeless.subscribe());
        tokio::select! {
            biased;
            // An error means that the sender was dropped, so nothing can stop the run.
            Ok(_) = stop.wait_for(|stop| *stop) => Err(Abort::Stopped),
            Ok(_) = hopeless.wait_for(|hopeless| *hopeless) => Err(Abort::Stopped),
            () = wait => Ok(()),
        }
    }
}

/// The write of one object.
struct Job<'d> {
    shared: &'d Shared,
    target: &'d Target,
    judged: Proposal,
    conflicts: u32,
    version: Option<String>,
    /// Whether a patch was sent without a clear response: it may have been applied.
    unsure: bool,
    /// The retries of failures of the server.
    server: Backoff,
    /// The retries of a 500, which may concern only this object.
    own: Backoff,
}

impl Job<'_> {
    async fn run(&mut self) -> Result<Outcome, Abort> {
        loop {
            if let Some(outcome) = self.send().await? {
                return Ok(outcome);
            }
        }
    }

    /// Sends the patch. Returns the end of this object; `None` to send again.
    async fn send(&mut self) -> Result<Option<Outcome>, Abort> {
        let Proposal { report, patch } = &self.judged;
        let Some(body) = patch.clone() else {
            return Ok(Some(match &report.outcome {
                // After a conflict. If an earlier patch got no response, it was applied.
                Outcome::Unchanged if self.unsure => Outcome::Patched,
                outcome => outcome.clone(),
            }));
        };
        self.shared.unless_stopped(self.shared.pace.turn()).await?;
        let path = self.path();
        let call = Call { method: Method::PATCH, path: &path, format: FORMAT, body };
        let reply = self.shared.cluster.send(&call).await;
        let answer = match &reply {
            Ok(answer) => answer,
            Err(silence) if is_no_request(silence) => {
                return Ok(Some(Outcome::Failed(format!("invalid request: {silence}"))));
            }
            Err(_) => {
                self.unsure = true;
                return self.wait(reply).await;
            }
        };
        match answer.status {
            200..300 => {
                self.shared.allowed.store(true, Ordering::Relaxed);
                return self.stored(answer).await.map(Some);
            }
            // A failed `test` of a patch gives a 422 without causes, and so do schemas and webhooks.
            // Only the object shows whether it was a conflict.
            409 | 422 => return self.reread(answer).await,
            404 if answer.is_missing(&self.object().name) => return Ok(Some(Outcome::Deleted)),
            404 if self.shared.cluster.is_removed(self.target).await => {
                let resource = self.target.name();
                return Err(Abort::Hopeless(ClusterError::KindRemoved { resource }));
            }
            // For some moments after a restart, the server does not know its custom resources.
            404 => {}
            403 if is_of_webhook(answer) => {
                return Ok(Some(Outcome::Rejected(answer.message())));
            }
            // A server that has just started may not know its roles yet.
            401 | 403 if self.shared.allowed.load(Ordering::Relaxed) => {}
            401 | 403 => return Err(self.hopeless(reply)),
            // The write may have been applied.
            500 | 502 | 504 => self.unsure = true,
            _ if answer.passes() => {}
            _ => return Ok(Some(Outcome::Rejected(answer.message()))),
        }
        self.wait(reply).await
    }

    /// A successful write. If the version did not change, all of the patch was pruned.
    async fn stored(&mut self, answer: &Received) -> Result<Outcome, Abort> {
        let text = std::str::from_utf8(&answer.body).unwrap_or_default();
        let version = read_object(text).map(|object| object.metadata.resource_version.into_owned());
        if version.as_ref().is_ok_and(|version| *version == self.object().resource_version) {
            let reason = "nothing was stored: the schema lacks the field, or does not allow null";
            return Ok(Outcome::Rejected(reason.to_owned()));
        }
        self.version = version.ok();
        if self.shared.plan.distrusted.contains(&self.target.name()) {
            self.confirm().await
        } else {
            Ok(Outcome::Patched)
        }
    }

    /// Reads the object again to check that all of the patch was stored.
    async fn confirm(&mut self) -> Result<Outcome, Abort> {
        Ok(match self.read().await? {
            Err(outcome) => outcome,
            Ok(Proposal { report, patch: Some(_) }) => {
                let paths: Vec<&str> =
                    report.changes.iter().map(|change| change.path.as_str()).collect();
                Outcome::Rejected(format!(
                    "{} was not stored: the schema lacks the field, or does not allow null",
                    paths.join(", ")
                ))
            }
            Ok(_) => Outcome::Patched,
        })
    }

    /// Reads and judges the object again: the rejection may be a conflict.
    async fn reread(&mut self, rejection: &Received) -> Result<Option<Outcome>, Abort> {
        let judged = match self.read().await? {
            Ok(judged) => judged,
            Err(outcome) => return Ok(Some(outcome)),
        };
        if judged.report.object == *self.object() && rejection.status != 409 {
            return Ok(Some(Outcome::Rejected(rejection.message())));
        }
        self.conflicts += 1;
        if self.conflicts >= MAX_CONFLICTS {
            let reason = format!("it changed {MAX_CONFLICTS} times during the write");
            return Ok(Some(Outcome::Failed(reason)));
        }
        self.judged = judged;
        Ok(None)
    }

    /// Reads and judges the current object. The inner error is the end of this object.
    async fn read(&mut self) -> Result<Result<Proposal, Outcome>, Abort> {
        let Named { namespace, name, .. } = self.object().clone();
        let path = self.target.object_path(&namespace, &name);
        let body = loop {
            self.shared.unless_stopped(self.shared.pace.turn()).await?;
            let reply = self.shared.cluster.send(&Call::get(&path)).await;
            match &reply {
                Ok(answer) if answer.status < 300 => {
                    self.shared.allowed_to_read.store(true, Ordering::Relaxed);
                    break answer.body.clone();
                }
                Ok(answer) if answer.is_missing(&name) => return Ok(Err(Outcome::Deleted)),
                // Like a write: permissions that worked before will work again.
                Ok(Received { status: 401 | 403, .. })
                    if self.shared.allowed_to_read.load(Ordering::Relaxed) => {}
                Ok(answer) if !answer.passes() && answer.status != 404 => {
                    let what = format!("get {}", self.target.name());
                    return Err(Abort::Hopeless(self.shared.cluster.failed(&what, reply)));
                }
                _ => {}
            }
            if let Some(outcome) = self.wait(reply).await? {
                return Ok(Err(outcome));
            }
        };
        let text = std::str::from_utf8(&body).unwrap_or_default();
        let judged = read_object(text).map(|object| {
            judge(&self.shared.policies, self.target, object, (self.shared.plan.clock)())
        });
        Ok(judged.map_err(|error| Outcome::Failed(format!("invalid object: {error}"))))
    }

    /// Waits before the next attempt. After the last one, ends this object or aborts the run.
    async fn wait(&mut self, reply: Reply) -> Result<Option<Outcome>, Abort> {
        let is_own = is_internal(&reply);
        let backoff = if is_own { &mut self.own } else { &mut self.server };
        match (backoff.wait(retry_after(&reply)), reply) {
            (Some(wait), _) => {
                self.shared.unless_stopped(tokio::time::sleep(wait)).await?;
                Ok(None)
            }
            (None, Ok(answer)) if is_own => Ok(Some(Outcome::Failed(answer.message()))),
            (None, reply) => Err(self.hopeless(reply)),
        }
    }

    fn hopeless(&self, reply: Reply) -> Abort {
        let subresource = if self.target.status_subresource { "/status" } else { "" };
        let what = format!("patch {}{subresource}", self.target.name());
        Abort::Hopeless(self.shared.cluster.failed(&what, reply))
    }

    const fn object(&self) -> &Named {
        &self.judged.report.object
    }

    fn path(&self) -> String {
        let Named { namespace, name, .. } = self.object();
        let path = self.target.object_path(namespace, name);
        let subresource = if self.target.status_subresource { "/status" } else { "" };
        format!("{path}{subresource}?fieldManager={FIELD_MANAGER}")
    }
}

/// Whether a 403 is the denial of a webhook without a code, and not one of RBAC.
fn is_of_webhook(answer: &Received) -> bool {
    answer.to_status().message.starts_with("admission webhook")
}

const FORMAT: &str = "application/json-patch+json";

/// The manager of the written fields in `managedFields`.
const FIELD_MANAGER: &str = "statusgate-backfill";

/// A client that writes an object in a loop does not win twenty races in a row.
const MAX_CONFLICTS: u32 = 20;
