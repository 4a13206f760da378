//! Compares the expected with the actual result.

use json_patch::PatchOperation;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use statusgate_core::documents::suite::{Expectation, ExpectedFinding, Word};
use statusgate_core::engine::{Action, Found, Review};

/// A part that differs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// `verdict`, `findings`, `patch` or `status`.
    pub(super) part: &'static str,
    /// Lines that start with `- ` if expected and missing, `+ ` if unexpected, and two spaces if equal.
    pub(super) lines: Vec<String>,
}

/// Compares the parts that are expected. `status` is the status after the mutating webhook.
pub(super) fn compare(
    expected: &Expectation,
    patch: Option<&[PatchOperation]>,
    found: &Review,
    status: Option<&Value>,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut add = |part, lines: Vec<String>| {
        if !lines.is_empty() {
            differences.push(Difference { part, lines });
        }
    };
    let came = verdict_of(found);
    if let Some(word) = expected.verdict.filter(|word| *word != came) {
        // With the reasons: the findings may not be compared.
        let deciding = found.findings.iter().filter(|found| word_of(found.action) == came);
        let lines = [format!("- {}", label(word)), format!("+ {}", label(came))];
        let lines = lines.into_iter().chain(deciding.map(|found| format!("+   {found}")));
        add("verdict", lines.collect());
    }
    if let Some(findings) = &expected.findings {
        add("findings", compare_findings(findings, &found.findings));
    }
    if let Some(patch) = patch.filter(|patch| *patch != found.patch) {
        // One operation a line.
        let lines = |patch: &[PatchOperation]| {
            patch.iter().map(|operation| format!("{operation}\n")).collect::<String>()
        };
        add("patch", diff(&lines(patch), &lines(&found.patch)));
    }
    let status = status.unwrap_or(&Value::Null);
    if let Some(expected) = expected.status.as_ref().filter(|expected| *expected != status) {
        add("status", diff(&format!("{expected:#}\n"), &format!("{status:#}\n")));
    }
    differences
}

fn verdict_of(found: &Review) -> Word {
    let strongest = found.findings.iter().map(|found| found.action).max();
    strongest.map_or(Word::Allow, word_of)
}

const fn word_of(action: Action) -> Word {
    match action {
        Action::Deny => Word::Deny,
        Action::Repair | Action::Warn => Word::Warn,
        Action::Audit => Word::Allow,
    }
}

const fn label(word: Word) -> &'static str {
    match word {
        Word::Allow => "allow",
        Word::Warn => "warn",
        Word::Deny => "deny",
    }
}

/// Matches each expected finding with an actual one, the most precise first: `{rule: a}` must not take
/// the only match of `{rule: a, field: b}`.
fn compare_findings(expected: &[ExpectedFinding], found: &[Found]) -> Vec<String> {
    let mut wanted: Vec<&ExpectedFinding> = expected.iter().collect();
    wanted.sort_by_key(|finding| std::cmp::Reverse(precision(finding)));
    let mut left: Vec<&Found> = found.iter().collect();
    let mut lines = Vec::new();
    for finding in wanted {
        match left.iter().position(|found| fits(finding, found)) {
            Some(at) => drop(left.remove(at)),
            None => lines.push(format!("- {}", expected_line(finding))),
        }
    }
    lines.extend(left.into_iter().map(|found| format!("+ {found}")));
    lines
}

/// In the format of a finding, with `*` for parts that are not compared.
fn expected_line(finding: &ExpectedFinding) -> String {
    let action = finding.action.map_or("*", Action::label);
    let field = finding.field.as_deref().unwrap_or("*");
    let message = finding.message.as_deref().unwrap_or("*");
    format!("{action}: {field}: {message} [{}]", finding.rule)
}

fn fits(expected: &ExpectedFinding, found: &Found) -> bool {
    expected.rule == found.rule
        && expected.field.as_ref().is_none_or(|field| *field == found.field)
        && expected.action.is_none_or(|action| action == found.action)
        && expected.message.as_ref().is_none_or(|message| found.message.contains(message))
}

fn precision(expected: &ExpectedFinding) -> usize {
    usize::from(expected.field.is_some())
        + usize::from(expected.action.is_some())
        + usize::from(expected.message.is_some())
}

fn diff(expected: &str, found: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(expected, found);
    let lines = diff.iter_all_changes().map(|change| {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        format!("{sign} {}", change.value().trim_end_matches('\n'))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(rule: &str, field: &str) -> Found {
        let (policy, cause, others) =
            ("p".to_owned(), statusgate_core::engine::Cause::Invalid, Vec::new());
        let (rule, field, message) = (rule.to_owned(), field.to_owned(), "some words".to_owned());
        Found { policy, rule, field, cause, message, action: Action::Warn, others }
    }

    fn expected(rule: &str, field: Option<&str>, message: Option<&str>) -> ExpectedFinding {
        let text = |text: &str| text.to_owned();
        let (field, message) = (field.map(text), message.map(text));
        ExpectedFinding { rule: text(rule), field, action: None, message }
    }

    #[test]
    fn findings_fit_in_any_order_and_each_once() {
        let came = [found("a", "x"), found("a", "y"), found("b", "x")];
        let want = [
            expected("a", None, None),
            expected("b", None, Some("words")),
            expected("a", Some("x"), None),
        ];
        assert_eq!(compare_findings(&want, &came), [""; 0]);
        assert_eq!(compare_findings(&want[..2], &came), ["+ warn: y: some words [a]"],);
        assert_eq!(
            compare_findings(&[expected("a", Some("z"), Some("other"))], &came[2..]),
            ["- *: z: other [a]", "+ warn: x: some words [b]"],
        );
    }

    #[test]
    fn only_expected_values_are_compared() {
        let review = Review { findings: vec![found("a", "x")], ..Review::default() };
        assert_eq!(compare(&Expectation::default(), None, &review, None), []);
        let all = Expectation {
            verdict: Some(Word::Deny),
            findings: Some(Vec::new()),
            patch: None,
            status: Some(json!({"phase": "Ready", "same": 1})),
        };
        let differences =
            compare(&all, Some(&[]), &review, Some(&json!({"phase": "ready", "same": 1})));
        let parts: Vec<_> = differences.iter().map(|difference| difference.part).collect();
        assert_eq!(parts, ["verdict", "findings", "status"]);
        assert_eq!(differences[0].lines, ["- deny", "+ warn", "+   warn: x: some words [a]"]);
        let status = [
            "  {",
            "-   \"phase\": \"Ready\",",
            "+   \"phase\": \"ready\",",
            "    \"same\": 1",
            "  }",
        ];
        assert_eq!(differences[2].lines, status);
    }
}
