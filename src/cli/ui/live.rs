//! A cluster for the page: passes of the audit, each on demand, and calls about objects, policies and the installation.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::super::in_use::InUse;
use super::super::survey::Survey;
use super::super::time;
use super::Args;
use crate::ui::OfCluster;
use statusgate_cluster::audit::{Judge, Plan, audit, json};
use statusgate_cluster::doctor::Examination;
use statusgate_cluster::{Patience, StoredDocument};
use statusgate_core::causes::with_causes;

/// The cluster that `ui` shows.
pub(super) struct Live {
    args: Args,
    state: Mutex<State>,
    /// Starts a pass.
    wake: Notify,
}

struct State {
    view: Arc<View>,
    /// The pass that is under way.
    running: Option<Progress>,
    /// Why the last pass failed.
    error: Option<String>,
    /// The end of the last successful pass in milliseconds, which identifies it; 0 before the first one.
    number: i64,
    /// Its result as JSON.
    result: Arc<str>,
}

/// What a pass judges, and by what.
struct View {
    survey: Survey,
    in_use: InUse,
}

#[derive(Default, Serialize)]
struct Progress {
    done: u64,
    total: Option<u64>,
    kind: String,
}

#[derive(Deserialize)]
struct AuditCall {
    /// The pass that the page has.
    #[serde(default)]
    have: i64,
    #[serde(default)]
    refresh: bool,
}

#[derive(Deserialize)]
struct ObjectCall {
    /// `vshnredis.vshn.appcat.vshn.io`.
    resource: String,
    #[serde(default)]
    namespace: String,
    name: String,
}

/// The maximum number of objects that the page gets; each has half a kilobyte.
const MAX_OBJECTS: usize = 50_000;

impl Live {
    /// Connects, and finds what the policies select.
    pub(super) async fn open(args: Args) -> anyhow::Result<Arc<Self>> {
        let view = Arc::new(View::of(&args).await?);
        let (running, result) = (Some(Progress::default()), Arc::from("null"));
        let state = Mutex::new(State { view, running, error: None, number: 0, result });
        Ok(Arc::new(Self { args, state, wake: Notify::new() }))
    }

    /// Runs a pass now, and one whenever the page asks for it.
    pub(super) async fn run(&self) -> io::Result<()> {
        let mut view = Ok(Arc::clone(&self.state().view));
        loop {
            let result = match view {
                Ok(view) => self.pass(view).await,
                Err(error) => Err(error),
            };
            self.state().end(result);
            self.wake.notified().await;
            // Policies, kinds and credentials may have changed.
            view = View::of(&self.args).await.map(Arc::new);
        }
    }

    /// The answers to the calls of the page.
    pub(super) fn calls(self: &Arc<Self>) -> OfCluster {
        let live = Arc::clone(self);
        Arc::new(move |name, body| {
            let live = Arc::clone(&live);
            Box::pin(async move {
                let answer = live
                    .answer(&name, &body)
                    .await
                    .unwrap_or_else(|error| json!({"error": format!("{error:#}")}).to_string());
                answer.into_bytes()
            })
        })
    }

