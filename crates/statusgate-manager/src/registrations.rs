//! Keeps the webhook registrations up to date: their rules follow policies and custom resources, their
//! caBundles the authorities.

mod definitions;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use self::definitions::{Definitions, SelectedDefinitions};
use self::writes::{
    Managed, RegistrationWrite, is_ours, replacement, stored_webhook, webhooks, writes,
};
use super::context::{Context, Trouble, set_if_changed};
use super::exchange::Covered;
use statusgate_cluster::ClusterError;
use statusgate_cluster::manifests::coverage::coverage;
use statusgate_cluster::manifests::registrations::{
    Calls, HookKind, OBJECTS, REGISTRATIONS, RegistrationSettings, UNINSTALL, has_match_conditions,
    registrations,
};
use statusgate_cluster::manifests::resource::CustomResource;
use statusgate_cluster::registrations::DefinitionEvent;
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;
use statusgate_tls::rotation::{Stored, fingerprints};

/// The part of the manager that writes registrations. Without `--manage-webhooks`, it keeps only their
/// caBundles.
#[derive(Clone)]
pub struct Registrar(pub Context);

/// What the loop remembers between two passes.
#[derive(Default)]
struct Memory {
    /// The definitions that policies may select, as they were read.
    selected: SelectedDefinitions,
    /// Whether `statusgate uninstall` removes or removed the registrations.
    uninstalled: bool,
    last: Option<LastWrite>,
    /// The resources of policies without a definition.
    absent: BTreeSet<String>,
    /// For each policy, what the webhooks have for its resources, and since when.
    states: BTreeMap<String, (u64, Option<Instant>)>,
    /// The same for each registration and what it should be.
    registrations: [(u64, Option<Instant>); 3],
}

/// The last writes. If something else undoes them, the next ones wait longer and longer.
struct LastWrite {
    desired: [Value; 3],
    at: Instant,
    wait: Duration,
}

impl Registrar {
    /// Replaces the webhooks of an older version, before this server gets the first request: it does not
    /// serve their paths. The replicas of that version serve those of this one.
    pub async fn replace_old(&self) {
        let (kind, name) = (HookKind::Validating, OBJECTS);
        let replaced = async {
            let stored = self.0.cluster.registration(kind, name).await?;
            let Some(patch) = stored.as_ref().and_then(replacement) else { return Ok(false) };
            self.perform((kind, name), &RegistrationWrite::Patch(patch)).await?;
            Ok::<_, ClusterError>(true)
        };
        match replaced.await {
            Ok(true) => sleep(UNTIL_READ).await,
            Ok(false) => {}
            Err(error) => Trouble::default().begin(UPDATE, &error),
        }
    }

    /// Writes what differs, after each change of policies, authorities, definitions and registrations.
    /// Never ends.
    ///
    /// Start it when the exchange contains the policies of all sources: it removes the rules of resources
    /// that no policy selects.
    pub async fn run(self) {
        let definitions = watch::Sender::new(Definitions::default());
        let stored = Notify::new();
        let watch_stored = async |index: usize| {
            let ((kind, name), (_, label)) = (REGISTRATIONS[index], LABELS[index]);
            let mut trouble = Trouble::default();
            let what = format!("watch the {} {name}", kind.name());
            let watched = self.0.cluster.watch_registration(kind, name, |event| {
                self.0.watched(&event, label, &what, &mut trouble);
                if event.is_ok() {
                    stored.notify_one();
                }
            });
            watched.await;
        };
        let watch_definitions = async {
            let (mut trouble, what) = (Trouble::default(), "watch the CustomResourceDefinitions");
            let watched = self.0.cluster.watch_definitions(|event| {
                // The list may fail.
                if !matches!(event, Ok(DefinitionEvent::Restarted)) {
                    self.0.watched(&event, "definitions", what, &mut trouble);
                }
                if let Ok(change) = event {
                    definitions.send_if_modified(|known| known.note(change));
                }
            });
            watched.await;
        };
        tokio::select! {
            // Without rules to keep, an account needs no permission for definitions.
            () = watch_definitions, if self.0.options.manage_webhooks => {}
            () = watch_stored(0) => {}
            () = watch_stored(1) => {}
            () = watch_stored(2) => {}
            () = self.pass_repeatedly(&definitions, &stored) => {}
        }
    }

