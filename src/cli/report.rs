//! The report of `check`, in formats for people and pipelines.

mod github;
pub(super) mod junit;
mod sarif;
mod summary;
mod table;

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::ValueEnum;
use json_patch::PatchOperation;
use serde::Serialize;

use super::entry::ObjectEntry;
use super::output::json_lines;
use statusgate_core::engine::{Action, Found};
use statusgate_core::policy::PolicySet;
use statusgate_core::source::{Diagnostic, Place, one_line};

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Each finding with its location and a caret.
    Table,
    /// One line per object, with its findings and its patch.
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
    pub(super) objects: Vec<Checked>,
    pub(super) mistakes: Vec<Diagnostic>,
    /// The files in which some or all documents are no manifests.
    pub(super) skipped: Vec<Box<str>>,
    /// How many objects have a stored object, if there are any of those.
    pub(super) stored: Option<usize>,
    /// The findings that filters removed.
    pub(super) filtered_out: usize,
    pub(super) fail_on: Action,
    /// Whether an object fails the run that no policy selects.
    pub(super) unjudged_fails: bool,
    /// A table of rules instead of findings.
    pub(super) summary: bool,
    pub(super) verbose: bool,
}

/// One object with its findings.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    #[serde(flatten)]
    pub(super) entry: ObjectEntry,
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

impl Report<'_> {
    /// Writes the report.
    pub(super) fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        match format {
            Format::Table if self.summary => summary::write(self, out),
            Format::Table => table::write(self, out),
            // docs/check.md describes the members; new ones may be added.
            Format::Json => json_lines(out, &self.objects),
            Format::Sarif => sarif::write(self, out),
            Format::Junit => junit::write(&junit::suites(self), out),
            Format::Github => github::write(self, out),
        }
    }

    /// Writes a line for the objects of each kind that were not judged for one reason, the most frequent
    /// first.
    fn write_unjudged(&self, out: &mut impl Write) -> io::Result<()> {
        let mut kinds: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        for Checked { entry, .. } in &self.objects {
            let Some(reason) = &entry.unjudged else { continue };
            let key = (entry.identity.api_version.as_str(), entry.identity.kind.as_str());
            *kinds.entry((key.0, key.1, reason)).or_default() += 1;
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for ((api_version, kind, reason), count) in kinds {
            let line = format!("not judged: {count} {api_version} {kind}: {reason}");
            writeln!(out, "{}", one_line(&line))?;
        }
        Ok(())
    }

    /// Whether a finding or an unjudged object fails the run.
    pub(super) fn fails(&self) -> bool {
        self.lacks_judgement() || self.findings().any(|(_, found, _)| found.action >= self.fail_on)
    }

    /// Whether an unjudged object fails the run, or that there is none at all.
    pub(super) fn lacks_judgement(&self) -> bool {
        let mut unjudged = self.objects.iter().map(|object| object.entry.unjudged.is_some());
        self.unjudged_fails && (self.objects.is_empty() || unjudged.any(|unjudged| unjudged))
    }

    /// Why the absence of findings proves nothing.
    pub(super) fn unproven(&self) -> Option<&'static str> {
        if self.lacks_judgement() {
            Some("not everything was judged, and --fail-on has unjudged")
        } else if self.objects.is_empty() {
            Some("nothing was judged: there is no object")
        } else if self.judged() > 0 {
            None
        } else if self.objects.iter().all(|object| object.entry.policies.is_empty()) {
            Some("nothing was judged: no policy selects these objects")
        } else {
            Some("nothing was judged: the objects that a policy selects have no status")
        }
    }

    fn findings(&self) -> impl Iterator<Item = (&Checked, &Found, &Place)> {
        self.objects.iter().flat_map(|object| {
            object.findings.iter().map(move |Located { found, place }| (object, found, place))
        })
    }

    /// The number of objects with a property.
    fn count(&self, has: impl Fn(&Checked) -> bool) -> usize {
        self.objects.iter().filter(|object| has(object)).count()
    }

    /// The number of objects that were judged.
    fn judged(&self) -> usize {
        self.count(|object| object.entry.unjudged.is_none())
    }
}

