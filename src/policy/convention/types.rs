//! The types of conditions in a list: polarity, presence, and what their reasons say.

use super::super::predicate;
use super::super::schema::kebab;
use super::super::{Action, Disposition};
use super::conditions::one_or_all;
use super::{Reader, Sanction};
use crate::language::{Glob, Polarity, Predicate, Types};
use crate::model::Pointer;
use crate::source::tree::{Key, Map, Node, Problems, Value};

/// The types of a list.
#[derive(Clone, Debug, Default)]
pub struct ConditionTypes {
    /// Those that something is said of, in the order of the document.
    pub known: Vec<ConditionType>,
    /// Said of any other type; open where there is nothing to say.
    pub other: Option<Sanction>,
    /// Said of known types in another order than that of the document.
    pub order: Option<Sanction>,
    /// Lists of `{conditionType, polarity}` in `.spec` by which the object names types of its own.
    pub polarity_from: Vec<Pointer>,
    /// Whether some type has another spelling: where none has, nobody looks for one.
    pub(crate) has_aliases: bool,
    /// Whether some type has a key of its own.
    pub(crate) has_keys: bool,
}

/// One type of condition.
#[derive(Clone, Debug)]
pub struct ConditionType {
    /// `Ready`, or a family of types: `*Ready`.
    pub name: String,
    glob: Glob,
    /// Other spellings of the same.
    pub aliases: Vec<String>,
    /// Which status is the good one.
    pub polarity: Polarity,
    /// Said where it is absent from a status that has been written.
    pub missing: Option<Presence>,
    /// Said where it is in the list at all.
    pub present: Option<Presence>,
    /// Said where it is in the list but not True: absence is how it says False.
    pub not_true: Option<Sanction>,
    /// Said of a write that drops it.
    pub removed: Option<Sanction>,
    /// Said of a write that takes back a True.
    pub reverted: Option<Sanction>,
    /// Its times are those of another object's condition: they may move, and may go back.
    pub mirrored: bool,
    /// The members that tell two elements of this type apart, where the list's own do not do.
    pub key: Option<Vec<String>>,
    /// What reasons say about the other members.
    pub reasons: Vec<ReasonRow>,
    /// Said of a reason that is in no row.
    pub other_reasons: Option<Sanction>,
    /// What it means, for people.
    pub meaning: String,
    /// Where this comes from.
    pub source: String,
}

/// Whether a condition should be there.
#[derive(Clone, Debug)]
pub struct Presence {
    /// Only when this definitely holds.
    pub when: Option<Predicate>,
    /// Said where it does not keep to that.
    pub sanction: Sanction,
}

/// One row of a reason table: these reasons go with these values of other members.
#[derive(Clone, Debug)]
pub struct ReasonRow {
    /// `ReconcileSuccess`.
    pub reason: String,
    /// Member and the texts it may have; the empty one stands for absence too.
    pub expects: Vec<(String, Vec<String>)>,
    /// Said where it has another.
    pub sanction: Sanction,
}

impl ConditionTypes {
    /// What is known of a type: the first entry that fits, so that a family stands below its
    /// exceptions. Scans: tables have up to two dozen types, and a scan over short
    /// names costs less than hashing one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ConditionType> {
        self.known.iter().find(|known| known.is_called(name))
    }

    /// The spellings of a type.
    pub fn spellings<'t>(&'t self, name: &'t str) -> impl Iterator<Item = &'t str> {
        std::iter::once(name).chain(self.aliases(name).iter().map(String::as_str))
    }
}

impl Types for ConditionTypes {
    fn aliases(&self, kind: &str) -> &[String] {
        self.find(kind).map(|known| known.aliases.as_slice()).unwrap_or_default()
    }

    fn polarity(&self, kind: &str) -> Polarity {
        self.find(kind).map(|known| known.polarity).unwrap_or_default()
    }
}

impl ConditionType {
    /// Whether this is its name or another spelling of it.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.glob.matches(name) || self.aliases.iter().any(|alias| alias == name)
    }

    /// Whether anything is said of its being there or not.
    pub(crate) const fn is_looked_for(&self) -> bool {
        self.missing.is_some() || self.present.is_some() || self.removed.is_some()
    }

    /// A type of this name; of a family, an example.
    pub(crate) fn sample(&self) -> String {
        self.glob.sample()
    }

    /// The row of a reason.
    #[must_use]
    pub fn row(&self, reason: &str) -> Option<&ReasonRow> {
        self.reasons.iter().find(|row| row.reason == reason)
    }
}

