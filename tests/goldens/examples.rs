//! The examples of the conventions' pages and of the documents they come from, with the verdict of
//! the cluster: both webhooks, one after the other.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use statusgate::policy::Source;

use super::judging::{Write, fixtures, policy, read};

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
    /// Where it is not the page's.
    convention: Option<String>,
    /// What the policy has beside the convention: a mapping of its `spec`.
    #[serde(default)]
    policy: Value,
    write: Write,
    verdict: String,
    /// Rule ids without the convention.
    #[serde(default)]
    rules: BTreeSet<String>,
    #[serde(default)]
    patch: Value,
    /// What kstatus makes of the object.
    kstatus: Option<String>,
}

#[test]
fn the_examples_of_the_pages_get_the_verdicts_of_the_pages() {
    assert!(judge_all("goldens", &[]) >= 45, "examples are missing");
}

#[test]
fn the_examples_of_the_original_documents_are_judged_as_the_systems_are() {
    let document = |path: &PathBuf| Source {
        name: path.file_name().unwrap().to_str().unwrap().to_owned(),
        text: fs::read_to_string(path).unwrap(),
    };
    let own: Vec<Source> = fixtures("conventions").iter().map(document).collect();
    assert!(judge_all("seeds", &own) >= 35, "examples are missing");
}

/// All faults at once: the number of examples that were judged.
fn judge_all(folder: &str, documents: &[Source]) -> usize {
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
    fn fault(&self, convention: &str, documents: &[Source]) -> Option<String> {
        let members = self.policy.as_object().into_iter().flatten();
        let additions: String = members.map(|(key, value)| format!("  {key}: {value}\n")).collect();
        let outcome = self.write.through_both(&policy(convention, &additions, documents));
        let rules: BTreeSet<String> =
            self.rules.iter().map(|rule| format!("{convention}/{rule}")).collect();
        let expected: BTreeSet<&str> = rules.iter().map(String::as_str).collect();
        let fits = outcome.verdict() == self.verdict
            && outcome.rules() == expected
            && outcome.patch == self.patch
            && self
                .kstatus
                .as_ref()
                .is_none_or(|expected| *expected == self.write.kstatus(&outcome.patch));
        (!fits).then(|| {
            let (id, verdict, patch) = (&self.id, &self.verdict, &self.patch);
            let found = outcome.verdict();
            format!(
                "{id} under {convention}: expected {verdict} by {expected:?} with {patch}\n  \
                 found {found} by {:?} with {}",
                outcome.findings, outcome.patch
            )
        })
    }
}