    async fn answer(&self, name: &str, body: &[u8]) -> anyhow::Result<String> {
        const INVALID: &str = "invalid request";
        match name {
            "audit" => {
                let call = serde_json::from_slice(body).context(INVALID)?;
                Ok(self.state().answer(&call, &self.wake))
            }
            "object" => {
                let view = Arc::clone(&self.state().view);
                view.object(&serde_json::from_slice(body).context(INVALID)?).await
            }
            "doctor" => self.doctor().await,
            _ => self.policies().await,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges all objects. Returns the result as JSON.
    async fn pass(&self, view: Arc<View>) -> anyhow::Result<String> {
        self.state().view = Arc::clone(&view);
        let View { survey, in_use: InUse { policies, .. } } = &*view;
        let start = Instant::now();
        let query = self.args.selection.query();
        let plan =
            Plan { query, older_than: None, examples: 0, reports: false, clock: time::clock };
        let total = survey.count(&plan.query).await;
        let (mut objects, mut left_out) = (Vec::new(), 0);
        let (cluster, targets) = (&survey.cluster, &survey.targets);
        let findings = audit(cluster, policies, &plan, targets, &mut |target, judged| {
            if objects.len() < MAX_OBJECTS {
                objects.push(json::object(policies, target, judged).to_string());
            } else {
                left_out += 1;
            }
            let done = objects.len() as u64 + left_out;
            self.state().running = Some(Progress { done, total, kind: target.kind.clone() });
            Ok(())
        })
        .await?;
        let of_server = findings.failures.iter().find(|error| error.is_of_the_server());
        // A part of the objects is better than nothing, but not better than an earlier result.
        if let Some(error) = of_server.filter(|_| self.state().number > 0) {
            bail!(with_causes(error));
        }
        let mut result = json::summary(&findings);
        result["server"] = cluster.server().into();
        result["seconds"] = start.elapsed().as_secs_f64().into();
        result["unreached"] = survey.unreached(&findings).into();
        result["gaps"] = json!(survey.gaps);
        result["leftOut"] = left_out.into();
        Ok(with_member(&result, "objects", &format!("[{}]", objects.join(","))))
    }

    async fn doctor(&self) -> anyhow::Result<String> {
        let Args { policies, connection, .. } = &self.args;
        let (cluster, in_use) = policies.open(connection).await?;
        let InUse { policies, sources, documents } = in_use;
        let checks = Examination::default();
        let checks = checks.run(&cluster, &policies, &sources, &documents, time::clock()).await?;
        Ok(json!({"checks": checks}).to_string())
    }

    async fn policies(&self) -> anyhow::Result<String> {
        let Args { policies, connection, .. } = &self.args;
        let (_, InUse { policies, documents, .. }) = policies.open(connection).await?;
        let stored = documents.iter().flat_map(|(kind, list)| {
            list.iter().flatten().map(move |StoredDocument { name, spec, status, .. }| {
                json!({
                    "kind": kind,
                    "name": name,
                    "convention": spec.get("convention").or_else(|| spec.get("extends")),
                    "enforcement": spec.get("enforcement"),
                    "conditions": status.get("conditions"),
                })
            })
        });
        let unread = documents.iter().filter_map(|(_, list)| list.as_ref().err());
        Ok(json!({
            "inUse": policies.names().collect::<Value>(),
            "documents": stored.collect::<Value>(),
            "unread": unread.collect::<Vec<_>>(),
        })
        .to_string())
    }
}

impl View {
    async fn of(args: &Args) -> anyhow::Result<Self> {
        let (cluster, in_use) = args.policies.open(&args.connection).await?;
        // The result has the gaps.
        let given = !in_use.sources.is_empty();
        let survey = Survey::of(cluster, &in_use.policies, given, &args.selection, |_| {}).await?;
        Ok(Self { survey, in_use })
    }

    /// An object as it is now.
    async fn object(&self, call: &ObjectCall) -> anyhow::Result<String> {
        let ObjectCall { resource, namespace, name } = call;
        let Self { survey, in_use: InUse { policies, sources, .. } } = self;
        let mut targets = survey.targets.iter();
        let Some(target) = targets.find(|target| target.name() == *resource) else {
            bail!("no policy selects {resource}");
        };
        let read = survey.cluster.object(target, namespace, name, Patience::SHORT).await?;
        let Some(body) = read else { bail!("{resource}/{name} does not exist") };
        let text = str::from_utf8(&body)?;
        let judged = Judge::new(policies, None).object(target, text, time::clock())?;
        let mut object: Value = serde_json::from_str(text)?;
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
        let answer = json!({
            "line": json::object(policies, target, &judged),
            "plural": target.plural,
            "yaml": serde_saphyr::to_string(&object)?,
            "object": object,
            "documents": texts.join("\n---\n"),
        });
        Ok(answer.to_string())
    }
}

impl State {
    fn end(&mut self, result: anyhow::Result<String>) {
        self.running = None;
        match result {
            Ok(result) => {
                (self.error, self.result) = (None, result.into());
                self.number = time::clock().as_millisecond();
            }
            Err(error) => self.error = Some(format!("{error:#}")),
        }
    }

    /// The progress, and the result if the page has another one.
    fn answer(&mut self, call: &AuditCall, wake: &Notify) -> String {
        if call.refresh && self.running.is_none() {
            self.running = Some(Progress::default());
            wake.notify_one();
        }
        let Self { running, error, number, result, .. } = self;
        let answer = json!({"running": running, "error": error, "number": number});
        if *number == call.have {
            answer.to_string()
        } else {
            with_member(&answer, "result", result)
        }
    }
}

/// Adds a member, which is JSON text, to an object that is not empty.
fn with_member(object: &Value, name: &str, member: &str) -> String {
    let mut text = object.to_string();
    text.pop();
    text + &format!(",\"{name}\":{member}}}")
}
