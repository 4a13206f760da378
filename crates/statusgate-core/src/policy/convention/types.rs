//! The types of conditions in a list: polarity, presence, and what their reasons say.

use serde_json::Value;

use super::super::Disposition;
use super::super::compile::{Compiler, Sourced};
use super::super::schema::kebab;
use super::Sanction;
use crate::documents;
use crate::language::{Glob, Polarity, Predicate, Scalar};
use crate::model::{ConditionStatus, Pointer};
use crate::source::tree::At;

/// The types of a list.
#[derive(Clone, Debug, Default)]
pub struct ConditionTypes {
    /// The declared types, in the order of the document.
    pub known: Vec<ConditionType>,
    /// An element has another type. `None` accepts all types.
    pub other: Option<Sanction>,
    /// Known types are not in the order of the document.
    pub order: Option<Sanction>,
    /// Lists of `{conditionType, polarity}` in `.spec`: types that the object itself declares.
    pub polarity_from: Vec<Pointer>,
    /// Whether some type has a key of its own.
    pub(crate) has_keys: bool,
}

/// One type of condition.
#[derive(Clone, Debug)]
pub struct ConditionType {
    /// `Ready`, or a family of types: `*Ready`.
    pub name: String,
    glob: Glob,
    /// Which status is the good one.
    pub polarity: Polarity,
    /// A written status lacks it.
    pub missing: Option<Presence>,
    /// It is present.
    pub present: Option<Presence>,
    /// It is present but not True: absence stands for False.
    pub not_true: Option<Sanction>,
    /// A write removed it.
    pub removed: Option<Sanction>,
    /// A write changed True to something else.
    pub reverted: Option<Sanction>,
    /// It is copied from another object: its time may change, and may go backwards.
    pub mirrored: bool,
    /// The members that identify elements of this type, if not those of the list.
    pub key: Option<Vec<String>>,
    /// What each reason implies for the other members.
    pub reasons: Vec<ReasonRow>,
    /// Its meaning, for documentation.
    pub meaning: String,
    /// Where this comes from.
    pub source: String,
}

/// Whether a condition should be there.
#[derive(Clone, Debug)]
pub struct Presence {
    /// Only when this definitely holds.
    pub when: Option<Predicate>,
    /// The rule and its action.
    pub sanction: Sanction,
}

/// One row of a reason table: these reasons imply these values of other members.
#[derive(Clone, Debug)]
pub struct ReasonRow {
    /// `ReconcileSuccess`.
    pub reason: String,
    /// Member and its admissible texts; the empty text also stands for absence.
    pub expects: Vec<(String, Vec<String>)>,
    /// A member has another text.
    pub sanction: Sanction,
}

impl ConditionTypes {
    /// The first entry that matches a type: a family comes after its exceptions. Tables have up to two
    /// dozen types, so comparing short names costs less than hashing one.
    pub fn find(&self, name: &str) -> Option<&ConditionType> {
        self.known.iter().find(|known| known.matches(name))
    }
}

impl ConditionType {
    /// Whether this is its name, or a name of its family.
    pub fn matches(&self, name: &str) -> bool {
        self.glob.matches(name)
    }

    /// Whether a rule depends on its presence.
    pub(crate) const fn is_looked_for(&self) -> bool {
        self.missing.is_some() || self.present.is_some() || self.removed.is_some()
    }

    /// A type of this name; of a family, an example.
    pub(crate) fn sample(&self) -> String {
        self.glob.sample()
    }

    /// The row of a reason.
    pub fn row(&self, reason: &str) -> Option<&ReasonRow> {
        self.reasons.iter().find(|row| row.reason == reason)
    }
}

