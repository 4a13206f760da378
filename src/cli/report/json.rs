//! JSON, for programs.

use std::io::{self, Write};

use json_patch::PatchOperation;
use serde::Serialize;

use super::{Judged, Report};
use crate::source::{Mistake, Place};

/// Writes one document. Its keys are stable; new ones may be added.
pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let totals = report.totals();
    let document = Document {
        objects: report.objects.iter().map(Object::of).collect(),
        mistakes: report.mistakes.iter().map(Unread::of).collect(),
        summary: Summary {
            files: report.files.len(),
            objects: report.objects.len(),
            judged: totals.judged,
            patched: totals.patched,
            mistakes: report.mistakes.len(),
            policies: totals.policies,
            findings: totals.findings.iter().map(|(action, n)| (action.label(), *n)).collect(),
            failed: report.fails(),
        },
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

#[derive(Serialize)]
struct Document<'r> {
    objects: Vec<Object<'r>>,
    mistakes: Vec<Unread<'r>>,
    summary: Summary<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'r> {
    file: &'r str,
    document: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<usize>,
    api_version: &'r str,
    kind: &'r str,
    namespace: &'r str,
    name: &'r str,
    policies: &'r [String],
    findings: Vec<Finding<'r>>,
    patch: &'r [PatchOperation],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding<'r> {
    policy: &'r str,
    rule: &'r str,
    action: &'static str,
    field: &'r str,
    cause: &'static str,
    message: &'r str,
    #[serde(flatten)]
    position: Position,
}

/// A document that could not be read.
#[derive(Serialize)]
pub(in crate::cli) struct Unread<'r> {
    file: &'r str,
    message: &'r str,
    #[serde(flatten)]
    position: Option<Position>,
}

/// In characters, starting at 1.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Position {
    line: usize,
    column: usize,
    end_column: usize,
}

#[derive(Serialize)]
struct Summary<'r> {
    files: usize,
    objects: usize,
    judged: usize,
    patched: usize,
    mistakes: usize,
    policies: std::collections::BTreeMap<&'r str, usize>,
    findings: std::collections::BTreeMap<&'static str, usize>,
    failed: bool,
}

impl<'r> Object<'r> {
    fn of(object: &'r Judged) -> Self {
        let findings = object.findings.iter().map(|(found, place)| Finding {
            policy: &found.policy,
            rule: &found.rule,
            action: found.action.label(),
            field: &found.field,
            cause: found.cause.reason(),
            message: &found.message,
            position: Position::of(place),
        });
        Self {
            file: &object.file,
            document: object.document,
            item: object.item,
            api_version: &object.identity.api_version,
            kind: &object.identity.kind,
            namespace: &object.identity.namespace,
            name: &object.identity.name,
            policies: &object.policies,
            findings: findings.collect(),
            patch: &object.patch,
        }
    }
}

impl<'r> Unread<'r> {
    pub(in crate::cli) fn of(mistake: &'r Mistake) -> Self {
        let position = mistake.place.as_deref().map(Position::of);
        Self { file: &mistake.file, message: &mistake.message, position }
    }
}

impl Position {
    const fn of(place: &Place) -> Self {
        Self { line: place.line, column: place.column, end_column: place.end_column }
    }
}