/// `12 objects in 3 files: 9 judged (appcat 9), 3 not judged; 2 deny, 1 warn`
impl std::fmt::Display for Report<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (objects, judged) = (self.objects.len(), self.judged());
        let (counted, files) = (plural(objects, "object"), plural(self.files.len(), "file"));
        write!(formatter, "{counted} in {files}: {judged} judged")?;
        let mut by_policy: BTreeMap<&str, usize> = BTreeMap::new();
        let judged_objects = self.objects.iter().filter(|object| object.entry.unjudged.is_none());
        for policy in judged_objects.flat_map(|object| &object.entry.policies) {
            *by_policy.entry(policy).or_default() += 1;
        }
        if !by_policy.is_empty() {
            let counts = by_policy.iter().map(|(name, count)| format!("{name} {count}"));
            write!(formatter, " ({})", counts.collect::<Vec<_>>().join(", "))?;
        }
        if judged < objects {
            write!(formatter, ", {} not judged", objects - judged)?;
        }
        if let Some(stored) = self.stored {
            write!(formatter, "; {stored} of {counted} have a stored object")?;
        }
        let mut findings = BTreeMap::new();
        for (_, found, _) in self.findings() {
            *findings.entry(found.action).or_default() += 1;
        }
        write!(formatter, "; {}", by_action(&findings))?;
        if self.filtered_out > 0 {
            write!(formatter, "; {} filtered out", plural(self.filtered_out, "finding"))?;
        }
        let patched = self.count(|object| !object.patch.is_empty());
        if patched > 0 {
            write!(formatter, "; {patched} would be patched")?;
        }
        if !self.mistakes.is_empty() {
            write!(formatter, "; {} could not be used", plural(self.mistakes.len(), "document"))?;
        }
        if !self.skipped.is_empty() {
            write!(formatter, "; {} skipped: no manifests", plural(self.skipped.len(), "file"))?;
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
    use statusgate_core::source::{Manifests, Source};

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
            cause: statusgate_core::engine::Cause::Invalid,
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
            let entry = ObjectEntry {
                file: manifest.file.to_owned(),
                line: manifest.line(),
                document: manifest.document,
                item: manifest.item,
                identity: manifest.identity.clone(),
                written: None,
                policies: if judged { vec!["p".to_owned()] } else { Vec::new() },
                unjudged: (!judged).then(|| "no policy selects it".to_owned()),
            };
            Checked {
                entry,
                findings: if judged { findings.to_vec() } else { Vec::new() },
                patch: if judged { serde_json::from_str(patch).unwrap() } else { Vec::new() },
            }
        });
        Report {
            files: vec!["some folder/a.yaml".to_owned()],
            objects: objects.collect(),
            mistakes: manifests.mistakes().to_vec(),
            policies: &POLICIES,
            skipped: Vec::new(),
            stored: None,
            filtered_out: 0,
            fail_on: Action::Deny,
            unjudged_fails: false,
            summary: false,
            verbose: true,
        }
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        report().write(format, &mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    #[test]
    fn the_worst_finding_decides_whether_a_run_fails() {
        let mut report = report();
        assert!(report.fails());
        report.objects[0].findings.remove(0);
        assert!(!report.fails());
        report.fail_on = Action::Warn;
        assert!(report.fails());
        report.objects[0].findings.drain(..2);
        assert!(!report.fails());
        report.fail_on = Action::Audit;
        assert!(report.fails());
    }

    #[test]
    fn totals_are_one_line() {
        assert_eq!(
            report().to_string(),
            "2 objects in 1 file: 1 judged (p 1), 1 not judged; 1 deny, 1 repair, 1 warn, 1 audit; 1 would be patched; 1 document could not be used"
        );
        let with_old = Report { stored: Some(1), skipped: vec!["values.yaml".into()], ..report() };
        let with_old = with_old.to_string();
        assert!(with_old.contains("1 not judged; 1 of 2 objects have a stored object; 1 deny"));
        assert!(with_old.ends_with("; 1 file skipped: no manifests"), "{with_old}");
        let filtered = Report { filtered_out: 2, ..report() };
        assert!(filtered.to_string().contains(", 1 audit; 2 findings filtered out; 1 would"));
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
    fn the_summary_has_one_row_per_rule() {
        let mut out = Vec::new();
        let mut report = Report { summary: true, verbose: false, ..report() };
        // A second finding of the first rule.
        let again = report.objects[0].findings[0].clone();
        report.objects[0].findings.push(again);
        report.write(Format::Table, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string());
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
