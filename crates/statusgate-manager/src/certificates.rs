//! The self-managed certificate: reads the Secret, performs the steps of [`statusgate_tls::rotation`], and
//! gives the leaf to the listener.

mod report;

use std::error::Error;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::context::{Context, Trouble, set_if_changed};
use super::exchange::Replica;
use statusgate_cluster::{ClusterError, Secret};
use statusgate_core::causes::with_causes;
use statusgate_tls::Bundle;
use statusgate_tls::rotation::{
    self, Pause, Registered, RotationStep, SecretSummary, Served, Stored, World,
};

/// Keeps the Secret and the certificate of the listener valid.
pub struct Certificates {
    context: Context,
    started: Instant,
    /// The Secret as this replica last read it, and why its content is invalid, if it is.
    secret: Option<(Secret, Option<String>)>,
    /// The last valid content.
    held: Option<Stored>,
    /// What the listener uses, and the certificate of its authority, as PEM.
    serving: Option<(Served, String)>,
    registered: Registered,
    rescuer: bool,
    pause: Pause,
    trouble: Trouble,
}

/// The error of a request, or of a new certificate.
type Failure = Box<dyn Error + Send + Sync>;

impl Certificates {
    /// Reads the Secret, or creates it, and returns the certificate to start with. Tries again until the
    /// API server is available.
    pub async fn first(context: Context) -> (Self, Bundle) {
        let mut certificates = Self {
            context,
            started: Instant::now(),
            secret: None,
            held: None,
            serving: None,
            registered: Registered::Unknown,
            rescuer: false,
            pause: Pause::Renewal,
            trouble: Trouble::default(),
        };
        let (mut waited, mut retry) = (Duration::ZERO, RETRY);
        loop {
            let wait = match certificates.start(waited < RESCUE).await {
                Ok(Some(bundle)) => {
                    certificates.trouble.end(KEEP);
                    return (certificates, bundle);
                }
                Ok(None) if certificates.rescuer => RESCUE / 10,
                Ok(None) => Duration::ZERO,
                Err(error) => {
                    certificates.trouble.begin(KEEP, &*error);
                    next_wait(&mut retry)
                }
            };
            // Only the wait for another replica is limited.
            if certificates.rescuer {
                waited += wait;
            }
            sleep(wait).await;
        }
    }

    /// Keeps the certificate valid until it is dropped. Calls `serve` with each new one.
    pub async fn run(mut self, serve: impl Fn(Bundle)) {
        let (sender, changes) = mpsc::unbounded_channel();
        let Context { cluster, options, .. } = self.context.clone();
        let (namespace, secret) = (&options.namespace, &options.certificate_secret);
        let watching = cluster.watch_secret(namespace, secret, |event| {
            // The receiver lives as long as this future.
            let _ = sender.send(event);
        });
        tokio::join!(watching, self.keep(changes, serve));
    }

    /// One attempt to start; `None` if the next one may succeed at once.
    async fn start(&mut self, may_wait: bool) -> Result<Option<Bundle>, Failure> {
        self.read().await?;
        self.rescuer = may_wait && self.valid().is_none() && {
            let Context { cluster, options, .. } = &self.context;
            let leases = cluster.leases(&options.namespace).await?;
            leases
                .iter()
                .any(|lease| lease.holder != options.replica && !lease.authority.is_empty())
        };
        match self.next() {
            RotationStep::Wait(..) => Ok(None),
            step => self.perform(step).await,
        }
    }

