//! One request to an API server, and its response.

use std::error::Error;
use std::time::Duration;

use http::header::{DATE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, Method};
use hyper::body::Bytes;
use jiff::fmt::rfc2822;
use kube::core::Status;
use statusgate_core::source::json_as_yaml;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Call<'c> {
    pub(super) method: Method,
    pub(super) path: &'c str,
    /// The content type of the body; empty without a body.
    pub(super) format: &'static str,
    pub(super) body: Bytes,
}

/// A response of the server, successful or not.
#[derive(Clone, Debug)]
pub(super) struct Received {
    /// The HTTP status.
    pub(super) status: u16,
    /// `Retry-After`.
    pub(super) retry_after: Option<Duration>,
    /// The body.
    pub(super) body: Bytes,
}

/// The reason for a missing response.
pub(super) type Silence = Box<dyn Error + Send + Sync>;

/// The result of sending a request.
pub(super) type Reply = Result<Received, Silence>;

impl<'c> Call<'c> {
    /// A GET.
    pub(super) const fn get(path: &'c str) -> Self {
        Self { method: Method::GET, path, format: "", body: Bytes::new() }
    }

    /// A server-side apply of an object in JSON.
    pub(super) fn apply(path: &'c str, object: &str) -> Self {
        let body = json_as_yaml(object).into();
        // Kubernetes 1.20 supports only this type.
        Self { method: Method::PATCH, path, format: "application/apply-patch+yaml", body }
    }
}

impl Received {
    /// Whether this is a temporary failure.
    pub(super) const fn passes(&self) -> bool {
        is_temporary(self.status)
    }

    /// The message of the server.
    pub(super) fn message(&self) -> String {
        message(self.to_status())
    }

    /// The body as a `metav1.Status`; without one, as kube's client returns it.
    pub(super) fn to_status(&self) -> Status {
        let status = serde_json::from_slice(&self.body).ok();
        status.filter(|status: &Status| !status.message.is_empty()).unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&self.body);
            Status::failure(&text, NO_STATUS).with_code(self.status)
        })
    }

    /// Whether this is a 404 of an API server that knows the kind, but not this object. A router's 404
    /// names no object.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        self.status == 404 && self.to_status().details.is_some_and(|details| details.name == name)
    }
}

/// The message of a failure.
pub(super) fn message(status: Status) -> String {
    let Status { code, message, details, reason, .. } = status;
    let causes = details.into_iter().flat_map(|details| details.causes);
    let causes: Vec<String> = causes
        .map(|cause| match cause.field.as_str() {
            "" => cause.message,
            field => format!("{field}: {}", cause.message),
        })
        .collect();
    // The message of `Invalid` repeats its causes.
    if !causes.is_empty() {
        return causes.join("; ");
    }
    if reason != NO_STATUS {
        return message;
    }
    // A proxy may send a page of HTML.
    let line = message.lines().next().unwrap_or_default().chars().take(200);
    format!("HTTP {code} {}", line.collect::<String>())
}

/// The HTTP code of a rejection. A failed test of a JSON patch is a conflict: unlike a rejected object it
/// has no causes.
pub(super) fn code_of(status: &Status) -> u16 {
    let has_causes = status.details.as_ref().is_some_and(|of| !of.causes.is_empty());
    if status.code == 422 && !has_causes { 409 } else { status.code }
}

/// The reason that kube sets if the body is not a `metav1.Status`.
const NO_STATUS: &str = "Failed to parse error data";

/// Whether an HTTP status is a temporary failure.
pub(super) const fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// Whether a request failed temporarily. An invalid request always fails.
pub(super) fn passes(reply: &Reply) -> bool {
    match reply {
        Ok(answer) => answer.passes(),
        Err(silence) => !is_no_request(silence),
    }
}

/// The delay that the server requests.
pub(super) fn retry_after(reply: &Reply) -> Option<Duration> {
    reply.as_ref().ok()?.retry_after
}

/// Whether the response is a 500.
pub(super) fn is_internal(reply: &Reply) -> bool {
    reply.as_ref().is_ok_and(|answer| answer.status == 500)
}

/// Whether the request was invalid and was not sent.
pub(super) fn is_no_request(silence: &Silence) -> bool {
    silence.is::<http::Error>()
}

/// `Retry-After`: a number of seconds, or a time. API servers send seconds, some proxies a time. It is
/// compared with the time of the response, because the clock of this machine may differ.
pub(super) fn requested_delay(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let asked = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = |text: &str| rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    time(asked)?.duration_since(time(text(DATE)?)?).try_into().ok()
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Request};

    use super::*;

    #[test]
    fn an_invalid_request_is_not_retried() {
        let made = Request::builder().uri("/apis/a b").body(());
        assert!(!passes(&Err(made.unwrap_err().into())));
        assert!(passes(&Err("connection reset".into())));
    }

    #[test]
    fn a_requested_delay_is_a_number_of_seconds_or_a_time_after_the_response() {
        let delay = |retry_after: &str, date: &str| {
            let headers = [(RETRY_AFTER, retry_after), (DATE, date)];
            let value = |text: &str| HeaderValue::from_str(text).unwrap();
            let headers = headers.into_iter().filter(|(_, text)| !text.is_empty());
            requested_delay(&headers.map(|(name, text)| (name, value(text))).collect())
        };
        let (now, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:44 GMT");
        assert_eq!(delay("7", ""), Some(Duration::from_secs(7)));
        assert_eq!(delay(later, now), Some(Duration::from_secs(7)));
        for (retry_after, date) in
            [("", now), (later, ""), (now, later), ("soon", now), ("-1", now)]
        {
            assert_eq!(delay(retry_after, date), None, "{retry_after:?} {date:?}");
        }
    }

    fn answer(status: u16, body: &'static str) -> Received {
        Received { status, retry_after: None, body: Bytes::from_static(body.as_bytes()) }
    }

    #[test]
    fn the_message_of_a_failure_has_its_causes_its_message_or_its_first_line() {
        let invalid = r#"{"message":"long","details":{"causes":[
            {"reason":"FieldValueInvalid","message":"must be a string","field":"status.phase"}]}}"#;
        assert_eq!(answer(422, invalid).message(), "status.phase: must be a string");
        assert_eq!(answer(403, r#"{"message":"no"}"#).message(), "no");
        assert_eq!(answer(502, "<html>\n<body>").message(), "HTTP 502 <html>");
    }

    #[test]
    fn a_failed_test_of_a_json_patch_is_a_conflict_and_an_invalid_object_is_not() {
        let code = |body: &'static str| code_of(&answer(422, body).to_status());
        assert_eq!(code(r#"{"message":"testing value /metadata/uid failed","code":422}"#), 409);
        let invalid = r#"{"message":"m","code":422,"details":{"causes":[
            {"reason":"FieldValueInvalid","message":"m","field":"status.phase"}]}}"#;
        assert_eq!(code(invalid), 422);
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        for (status, passes) in [(429, true), (500, true), (503, true), (403, false), (422, false)]
        {
            assert_eq!(answer(status, "").passes(), passes, "{status}");
        }
    }
}
