//! A write as a case of `statusgate test`, with what the webhooks do now as the expected result.

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::CallResult;
use super::judge::{Write, judge, read};
use statusgate_analysis::scene::yaml;
use statusgate_core::documents::suite::{
    Case, CaseWriter, Expectation, ExpectedFinding, Suite, Word,
};
use statusgate_core::engine::{Action, Found};
use statusgate_core::source::{Manifest, Record};

pub(super) fn answer(write: &Write) -> CallResult {
    let policies = write.documents.judging()?;
    let texts = write.texts();
    let manifests = read(&texts);
    let judged = judge(write, &policies, &manifests)?;
    let recorded = judged.manifest.record.and_then(Record::request);
    let (user, groups) = match recorded {
        Some(request) => (
            request.writer.user.to_string(),
            request.writer.groups.iter().map(ToString::to_string).collect(),
        ),
        None => (write.user.clone(), write.groups.clone()),
    };
    let groups = Some(groups).filter(|groups: &Vec<String>| !groups.is_empty());
    let findings = judged.findings();
    let strongest = findings.iter().map(|found| found.action).max();
    let patch = judged.mutation.patch.as_ref().map_or_else(|| json!("none"), |patch| json!(patch));
    let case = Case {
        name: judged.manifest.identity.to_string(),
        source: None,
        policy: None,
        object: value(judged.manifest),
        old: judged.old.map(value),
        with: IndexMap::new(),
        without: Vec::new(),
        writer: (!user.is_empty()).then_some(CaseWriter { user: Some(user), groups }),
        operation: recorded.map(|request| request.operation),
        subresource: recorded.map(|request| request.subresource.clone()),
        now: Some(judged.now.to_string()),
        mutate: None,
        expect: Expectation {
            verdict: Some(match strongest {
                Some(Action::Deny) => Word::Deny,
                Some(Action::Repair | Action::Warn) => Word::Warn,
                Some(Action::Audit) | None => Word::Allow,
            }),
            findings: Some(findings.into_iter().map(expected).collect()),
            patch: Some(patch),
            status: None,
        },
    };
    let (policies, convention) = write.documents.of_suite(&policies);
    let suite = Suite { policies, convention, now: None, cases: vec![case] };
    Ok(json!({"case": yaml(&suite)}))
}

fn value(manifest: Manifest<'_>) -> Value {
    serde_json::from_str(manifest.text).unwrap_or_default()
}

fn expected(found: Found) -> ExpectedFinding {
    ExpectedFinding { rule: found.rule, field: Some(found.field), action: None, message: None }
}
