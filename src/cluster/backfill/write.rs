//! One object, written: from a judgement to an outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use tokio::sync::watch;

use super::change::Change;
use super::judge::{Judged, Named, Todo, judge};
use super::pace::Pace;
use super::{Outcome, Target};
use crate::cluster::client::{Silence, is_no_request};
use crate::cluster::{Answer, Backoff, Cluster, ClusterError, Patience};
use crate::policy::PolicySet;

/// What all writers share.
pub(super) struct Desk {
    pub(super) cluster: Cluster,
    pub(super) policies: Arc<PolicySet>,
    pub(super) clock: fn() -> Timestamp,
    pub(super) pace: Pace,
    /// True once the run is to end.
    pub(super) stop: watch::Receiver<bool>,
    /// True once nothing more of the present target can be written: what waits for its turn is left
    /// as it is, or each object would begin to be patient with the same server anew.
    pub(super) hopeless: watch::Sender<bool>,
    /// Targets whose schema does not have everything: what is written there is looked at again.
    pub(super) distrusted: Vec<String>,
    /// Whether this account has ever been let write.
    pub(super) allowed: AtomicBool,
    /// Whether it has ever been let read a single object.
    pub(super) allowed_to_read: AtomicBool,
}

/// What became of an object.
pub(super) struct Written {
    pub(super) object: Named,
    pub(super) policies: Vec<u16>,
    pub(super) changes: Vec<Change>,
    pub(super) conflicts: u32,
    /// The resourceVersion that it has since it was written.
    pub(super) version: Option<String>,
    pub(super) end: Result<Outcome, Abort>,
}

/// Why an object was left as it was, with all those that would follow.
pub(super) enum Abort {
    /// The run is to end.
    Stopped,
    /// No write can succeed now.
    Hopeless(ClusterError),
}

/// What to do next.
enum Step {
    End(Outcome),
    /// Wait and send the same again.
    Again,
    /// Read the object again and judge it anew.
    Reread(Answer),
}

impl Desk {
    /// Writes an object, however often it takes.
    pub(super) async fn write(self: Arc<Self>, target: Arc<Target>, judged: Judged) -> Written {
        let (desk, target) = (&*self, &*target);
        let mut job = Job { desk, target, judged, conflicts: 0, version: None, unsure: false };
        let end = job.run().await;
        if matches!(end, Err(Abort::Hopeless(_))) {
            self.hopeless.send_replace(true);
        }
        let Job { judged, conflicts, version, .. } = job;
        let changes = match judged.todo {
            Todo::Patch { changes, .. } => changes,
            Todo::Nothing | Todo::Broken(_) => Vec::new(),
        };
        let (object, policies) = (judged.object, judged.policies);
        Written { object, policies, changes, conflicts, version, end }
    }

    /// Waits for the turn of a request, unless the run is to end.
    async fn turn(&self) -> Result<(), Abort> {
        self.unless_stopped(self.pace.turn()).await
    }

    /// Sleeps, unless the run is to end.
    async fn rest(&self, wait: Duration) -> Result<(), Abort> {
        self.unless_stopped(tokio::time::sleep(wait)).await
    }

    async fn unless_stopped(&self, wait: impl Future<Output = ()>) -> Result<(), Abort> {
        let (mut stop, mut hopeless) = (self.stop.clone(), self.hopeless.subscribe());
        tokio::select! {
            biased;
            // An error would mean that nobody is left who could stop us.
            Ok(_) = stop.wait_for(|stop| *stop) => Err(Abort::Stopped),
            Ok(_) = hopeless.wait_for(|hopeless| *hopeless) => Err(Abort::Stopped),
            () = wait => Ok(()),
        }
    }
}

/// An object that was read again.
enum Reading {
    Judged(Judged),
    End(Outcome),
}

/// The waits of one object.
struct Waits {
    server: Backoff,
    object: Backoff,
}

/// One object on its way.
struct Job<'d> {
    desk: &'d Desk,
    target: &'d Target,
    judged: Judged,
    conflicts: u32,
    version: Option<String>,
    /// A patch was sent and its answer never came: it may have been applied.
    unsure: bool,
}

