//! Measures judging and loading for each built-in convention: the server's code path from the bytes of
//! a review to the bytes of the response, without network and TLS.
//!
//! ```sh
//! cargo run --release --example judging
//! cargo run --release --example judging -- DIR     writes the policies and reviews there, for bench/conventions.sh
//! ROUNDS=1 REVIEWS=10 cargo run --example judging  checks that it works
//! ```
//!
//! Each convention judges an 11 KB review of a valid write that updates a condition. Conventions run in
//! turn, in rounds, and every ratio is the median of the ratios of neighboring rounds. A missed target
//! is printed, but is not an error. An answer with a finding is an error.

use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use statusgate_core::admit::admit;
use statusgate_core::model::Webhook;
use statusgate_core::policy::{PolicySet, Source};

const BYTES: usize = 11 * 1024;

/// A convention and valid statuses before and after a write.
struct Case {
    convention: &'static str,
    before: Value,
    after: Value,
}

/// A number from the environment.
#[expect(clippy::disallowed_methods, reason = "a benchmark, not a command with --help")]
fn number(name: &str, default: u32) -> anyhow::Result<u32> {
    std::env::var(name).map_or(Ok(default), |text| text.parse().context(name.to_owned()))
}

fn main() -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let (rounds, reviews) = (number("ROUNDS", 15)?.max(1), number("REVIEWS", 2_000)?.max(1));
    if let Some(folder) = std::env::args_os().nth(1) {
        return write_cases(Path::new(&folder));
    }
    // First, because nothing is loaded yet.
    let started = Instant::now();
    let built_in = PolicySet::compile(&[])?;
    let load = started.elapsed();
    let examples = PolicySet::compile(&PolicySet::examples())?;
    let more = started.elapsed() - load;
    writeln!(
        out,
        "all {} built-in conventions loaded in {:.1} ms, by a process that has just begun (target: under 10), \
         and {} example policies in {:.1} ms more",
        built_in.conventions().len(),
        load.as_secs_f64() * 1e3,
        examples.policies().len(),
        more.as_secs_f64() * 1e3,
    )?;
    let again = (0..rounds).map(|_| load_as_own(&built_in)).collect::<anyhow::Result<Vec<_>>>()?;
    writeln!(out, "the same conventions as a user's own: {:.1} ms (median)", median(again) * 1e3)?;

    let cases = cases();
    let known: Vec<&str> = cases.iter().map(|case| case.convention).collect();
    for name in built_in.conventions().keys() {
        ensure!(known.contains(&name.as_str()), "no case for the convention {name}");
    }
    let prepared = cases.iter().map(prepare).collect::<anyhow::Result<Vec<_>>>()?;
    let mut times = vec![Vec::new(); prepared.len()];
    for _ in 0..rounds {
        for ((policies, body), times) in prepared.iter().zip(&mut times) {
            times.push(round(policies, body, reviews));
        }
    }
    writeln!(out, "\n{:<18} {:>10} {:>22}", "convention", "us/review", "ratio to appcat")?;
    let appcat = known.iter().position(|name| *name == "appcat").context("appcat is there")?;
    let mut worst = (0.0, "");
    for (name, own) in known.iter().zip(&times) {
        let ratios = own.iter().zip(&times[appcat]);
        let ratio = median(ratios.map(|(own, appcat)| own.div_duration_f64(*appcat)).collect());
        if ratio > worst.0 {
            worst = (ratio, name);
        }
        let review =
            median(own.iter().map(Duration::as_secs_f64).collect()) / f64::from(reviews) * 1e6;
        writeln!(out, "{name:<18} {review:>10.2} {ratio:>22.2}")?;
    }
    writeln!(out, "\nworst: {} at {:.2} times appcat (target: 1.50)", worst.1, worst.0)?;
    Ok(())
}

/// `policies.yaml`, and a review for each convention, named after it.
fn write_cases(folder: &Path) -> anyhow::Result<()> {
    let mut policies = String::new();
    for case in cases() {
        let (_, body) = prepare(&case)?;
        fs::write(folder.join(format!("{}.json", case.convention)), body)?;
        policies.push_str("---\n");
        policies.push_str(&policy(case.convention));
        policies.push('\n');
    }
    fs::write(folder.join("policies.yaml"), policies)?;
    Ok(())
}

