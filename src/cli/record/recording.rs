//! The file of a recording, and the webhook that writes it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::super::time::clock;
use statusgate_core::engine::{self, Verdict};
use statusgate_core::policy::PolicySet;
use statusgate_core::source::Members;
use statusgate_core::wire::{AdmissionRequest, respond};

/// The writes so far.
pub(super) struct Recording<W = File> {
    state: Mutex<RecordingState<W>>,
    failed: Notify,
}

struct RecordingState<W> {
    file: W,
    count: usize,
    error: Option<io::Error>,
}

impl<W: Write> Recording<W> {
    pub(super) fn new(file: W) -> Self {
        let state = RecordingState { file, count: 0, error: None };
        Self { state: Mutex::new(state), failed: Notify::new() }
    }

    /// The complete lines.
    pub(super) fn count(&self) -> usize {
        self.state().count
    }

    /// Waits until a line cannot be written.
    pub(super) async fn failed(&self) {
        self.failed.notified().await;
    }

    /// Why the recording is incomplete.
    pub(super) fn error(&self) -> Option<anyhow::Error> {
        let error = self.state().error.take()?;
        Some(
            anyhow::Error::from(error).context("the recording is incomplete: it cannot be written"),
        )
    }

    /// Adds a line. After an error there are no more: the end of the file may be a part of a line.
    fn add(&self, line: &str) {
        let mut state = self.state();
        if state.error.is_some() {
            return;
        }
        match state.file.write_all(line.as_bytes()) {
            Ok(()) => state.count += 1,
            Err(error) => {
                state.error = Some(error);
                self.failed.notify_one();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, RecordingState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Allows a write, after it is recorded.
pub(super) async fn record(
    State((policies, recording)): State<(Arc<PolicySet>, Arc<Recording>)>,
    body: Bytes,
) -> Response {
    let request = match AdmissionRequest::parse(&body) {
        Ok(request) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let Ok(reply) = respond(&request, &Verdict::default()) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if !request.dry_run
        && let Some(line) = line(&policies, &body, request, clock())
    {
        recording.add(&line);
    }
    ([(CONTENT_TYPE, "application/json")], reply).into_response()
}

/// The review as it was sent, with the time and the findings, in one line.
fn line(
    policies: &PolicySet,
    body: &[u8],
    request: AdmissionRequest<'_>,
    now: Timestamp,
) -> Option<String> {
    let written = Members::parse(std::str::from_utf8(body).ok()?)?.get("request")?;
    let review = engine::review(policies, request.subject, true, now);
    let findings = serde_json::to_string(&review.unwrap_or_default().findings).ok()?;
    let line = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","requestReceivedTimestamp":"{now}","request":{written},"findings":{findings}}}"#
    );
    // Line breaks of JSON are only between its tokens.
    Some(line.replace(['\n', '\r'], " ") + "\n")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[tokio::test]
    async fn a_full_disk_ends_the_recording_and_keeps_its_complete_lines() {
        let mut disk = [0; 6];
        let recording = Recording::new(Cursor::new(&mut disk[..]));
        recording.add("one\n");
        recording.add("two\n");
        recording.add("3\n");
        recording.failed().await;
        assert_eq!(recording.count(), 1);
        let error = recording.error().unwrap();
        assert_eq!(error.to_string(), "the recording is incomplete: it cannot be written");
        drop(recording);
        assert_eq!(&disk, b"one\ntw");
    }

    #[test]
    fn a_line_is_the_review_with_its_time_and_its_findings() {
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        let body = br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",
            "resource":{"group":"vshn.appcat.vshn.io","version":"v1","resource":"vshnredis"},"subResource":"status",
            "operation":"UPDATE","object":{"status":{"phase":"ready"}},"oldObject":{}}}"#;
        let request = AdmissionRequest::parse(body).unwrap();
        let line = line(&policies, body, request, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["requestReceivedTimestamp"], "1970-01-01T00:00:00Z");
        assert_eq!(line["request"]["object"]["status"]["phase"], "ready");
        assert_eq!(line["findings"][0]["rule"], "appcat/phase-value");
        AdmissionRequest::parse(line.to_string().as_bytes()).unwrap();
    }
}