impl Job<'_> {
    async fn run(&mut self) -> Result<Outcome, Abort> {
        let mut waits = Waits { server: Patience::LONG.start(), object: Patience::OBJECT.start() };
        loop {
            let body = match &self.judged.todo {
                Todo::Patch { body, .. } => body.clone(),
                // Found so after a conflict. If a patch of ours got no answer, it was that one.
                Todo::Nothing if self.unsure => return Ok(Outcome::Patched),
                Todo::Nothing => return Ok(Outcome::Unchanged),
                Todo::Broken(reason) => return Ok(Outcome::Failed(reason.clone())),
            };
            self.desk.turn().await?;
            let answer = self.desk.cluster.send(Method::PATCH, &self.path(), FORMAT, body).await;
            match self.read_answer(&answer).await? {
                Step::End(Outcome::Patched) => return self.confirm(&mut waits).await,
                Step::End(outcome) => return Ok(outcome),
                Step::Again => {
                    if let Some(outcome) = self.wait(&mut waits, answer).await? {
                        return Ok(outcome);
                    }
                }
                Step::Reread(refusal) => {
                    if let Some(outcome) = self.reread(&mut waits, &refusal).await? {
                        return Ok(outcome);
                    }
                }
            }
        }
    }

    async fn read_answer(&mut self, answer: &Result<Answer, Silence>) -> Result<Step, Abort> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(silence) if is_no_request(silence) => {
                return Ok(Step::End(Outcome::Failed(format!("invalid request: {silence}"))));
            }
            Err(_) => {
                self.unsure = true;
                return Ok(Step::Again);
            }
        };
        let refused = || Ok(Step::End(Outcome::Rejected(answer.message())));
        match answer.status {
            200..300 => {
                self.desk.allowed.store(true, Ordering::Relaxed);
                Ok(Step::End(self.stored(answer)))
            }
            // The tests of a patch fail as 422 (reason Invalid, without causes), which is also what
            // a schema and a webhook say: whether it was a conflict the object itself tells.
            409 | 422 => Ok(Step::Reread(copy(answer))),
            404 if answer.said().details.name == self.judged.object.name => {
                Ok(Step::End(Outcome::Deleted))
            }
            404 if self.desk.cluster.is_removed(self.target).await => {
                let resource = self.target.name();
                Err(Abort::Hopeless(ClusterError::KindRemoved { resource }))
            }
            // Nobody knows the kind, for some moments after a restart.
            404 => Ok(Step::Again),
            401 => self.forbidden(answer),
            403 if is_of_webhook(answer) => refused(),
            403 => self.forbidden(answer),
            _ if answer.passes() => {
                // Of these the write may have got through.
                self.unsure |= matches!(answer.status, 500 | 502 | 504);
                Ok(Step::Again)
            }
            _ => refused(),
        }
    }

    /// A server that has just started may not have read its roles yet. Who was never let in, will
    /// not be.
    fn forbidden(&self, answer: &Answer) -> Result<Step, Abort> {
        if self.desk.allowed.load(Ordering::Relaxed) {
            return Ok(Step::Again);
        }
        Err(Abort::Hopeless(self.desk.cluster.failed(&self.what(), Ok(copy(answer)))))
    }

    /// A write that succeeded. One that left the version as it was stored nothing: what it filled
    /// in was pruned.
    fn stored(&mut self, answer: &Answer) -> Outcome {
        let text = std::str::from_utf8(&answer.body).unwrap_or_default();
        let version =
            super::Identity::parse(text).map(|identity| identity.resource_version.into_owned());
        match version {
            Ok(version) if version == self.judged.object.resource_version => Outcome::Rejected(
                "nothing was stored: the schema lacks the field, or does not allow null".to_owned(),
            ),
            version => {
                self.version = version.ok();
                Outcome::Patched
            }
        }
    }

    /// Whether all of a write was stored, where there is reason to ask.
    async fn confirm(&self, waits: &mut Waits) -> Result<Outcome, Abort> {
        if !self.desk.distrusted.contains(&self.target.name()) {
            return Ok(Outcome::Patched);
        }
        match self.read(waits).await? {
            Reading::End(outcome) => Ok(outcome),
            Reading::Judged(Judged { todo: Todo::Patch { changes, .. }, .. }) => {
                let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
                Ok(Outcome::Rejected(format!(
                    "{} was not stored: the schema lacks the field, or does not allow null",
                    paths.join(", ")
                )))
            }
            Reading::Judged(_) => Ok(Outcome::Patched),
        }
    }

    /// Waits before the next try. Where there is to be none: the end of this object, or of all.
    async fn wait(
        &self,
        waits: &mut Waits,
        answer: Result<Answer, Silence>,
    ) -> Result<Option<Outcome>, Abort> {
        let asked = answer.as_ref().ok().and_then(|answer| answer.retry_after);
        let own = answer.as_ref().ok().filter(|answer| answer.status == 500);
        let backoff = if own.is_some() { &mut waits.object } else { &mut waits.server };
        match (backoff.wait(asked), own) {
            (Some(wait), _) => self.desk.rest(wait).await.map(|()| None),
            (None, Some(answer)) => Ok(Some(Outcome::Failed(answer.message()))),
            (None, None) => Err(Abort::Hopeless(self.desk.cluster.failed(&self.what(), answer))),
        }
    }

    /// Reads the object again after a conflict, or after what may be one.
    async fn reread(
        &mut self,
        waits: &mut Waits,
        refusal: &Answer,
    ) -> Result<Option<Outcome>, Abort> {
        let judged = match self.read(waits).await? {
            Reading::End(outcome) => return Ok(Some(outcome)),
            Reading::Judged(judged) => judged,
        };
        if judged.object.is_same_version(&self.judged.object) && refusal.status != 409 {
            return Ok(Some(Outcome::Rejected(refusal.message())));
        }
        self.conflicts += 1;
        if self.conflicts >= MAX_CONFLICTS {
            let reason = format!("it changed {MAX_CONFLICTS} times during the write");
            return Ok(Some(Outcome::Failed(reason)));
        }
        self.judged = judged;
        Ok(None)
    }

    /// Reads and judges the object as it is now.
    async fn read(&self, waits: &mut Waits) -> Result<Reading, Abort> {
        let Named { namespace, name, .. } = &self.judged.object;
        let path = self.target.object_path(namespace, name);
        let body = loop {
            self.desk.turn().await?;
            let answer = self.desk.cluster.send(Method::GET, &path, "", Vec::new()).await;
            match &answer {
                Ok(answer) if answer.status < 300 => {
                    self.desk.allowed_to_read.store(true, Ordering::Relaxed);
                    break answer.body.clone();
                }
                Ok(answer) if answer.status == 404 && answer.said().details.name == *name => {
                    return Ok(Reading::End(Outcome::Deleted));
                }
                // As with a write: who was let in once will be again.
                Ok(Answer { status: 401 | 403, .. })
                    if self.desk.allowed_to_read.load(Ordering::Relaxed) => {}
                Ok(answer) if !may_pass(answer) => {
                    let what = format!("get {}", self.target.name());
                    return Err(Abort::Hopeless(self.desk.cluster.failed(&what, Ok(copy(answer)))));
                }
                _ => {}
            }
            if let Some(outcome) = self.wait(waits, answer).await? {
                return Ok(Reading::End(outcome));
            }
        };
        let text = std::str::from_utf8(&body).unwrap_or_default();
        Ok(match judge(&self.desk.policies, self.target, text, (self.desk.clock)()) {
            Ok(judged) => Reading::Judged(judged),
            Err(error) => Reading::End(Outcome::Failed(format!("invalid object: {error}"))),
        })
    }

    fn path(&self) -> String {
        let Named { namespace, name, .. } = &self.judged.object;
        let path = self.target.object_path(namespace, name);
        let subresource = if self.target.status_subresource { "/status" } else { "" };
        format!("{path}{subresource}?fieldManager={FIELD_MANAGER}")
    }

    fn what(&self) -> String {
        let subresource = if self.target.status_subresource { "/status" } else { "" };
        format!("patch {}{subresource}", self.target.name())
    }
}

fn may_pass(answer: &Answer) -> bool {
    answer.passes() || answer.status == 404
}

/// A webhook's denial is a 403 where it names no code, as RBAC's is.
fn is_of_webhook(answer: &Answer) -> bool {
    answer.said().message.starts_with("admission webhook")
}

fn copy(answer: &Answer) -> Answer {
    Answer { status: answer.status, retry_after: answer.retry_after, body: answer.body.clone() }
}

const FORMAT: &str = "application/json-patch+json";

/// Under this name the fields that were filled in show in `managedFields`.
const FIELD_MANAGER: &str = "statusgate-backfill";

/// Somebody who writes an object in a loop wins a race now and then, not twenty times on end.
const MAX_CONFLICTS: u32 = 20;
