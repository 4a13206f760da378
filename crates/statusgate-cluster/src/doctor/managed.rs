//! What servers keep in the cluster: the CRDs of their documents, their Leases, and the Secret with their
//! certificate.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Examination;
use super::hook::Hook;
use crate::error::unless_missing;
use crate::lease::LEASE_SECONDS;
use crate::manifests::crds::{VERSION, crds};
use crate::manifests::registrations::{DOCUMENTS, DOCUMENTS_NAME, HookKind};
use crate::pages::crd_path;
use crate::{CheckResult, Cluster, Lease, Patience};
use statusgate_tls::rotation::{Stored, fingerprints};
use statusgate_tls::{Expiry, Validity};

/// What is stored, or why it cannot be read.
pub(super) struct Managed {
    namespace: String,
    secret_name: String,
    crds: Vec<(String, Result<Option<Value>, String>)>,
    leases: Result<Vec<Lease>, String>,
    /// Its values.
    secret: Result<Option<BTreeMap<String, Vec<u8>>>, String>,
}

impl Managed {
    pub(super) async fn read(cluster: &Cluster, options: &Examination, hooks: &[Hook]) -> Self {
        let given = options.namespace.clone();
        let known = given.or_else(|| Some(hooks.iter().find_map(Hook::service)?.namespace));
        let namespace = known.unwrap_or_else(|| "statusgate-system".to_owned());
        let mut definitions = Vec::new();
        let names = crds().map(|crd| crd["metadata"]["name"].as_str().map(str::to_owned));
        for name in names.into_iter().flatten() {
            let read = cluster.read_as("read it", &crd_path(&name), Patience::SHORT).await;
            definitions.push((name, unless_missing(read).map_err(|error| error.to_string())));
        }
        let leases = cluster.leases(&namespace).await.map_err(|error| error.to_string());
        let secret = cluster.secret(&namespace, &options.certificate_secret).await;
        let secret = secret.map(|secret| secret.map(|secret| secret.data));
        let secret = secret.map_err(|error| error.to_string());
        let secret_name = options.certificate_secret.clone();
        Self { namespace, secret_name, crds: definitions, leases, secret }
    }

    /// Checks everything that a server keeps. Objects that no server uses have no result. `unread` contains the
    /// kinds of registrations that could not be listed.
    pub(super) fn check(
        &self,
        hooks: &[Hook],
        unread: &[(HookKind, String)],
        now: Timestamp,
    ) -> Vec<CheckResult> {
        let mut checks = Vec::new();
        if self.crds.iter().all(|(_, crd)| matches!(crd, Ok(None))) {
            let message = "not installed: servers read policies only from files";
            checks.push(CheckResult::ok("crd", "StatusPolicy, StatusConvention", message));
        } else {
            checks.extend(self.crds.iter().map(|(name, crd)| definition(name, crd)));
        }
        // Whether policies may be objects of the cluster.
        let has_crds = self.crds.iter().any(|(_, crd)| matches!(crd, Ok(Some(_))));
        let is_registered = hooks.iter().any(Hook::is_about_documents);
        let is_unread = unread.iter().any(|(kind, _)| *kind == HookKind::Validating);
        if has_crds && !is_registered && !is_unread {
            let subject = format!("{} {DOCUMENTS_NAME}", HookKind::Validating.name());
            let message = format!("no registration calls {DOCUMENTS}: invalid policies are stored");
            let help = "run statusgate serve with --manage-webhooks, or apply `statusgate \
                        manifests install`";
            checks.push(CheckResult::warning("registration", subject, message, help));
        }
        let subject = format!("Leases in {}", self.namespace);
        match &self.leases {
            Ok(leases) if !leases.is_empty() || has_crds => {
                checks.extend(replicas(&subject, leases, now));
            }
            Ok(_) => {}
            Err(reason) => {
                checks.push(CheckResult::not_checked(REPLICAS, subject, reason, "list them"));
            }
        }
        checks.extend(certificate(self, hooks, now));
        checks
    }
}

fn definition(name: &str, crd: &Result<Option<Value>, String>) -> CheckResult {
    let problem = |message: &str, help: &str| CheckResult::problem("crd", name, message, help);
    let apply = "apply the output of `statusgate manifests crds`";
    let crd = match crd {
        Ok(Some(crd)) => crd,
        Ok(None) => return problem("the CustomResourceDefinition is missing", apply),
        Err(reason) => return CheckResult::not_checked("crd", name, reason, "get it"),
    };
    let established = super::documents::condition(&crd["status"], "Established");
    if established["status"] != "True" {
        let reason = established["message"].as_str().unwrap_or("no condition Established");
        let help = "kubectl describe crd shows the conditions";
        return problem(&format!("it is not established: {reason}"), help);
    }
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let mut served = versions.filter(|version| version["served"] == true);
    if !served.any(|version| version["name"] == VERSION) {
        return problem(&format!("it does not serve {VERSION}"), apply);
    }
    CheckResult::ok("crd", name, format!("established, serves {VERSION}"))
}