/// Seconds to parse and compile all built-in conventions under other names. The built-in ones are only
/// compiled once per process.
fn load_as_own(built_in: &PolicySet) -> anyhow::Result<f64> {
    let mut sources = Vec::new();
    for name in built_in.conventions().keys() {
        let text = PolicySet::document(&[], name).context("a built-in convention has a text")?;
        let text = text.replacen(&format!("name: {name}\n"), &format!("name: own-{name}\n"), 1);
        sources.push(Source { name: name.clone(), text });
    }
    let started = Instant::now();
    black_box(PolicySet::compile(&sources)?);
    Ok(started.elapsed().as_secs_f64())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn round(policies: &PolicySet, body: &[u8], reviews: u32) -> Duration {
    let started = Instant::now();
    for _ in 0..reviews {
        let reply = admit(policies, Webhook::Validate, black_box(body), now(), |_, _| {});
        black_box(reply);
    }
    started.elapsed()
}

/// A fixed time, an hour after the write.
fn now() -> Timestamp {
    Timestamp::from_second(1_717_243_200).unwrap_or_default()
}

/// A policy for a separate kind.
fn policy(convention: &str) -> String {
    format!(
        "{{apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {{name: {convention}}}, \
         spec: {{convention: {convention}, resources: [{{apiGroups: [example.com], apiVersions: [v1], \
         resources: [{convention}s]}}]}}}}"
    )
}

/// The policy and a review of exactly [`BYTES`] without findings.
fn prepare(case: &Case) -> anyhow::Result<(PolicySet, Vec<u8>)> {
    let name = case.convention;
    let policies = PolicySet::compile(&[Source::new("bench", policy(name))])?;
    let bare = review(case, 0).len();
    ensure!(bare < BYTES, "{name}: the statuses alone make {bare} bytes");
    let mut body = review(case, (BYTES - bare) / 2);
    // White space fills the rest.
    body.resize(BYTES, b' ');
    let mut clean = false;
    let reply = admit(&policies, Webhook::Validate, &body, now(), |_, verdict| {
        clean = !verdict.policies.is_empty() && verdict.findings.is_empty();
    });
    ensure!(clean, "{name}: not a clean answer: {}", String::from_utf8_lossy(&reply.body));
    Ok((policies, body))
}

/// A review with this many additional bytes in the spec of each object.
fn review(case: &Case, filling: usize) -> Vec<u8> {
    let object = |status: &Value| {
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Thing",
            "metadata": {
                "name": "bench", "namespace": "default", "generation": 2,
                "uid": "0a8b1c52-6d0f-4d8c-9b0a-5a3e7f1c2d10", "resourceVersion": "1234567",
                "creationTimestamp": "2024-01-01T00:00:00Z",
                "managedFields": [{"manager": "operator", "operation": "Update", "time": "2024-06-01T11:00:00Z",
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {".": {}, "f:conditions": {}}}}],
            },
            "spec": {"parameters": "x".repeat(filling)},
            "status": status,
        })
    };
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-41e8-b7cc-42010a800002",
            "kind": {"group": "example.com", "version": "v1", "kind": "Thing"},
            "resource": {"group": "example.com", "version": "v1", "resource": format!("{}s", case.convention)},
            "subResource": "status",
            "name": "bench", "namespace": "default", "operation": "UPDATE",
            "userInfo": {"username": "system:serviceaccount:operators:operator", "groups": ["system:authenticated"]},
            "object": object(&case.after),
            "oldObject": object(&case.before),
            "dryRun": false,
        },
    })
    .to_string()
    .into_bytes()
}

const BEFORE: &str = "2024-06-01T10:00:00Z";
const AFTER: &str = "2024-06-01T11:00:00Z";

/// Conditions with all members of the convention; the write updates the first.
fn conditions(list: &[(&str, &str, &str)], extra: &Value, renewed: bool) -> Value {
    list.iter()
        .enumerate()
        .map(|(index, (kind, status, reason))| {
            let again = renewed && index == 0;
            let mut condition = json!({
                "type": kind,
                "status": status,
                "lastTransitionTime": if again { AFTER } else { BEFORE },
                "reason": reason,
                "message": if again { "as it should be, again" } else { "as it should be" },
            });
            if let (Some(members), Some(extra)) = (condition.as_object_mut(), extra.as_object()) {
                members.extend(extra.clone());
            }
            condition
        })
        .collect()
}