    async fn keep(
        &mut self,
        mut changes: mpsc::UnboundedReceiver<Result<(), String>>,
        serve: impl Fn(Bundle),
    ) {
        let mut registered = self.context.exchange.registered.subscribe();
        let mut replicas = self.context.exchange.replicas.subscribe();
        registered.mark_changed();
        let (mut is_stale, mut retry, mut watch_trouble) = (true, RETRY, Trouble::default());
        loop {
            if registered.has_changed().unwrap_or_default() {
                let bundles = registered.borrow_and_update().as_ref().map(|bundles| {
                    bundles.iter().map(|bundle| rotation::fingerprints(bundle)).collect::<Vec<_>>()
                });
                self.registered.observe(bundles.as_deref(), self.uptime());
            }
            replicas.mark_unchanged();
            let wait = match self.turn(&mut is_stale).await {
                Ok(Turn::Written) => {
                    sleep(PACE).await;
                    continue;
                }
                Ok(Turn::Serve(bundle)) => {
                    serve(bundle);
                    continue;
                }
                Ok(Turn::Wait(wait)) => {
                    retry = RETRY;
                    wait.min(WAKE)
                }
                Err(error) => {
                    self.registered.restart(self.uptime());
                    self.trouble.begin(KEEP, &*error);
                    is_stale = true;
                    next_wait(&mut retry)
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                _ = registered.changed() => registered.mark_changed(),
                _ = replicas.changed() => {}
                Some(change) = changes.recv() => {
                    self.context.watched(&change, "secret", WATCH, &mut watch_trouble);
                    match change {
                        Ok(()) => is_stale = true,
                        Err(_) => self.registered.restart(self.uptime()),
                    }
                }
            }
        }
    }

    /// Reads the Secret if it changed, and performs the next step.
    async fn turn(&mut self, is_stale: &mut bool) -> Result<Turn, Failure> {
        if *is_stale {
            self.read().await?;
            *is_stale = false;
            self.trouble.end(KEEP);
        }
        match self.next() {
            RotationStep::Wait(pause, time) => {
                if self.pause != pause {
                    self.pause = pause;
                    report::pause(pause);
                }
                Ok(Turn::Wait(time.unsigned_abs()))
            }
            step => {
                let served = self.perform(step).await?;
                *is_stale = served.is_none();
                Ok(served.map_or(Turn::Written, Turn::Serve))
            }
        }
    }

    async fn read(&mut self) -> Result<(), ClusterError> {
        let Context { cluster, options, .. } = &self.context;
        let secret = cluster.secret(&options.namespace, &options.certificate_secret).await?;
        self.secret = secret.map(|secret| match Stored::parse(&secret.data) {
            Ok(stored) => {
                set_if_changed(&self.context.exchange.authorities, stored.authorities().to_owned());
                self.held = Some(stored);
                (secret, None)
            }
            Err(error) => (secret, Some(with_causes(&error))),
        });
        Ok(())
    }

    /// The content of the Secret, if it is valid.
    fn valid(&self) -> Option<&Stored> {
        self.held.as_ref().filter(|_| matches!(self.secret, Some((_, None))))
    }

    fn next(&self) -> RotationStep {
        let Context { exchange, options, .. } = &self.context;
        let replicas = exchange.replicas.borrow();
        let replicas: Vec<String> =
            replicas.iter().map(|Replica { authority, .. }| authority.clone()).collect();
        rotation::step(&World {
            now: self.context.now(),
            uptime: self.uptime(),
            secret: self.valid().map(Stored::summary),
            held: self.held.as_ref().map(Stored::summary),
            served: self.serving.as_ref().map(|(served, _)| served),
            registered: &self.registered,
            replicas: &replicas,
            rescuer: self.rescuer,
            names: &options.names(),
            lifetimes: &options.lifetimes(),
        })
    }

    /// Performs a step. Returns the certificate for the listener, if there is a new one.
    async fn perform(&mut self, step: RotationStep) -> Result<Option<Bundle>, Failure> {
        let content = match (&step, self.valid(), &self.held, &self.serving) {
            (RotationStep::Serve, ..) => return Ok(self.serve()),
            (RotationStep::Create { authority, leaf }, ..) => {
                Stored::create(*authority, *leaf, &self.context.options.names())?
            }
            (RotationStep::Restore, _, Some(held), _) => held.clone(),
            (RotationStep::Trust, Some(stored), _, Some((_, authority))) => {
                stored.with_trusted(authority)?
            }
            (RotationStep::AddAuthority(validity), Some(stored), ..) => {
                stored.with_new_authority(*validity)?
            }
            (RotationStep::Issue { validity, names, .. }, Some(stored), ..) => {
                stored.with_new_leaf(*validity, names)?
            }
            (RotationStep::Retire, Some(stored), ..) => stored.without_older()?,
            // The step function does not return other combinations.
            _ => return Ok(None),
        };
        let Context { cluster, options, metrics, .. } = &self.context;
        let (namespace, name) = (&options.namespace, &options.certificate_secret);
        let data = content.data();
        let written = match &self.secret {
            None => cluster.create_secret(namespace, name, &data).await?,
            Some((secret, _)) => cluster.replace_secret(namespace, name, secret, &data).await?,
        };
        // Otherwise another replica was first. Its content is read next.
        if written {
            let reason = match &self.secret {
                Some((_, invalid)) => invalid.as_deref().unwrap_or_default(),
                None if self.held.is_some() => "it was deleted",
                None => "",
            };
            let secret = format!("{namespace}/{name}");
            report::written(&step, &secret, reason, content.summary());
            metrics.certificate_step(report::name(&step));
        }
        Ok(None)
    }

    fn serve(&mut self) -> Option<Bundle> {
        let stored = self.valid()?;
        let (bundle, summary) = (stored.bundle().clone(), stored.summary());
        let SecretSummary { newest, leaf, .. } = summary.clone();
        let authority = summary.authority(&leaf.authority).cloned().unwrap_or(newest);
        let certificate = stored.certificate_of(&authority.id);
        let since = match &self.serving {
            Some((served, _)) if served.authority == authority => served.since,
            _ => self.uptime(),
        };
        let not_after = bundle.validity.not_after;
        tracing::info!(%not_after, authority = authority.id, "serving with the managed certificate");
        let Context { exchange, metrics, .. } = &self.context;
        set_if_changed(&exchange.served, authority.id.clone());
        metrics.certificate_step(report::name(&RotationStep::Serve));
        metrics.server.certificate_not_after.set(not_after.as_second());
        self.serving = Some((Served { leaf, authority, since }, certificate));
        Some(bundle)
    }

    fn uptime(&self) -> SignedDuration {
        SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX)
    }
}

/// What a turn of the loop did.
enum Turn {
    Written,
    Serve(Bundle),
    Wait(Duration),
}

/// The actions in messages.
const KEEP: &str = "keep the Secret of the managed certificate";
const WATCH: &str = "watch the Secret of the managed certificate";

/// The wall clock may be changed while this server sleeps.
const WAKE: Duration = Duration::from_secs(10);

/// After a write. Another tool may reset the Secret each time.
const PACE: Duration = Duration::from_millis(100);

/// After an error. It doubles with each further one, up to [`WAKE`].
const RETRY: Duration = Duration::from_secs(1);

fn next_wait(retry: &mut Duration) -> Duration {
    std::mem::replace(retry, (*retry * 2).min(WAKE))
}

/// How long a starting replica waits for others to write back a deleted Secret. They need milliseconds.
const RESCUE: Duration = Duration::from_secs(5);