impl Compiler<'_> {
    pub(super) fn condition_types(
        &self,
        list: &documents::ConditionList,
        at: At<'_>,
    ) -> ConditionTypes {
        let mut known: Vec<ConditionType> = Vec::new();
        for (name, document) in &list.types {
            let at = at.key("types").key(name);
            let found = self.condition_type(name, document, list, at);
            check_reachable(&known, name, at.name());
            known.push(found);
        }
        let rules = self.tables(&[&list.source]);
        ConditionTypes {
            has_keys: known.iter().any(|known| known.key.is_some()),
            known,
            other: rules.optional("condition-type-unknown", list.other_types),
            order: rules.optional("condition-order", list.order),
            polarity_from: list.polarity_from.iter().map(|path| (**path).clone()).collect(),
        }
    }

    fn condition_type(
        &self,
        name: &str,
        document: &documents::ConditionType,
        list: &documents::ConditionList,
        at: At<'_>,
    ) -> ConditionType {
        let rules = self.tables(&[&document.source, &list.source]);
        let id = |what: &str| format!("{}-{what}", kebab(name));
        let presence = |key: &str, document: Option<&documents::Presence>| {
            let (when, action) = match document? {
                documents::Presence::Always(action) => (None, *action),
                documents::Presence::Guarded(guarded) => {
                    let when = self.predicate(&guarded.when, at.key(key).key("when"));
                    (Some(when), guarded.action)
                }
            };
            Some(Presence { when, sanction: rules.optional(&id(key), Some(action))? })
        };
        ConditionType {
            name: name.to_owned(),
            glob: name.into(),
            polarity: document.polarity.unwrap_or_default(),
            missing: presence("missing", document.missing.as_ref()),
            present: presence("present", document.present.as_ref()),
            not_true: rules.optional(&id("not-true"), document.not_true),
            removed: rules.optional(&id("removed"), document.removed),
            reverted: rules.optional(&id("reverted"), document.reverted),
            mirrored: document.mirrored,
            key: document.key.as_ref().map(|key| key.to_vec()),
            reasons: document
                .reasons
                .iter()
                .map(|(reason, row)| {
                    let at = at.key("reasons").key(reason);
                    reason_row(reason, row, rules, &id("reason"), at)
                })
                .collect(),
            meaning: document.meaning.clone(),
            source: document.source.clone(),
        }
    }
}

/// The first entry that matches a type counts: what an entry above matches is not found below.
fn check_reachable(above: &[ConditionType], name: &str, at: At<'_>) {
    if let Some(other) = above.iter().find(|other| other.matches(name)) {
        let message = format!("type {name} is \"{}\" above already", other.name);
        at.report_with_help(message, "the first entry that fits counts: put this one above it");
    }
}

/// `Available: "True"`, or `Succeeded: {status: "True", severity: "", action: Warn}`.
fn reason_row(
    reason: &str,
    row: &documents::ReasonRow,
    rules: Sourced<'_>,
    id: &str,
    at: At<'_>,
) -> ReasonRow {
    let names = |statuses: &[ConditionStatus]| {
        let names = statuses.iter().map(|status| status.name().to_owned());
        (STATUS.to_owned(), names.collect::<Vec<_>>())
    };
    let (expects, action) = match row {
        documents::ReasonRow::Status(statuses) => (vec![names(statuses)], None),
        documents::ReasonRow::Members(members) => {
            let others = members.others.iter();
            let others = others.map(|(name, texts)| {
                let texts = texts.iter().enumerate();
                let texts = texts.map(|(index, value)| text(value, at.key(name).item(index)));
                (name.clone(), texts.collect())
            });
            let status = members.status.iter().map(|statuses| names(statuses));
            (status.chain(others).collect(), members.action)
        }
    };
    ReasonRow {
        reason: reason.to_owned(),
        expects,
        sanction: rules.sanction(id, action, Disposition::Deny),
    }
}

/// A text as members of conditions have it. YAML reads an unquoted `True` as a boolean; in a condition
/// it can only mean the status.
fn text(scalar: &Scalar, at: At<'_>) -> String {
    match scalar.value() {
        Value::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Value::String(text) => text.clone(),
        number => {
            at.report("this must be a string, it is a number (quote it)");
            number.to_string()
        }
    }
}

const STATUS: &str = "status";
