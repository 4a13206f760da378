//! The baseline of the benchmark: the listener, TLS, limits and connections of `statusgate serve`, with
//! a handler that reads the body and returns a constant response with the uid of the request. The
//! difference to statusgate is the cost of judging.
//!
//! ```sh
//! cargo run --release --example null_server -- --tls-cert certs/tls.crt --tls-key certs/tls.key
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use axum::routing::post;
use clap::Parser;
use http_body_util::BodyExt;
use statusgate_server::{CertificateSource, ServerSettings};
use tikv_jemallocator::Jemalloc;

/// That of `statusgate`, so that the difference is only the judgement.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Allows every review with a constant response.
#[derive(Debug, Parser)]
struct Args {
    /// Address and port for webhook calls (HTTPS).
    #[arg(long, default_value = "127.0.0.1:9443")]
    listen: SocketAddr,
    /// Address and port for probes (plain HTTP).
    #[arg(long, default_value = "127.0.0.1:0")]
    probe_listen: SocketAddr,
    /// Serving certificate, PEM.
    #[arg(long)]
    tls_cert: PathBuf,
    /// Its key, PEM.
    #[arg(long)]
    tls_key: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let certificate = CertificateSource::Files { certificate: args.tls_cert, key: args.tls_key };
    let settings = ServerSettings {
        listen: args.listen,
        probe_listen: args.probe_listen,
        ..ServerSettings::new(certificate)
    };
    let router = Router::new().route("/mutate", post(answer)).route("/validate", post(answer));
    statusgate_server::start_with_router(&settings, router)?.ended().await;
    Ok(())
}

async fn answer(mut body: Body) -> Response {
    let mut answer = None;
    while let Some(Ok(frame)) = body.frame().await {
        if answer.is_none()
            && let Some(data) = frame.data_ref()
        {
            answer = Some(allowed(uid(data)));
        }
    }
    let mut response = Response::new(Body::from(answer.unwrap_or_else(|| allowed(b""))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn allowed(uid: &[u8]) -> Bytes {
    [BEFORE_UID, uid, AFTER_UID].concat().into()
}

/// The uid of the request, which the API server requires in the response. It writes the uid as the first
/// member of `request`, 90 bytes from the start, so nothing is parsed. Any other body gets an empty uid.
fn uid(start: &[u8]) -> &[u8] {
    const KEY: &[u8] = br#""uid":""#;
    let start = &start[..start.len().min(256)];
    let Some(at) = start.windows(KEY.len()).position(|window| window == KEY) else { return b"" };
    let value = &start[at + KEY.len()..];
    value.iter().position(|&byte| byte == b'"').map_or(b"", |end| &value[..end])
}

const BEFORE_UID: &[u8] =
    br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":""#;
const AFTER_UID: &[u8] = br#"","allowed":true}}"#;
