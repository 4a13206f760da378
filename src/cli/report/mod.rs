//! The report of `check`, in formats for people and pipelines.

mod github;
mod json;
pub(super) mod junit;
mod sarif;
mod table;

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::ValueEnum;
use json_patch::PatchOperation;
use serde::Serialize;

use super::fail_on::FailOn;
use crate::engine::{Action, Found};
use crate::policy::PolicySet;
use crate::source::{Diagnostic, Identity, Place};

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Each finding with its location and a caret.
    Table,
    /// One document with all objects, findings and patches.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML: one test suite per file, one test case per object.
    Junit,
    /// Workflow commands, which GitHub shows at the lines of a pull request.
    Github,
}

/// The results of a run.
#[derive(Debug)]
pub(super) struct Report<'p> {
    pub(super) policies: &'p PolicySet,
    /// The files in order, including those without objects.
    pub(super) files: Vec<String>,
    pub(super) objects: Vec<Judged>,
    pub(super) mistakes: Vec<Diagnostic>,
    pub(super) fail_on: FailOn,
    pub(super) verbose: bool,
}

/// One object with its findings.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    pub(super) file: String,
    pub(super) document: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<usize>,
    #[serde(flatten)]
    pub(super) identity: Identity,
    /// The policies that select it. Without one, it was not judged.
    pub(super) policies: Vec<String>,
    pub(super) findings: Vec<Located>,
    pub(super) patch: Vec<PatchOperation>,
}

/// A finding with its location.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Located {
    #[serde(flatten)]
    pub(super) found: Found,
    #[serde(flatten)]
    pub(super) place: Place,
}

/// The totals of a report.
#[derive(Debug)]
pub(super) struct Totals<'r> {
    pub(super) judged: usize,
    pub(super) patched: usize,
    /// Objects by policy.
    pub(super) policies: BTreeMap<&'r str, usize>,
    findings: BTreeMap<Action, u64>,
}

impl Totals<'_> {
    /// The number of findings with this action.
    pub(super) fn of(&self, action: Action) -> u64 {
        self.findings.get(&action).copied().unwrap_or_default()
    }
}

impl Report<'_> {
    /// Writes the report.
    pub(super) fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        match format {
            Format::Table => table::write(self, out),
            Format::Json => json::write(self, out),
            Format::Sarif => sarif::write(self, out),
            Format::Junit => junit::write(&junit::suites(self), out),
            Format::Github => github::write(self, out),
        }
    }

    /// Whether a finding fails the run.
    pub(super) fn fails(&self) -> bool {
        self.findings().any(|(_, found, _)| self.fail_on.includes(found.action))
    }

    fn findings(&self) -> impl Iterator<Item = (&Judged, &Found, &Place)> {
        self.objects.iter().flat_map(|object| {
            object.findings.iter().map(move |Located { found, place }| (object, found, place))
        })
    }

    fn totals(&self) -> Totals<'_> {
        let mut totals =
            Totals { judged: 0, patched: 0, policies: BTreeMap::new(), findings: BTreeMap::new() };
        for object in &self.objects {
            totals.judged += usize::from(!object.policies.is_empty());
            totals.patched += usize::from(!object.patch.is_empty());
            for policy in &object.policies {
                *totals.policies.entry(policy).or_default() += 1;
            }
            for Located { found, .. } in &object.findings {
                *totals.findings.entry(found.action).or_default() += 1;
            }
        }
        totals
    }
}

/// `12 objects in 3 files: 9 judged (appcat 9), 3 selected by no policy. 2 deny, 1 warn.`
impl std::fmt::Display for Report<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let totals = self.totals();
        let objects = self.objects.len();
        let (counted, files) = (plural(objects, "object"), plural(self.files.len(), "file"));
        write!(formatter, "{counted} in {files}: {} judged", totals.judged)?;
        let by_policy: Vec<String> =
            totals.policies.iter().map(|(name, count)| format!("{name} {count}")).collect();
        if !by_policy.is_empty() {
            write!(formatter, " ({})", by_policy.join(", "))?;
        }
        if totals.judged < objects {
            write!(formatter, ", {} selected by no policy", objects - totals.judged)?;
        }
        write!(formatter, "; {}", by_action(&totals.findings))?;
        if totals.patched > 0 {
            write!(formatter, "; {} would be patched", totals.patched)?;
        }
        if !self.mistakes.is_empty() {
            write!(formatter, "; {} could not be read", plural(self.mistakes.len(), "document"))?;
        }
        Ok(())
    }
}

