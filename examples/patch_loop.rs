//! The baseline of `make bench-backfill`: a loop that patches numbered objects and does not read or
//! judge them or handle conflicts. The difference to statusgate is the cost of a backfill.
//!
//! It sets a field manager, because a manager that is new to an object costs the API server more.
//!
//! ```sh
//! cargo run --release --example patch_loop -- --kubeconfig FILE --path /apis/…/gadgets --prefix g \
//!     --count 3000 --concurrency 8 --manager loop --patch '[{"op": "add", "path": "/status", "value": {}}]'
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use clap::Parser;
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Patches PREFIX-0 to PREFIX-(COUNT-1) through /status.
#[derive(Debug, Parser)]
struct Args {
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The API path of the objects.
    #[arg(long)]
    path: String,
    /// The prefix of the names.
    #[arg(long)]
    prefix: String,
    /// The number of objects.
    #[arg(long)]
    count: usize,
    /// Concurrent patches.
    #[arg(long)]
    concurrency: usize,
    /// The field manager.
    #[arg(long)]
    manager: String,
    /// The JSON patch.
    #[arg(long)]
    patch: String,
}

// One thread, as in statusgate.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let args = Arc::new(Args::parse());
    let file = Kubeconfig::read_from(&args.kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    let client = Client::try_from(config)?;
    let next = Arc::new(AtomicUsize::new(0));
    let worker = |_| {
        let (args, client, next) = (Arc::clone(&args), client.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= args.count {
                    return anyhow::Ok(());
                }
                let Args { path, prefix, manager, .. } = &*args;
                let request = Request::patch(format!(
                    "{path}/{prefix}-{number}/status?fieldManager={manager}"
                ))
                .header("content-type", "application/json-patch+json")
                .body(Body::from(args.patch.clone().into_bytes()))?;
                let response = client.send(request).await?;
                let status = response.status();
                let body = response.into_body().collect().await?.to_bytes();
                ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
            }
        })
    };
    let workers: Vec<_> = (0..args.concurrency).map(worker).collect();
    for worker in workers {
        worker.await?.context("a patch failed")?;
    }
    Ok(())
}
