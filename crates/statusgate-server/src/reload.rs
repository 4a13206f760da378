//! Reloads files that change while the server runs: policies, CustomResourceDefinitions, the certificate pair,
//! the client CA, the log filter.
//!
//! It polls and compares the *content*. kubelet updates a mounted Secret or ConfigMap by replacing a
//! `..data` symlink: a watch on the file sees a deletion and nothing more, and modification times
//! are unreliable. Reading some kilobytes every two seconds misses nothing.
//!
//! Broken content never replaces valid content, and is logged once.

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use crate::telemetry::Metrics;
use statusgate_core::causes::with_causes;

/// Any error of a reload.
pub(super) type ReloadError = Box<dyn Error + Send + Sync>;

/// Compares an input with the one in use, and reports or applies a change.
pub(super) type Poll = Box<dyn FnMut(Timestamp, &Metrics) + Send>;

/// A reloader for an input that was loaded from `used`. `what` is its name in logs and metrics. `read`
/// returns the current content; `apply` puts it into use, or fails without a change.
pub(super) fn reloader<T: Hash>(
    what: &'static str,
    used: &T,
    read: impl Fn() -> Result<T, ReloadError> + Send + 'static,
    apply: impl Fn(&T, Timestamp) -> Result<(), ReloadError> + Send + 'static,
) -> Poll {
    let mut used = fingerprint(Ok(used));
    // The fingerprint of the content on disk if it is broken.
    let mut broken = None;
    Box::new(move |now, metrics| {
        let content = read();
        let found = fingerprint(content.as_ref());
        if found == used {
            if broken.take().is_some() {
                metrics.reload_recovered(what);
                tracing::info!(what, "the files on disk are again those in use");
            }
            return;
        }
        // The two files of a certificate pair are not written at once. An incomplete change is
        // complete within microseconds, so only content that is stable over two reads counts.
        if broken == Some(found) || fingerprint(read().as_ref()) != found {
            return;
        }
        match content.and_then(|content| apply(&content, now)) {
            Ok(()) => {
                (used, broken) = (found, None);
                metrics.reloaded(what, now.as_second());
                tracing::info!(what, "reloaded changed files");
            }
            Err(error) => {
                broken = Some(found);
                metrics.reload_failed(what);
                let error = with_causes(&*error);
                tracing::error!(
                    what,
                    error,
                    "changed files are broken; the last valid ones stay in use"
                );
            }
        }
    })
}

/// Identifies content without a second copy of a private key in memory. 64 bits suffice: a user who
/// can write these files gains nothing from a collision. A read error is content too, so that it is
/// logged once.
fn fingerprint<T: Hash>(content: Result<&T, &ReloadError>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match content {
        Ok(content) => content.hash(&mut hasher),
        Err(error) => with_causes(&**error).hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::telemetry::Scrape;

    fn poll(reloader: &mut Poll, metrics: &Metrics) -> [u64; 3] {
        reloader(Timestamp::UNIX_EPOCH, metrics);
        let text = metrics.encode().unwrap();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map_or(0, |value| value.trim().parse().unwrap())
        };
        [
            value(r#"statusgate_reloads_total{what="test",outcome="success"}"#),
            value(r#"statusgate_reloads_total{what="test",outcome="failure"}"#),
            value(r#"statusgate_reload_failing{what="test"}"#),
        ]
    }

    #[test]
    fn broken_content_is_tried_once_and_its_removal_is_a_recovery() {
        let disk = Arc::new(Mutex::new("good"));
        let content = Arc::clone(&disk);
        let read = move || Ok(*content.lock().unwrap());
        let apply = |content: &&str, _| match content.starts_with("good") {
            true => Ok(()),
            false => Err("broken".into()),
        };
        let mut reloader = reloader("test", &"good", read, apply);
        let metrics = Metrics::new(None);
        for (content, counts) in [
            ("good", [0, 0, 0]),
            ("bad", [0, 1, 1]),
            ("bad", [0, 1, 1]),
            ("worse", [0, 2, 1]),
            ("good", [0, 2, 0]),
            ("bad", [0, 3, 1]),
            ("good 2", [1, 3, 0]),
        ] {
            *disk.lock().unwrap() = content;
            assert_eq!(poll(&mut reloader, &metrics), counts, "{content}");
        }
    }

    #[test]
    fn an_incomplete_change_waits_for_the_next_poll() {
        let contents = Mutex::new(vec!["whole", "whole", "whole", "half"]);
        let applied = Arc::new(Mutex::new(Vec::new()));
        let read = move || Ok(contents.lock().unwrap().pop().unwrap());
        let sink = Arc::clone(&applied);
        let mut reloader = reloader("test", &"old", read, move |content, _| {
            sink.lock().unwrap().push(*content);
            Ok(())
        });
        let metrics = Metrics::new(None);
        poll(&mut reloader, &metrics);
        assert!(applied.lock().unwrap().is_empty());
        poll(&mut reloader, &metrics);
        assert_eq!(*applied.lock().unwrap(), ["whole"]);
    }

    #[test]
    fn a_missing_file_is_one_failure() {
        let read = || Err("missing".into());
        let mut reloader = reloader("test", &"", read, |_, _| Ok(()));
        let metrics = Metrics::new(None);
        for _ in 0..3 {
            assert_eq!(poll(&mut reloader, &metrics), [0, 1, 1]);
        }
    }
}
