//! Reports each request that is sent, with those of watches and retries.

use std::sync::Arc;

use http::Request;
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// Receives the HTTP status of each response; `None` if there was none.
pub(super) type OnResponse = Arc<dyn Fn(Option<u16>) + Send + Sync>;

/// A client that reports its requests.
pub(super) fn reporting(client: Client, report: OnResponse) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let (client, report) = (client.clone(), Arc::clone(&report));
        async move {
            let mut sent = Sent { report, code: None };
            let response = client.send(request).await?;
            sent.code = Some(response.status().as_u16());
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, namespace)
}

/// A request. A caller that waits no longer drops it.
struct Sent {
    report: OnResponse,
    code: Option<u16>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        (self.report)(self.code);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use http::Response;
    use k8s_openapi::api::core::v1::Secret;
    use kube::Api;
    use kube::core::PartialObjectMeta;
    use kube::runtime::watcher::Config;

    use super::*;
    use crate::call::Call;
    use crate::watch::{Watch, paced};
    use crate::{Cluster, Patience};

    /// A client of a server that answers with these codes, and what is reported. 0 is no response.
    fn client(codes: &[u16]) -> (Client, Arc<Mutex<Vec<Option<u16>>>>) {
        let codes = Arc::new(Mutex::new(VecDeque::from(codes.to_vec())));
        let server = service_fn(move |_: Request<Body>| {
            let code =
                codes.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or(0);
            async move {
                if code == 0 {
                    std::future::pending::<()>().await;
                }
                let response = Response::builder().status(code).body(Body::empty());
                response.map_err(kube::Error::HttpError)
            }
        });
        let reported = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&reported);
        let report: OnResponse = Arc::new(move |code| {
            list.lock().unwrap_or_else(PoisonError::into_inner).push(code);
        });
        (reporting(Client::new(server, "default"), report), reported)
    }

    fn list(reported: &Mutex<Vec<Option<u16>>>) -> Vec<Option<u16>> {
        reported.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn each_attempt_is_reported_with_the_code_of_its_response() {
        let (client, reported) = client(&[503, 429, 409]);
        let cluster = Cluster::of(client);
        let (call, patience) = (Call::get("/"), Patience::LONG);
        let answer = cluster.retry("test", &call, &mut patience.start(), None).await.unwrap();
        assert_eq!(answer.status, 409);
        assert_eq!(list(&reported), [Some(503), Some(429), Some(409)]);
    }

    #[tokio::test]
    async fn a_request_without_a_response_is_reported_when_the_caller_waits_no_longer() {
        let (client, reported) = client(&[]);
        let request = || Request::get("/").body(Body::empty()).unwrap();
        let limit = Duration::from_millis(10);
        tokio::time::timeout(limit, client.send(request())).await.unwrap_err();
        assert_eq!(list(&reported), [None]);
    }

    #[tokio::test]
    async fn the_requests_of_a_watch_are_reported() {
        let (client, reported) = client(&[403, 404]);
        let api: Api<PartialObjectMeta<Secret>> = Api::all(paced(client, Duration::from_secs(10)));
        let mut watch = Watch::new(api, Config::default());
        while list(&reported).len() < 2 {
            // Before a list, the watch reports its start.
            let _ = watch.next().await;
        }
        assert_eq!(list(&reported), [Some(403), Some(404)]);
    }
}
