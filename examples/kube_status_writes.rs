//! Tests with kube what statusgate answers to the status writes of a controller.
//!
//! `examples/envtest/run.sh` runs it, with the CRD and the policy of `examples/write-a-convention`.

#![expect(clippy::print_stdout, reason = "it shows the answers")]

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use http::Request;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::client::Body;
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::time::sleep;

const CANARY: &str = "/apis/flagger.app/v1beta1/namespaces/default/canaries/podinfo";

/// The status of a failed canary with this phase, written at this time.
fn failed(phase: &str, time: &str) -> Value {
    let changed = "2026-01-01T00:00:00Z";
    json!({"status": {
        "phase": phase, "canaryWeight": 0, "failedChecks": 0, "iterations": 0, "lastTransitionTime": time,
        "conditions": [{"type": "Promoted", "status": "False", "reason": "Failed", "message": "An example.",
            "lastUpdateTime": changed, "lastTransitionTime": changed}],
    }})
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_default().await?;
    let kind = GroupVersionKind::gvk("flagger.app", "v1beta1", "Canary");
    let kind = ApiResource::from_gvk_with_plural(&kind, "canaries");
    let canaries: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &kind);
    // Dry runs are judged, too, and leave the stored status as it is.
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };

    let valid = Patch::Merge(failed("Failed", "2026-01-01T00:00:00Z"));
    canaries.patch_status("podinfo", &PatchParams::default(), &valid).await?;

    let invalid = Patch::Merge(failed("Succeeded", "2026-01-01T00:00:00Z"));
    let mut answer = canaries.patch_status("podinfo", &dry_run, &invalid).await;
    // The API server calls a new webhook after about a second.
    for _ in 0..100 {
        if answer.is_err() {
            break;
        }
        sleep(Duration::from_millis(100)).await;
        answer = canaries.patch_status("podinfo", &dry_run, &invalid).await;
    }
    let Err(Error::Api(status)) = answer else { bail!("not rejected: {answer:?}") };
    println!("{}: {}", status.code, status.message);
    ensure!(status.code == 422 && status.message.contains("[flagger/phase-promoted]"));
    let details = status.details.context("no details")?;
    ensure!(details.causes.iter().any(|cause| cause.field == "status.phase"), "{details:?}");

    // Warnings are headers, which `Api` does not return.
    let request = Request::patch(format!("{CANARY}/status?dryRun=All"))
        .header("content-type", "application/merge-patch+json")
        .body(Body::from(failed("Failed", "2026-01-01T00:01:00Z").to_string().into_bytes()))?;
    let response = client.send(request).await?;
    let warning = response.headers().get("warning").context("no warning")?.to_str()?;
    println!("{}: {warning}", response.status());
    ensure!(response.status() == 200 && warning.contains("[flagger/idle-write]"));
    Ok(())
}