/// A case in which only conditions change.
fn renewal(
    convention: &'static str,
    list: &[(&str, &str, &str)],
    extra: &Value,
    rest: &Value,
) -> Case {
    let status = |renewed| {
        let mut status = rest.clone();
        status["conditions"] = conditions(list, extra, renewed);
        status
    };
    Case { convention, before: status(false), after: status(true) }
}

/// As above, for conventions whose time changes only with the status: the status changes.
fn flip(
    convention: &'static str,
    list: &[(&str, &str, &str)],
    extra: &Value,
    rest: &Value,
) -> Case {
    let mut case = renewal(convention, list, extra, rest);
    let was = if list[0].1 == "True" { "False" } else { "True" };
    case.before["conditions"][0]["status"] = was.into();
    case
}

fn cases() -> Vec<Case> {
    let none = json!({});
    let mut run = flip(
        "tekton",
        &[("Succeeded", "True", "Succeeded")],
        &none,
        &json!({"startTime": BEFORE, "completionTime": AFTER}),
    );
    run.before = json!({
        "startTime": BEFORE,
        "conditions": conditions(&[("Succeeded", "Unknown", "Running")], &none, false),
    });
    let generation = json!({"observedGeneration": 2});
    let crossplane = [("Synced", "True", "ReconcileSuccess"), ("Ready", "True", "Available")];
    let appcat = [
        ("Synced", "True", "ReconcileSuccess"),
        ("Ready", "True", "Available"),
        ("PodReady", "True", "AllPodsReady"),
    ];
    let history = |phases: &[(&str, &str)]| -> Value {
        let element = |(phase, reason): &(&str, &str)| {
            json!({"phase": phase, "reason": reason, "message": "as it should be",
                "lastUpdateTime": BEFORE, "lastTransitionTime": BEFORE})
        };
        phases.iter().map(element).collect()
    };
    let phases = [
        ("Pending", "RequirementsUnknown"),
        ("InstallReady", "AllRequirementsMet"),
        ("Installing", "InstallSucceeded"),
        ("Succeeded", "InstallSucceeded"),
    ];
    let csv = |count: usize, time: &str| {
        let (phase, reason) = phases[count - 1];
        json!({"phase": phase, "reason": reason, "message": "as it should be",
            "lastUpdateTime": time, "lastTransitionTime": time, "conditions": history(&phases[..count])})
    };
    let machine = [
        ("Available", "True", "Available"),
        ("Ready", "True", "Ready"),
        ("UpToDate", "True", "UpToDate"),
        ("BootstrapConfigReady", "True", "Ready"),
        ("InfrastructureReady", "True", "Ready"),
        ("NodeHealthy", "True", "NodeHealthy"),
        ("Updating", "False", "NotUpdating"),
        ("Deleting", "False", "NotDeleting"),
        ("Paused", "False", "NotPaused"),
    ];
    let mut old_machine = renewal(
        "capi-v1beta1",
        &[("Ready", "False", "Waiting"), ("InfrastructureReady", "False", "Waiting")],
        &json!({"severity": "Info"}),
        &json!({"phase": "Running", "observedGeneration": 2}),
    );
    for status in [&mut old_machine.before, &mut old_machine.after] {
        status["v1beta2"] = json!({"conditions": conditions(&machine, &none, false)});
    }
    let mut workflow = renewal(
        "argo-workflows",
        &[("PodRunning", "True", "")],
        &none,
        &json!({"phase": "Running", "progress": "1/2"}),
    );
    for status in [&mut workflow.before, &mut workflow.after] {
        for member in ["reason", "lastTransitionTime"] {
            status["conditions"][0].as_object_mut().map(|condition| condition.remove(member));
        }
    }
    vec![
        renewal(
            "appcat",
            &appcat,
            &none,
            &json!({"phase": "Ready", "instanceNamespace": "vshn-x",
            "lastTransitionTime": BEFORE, "observedGeneration": 2}),
        ),
        flip("metav1", &appcat, &generation, &generation),
        renewal("crossplane", &crossplane, &none, &none),
        flip(
            "stackable",
            &[
                ("Available", "True", ""),
                ("Degraded", "False", ""),
                ("Progressing", "False", ""),
                ("ReconciliationPaused", "False", ""),
                ("Stopped", "False", ""),
            ],
            &none,
            &none,
        ),
        renewal("aso", &[("Ready", "True", "Succeeded")], &generation, &none),
        renewal("ack", &[("ACK.ResourceSynced", "True", ""), ("Ready", "True", "")], &none, &none),
        flip(
            "kstatus",
            &[
                ("Ready", "True", "Done"),
                ("Reconciling", "False", "Done"),
                ("Stalled", "False", "Done"),
            ],
            &none,
            &generation,
        ),
        renewal(
            "kstatus-flux",
            &[("Ready", "True", "Succeeded"), ("ArtifactInStorage", "True", "Succeeded")],
            &generation,
            &generation,
        ),
        Case { convention: "olm-csv", before: csv(3, BEFORE), after: csv(4, AFTER) },
        flip(
            "olm-csv-proposed",
            &[("Available", "True", "Installed"), ("Progressing", "False", "Installed")],
            &none,
            &json!({"phase": "Succeeded", "version": {"name": "etcd", "version": "1.0.0"}}),
        ),
        old_machine,
        flip(
            "capi-v1beta2",
            &machine,
            &generation,
            &json!({"phase": "Running", "observedGeneration": 2}),
        ),
        flip(
            "argo-rollouts",
            &[
                ("Progressing", "True", "NewReplicaSetAvailable"),
                ("Available", "True", "AvailableReason"),
                ("Healthy", "True", "RolloutHealthy"),
                ("Completed", "True", "RolloutCompleted"),
            ],
            &json!({"lastUpdateTime": BEFORE}),
            &json!({"phase": "Healthy", "observedGeneration": "2"}),
        ),
        workflow,
        flip(
            "cloudnative-pg",
            &[("Ready", "True", "ClusterIsReady"), ("Initialized", "True", "BootstrapCompleted")],
            &none,
            &json!({"phase": "Cluster in healthy state"}),
        ),
        flip(
            "helmetica",
            &[("Accepted", "True", "CRDsUnclaimed")],
            &generation,
            &json!({"state": "Accepted"}),
        ),
        flip(
            "kro",
            &[
                ("Ready", "True", "Ready"),
                ("InstanceManaged", "True", "Managed"),
                ("GraphResolved", "True", "Resolved"),
                ("ResourcesReady", "True", "AllResourcesReady"),
            ],
            &generation,
            &json!({"state": "ACTIVE"}),
        ),
        flip(
            "kubevirt",
            &[("Ready", "True", "")],
            &json!({"lastProbeTime": null}),
            &json!({"printableStatus": "Running", "created": true, "ready": true}),
        ),
        flip(
            "kueue",
            &[("QuotaReserved", "True", "QuotaReserved"), ("Admitted", "True", "Admitted")],
            &generation,
            &json!({"admission": {"clusterQueue": "a"}}),
        ),
        flip(
            "olm-v1",
            &[("Installed", "True", "Succeeded"), ("Progressing", "True", "Succeeded")],
            &generation,
            &json!({"install": {"bundle": {"name": "etcd", "version": "1.0.0"}}}),
        ),
        flip(
            "openshift-clusteroperator",
            &[
                ("Available", "True", "AsExpected"),
                ("Progressing", "False", "AsExpected"),
                ("Degraded", "False", "AsExpected"),
            ],
            &none,
            &json!({"versions": [{"name": "operator", "version": "4.20.0"}]}),
        ),
        run,
        flip("cert-manager", &[("Ready", "True", "Issued")], &generation, &none),
        flip(
            "gateway-api",
            &[
                ("Programmed", "True", "Programmed"),
                ("Accepted", "True", "Accepted"),
                ("ResolvedRefs", "True", "ResolvedRefs"),
            ],
            &generation,
            &none,
        ),
        renewal(
            "knative",
            &[
                ("Ready", "True", ""),
                ("ConfigurationsReady", "True", ""),
                ("RoutesReady", "True", ""),
            ],
            &none,
            &generation,
        ),
    ]
}
