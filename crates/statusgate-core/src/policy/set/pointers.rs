//! The fields that documents name, compared with the schemas of the objects that they are about.

use json_patch::jsonptr::PointerBuf;

use crate::documents::DocumentKind;
use crate::model::Pointer;
use crate::policy::{Defined, Diagnostics, Misfit, Policy};
use crate::source::tree::{At, Node, Problems, Value, near};

use super::super::mentioned::pointer;
use super::{PolicySet, Source, envelopes, read_documents};
use super::{expressions, values};

impl PolicySet {
    /// The pointers and the members in CEL of these documents that none of their objects has. A policy is
    /// about what it selects, a convention about what its policies select, or about all if it has none.
    /// The built-in conventions are about more than one kind, and are not compared.
    pub fn mistakes_in_pointers(&self, given: &[Source], defined: &[Defined]) -> Diagnostics {
        let (documents, _) = read_documents(given, 0);
        let (found, _) = envelopes(documents);
        let problems = Problems::default();
        for envelope in &found {
            let policies =
                Vec::from_iter(self.policies().iter().filter(|policy| match envelope.kind {
                    DocumentKind::StatusPolicy => *policy.name == *envelope.label,
                    _ => policy.convention.name == envelope.label,
                }));
            let versions = Vec::from_iter(defined.iter().filter(|version| {
                policies.iter().any(|policy| version.is_selected(policy))
                    || (policies.is_empty() && envelope.kind == DocumentKind::StatusConvention)
            }));
            if let Some(first) = versions.first() {
                let follower = policies.first().map(|policy| &policy.convention);
                let convention = follower.or_else(|| self.conventions().get(&envelope.label));
                let primary = convention.and_then(|of| of.primary_conditions(&first.version));
                let around =
                    Around { list: None, conditions: primary.map(|list| (*list.path).clone()) };
                compare("", At::root(&envelope.spec, &problems), &around, &versions);
            }
            if problems.count() == 0 && envelope.kind == DocumentKind::StatusPolicy {
                let at = At::root(&envelope.spec, &problems).key("convention");
                policies.iter().for_each(|policy| report_required(policy, at, &versions));
            }
        }
        Diagnostics::new(given, problems.into_list())
    }

    /// The policies among these documents for which the webhook would set a value that a version rejects.
    pub fn mistakes_in_settings(&self, given: &[Source], defined: &[Defined]) -> Diagnostics {
        let (documents, _) = read_documents(given, 0);
        let (found, _) = envelopes(documents);
        let problems = Problems::default();
        for envelope in found.iter().filter(|of| of.kind == DocumentKind::StatusPolicy) {
            let at = At::root(&envelope.spec, &problems).key("convention");
            for policy in self.policies().iter().filter(|of| *of.name == *envelope.label) {
                for version in defined.iter().filter(|version| version.is_selected(policy)) {
                    // What is pruned may be declared by the next version of the CRD.
                    let misfits = version.misfits(policy).into_iter();
                    for Misfit { message, help, .. } in misfits.filter(|of| !of.is_pruned) {
                        at.report_with_help(format!("{}: {message}", version.name), help);
                    }
                }
            }
        }
        Diagnostics::new(given, problems.into_list())
    }
}

/// Reports the members that a convention requires of conditions and that a version prunes: every condition violates it.
fn report_required(policy: &Policy, at: At<'_>, versions: &[&Defined]) {
    for version in versions.iter().filter(|version| version.is_selected(policy)) {
        for list in policy.convention.lists(&version.version) {
            for (name, checks) in list.members.iter() {
                let place = values::element(&list.path, name);
                let pruned = version.schema.pruned(place.tokens());
                let is_member = pruned.is_some_and(|(at, _)| at + 1 == place.tokens().len());
                let required = checks.iter().find(|check| check.required);
                if let Some(check) = required.filter(|_| is_member) {
                    let (field, version) = (place.field(), &version.name);
                    let (convention, id) = check.rule.split_once('/').unwrap_or_default();
                    at.report_with_help(
                        format!("{field} is not in the schema of {version}, but {convention}/{id} requires it"),
                        format!("follow a convention with extends: {convention} and without: [{id}]"),
                    );
                }
            }
        }
    }
}

/// The lists that a part of a document is about.
#[derive(Clone)]
pub(super) struct Around {
    /// The list with the members that it names.
    pub(super) list: Option<Pointer>,
    /// The list with the conditions that its predicates read.
    pub(super) conditions: Option<Pointer>,
}

impl Around {
    /// The lists of a part with its own list.
    fn of(&self, key: &str, node: &Node) -> Self {
        let pointer = |key| node.text_of(key).and_then(|text| Pointer::of_list(text).ok());
        let mut around = self.clone();
        around.conditions = pointer("in").or(around.conditions);
        if let Some(own) = pointer("path").filter(|_| key == "conditions") {
            // For the values of a map, predicates read the conditions of the object.
            if own.tokens().last().is_none_or(|last| last != "*") {
                around.conditions = Some(own.clone());
            }
            around.list = Some(own);
        }
        around
    }
}

/// Compares the pointers and values below a key with the schemas.
fn compare(key: &str, at: At<'_>, around: &Around, defined: &[&Defined]) {
    match &at.node().value {
        Value::Map(entries) => {
            let own = around.of(key, at.node());
            // The path of a list is the only mistake of the list.
            if key == "conditions"
                && let Some(list) = &own.list
                && defined.iter().all(|of| of.schema.pruned(list.tokens()).is_some())
            {
                return compare("path", at.key("path"), around, defined);
            }
            values::compare(key, at, around, defined);
            for (key, _) in entries {
                compare(&key.name, at.key(&key.name), &own, defined);
            }
        }
        Value::List(items) => {
            (0..items.len()).for_each(|index| compare(key, at.item(index), around, defined));
        }
        Value::String(text) if key == "expression" => {
            expressions::compare(text, at, defined);
        }
        Value::String(text) => {
            pointer(key, text).into_iter().for_each(|pointer| check(pointer.tokens(), at, defined));
        }
        _ => {}
    }
}

/// Reports a field of the spec or the status that no schema has.
pub(super) fn check(tokens: &[String], at: At<'_>, defined: &[&Defined]) {
    let Some((root, [_, ..])) = tokens.split_first() else { return };
    let found: Option<Vec<_>> =
        defined.iter().map(|version| version.schema.pruned(tokens)).collect();
    let Some(first) = found.as_ref().and_then(|found| found.first()) else { return };
    if !matches!(root.as_str(), "spec" | "status") {
        return;
    }
    let (place, names) = first;
    let pointer = |tokens: &[String]| PointerBuf::from_tokens(tokens).to_string();
    let of = match defined {
        [one] => format!("the schema of {}", one.name),
        all => format!("the {} schemas of the selected versions", all.len()),
    };
    let message = format!("{} is not in {of}", pointer(tokens));
    let token = tokens.get(*place).map_or("", String::as_str);
    let help = match near(token, names.iter().copied()) {
        Some(name) => {
            let mut meant = tokens.to_vec();
            name.clone_into(&mut meant[*place]);
            format!("did you mean {}?", pointer(&meant))
        }
        None if names.is_empty() => format!("{} has no members", pointer(&tokens[..*place])),
        None => format!("{} has {}", pointer(&tokens[..*place]), names.join(", ")),
    };
    at.report_with_help(message, help);
}