/// `1 object`, `2 objects`.
pub(super) fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `2 deny, 1 warn`, or `no findings`.
pub(super) fn by_action(counts: &BTreeMap<Action, u64>) -> String {
    let counts = counts.iter().rev().map(|(action, count)| format!("{count} {}", action.label()));
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() { "no findings".to_owned() } else { counts.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::source::{Manifests, Source};

    static POLICIES: LazyLock<PolicySet> = LazyLock::new(|| {
        let text = "{apiVersion: statusgate.dev/v1alpha1, kind: StatusConvention, metadata: {name: c}, spec: {title: C, \
                    rules: [{id: deny, when: {deleting: true}, action: Deny, path: /status/phase, \
                    message: a phase is a word, source: 'the book, p. 1'}]}}\n---\n\
                    {apiVersion: statusgate.dev/v1alpha1, kind: StatusPolicy, metadata: {name: p}, spec: {convention: c, \
                    resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]}}\n";
        PolicySet::compile(&[Source::new("c.yaml", text)]).unwrap()
    });

    /// Two objects of one file, one of them with findings of each action, and a broken file.
    fn report() -> Report<'static> {
        let text = "apiVersion: g/v1\nkind: Thing\nmetadata: {name: a, namespace: s}\nstatus:\n  phase: 'rea,dy: 100%'\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: <b>}\n---\n- 1\n";
        let files = [Source::new("some folder/a.yaml", text)];
        let manifests = Manifests::read(&files);
        let found = |action: Action| Found {
            policy: "p".into(),
            rule: format!("c/{}", action.label()),
            field: "status.phase".into(),
            cause: crate::engine::Cause::Invalid,
            message: "100% \"wrong\" & <odd>,\nreally: yes".into(),
            action,
            others: Vec::new(),
        };
        let objects = manifests.iter().map(|manifest| {
            let judged = manifest.identity.kind == "Thing";
            let place = manifest.place("status.phase");
            let findings = Action::WORST_FIRST
                .map(|action| Located { found: found(action), place: place.clone() });
            let patch = r#"[{"op":"add","path":"/status/x","value":null}]"#;
            Judged {
                file: manifest.file.to_owned(),
                document: manifest.document,
                item: manifest.item,
                identity: manifest.identity.clone(),
                policies: if judged { vec!["p".to_owned()] } else { Vec::new() },
                findings: if judged { findings.to_vec() } else { Vec::new() },
                patch: if judged { serde_json::from_str(patch).unwrap() } else { Vec::new() },
            }
        });
        Report {
            files: vec!["some folder/a.yaml".to_owned()],
            objects: objects.collect(),
            mistakes: manifests.mistakes().to_vec(),
            policies: &POLICIES,
            fail_on: FailOn::Deny,
            verbose: true,
        }
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        report().write(format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_worst_finding_decides_whether_a_run_fails() {
        let mut report = report();
        assert!(report.fails());
        report.objects[0].findings.remove(0);
        assert!(!report.fails());
        report.fail_on = FailOn::Warn;
        assert!(report.fails());
        report.objects[0].findings.drain(..2);
        assert!(!report.fails());
        report.fail_on = FailOn::Audit;
        assert!(report.fails());
    }

    #[test]
    fn totals_are_one_line() {
        assert_eq!(
            report().to_string(),
            "2 objects in 1 file: 1 judged (p 1), 1 selected by no policy; 1 deny, 1 repair, 1 warn, 1 audit; 1 would be patched; 1 document could not be read"
        );
    }

    #[test]
    fn the_table_shows_place_and_caret() {
        insta::assert_snapshot!(written(Format::Table));
    }

    #[test]
    fn json_has_everything() {
        insta::assert_snapshot!(written(Format::Json));
    }

    #[test]
    fn workflow_commands_are_one_line_each() {
        insta::assert_snapshot!(written(Format::Github));
    }

    #[test]
    fn junit_is_escaped() {
        insta::assert_snapshot!(written(Format::Junit));
    }

    #[test]
    fn sarif_has_rules_and_regions() {
        insta::assert_snapshot!(written(Format::Sarif));
    }
}