    async fn pass_repeatedly(&self, definitions: &watch::Sender<Definitions>, stored: &Notify) {
        let mut policies = self.0.exchange.policies.subscribe();
        let mut authorities = self.0.exchange.authorities.subscribe();
        let mut changed = definitions.subscribe();
        let (mut memory, mut trouble) = (Memory::default(), Trouble::default());
        let mut failures = 0;
        if self.0.options.manage_webhooks {
            // The first pass can then create the registrations.
            let _ = timeout(LONGEST_RETRY, changed.wait_for(|known| known.complete)).await;
        }
        loop {
            let (pause, next) = match self.pass(definitions, &mut memory).await {
                Ok(next) => {
                    trouble.end(UPDATE);
                    failures = 0;
                    next
                }
                Err(error) => {
                    trouble.begin(UPDATE, &error);
                    failures += 1;
                    (PAUSE, (PAUSE * 2_u32.saturating_pow(failures)).min(LONGEST_RETRY))
                }
            };
            sleep(pause).await;
            tokio::select! {
                () = stored.notified() => {}
                Ok(()) = policies.changed() => {}
                Ok(()) = authorities.changed() => {}
                Ok(()) = changed.changed() => {}
                () = sleep(next) => {}
            }
        }
    }

    /// Reads everything, publishes it and writes what differs. Returns how long to wait in any case, and
    /// when to look again if nothing changes.
    async fn pass(
        &self,
        definitions: &watch::Sender<Definitions>,
        memory: &mut Memory,
    ) -> Result<(Duration, Duration), ClusterError> {
        let policies = Arc::clone(&self.0.exchange.policies.borrow());
        // caBundles are updated even if the definitions cannot be read: the certificates depend on them.
        match self.resources(&policies, definitions, memory).await {
            Ok(resources) => self.update(&policies, resources.as_deref(), memory).await,
            Err(error) => {
                self.update(&policies, None, memory).await?;
                Err(error)
            }
        }
    }