fn replicas(subject: &str, leases: &[Lease], now: Timestamp) -> Vec<CheckResult> {
    let (live, old): (Vec<&Lease>, Vec<&Lease>) =
        leases.iter().partition(|lease| is_live(lease, now));
    let mut checks = vec![if live.is_empty() {
        let help = "start statusgate serve; if it runs, compare its --namespace and its clock";
        CheckResult::problem(REPLICAS, subject, "no replica renews a Lease", help)
    } else {
        let names: Vec<&str> = live.iter().map(|lease| lease.holder.as_str()).collect();
        let message = format!("replicas that renew their Lease: {}", names.join(", "));
        CheckResult::ok(REPLICAS, subject, message)
    }];
    checks.extend(old.into_iter().map(|Lease { holder, renewed, .. }| {
        let message = format!("{holder} did not renew its Lease since {renewed:.0}");
        let help =
            "if its pod was deleted, delete the Lease: it delays rotations; otherwise read its log";
        CheckResult::warning(REPLICAS, subject, message, help)
    }));
    checks
}

/// Servers compare no clocks, but they read the Leases several times.
fn is_live(lease: &Lease, now: Timestamp) -> bool {
    now.duration_since(lease.renewed) < SignedDuration::from_secs(LEASE_SECONDS)
}

/// Checks the Secret if servers keep their certificate there: then it has the key of the authority, or
/// their Leases have its fingerprint.
fn certificate(managed: &Managed, hooks: &[Hook], now: Timestamp) -> Vec<CheckResult> {
    let Managed { namespace, secret_name, leases, secret, .. } = managed;
    let is_used = leases.iter().flatten().any(|lease| !lease.authority.is_empty());
    let subject = format!("Secret {namespace}/{secret_name}");
    let secret = match secret {
        Ok(Some(secret)) if is_used || secret.contains_key("ca.key") => secret,
        Ok(None) if is_used => {
            let help = "running servers create it within seconds: read their log";
            return vec![CheckResult::problem(SECRET, subject, "it is missing", help)];
        }
        Err(reason) if is_used => {
            return vec![CheckResult::not_checked(SECRET, subject, reason, "get it")];
        }
        _ => return Vec::new(),
    };
    let stored = match Stored::parse(secret) {
        Ok(stored) => stored,
        Err(error) => {
            let help = "running servers replace it within seconds: read their log";
            return vec![CheckResult::problem(SECRET, subject, format!("invalid: {error}"), help)];
        }
    };
    let leaf = &stored.summary().leaf;
    let mut checks = vec![validity(&subject, leaf.validity, now)];
    for hook in hooks {
        let registered = fingerprints(&String::from_utf8_lossy(hook.ca_bundle()));
        if !registered.contains(&leaf.authority) {
            let message = format!("caBundle lacks the CA of the {subject}");
            let help = "running servers add it within seconds: read their log";
            checks.push(CheckResult::problem("ca-bundle", hook.subject(), message, help));
        }
    }
    checks
}

fn validity(subject: &str, validity: Validity, now: Timestamp) -> CheckResult {
    let until = validity.not_after;
    let days = until.duration_since(now).as_hours() / 24;
    let message = format!("its certificate is valid until {until:.0}, days left: {days}");
    let help = "running servers renew it: read their log";
    match validity.expiry(now) {
        Expiry::Far => CheckResult::ok(SECRET, subject, message),
        Expiry::Near => CheckResult::warning(SECRET, subject, message, help),
        Expiry::Over => {
            let message = format!("its certificate is valid until {until:.0}: it has expired");
            CheckResult::problem(SECRET, subject, message, help)
        }
    }
}

