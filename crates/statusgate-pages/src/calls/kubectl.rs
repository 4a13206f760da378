//! What kubectl prints for the responses of the webhooks.

use indexmap::IndexSet;
use serde_json::Value;

use statusgate_core::wire::AdmissionRequest;

/// The lines of `kubectl patch --subresource=status`: warnings, each once, and the error or the name of the object.
pub(super) fn output(request: &AdmissionRequest<'_>, responses: &[Value]) -> String {
    let mut lines: IndexSet<String> = IndexSet::new();
    let mut denial = None;
    for response in responses {
        lines.extend(texts(&response["warnings"]).map(|warning| format!("Warning: {warning}")));
        if response["allowed"] == false {
            denial = Some(invalid(&response["status"]["details"]));
            break;
        }
    }
    lines.insert(denial.unwrap_or_else(|| {
        let (kind, group) = (request.kind.to_ascii_lowercase(), &request.kind_group);
        let dot = if group.is_empty() { "" } else { "." };
        format!("{kind}{dot}{group}/{} patched", request.name)
    }));
    Vec::from_iter(lines).join("\n")
}

/// As kubectl prints an Invalid: only its causes, each once.
fn invalid(details: &Value) -> String {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let given = details["causes"].as_array().into_iter().flatten();
    let causes: IndexSet<String> =
        given.map(|of| format!("{}: {}", text(of, "field"), text(of, "message"))).collect();
    let head = format!("The {} {:?} is invalid:", text(details, "kind"), text(details, "name"));
    let bullet = if causes.len() == 1 { " " } else { "\n* " };
    causes.into_iter().fold(head, |text, cause| text + bullet + &cause)
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}
