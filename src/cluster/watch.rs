//! A watch that never ends: after each error it starts again with a list.
//!
//! kube's watcher goes on after the last event instead. Then nothing shows that the watch works again
//! until an object changes, and a start that the API server rejects with 410 is repeated without end.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt};
use kube::Api;
use kube::runtime::watcher::{self, Config, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

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

const FIRST_DELAY: Duration = Duration::from_millis(100);

/// Short enough for a change to be live soon after the API server is back.
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// Longer than any delay.
const CALM: Duration = Duration::from_secs(60);