    async fn update(
        &self,
        policies: &Arc<PolicySet>,
        resources: Option<&[CustomResource]>,
        memory: &mut Memory,
    ) -> Result<(Duration, Duration), ClusterError> {
        let mut stored = [None, None, None];
        for ((kind, name), stored) in REGISTRATIONS.into_iter().zip(&mut stored) {
            *stored = self.0.cluster.registration(kind, name).await?;
        }
        self.publish_bundles(&stored);
        // Until the definitions are known, the rules stay as they are.
        let options = &self.0.options;
        let managed = Managed {
            rules: options.manage_webhooks && resources.is_some(),
            authorities: options.manage_certificates,
        };
        let settings = RegistrationSettings {
            namespace: options.namespace.clone(),
            address: options.address(),
            authorities: self.authorities().await?,
            failure_policy: options.failure_policy,
        };
        let match_conditions = has_match_conditions(self.0.cluster.version());
        let calls = Calls::of(policies, resources.unwrap_or_default(), match_conditions);
        let desired = registrations(&calls, &settings);
        let mut next = None;
        if let Some(resources) = resources {
            next = self.publish_coverage(policies, resources, (&calls, &desired), &stored, memory);
        }
        if stored.iter().any(Option::is_some) {
            let mut annotations = stored.iter().flatten().map(|of| &of["metadata"]["annotations"]);
            let uninstalled = annotations.any(|of| !of[UNINSTALL].is_null());
            if uninstalled && !memory.uninstalled {
                tracing::info!(
                    "the registrations are being removed: this server leaves them alone"
                );
            }
            memory.uninstalled = uninstalled;
        }
        if memory.uninstalled {
            return Ok((QUIET, next.unwrap_or(RESYNC)));
        }
        if let Some(patch) = stored[1].as_ref().and_then(replacement)
            && self.0.options.manage_webhooks
        {
            self.perform(REGISTRATIONS[1], &RegistrationWrite::Patch(patch)).await?;
            return Ok((QUIET, QUIET));
        }
        let writes = writes(&desired, &stored, managed);
        if !options.manage_webhooks || managed.rules {
            let labels = REGISTRATIONS.into_iter().zip(LABELS);
            let states = stored.iter().zip(&mut memory.registrations);
            for ((place, (label, _)), (stored, known)) in labels.zip(states) {
                let mut state = DefaultHasher::new();
                stored.as_ref().map(|of| of["webhooks"].to_string()).hash(&mut state);
                let left = until_read(known, state.finish());
                next = next.max(left);
                let agrees = !writes.iter().any(|(written, _)| *written == place);
                self.0.metrics.registration_in_sync(label, agrees && left.is_none());
            }
        }
        if writes.is_empty() {
            return Ok((QUIET, next.unwrap_or(RESYNC)));
        }
        let now = Instant::now();
        let wait = match &memory.last {
            Some(last) if last.desired == desired && now < last.at + RESYNC => {
                if now < last.at + last.wait {
                    let left = last.at + last.wait - now;
                    return Ok((QUIET, next.map_or(left, |next| next.min(left))));
                }
                (last.wait * 2).min(RESYNC)
            }
            _ => PAUSE,
        };
        for (place, write) in writes {
            if self.perform(place, &write).await? {
                memory.last = Some(LastWrite { desired: desired.clone(), at: now, wait });
            }
        }
        Ok((PAUSE, PAUSE))
    }

    /// What each caBundle has to contain. Read after the registrations, so that a server that has missed a
    /// change of the Secret removes no authority from a caBundle.
    async fn authorities(&self) -> Result<String, ClusterError> {
        let Context { cluster, options, .. } = &self.0;
        if !options.manage_certificates {
            return Ok(String::new());
        }
        let secret = cluster.secret(&options.namespace, &options.certificate_secret).await?;
        let stored = secret.and_then(|secret| Stored::parse(&secret.data).ok());
        // A missing or invalid Secret is written back.
        let authorities = stored.map(|stored| stored.authorities().to_owned());
        Ok(authorities.unwrap_or_else(|| self.0.exchange.authorities.borrow().clone()))
    }

    /// The custom resources that policies may select; `None` until the definitions are known. Reads only
    /// definitions that changed.
    async fn resources(
        &self,
        policies: &Arc<PolicySet>,
        definitions: &watch::Sender<Definitions>,
        memory: &mut Memory,
    ) -> Result<Option<Vec<CustomResource>>, ClusterError> {
        let Some(revisions) = definitions.borrow().selected_by(policies) else { return Ok(None) };
        let selected = &mut memory.selected;
        selected.read(&self.0.cluster, policies, revisions).await?;
        if let Some(defined) = selected.take_changed() {
            let store = self.0.store.clone();
            // The counters of a thousand policies would delay the requests of a worker.
            let replaced = tokio::task::spawn_blocking(move || store.replace_defined(defined));
            if let Err(error) = replaced.await {
                tracing::error!(%error, "the schemas are not used: a bug in statusgate");
            }
        }
        Ok(Some(selected.resources()))
    }

    fn publish_bundles(&self, stored: &[Option<Value>; 3]) {
        let ours = stored.iter().flatten().flat_map(webhooks).filter(|webhook| is_ours(webhook));
        let bundles = ours.map(|webhook| pem_of(&webhook["clientConfig"]["caBundle"]));
        set_if_changed(&self.0.exchange.registered, Some(bundles.collect()));
    }

