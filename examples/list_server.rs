//! An API server with generated objects, for measuring memory. It generates each page on request and
//! accepts every patch.
//!
//! ```sh
//! cargo run --release --example list_server -- --objects 100000 --bytes 5000
//! ```
//!
//! It prints the address for a kubeconfig.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch};
use clap::Parser;
use serde_json::json;
use tokio::net::TcpListener;

/// Serves generated objects of one kind, `vshnredis.vshn.appcat.vshn.io`.
#[derive(Debug, Parser)]
struct Args {
    /// Address and port (plain HTTP).
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The number of objects.
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// The approximate size of an object.
    #[arg(long, default_value_t = 5000)]
    bytes: usize,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "that is how its address is told")]
async fn main() -> anyhow::Result<()> {
    let args = Arc::new(Args::parse());
    let listener = TcpListener::bind(args.listen).await?;
    println!("http://{}", listener.local_addr()?);
    let group = "vshn.appcat.vshn.io";
    let version = json!({"groupVersion": format!("{group}/v1"), "version": "v1"});
    let groups = json!({"kind": "APIGroupList", "groups": [
        {"name": group, "versions": [version], "preferredVersion": version}]});
    let resource = |name: &str| {
        json!({"name": name, "singularName": "", "kind": "VSHNRedis", "namespaced": true,
            "verbs": ["get", "list", "patch"]})
    };
    let resources = json!({"kind": "APIResourceList", "groupVersion": format!("{group}/v1"),
        "resources": [resource("vshnredis"), resource("vshnredis/status")]});
    let constant = |value: serde_json::Value| {
        let text = value.to_string();
        get(move || async move { text })
    };
    let root = format!("/apis/{group}/v1");
    let routes = Router::new()
        .route("/version", constant(json!({"gitVersion": "v0.0.0"})))
        .route("/apis", constant(groups))
        .route(&root, constant(resources))
        .route(&format!("{root}/vshnredis"), get(list))
        .route(&format!("{root}/namespaces/n/vshnredis/{{name}}/status"), patch(take))
        .fallback(|| async { (StatusCode::NOT_FOUND, "{}") })
        .with_state(args);
    Ok(axum::serve(listener, routes).await?)
}

/// A page. Its token is the number of its first object.
async fn list(State(args): State<Arc<Args>>, uri: Uri) -> Response {
    let value = |name: &str| -> Option<usize> {
        let query = uri.query().unwrap_or_default();
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name)?.1.parse().ok()
    };
    let start = value("continue").unwrap_or_default();
    let end = (start + value("limit").unwrap_or(args.objects)).min(args.objects);
    let token = if end < args.objects { end.to_string() } else { String::new() };
    let remaining = args.objects - end;
    let filling = "x".repeat(args.bytes.saturating_sub(500));
    let mut text = format!(
        r#"{{"kind":"VSHNRedisList","metadata":{{"resourceVersion":"1","continue":"{token}","remainingItemCount":{remaining}}},"items":["#
    );
    for number in start..end {
        let comma = if number > start { "," } else { "" };
        text.push_str(&format!(
            r#"{comma}{{"apiVersion":"vshn.appcat.vshn.io/v1","kind":"VSHNRedis","metadata":{{"name":"db-{number}","namespace":"n","uid":"{number:08x}-0000-4000-8000-000000000000","resourceVersion":"1","creationTimestamp":"2024-01-01T00:00:00Z"}},"spec":{{"text":"{filling}"}},"status":{{"instanceNamespace":"n-{number}","conditions":[{{"type":"Ready","status":"True","reason":"Available","lastTransitionTime":"2024-01-01T00:00:00Z"}}]}}}}"#
        ));
    }
    text.push_str("]}");
    text.into_response()
}

/// Accepts a patch and returns a new version.
async fn take(Path(name): Path<String>) -> String {
    json!({"kind": "PartialObjectMetadata", "metadata": {"name": name, "resourceVersion": "2"}})
        .to_string()
}
