//! What kubectl prints for the responses of the webhooks.

use serde_json::Value;

use crate::wire::AdmissionRequest;

/// The lines of `kubectl patch --subresource=status`: warnings, each once, and the error or the name of the object.
pub(super) fn output(request: &AdmissionRequest<'_>, responses: &[Value]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for response in responses {
        for warning in texts(&response["warnings"]) {
            let line = format!("Warning: {warning}");
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if response["allowed"] == false {
            lines.push(invalid(&response["status"]["details"]));
            return lines.join("\n");
        }
    }
    let kind = request.kind.to_ascii_lowercase();
    let group = &request.kind_group;
    let dot = if group.is_empty() { "" } else { "." };
    lines.push(format!("{kind}{dot}{group}/{} patched", request.name));
    lines.join("\n")
}

/// As kubectl prints an Invalid: only its causes, each once.
fn invalid(details: &Value) -> String {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut causes: Vec<String> = Vec::new();
    for cause in details["causes"].as_array().into_iter().flatten() {
        let cause = format!("{}: {}", text(cause, "field"), text(cause, "message"));
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    let head = format!("The {} {:?} is invalid:", text(details, "kind"), text(details, "name"));
    match causes.as_slice() {
        [cause] => format!("{head} {cause}"),
        causes => {
            let points = causes.iter().map(|cause| format!("\n* {cause}"));
            head + &points.collect::<String>()
        }
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}
