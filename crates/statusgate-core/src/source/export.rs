//! Exports of audit logs by clouds and log agents: the events are texts inside other documents. They are not
//! unwrapped, because a location inside such a text would help no one; the message has the command that does it.

use super::json::Opened;

/// What every event of an audit log contains.
const EVENT: &str = "audit.k8s.io/v1";

/// Google's own form (`google.cloud.audit.AuditLog`), which has the written object but no event.
const GOOGLE: &str = "protoPayload";

/// How deep the texts are. Azure has `records[].properties.log`.
const DEPTH: usize = 6;

/// The program of `jq` that prints the records in a document, if it is such an export.
pub(super) fn command(document: &str) -> Option<String> {
    if document.contains("type.googleapis.com/google.cloud.audit.AuditLog") {
        return Some(format!("jq '.. | .{GOOGLE}?.response? // empty'"));
    }
    if !document.contains(EVENT) {
        return None;
    }
    path(document, DEPTH).map(|path| format!("jq -r '{path}'"))
}

/// The error about such a document.
pub(super) fn message(command: &str) -> String {
    format!(
        "the events are texts inside this document; print them first: {command} FILE | statusgate check -"
    )
}

/// The error about a line with something before an event, such as a time or a host.
pub(super) fn prefixed(line: &str) -> Option<String> {
    let start = line.find('{').filter(|start| *start > 0)?;
    line[start..].contains(EVENT).then(|| {
        "there is a prefix before the event of each line; remove it first: sed 's/^[^{]*//' FILE | statusgate check -".to_owned()
    })
}

/// The path of the first text with an event, in the syntax of `jq`.
fn path(value: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match Opened::of(value) {
        Opened::Scalar => (value.starts_with("\"{") && value.contains(EVENT)).then(String::new),
        Opened::List(items) => {
            items.iter().find_map(|item| path(item, depth)).map(|rest| format!("[]{rest}"))
        }
        Opened::Object(members) => members.iter().find_map(|(name, value)| {
            let rest = path(value, depth)?;
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            Some(if is_name { format!(".{name}{rest}") } else { format!(".{name:?}{rest}") })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_prints_the_events_of_each_export() {
        let event = r#""{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\"}""#;
        for (document, expected) in [
            (
                format!(r#"{{"records":[{{"a":1}},{{"properties":{{"log":{event}}}}}]}}"#),
                ".records[].properties.log",
            ),
            (format!(r#"{{"events":[{{"message":{event}}}]}}"#), ".events[].message"),
            (format!(r#"{{"log":{event},"stream":"stdout"}}"#), ".log"),
            (format!(r#"{{"@message":{event}}}"#), r#"."@message""#),
        ] {
            assert_eq!(command(&document), Some(format!("jq -r '{expected}'")), "{document}");
        }
        assert_eq!(command(r#"{"log":"other"}"#), None);
        assert_eq!(command(r#"{"log":"the version audit.k8s.io/v1"}"#), None, "no event");
        assert_eq!(
            command(r#"{"a":{"b":{"c":{"d":{"e":{"f":"{audit.k8s.io/v1"}}}}}}"#),
            None,
            "too deep"
        );
    }

    #[test]
    fn a_prefix_before_an_event_is_named() {
        assert!(
            prefixed(r#"2026-11-20T12:00:00Z stdout F {"apiVersion":"audit.k8s.io/v1"}"#).is_some()
        );
        for line in [r#"{"apiVersion":"audit.k8s.io/v1"}"#, r#"a: {"b":1}"#, ""] {
            assert_eq!(prefixed(line), None, "{line}");
        }
    }
}
