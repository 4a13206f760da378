//! SARIF 2.1.0 (OASIS), for code scanning.

use std::collections::BTreeMap;
use std::io::{self, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::Report;
use statusgate_core::engine::Action;
use statusgate_core::policy::PolicySet;
use statusgate_core::source::Place;
use statusgate_pages::explain::{Page, RuleText, render};

/// Writes one run: rules, results, and unreadable documents as notifications of the tool.
pub(super) fn write(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    // The strongest action of each rule.
    let mut rules: BTreeMap<&str, Action> = BTreeMap::new();
    for (_, found, _) in report.findings() {
        let strongest = rules.entry(&found.rule).or_insert(found.action);
        *strongest = found.action.max(*strongest);
    }
    let index: BTreeMap<&str, usize> = rules.keys().copied().zip(0..).collect();
    let results = report.findings().map(|(object, found, place)| {
        let logical = format!("{} {}", object.entry.identity, found.field);
        json!({
            "ruleId": found.rule,
            "ruleIndex": index.get(found.rule.as_str()),
            "level": level(found.action),
            "message": {"text": format!("{}: {}: {}", object.entry, found.field, found.message)},
            "locations": [{
                "physicalLocation": physical(place),
                "logicalLocations": [{"fullyQualifiedName": logical}],
            }],
            "properties": {"policy": found.policy, "action": found.action.label()},
        })
    });
    let notifications = report.mistakes.iter().map(|mistake| {
        let location = mistake
            .place
            .as_deref()
            .map_or_else(|| json!({"artifactLocation": {"uri": uri(&mistake.file)}}), physical);
        json!({
            "level": "error",
            "message": {"text": mistake.message},
            "locations": [{"physicalLocation": location}],
        })
    });
    let unproven = report.unproven().map(|why| json!({"level": "error", "message": {"text": why}}));
    let is_complete = report.mistakes.is_empty() && unproven.is_none();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "statusgate",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules
                    .iter()
                    .map(|(id, action)| rule(id, *action, report.policies))
                    .collect::<Vec<_>>(),
            }},
            // The alternative is UTF-16 units.
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": is_complete,
                "toolExecutionNotifications": notifications.chain(unproven).collect::<Vec<_>>(),
            }],
            "results": results.collect::<Vec<_>>(),
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// A rule as `explain` describes it. Not from a finding, which contains values of one object.
fn rule(id: &str, action: Action, policies: &PolicySet) -> Value {
    let mut rule = json!({"id": id, "defaultConfiguration": {"level": level(action)}});
    let name = id.split_once('/').map_or(id, |(name, _)| name);
    let convention = policies.conventions().get(name);
    let explained = convention.and_then(|convention| RuleText::of_convention(convention, id));
    let mut of_policies = policies.policies().iter().filter_map(|of| RuleText::of_policy(of, id));
    let Some(explained) = explained.or_else(|| of_policies.next()) else { return rule };
    if PolicySet::built_in_names().any(|known| known == name) {
        let page = format!("{}/docs/conventions/{name}.md", env!("CARGO_PKG_HOMEPAGE"));
        rule["helpUri"] = page.into();
    }
    let page = Page::of_rule(&explained);
    if let Some(message) = explained.message {
        rule["shortDescription"] = json!({"text": message});
    }
    let text = render::body(&page, usize::MAX);
    rule["fullDescription"] = json!({"text": text});
    rule["help"] = json!({"text": text, "markdown": render::markdown(&page)});
    rule
}

const fn level(action: Action) -> &'static str {
    match action {
        Action::Deny => "error",
        Action::Repair | Action::Warn => "warning",
        Action::Audit => "note",
    }
}

fn physical(place: &Place) -> Value {
    json!({
        "artifactLocation": {"uri": uri(&place.file)},
        "region": {
            "startLine": place.line,
            "startColumn": place.column,
            "endLine": place.line,
            "endColumn": place.end_column,
        },
    })
}

/// A path as a URI reference. Relative paths stay relative to the repository.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let path = path.strip_prefix("./").unwrap_or(path);
    format!("{scheme}{}", utf8_percent_encode(path, PATH))
}

const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_reference() {
        assert_eq!(uri("./a b/ü.yaml"), "a%20b/%C3%BC.yaml");
        assert_eq!(uri("/tmp/x:y"), "file:///tmp/x%3Ay");
    }
}