const REPLICAS: &str = "replicas";
const SECRET: &str = "secret";

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;
    use crate::Level;

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_definition_is_installed_established_and_served() {
        let crd = |established: &str, version: &str| {
            let condition = json!({"type": "Established", "status": established, "message": "m"});
            let version = json!({"name": version, "served": true});
            Ok(Some(
                json!({"spec": {"versions": [version]}, "status": {"conditions": [condition]}}),
            ))
        };
        let found = |crd| {
            let check = definition("statuspolicies.statusgate.dev", &crd);
            (check.level, check.message)
        };
        assert_eq!(found(crd("True", VERSION)).0, Level::Ok);
        assert_eq!(
            found(crd("False", VERSION)),
            (Level::Problem, "it is not established: m".to_owned())
        );
        assert_eq!(
            found(crd("True", "v9")),
            (Level::Problem, format!("it does not serve {VERSION}"))
        );
        assert_eq!(found(Ok(None)).0, Level::Problem);
        assert_eq!(found(Err("no".into())), (Level::Warning, "not checked: no".to_owned()));
    }

    #[test]
    fn an_old_lease_is_named_and_without_a_new_one_no_replica_runs() {
        let lease = |holder: &str, seconds: i64| Lease {
            name: holder.to_owned(),
            holder: holder.to_owned(),
            authority: String::new(),
            renewed: now() - SignedDuration::from_secs(seconds),
            version: String::new(),
        };
        let levels = |leases: &[Lease]| {
            let checks = replicas("s", leases, now());
            checks.into_iter().map(|check| (check.level, check.message)).collect::<Vec<_>>()
        };
        let (one, two) = (lease("one", 39), lease("two", 41));
        let old = "two did not renew its Lease since 2026-11-21T11:59:19Z".to_owned();
        assert_eq!(
            levels(&[one, two.clone()]),
            [
                (Level::Ok, "replicas that renew their Lease: one".to_owned()),
                (Level::Warning, old.clone())
            ]
        );
        let none = (Level::Problem, "no replica renews a Lease".to_owned());
        assert_eq!(levels(&[two]), [none.clone(), (Level::Warning, old)]);
        assert_eq!(levels(&[]), [none]);
    }

    fn stored(days: i64) -> Stored {
        let validity = |days: i64| Validity {
            not_before: now() - SignedDuration::from_hours(24 * 60),
            not_after: now() + SignedDuration::from_hours(24 * days),
        };
        Stored::create(validity(900), validity(days), &["a.b.svc".to_owned()]).unwrap()
    }

    fn hook(bundle: &str) -> Hook {
        let client = json!({"caBundle": STANDARD.encode(bundle), "url": "https://a/validate"});
        let settings = json!({"name": "v", "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]});
        let settings = serde_json::from_value(settings).unwrap();
        let (registration, rules) = ("statusgate".to_owned(), Vec::new());
        Hook { kind: HookKind::Validating, registration, settings, rules }
    }

    fn managed(data: Option<BTreeMap<String, Vec<u8>>>, authority: &str) -> Managed {
        let lease = Lease {
            name: "one".to_owned(),
            holder: "one".to_owned(),
            authority: authority.to_owned(),
            renewed: now(),
            version: String::new(),
        };
        Managed {
            namespace: "n".to_owned(),
            secret_name: "s".to_owned(),
            crds: Vec::new(),
            leases: Ok(vec![lease]),
            secret: Ok(data),
        }
    }

    #[test]
    fn the_secret_is_valid_and_each_ca_bundle_has_its_authority() {
        let found = |stored: &Stored, bundle: &str| {
            let managed = managed(Some(stored.data()), "");
            let checks = certificate(&managed, &[hook(bundle)], now());
            checks.into_iter().map(|check| (check.level, check.message)).collect::<Vec<_>>()
        };
        let good = stored(30);
        let days = "its certificate is valid until 2026-12-21T12:00:00Z, days left: 30".to_owned();
        assert_eq!(found(&good, good.authorities()), [(Level::Ok, days.clone())]);
        let lacks = "caBundle lacks the CA of the Secret n/s".to_owned();
        let other = stored(30);
        assert_eq!(found(&good, other.authorities()), [(Level::Ok, days), (Level::Problem, lacks)]);
        let late = stored(3);
        assert_eq!(found(&late, late.authorities())[0].0, Level::Warning);
        let over = stored(-1);
        assert_eq!(found(&over, over.authorities())[0].0, Level::Problem);
    }

    #[test]
    fn a_secret_is_checked_only_if_servers_keep_their_certificate_there() {
        let levels = |data: Option<BTreeMap<String, Vec<u8>>>, authority: &str| {
            let checks = certificate(&managed(data, authority), &[], now());
            checks.into_iter().map(|check| check.level).collect::<Vec<_>>()
        };
        let mut of_others = stored(-1).data();
        of_others.remove("ca.key");
        assert_eq!(levels(None, ""), []);
        assert_eq!(levels(Some(of_others.clone()), ""), []);
        assert_eq!(levels(None, "f"), [Level::Problem]);
        assert_eq!(levels(Some(of_others), "f"), [Level::Problem]);
        assert_eq!(
            levels(Some(BTreeMap::from([("ca.key".to_owned(), vec![])])), ""),
            [Level::Problem]
        );
    }
}