    /// Returns when more is known without a change.
    fn publish_coverage(
        &self,
        policies: &Arc<PolicySet>,
        resources: &[CustomResource],
        (calls, desired): (&Calls, &[Value; 3]),
        stored: &[Option<Value>; 3],
        memory: &mut Memory,
    ) -> Option<Duration> {
        let served = self.0.exchange.served.borrow().clone();
        let webhooks = [(Webhook::Mutate, 0), (Webhook::Validate, 1)].map(|(of, at)| {
            stored_webhook(of, &desired[at], stored[at].as_ref(), |bundle| match served.as_str() {
                // A certificate for a URL may have a public authority.
                "" => self.0.options.webhook_url.is_some() || !pem_of(bundle).is_empty(),
                served => fingerprints(&pem_of(bundle)).iter().any(|id| id == served),
            })
        });
        let mut coverage = coverage(policies, resources, calls, &webhooks);
        memory.selected.add_withheld(policies, &mut coverage);
        let absent: BTreeSet<String> =
            coverage.values().flat_map(|of| of.absent.iter().cloned()).collect();
        self.0.metrics.resources_without_crd(absent.len());
        if memory.absent != absent && !absent.is_empty() {
            tracing::info!(
                resources = absent.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
                "no CustomResourceDefinition defines these resources of the policies: they are not \
                 registered until one does"
            );
        }
        memory.absent = absent;
        memory.states.retain(|name, _| coverage.contains_key(name));
        let mut wait = None;
        coverage.retain(|name, of| {
            let left = until_read(memory.states.entry(name.clone()).or_default(), of.state);
            wait = wait.max(left);
            left.is_none() || !of.missing.is_empty()
        });
        let covered = Covered { of: Arc::clone(policies), policies: coverage };
        set_if_changed(&self.0.exchange.coverage, Some(covered));
        wait
    }

    /// Returns `false` if another replica was first.
    async fn perform(
        &self,
        (kind, name): (HookKind, &str),
        write: &RegistrationWrite,
    ) -> Result<bool, ClusterError> {
        match write {
            RegistrationWrite::Create(registration) => {
                let written = self.0.cluster.create_registration(kind, registration).await?;
                if written {
                    tracing::info!(kind = kind.name(), name, "created a registration");
                }
                Ok(written)
            }
            RegistrationWrite::Patch(patch) => {
                let written = self.0.cluster.patch_registration(kind, name, patch).await?;
                if written {
                    let operations = patch.as_array().into_iter().flatten().skip(1);
                    let paths = operations.filter_map(|operation| operation["path"].as_str());
                    let fields = paths.collect::<Vec<_>>().join(" ");
                    tracing::info!(kind = kind.name(), name, fields, "updated a registration");
                }
                Ok(written)
            }
        }
    }
}

/// How long it takes until every API server has read a state, if it has changed.
fn until_read((known, since): &mut (u64, Option<Instant>), state: u64) -> Option<Duration> {
    if *known != state || since.is_none() {
        (*known, *since) = (state, Some(Instant::now()));
    }
    let left = UNTIL_READ.checked_sub(since.as_ref()?.elapsed())?;
    (!left.is_zero()).then_some(left)
}

/// The certificates of a caBundle.
fn pem_of(bundle: &Value) -> String {
    let bytes = STANDARD.decode(bundle.as_str().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// In metrics, the labels of each registration and of its watch, in the order of [`REGISTRATIONS`].
const LABELS: [(&str, &str); 3] = [
    ("mutating", "mutating_registration"),
    ("validating", "validating_registration"),
    ("documents", "documents_registration"),
];

/// What fails, for the log.
const UPDATE: &str = "update the webhook registrations";

/// An API server reads registrations by a watch, and uses a change within this time.
const UNTIL_READ: Duration = Duration::from_secs(2);

/// After writes and errors.
const PAUSE: Duration = Duration::from_secs(1);

/// Between other passes: many objects may change at once.
const QUIET: Duration = Duration::from_millis(200);

/// A watch may miss a change.
const RESYNC: Duration = Duration::from_secs(300);

/// After errors.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
