//! A watch that never ends: after each error it starts again with a list.
//!
//! kube's watcher resumes after the last event instead. Then nothing shows that the watch works again
//! until an object changes, and a start that the API server rejects with 410 is repeated without end.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt};
use http::Request;
use kube::client::Body;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};
use tower::service_fn;

use statusgate_core::causes::with_causes;

/// A watch of all objects of an API.
pub(super) struct Watch<K> {
    api: Api<K>,
    config: Config,
    events: Pin<Box<dyn Stream<Item = watcher::Result<Event<K>>> + Send>>,
    delay: Duration,
    failed: Option<Instant>,
    /// When to start again.
    restart: Option<Instant>,
}

impl<K> Watch<K>
where
    K: kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    pub(super) fn new(api: Api<K>, config: Config) -> Self {
        let events = Box::pin(watcher(api.clone(), config.clone()));
        Self { api, config, events, delay: FIRST_DELAY, failed: None, restart: None }
    }

    /// The next event. If the future is dropped, no event is lost.
    ///
    /// # Errors
    /// When the list or the watch fails. The next call waits and starts again.
    pub(super) async fn next(&mut self) -> watcher::Result<Event<K>> {
        loop {
            if let Some(restart) = self.restart {
                sleep_until(restart).await;
                self.events = Box::pin(watcher(self.api.clone(), self.config.clone()));
                self.restart = None;
            }
            // The stream of a watcher has no end.
            let Some(event) = self.events.next().await else { continue };
            if event.is_err() {
                self.fail(Instant::now());
            }
            return event;
        }
    }

    /// A list may succeed before each watch that fails, so only a time without an error resets the delay.
    fn fail(&mut self, now: Instant) {
        let is_new = self.failed.is_none_or(|failed| now.duration_since(failed) > CALM);
        self.delay = if is_new { FIRST_DELAY } else { (self.delay * 2).min(LONGEST_DELAY) };
        (self.failed, self.restart) = (Some(now), Some(now + self.delay));
    }
}

/// Reports each change of the object with a name and each failure, until it is dropped. The selector lets
/// a role allow only this name.
pub(super) async fn changes<K>(api: Api<K>, name: &str, mut report: impl FnMut(Result<(), String>))
where
    K: kube::Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    let config = Config::default().fields(&format!("metadata.name={name}"));
    let mut events = Watch::new(api, config);
    loop {
        let event = events.next().await;
        // Before a list starts, nothing is known.
        if !matches!(event, Ok(Event::Init)) {
            report(event.map(|_| ()).map_err(|error| with_causes(&error)));
        }
    }
}

/// A client for one watch. kube's watcher waits without end for a response, and reconnects at once when the
/// server ends a watch, even one that has just begun.
pub(super) fn paced(client: Client, answer_limit: Duration) -> Client {
    let next = Arc::new(Mutex::new(Instant::now()));
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let (client, next) = (client.clone(), Arc::clone(&next));
        async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                let mut next = next.lock().await;
                sleep_until(*next).await;
                *next = Instant::now() + BETWEEN_WATCHES;
            }
            match timeout(answer_limit, client.send(request)).await {
                Ok(response) => response,
                Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
            }
        }
    });
    Client::new(service, namespace)
}

/// Between the beginnings of two watches. A server that ends each watch at once is asked once per second.
const BETWEEN_WATCHES: Duration = Duration::from_secs(1);

const FIRST_DELAY: Duration = Duration::from_millis(100);

/// Short enough for a change to be live soon after the API server is back.
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// Longer than any delay.
const CALM: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use http::Response;
    use k8s_openapi::api::core::v1::Secret;
    use kube::core::PartialObjectMeta;

    use super::*;

    #[tokio::test]
    async fn a_list_without_a_response_fails_and_is_repeated() {
        let silent = service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, kube::Error>>()
        });
        let client = paced(Client::new(silent, "default"), Duration::from_millis(10));
        let api: Api<PartialObjectMeta<Secret>> = Api::all(client);
        let mut watch = Watch::new(api, Config::default());
        let mut errors = 0;
        while errors < 2 {
            errors += u32::from(watch.next().await.is_err());
        }
    }
}