impl Reader<'_> {
    pub(super) fn condition_types(&self, list: &Map<'_>) -> ConditionTypes {
        let types = list.get("types").and_then(|node| self.problems.map(node));
        let mut known: Vec<ConditionType> = Vec::new();
        for (key, node) in types.iter().flat_map(Map::entries) {
            if let Some(found) = self.condition_type(key, node) {
                self.check_reachable(&known, key, node);
                known.push(found);
            }
        }
        ConditionTypes {
            has_aliases: known.iter().any(|known| !known.aliases.is_empty()),
            has_keys: known.iter().any(|known| known.key.is_some()),
            known,
            other: self.sanction_if_said(list, "otherTypes", "condition-type-unknown"),
            order: self.sanction_if_said(list, "order", "condition-order"),
            polarity_from: self
                .list(list, "polarityFrom", |item| spec_pointer(item, self.problems)),
        }
    }

    /// The first entry that fits a type counts: what an entry above fits nobody looks for below.
    fn check_reachable(&self, above: &[ConditionType], key: &Key, node: &Node) {
        let check = |span, what: &str, name: &str| {
            if let Some(other) = above.iter().find(|other| other.is_called(name)) {
                let message = format!("{what} {name} is \"{}\" above already", other.name);
                let help = "the first entry that fits counts: put this one above it".to_owned();
                self.problems.report_with_help(span, message, Some(help));
            }
        };
        check(&key.span, "type", &key.name);
        for alias in node.member("aliases").iter().flat_map(|node| one_or_all(node)) {
            if let Value::String(name) = &alias.value {
                check(&alias.span, "alias", name);
            }
        }
    }

    fn condition_type(&self, key: &Key, node: &Node) -> Option<ConditionType> {
        let map = self.problems.map(node)?;
        let name = &key.name;
        let id = |what: &str| format!("{}-{what}", kebab(name));
        let sanction = |key, what| self.sanction_if_said(&map, key, &id(what));
        let polarity = map.get("polarity").and_then(|node| read_polarity(node, self.problems));
        let reasons = map.get("reasons").and_then(|node| self.problems.map(node));
        let found = ConditionType {
            name: name.clone(),
            glob: name.as_str().into(),
            aliases: self.strings(&map, "aliases"),
            polarity: polarity.unwrap_or_default(),
            missing: self.presence(&map, "missing", &id("missing")),
            present: self.presence(&map, "present", &id("present")),
            not_true: sanction("notTrue", "not-true"),
            removed: sanction("removed", "removed"),
            reverted: sanction("reverted", "reverted"),
            mirrored: self.flag(&map, "mirrored"),
            key: map.get("key").map(|_| self.filled_strings(&map, "key")),
            other_reasons: sanction("otherReasons", "reason"),
            reasons: reasons.map(|rows| self.reason_rows(&rows, &id("reason"))).unwrap_or_default(),
            meaning: self.text(&map, "meaning"),
            source: self.text(&map, "source"),
        };
        map.close();
        Some(found)
    }

    /// `missing: Warn`, or `missing: {when: …, action: Warn}`.
    fn presence(&self, map: &Map<'_>, key: &'static str, rule: &str) -> Option<Presence> {
        let node = map.get(key)?;
        if let Value::String(_) = node.value {
            let action = Disposition::read(node, self.problems)?;
            return Some(Presence {
                when: None,
                sanction: Sanction { rule: self.id(rule), action },
            });
        }
        let map = self.problems.map(node)?;
        let when = map.required("when");
        let when = when.and_then(|node| predicate::read(node, self.problems, self.names));
        let action = map.required("action");
        let action = action.and_then(|node| Disposition::read(node, self.problems));
        map.close();
        Some(Presence {
            when: Some(when?),
            sanction: Sanction { rule: self.id(rule), action: action? },
        })
    }

    /// `Available: "True"`, or `Succeeded: {status: "True", severity: "", action: Warn}`.
    fn reason_rows(&self, map: &Map<'_>, rule: &str) -> Vec<ReasonRow> {
        let mut rows = Vec::new();
        for (key, node) in map.entries() {
            let mut action = Disposition::Fixed(Action::Deny);
            let expects = match &node.value {
                Value::Map(members) => {
                    let mut expects = Vec::new();
                    for (member, values) in members {
                        if member.name == "action" {
                            action = Disposition::read(values, self.problems).unwrap_or(action);
                        } else {
                            expects
                                .push((member.name.clone(), self.expected(&member.name, values)));
                        }
                    }
                    expects
                }
                _ => vec![(STATUS.to_owned(), self.expected(STATUS, node))],
            };
            let sanction = Sanction { rule: self.id(rule), action };
            rows.push(ReasonRow { reason: key.name.clone(), expects, sanction });
        }
        rows
    }

    /// The texts that a member may have; a status is one of three.
    fn expected(&self, member: &str, node: &Node) -> Vec<String> {
        self.problems.filled(node, |item| {
            if member == STATUS {
                predicate::status(item, self.problems).map(|status| status.name().to_owned())
            } else {
                predicate::scalar_text(item, self.problems)
            }
        })
    }
}

const STATUS: &str = "status";

/// Reads a polarity.
pub(crate) fn read_polarity(node: &Node, problems: &Problems) -> Option<Polarity> {
    let all = [Polarity::Positive, Polarity::Negative, Polarity::Neutral];
    problems.word(node, &all.map(|polarity| (polarity.name(), polarity)))
}

fn spec_pointer(node: &Node, problems: &Problems) -> Option<Pointer> {
    let found = predicate::any_pointer(node, problems)?;
    if found.below_spec().is_empty() {
        problems.report(&node.span, "this must point below /spec");
        return None;
    }
    Some(found)
}
