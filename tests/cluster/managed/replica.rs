//! A server with everything managed, in its own process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::command::STATUSGATE;
use crate::harness::balancer::Balancer;
use crate::harness::leash::Leashed;
use crate::harness::patience::until;
use crate::harness::plane::Plane;
use crate::harness::probes::{get, is_ready, member};

/// The load balancer of an installation, and the flags of its replicas.
pub(crate) struct Installation<'p> {
    plane: &'p Plane,
    service: Balancer,
    /// Where the certificate comes from.
    certificate: Vec<String>,
    flags: Vec<&'static str>,
    kubeconfig: PathBuf,
}

/// What a process uses.
#[derive(Debug)]
pub(crate) struct Usage {
    /// Resident memory, in KiB.
    pub(crate) memory: u64,
    pub(crate) descriptors: u64,
    /// The lines of its metrics.
    pub(crate) series: u64,
}

/// A running replica, which stops when this value is dropped.
pub(crate) struct Replica {
    process: Leashed,
    address: SocketAddr,
    probes: SocketAddr,
}

impl<'p> Installation<'p> {
    /// Without replicas. `flags` are in addition to those that manage everything.
    pub(crate) async fn new(plane: &'p Plane, flags: &[&'static str]) -> Self {
        let (service, kubeconfig) = (Balancer::start().await, plane.kubeconfig());
        let managed = ["--manage-certificates", "--certificate-secret=statusgate-tls"];
        let certificate = managed.map(str::to_owned).into();
        Self { plane, service, certificate, flags: flags.to_vec(), kubeconfig }
    }

    /// With a certificate and a key from the files `tls.crt` and `tls.key` in a folder.
    pub(crate) async fn with_files(
        plane: &'p Plane,
        folder: &Path,
        flags: &[&'static str],
    ) -> Self {
        let file = |flag, name| format!("{flag}={}", folder.join(name).display());
        let certificate = vec![file("--tls-cert", "tls.crt"), file("--tls-key", "tls.key")];
        Self { certificate, ..Self::new(plane, flags).await }
    }

    /// With replicas that accept any certificate of the API server.
    pub(crate) async fn unverified(plane: &'p Plane, flags: &[&'static str]) -> Self {
        Self { kubeconfig: plane.unverified_kubeconfig(), ..Self::new(plane, flags).await }
    }

    /// With the rights of this user instead of the administrator's.
    pub(crate) async fn of_user(plane: &'p Plane, user: &str) -> Self {
        Self { kubeconfig: plane.kubeconfig_of(user), ..Self::new(plane, &[]).await }
    }

    /// Starts a replica and waits until it is ready.
    pub(crate) async fn replica(&self, name: &str) -> Replica {
        self.ready(self.starting(name)).await
    }

    /// Waits until a replica is ready.
    pub(crate) async fn ready(&self, replica: Starting) -> Replica {
        replica.ready(&self.service).await
    }

    /// Ends a replica.
    pub(crate) fn stop(&self, replica: &Replica) {
        replica.terminate();
        self.service.remove(replica.probes);
    }

    /// Starts two replicas at the same instant.
    pub(crate) async fn two(&self) -> [Replica; 2] {
        let (one, two) = (self.starting("one"), self.starting("two"));
        [one.ready(&self.service).await, two.ready(&self.service).await]
    }

    /// Starts a replica.
    pub(crate) fn starting(&self, name: &str) -> Starting {
        self.starting_at(name, SocketAddr::from(([127, 0, 0, 1], 0)), &[])
    }

    /// Starts a replica at an address, which is a part of its name, with these environment variables.
    pub(crate) fn starting_at(
        &self,
        name: &str,
        address: SocketAddr,
        environment: &[String],
    ) -> Starting {
        let log = self.log(name);
        let arguments = [
            STATUSGATE.to_owned(),
            "serve".to_owned(),
            format!("--listen={address}"),
            "--probe-listen=127.0.0.1:0".to_owned(),
            "--log-format=json".to_owned(),
            "--grace=2s".to_owned(),
            format!("--kubeconfig={}", self.kubeconfig.display()),
            "--namespace=statusgate-system".to_owned(),
            "--watch-policies".to_owned(),
            "--manage-webhooks".to_owned(),
            format!("--webhook-url=https://{}", self.service.address()),
        ];
        let flags = self.flags.iter().map(|flag| (*flag).to_owned());
        let arguments = environment.iter().cloned().chain(arguments);
        let arguments = arguments.chain(self.certificate.iter().cloned()).chain(flags);
        Starting { process: Leashed::start(&log, "env", arguments) }
    }

    /// Whether the Service sends connections to a replica.
    pub(crate) fn reaches(&self, replica: &Replica) -> bool {
        self.service.reaches(replica.address)
    }

    /// A new file for a log.
    fn log(&self, name: &str) -> PathBuf {
        let folder = self.plane.folder("logs");
        let logs = (0..).map(|number| folder.join(format!("{name}-{number}.log")));
        logs.into_iter().find(|log| !log.exists()).expect("numbers do not end")
    }
}

/// A process that may not be ready yet.
pub(crate) struct Starting {
    process: Leashed,
}

impl Starting {
    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    async fn ready(self, service: &Balancer) -> Replica {
        let Self { process } = self;
        let (address, probes) = until("statusgate listens", async || {
            let log = process.log();
            Some((member(&log, "address")?, member(&log, "probe_address")?))
        })
        .await;
        let replica = Replica { process, address, probes };
        until("statusgate is ready", async || is_ready(probes).await.then_some(())).await;
        service.add(address, probes);
        replica
    }
}

impl Replica {
    /// Sends SIGTERM and waits for a clean end.
    pub(crate) fn terminate(&self) {
        self.process.signal("TERM");
        let code = self.process.ended();
        assert_eq!(code, "0", "statusgate ends with 0; {}", self.process.log());
    }

    /// Kills it.
    pub(crate) fn kill(&self) {
        self.process.signal("KILL");
        self.process.ended();
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The readiness probe.
    pub(crate) async fn is_ready(&self) -> bool {
        is_ready(self.probes).await
    }

    /// The sum of a metric over all labels.
    pub(crate) async fn sum(&self, name: &str) -> f64 {
        let text = get(self.probes, "/metrics").await.expect("metrics");
        let samples = text.lines().filter(|line| line.starts_with(name));
        samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// What it uses now.
    pub(crate) async fn usage(&self) -> Usage {
        let folder = PathBuf::from("/proc").join(self.process.id());
        let status = fs::read_to_string(folder.join("status")).expect("a status");
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("memory");
        let metrics = get(self.probes, "/metrics").await.expect("metrics");
        let series = metrics.lines().filter(|line| line.starts_with("statusgate_")).count();
        Usage {
            memory: memory.trim().trim_end_matches(" kB").parse().expect("a number"),
            descriptors: fs::read_dir(folder.join("fd")).expect("a folder").count() as u64,
            series: series as u64,
        }
    }

    /// A metric, by its name with labels.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let text = get(self.probes, "/metrics").await.ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(30)..];
            println!("statusgate at {} said last:\n{}", self.address, last.join("\n"));
        }
    }
}
