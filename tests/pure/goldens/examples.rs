//! The examples of the conventions' pages, and of the documents that the conventions come from. Each
//! write passes both webhooks.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::judging::{Case, fixtures, kstatus, read, rules, verdict};
use crate::support::{compile, policy};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    convention: String,
    examples: Vec<Example>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    id: String,
    /// Where the controller makes this write, for the examples in `transitions`.
    source: Option<String>,
    /// Overrides the convention of the page.
    convention: Option<String>,
    /// More fields for the `spec` of the policy.
    #[serde(default)]
    policy: Value,
    write: Case,
    verdict: String,
    /// Rule ids without the convention.
    #[serde(default)]
    rules: BTreeSet<String>,
    #[serde(default)]
    patch: Value,
    /// The kstatus result of the object.
    kstatus: Option<String>,
}

#[test]
fn each_example_of_a_page_gets_the_verdict_of_the_page() {
    assert!(judge_all("goldens", &[]) >= 45, "examples are missing");
}

#[test]
fn each_example_of_an_original_document_gets_the_expected_verdict() {
    let document = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let own: Vec<String> = fixtures("conventions").iter().map(document).collect();
    assert!(judge_all("seeds", &own) >= 35, "examples are missing");
}

#[test]
fn each_transition_of_a_controller_gets_the_expected_verdict() {
    assert!(judge_all("transitions", &[]) >= 1, "examples are missing");
    for path in fixtures("transitions") {
        let page: Page = read(&path);
        assert!(path.ends_with(format!("{}.yaml", page.convention)), "{}", path.display());
        for example in &page.examples {
            assert!(example.source.is_some(), "{}: no source", example.id);
        }
    }
}

/// Judges all examples of a folder, reports all faults, and returns the number of examples.
fn judge_all(folder: &str, documents: &[String]) -> usize {
    let (mut judged, mut faults) = (0, Vec::new());
    for path in fixtures(folder) {
        let page: Page = read(&path);
        for example in &page.examples {
            judged += 1;
            let convention = example.convention.as_ref().unwrap_or(&page.convention);
            faults.extend(example.fault(convention, documents));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    judged
}

impl Example {
    fn fault(&self, convention: &str, documents: &[String]) -> Option<String> {
        let mut spec = self.policy.clone();
        spec["convention"] = convention.into();
        let documents = [documents, &[policy("test", spec)]].concat();
        let outcome = self.write.write().review(&compile(&documents));
        let expected: BTreeSet<String> =
            self.rules.iter().map(|rule| format!("{convention}/{rule}")).collect();
        let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
        let fits = verdict(&outcome) == self.verdict
            && rules(&outcome) == expected
            && outcome.patch == self.patch
            && self.kstatus.as_ref().is_none_or(|expected| *expected == kstatus(&outcome));
        (!fits).then(|| {
            format!(
                "{} under {convention}: expected {} by {expected:?} with {}\n  found {} by {:?} with {}",
                self.id,
                self.verdict,
                self.patch,
                verdict(&outcome),
                outcome.lines(),
                outcome.patch
            )
        })
    }
}
