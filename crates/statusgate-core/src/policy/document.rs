//! A policy, compiled from a `StatusPolicy`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::documents::{self, PolicySpec, Resources, Writers};
use crate::language::{Glob, selector};
use crate::model::{Operation, Pointer, Subject, Writer};
use crate::source::tree::At;

use super::compile::Compiler;
use super::convention::{Backfill, Convention, remaining};
use super::known::{KnownConvention, KnownConventions};
use super::mentioned::pointers;
use super::rules::{Declarer, OWNER, RuleTable};
use super::{Action, CelRule, DeclaredRule, Disposition, Field, Id, Owner};

/// Which resources follow which convention, how strictly, with what local additions.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `metadata.name`, with the position in the set.
    pub name: Id,
    /// The convention that is followed.
    pub convention: Arc<Convention>,
    /// The resources that it selects.
    pub resources: Vec<Resources>,
    /// The ceiling over every rule.
    pub enforcement: Action,
    /// What happens when a write introduces a disagreement.
    pub disagreement: Action,
    /// The same for some writers.
    pub writers: Vec<documents::Writer>,
    /// Whether a repair also changes a phase that disagrees in the stored object. No document asks for
    /// this: the webhook repairs only what a write introduces.
    pub repairs_stored: bool,
    /// The convention's defaults, then the policy's own; where both name a place, the policy's.
    pub backfill: Vec<Backfill>,
    /// Local schema.
    pub fields: Vec<Field>,
    /// Who may set what.
    pub owners: Vec<Owner>,
    /// The rule id of a change by someone who is not the owner; `None` without owners.
    pub owner_rule: Option<Id>,
    /// What a writer cannot drop.
    pub preserve: Vec<Pointer>,
    /// What the convention cannot express.
    pub rules: Vec<CelRule>,
    /// Its own rules. They come after those of its convention.
    pub declared: RuleTable,
    /// The condition types that its predicates name and no list of the convention declares.
    pub undeclared: BTreeSet<String>,
    /// Every field of the spec and the status that its document names.
    pub paths: BTreeSet<Pointer>,
}

impl Policy {
    /// Whether a request can change a stored status that this policy selects.
    ///
    /// With the status subresource that is only UPDATE of `<plural>/status`: what a main-resource
    /// write carries in `.status` is dropped by the API server, and CREATE of `/status` does not
    /// exist. Without it status travels with the main resource.
    pub fn selects(&self, subject: &Subject<'_>) -> bool {
        self.resource_of(subject).is_some()
    }

    /// The names of its resources as in the document, `PLURAL.GROUP`: both may be patterns.
    pub fn resource_names(&self) -> impl Iterator<Item = String> {
        self.resources.iter().flat_map(|rule| {
            rule.api_groups.iter().flat_map(|group| {
                rule.resources.iter().map(move |plural| match group.exact() {
                    Some("") => plural.to_string(),
                    _ => format!("{plural}.{group}"),
                })
            })
        })
    }

    /// The place of the name that selects a request, in [`Self::resource_names`].
    pub fn resource_of(&self, subject: &Subject<'_>) -> Option<usize> {
        let place = |globs: &[Glob], name: &str| globs.iter().position(|glob| glob.matches(name));
        let mut before = 0;
        self.resources.iter().find_map(|rule| {
            let first = before;
            before += rule.api_groups.len() * rule.resources.len();
            let stored = match (rule.status_subresource, subject.subresource.as_ref()) {
                (true, "status") => subject.operation == Operation::Update,
                (false, "") => {
                    matches!(subject.operation, Operation::Create | Operation::Update)
                }
                _ => false,
            };
            if !stored {
                return None;
            }
            // Plurals last: a rule has one or two groups and dozens of these.
            let group = place(&rule.api_groups, &subject.resource.group)?;
            place(&rule.api_versions, &subject.resource.version)?;
            let plural = place(&rule.resources, &subject.resource.resource)?;
            Some(first + group * rule.resources.len() + plural)
        })
    }

    /// All rules, of the convention and then its own.
    pub fn rules(&self) -> impl Iterator<Item = (Id, &DeclaredRule)> {
        self.convention.declared.iter().chain(self.declared.iter())
    }

    /// What a violation of a rule leads to, by writer.
    pub fn actions_of<'r>(&'r self, rule: &'r DeclaredRule) -> impl Iterator<Item = Action> {
        let by_writer =
            self.writers.iter().map(|rule| rule.disagreement).chain([self.disagreement]);
        let actions = rule.actions.iter().flat_map(move |action| match action {
            Disposition::Disagreement => by_writer.clone().collect(),
            fixed => vec![fixed.action(self.disagreement)],
        });
        actions.map(|action| action.min(self.enforcement))
    }

    /// What is declared of a rule.
    pub fn rule(&self, id: &str) -> Option<&DeclaredRule> {
        self.declared.get(id).or_else(|| self.convention.declared.get(id))
    }

    /// Whether it repairs the disagreements of some writer.
    pub(crate) fn repairs(&self) -> bool {
        let mut by_writer = self.writers.iter().map(|rule| rule.disagreement);
        let repairs =
            self.disagreement == Action::Repair || by_writer.any(|action| action == Action::Repair);
        self.repairs_stored || (repairs && self.enforcement >= Action::Repair)
    }

    /// What a disagreement of this writer leads to, under the ceiling.
    pub fn disagreement_of(&self, writer: &Writer<'_>) -> Action {
        self.writers
            .iter()
            .find(|rule| rule.writers.include(writer))
            .map_or(self.disagreement, |rule| rule.disagreement)
            .min(self.enforcement)
    }
}

impl Writers {
    /// Whether a writer is one of these.
    pub fn include(&self, writer: &Writer<'_>) -> bool {
        self.users.iter().any(|glob| glob.matches(&writer.user))
            || self.groups.iter().any(|glob| writer.groups.iter().any(|name| glob.matches(name)))
    }
}

/// Compiles a policy. `None` where its convention does not exist or has errors.
pub(crate) fn compile(
    name: &str,
    spec: &PolicySpec,
    known: &KnownConventions,
    at: At<'_>,
) -> Option<Policy> {
    let found = known.find(&spec.convention, at.key("convention"));
    check_enabled(&spec.enable, found.as_ref(), at.key("enable"));
    let names = found.as_ref().map(|found| found.convention.names.clone()).unwrap_or_default();
    let convention = found.as_ref().map(|found| known.with_parts(&found.convention, &spec.enable));
    let declared = convention.as_ref().map(|convention| &*convention.declared);
    let compiler = Compiler::new(name, &names, true, at).after(declared);
    let fields = compiler.fields(&spec.fields, at.key("fields"));
    // Policies without rules of their own share the list of ids in metrics.
    let owner_rule = (!spec.owners.is_empty())
        .then(|| compiler.tables(&[]).by(Declarer::Owners).rule(OWNER, Disposition::Deny));
    let lists =
        convention.as_ref().map(|convention| convention.conditions.as_slice()).unwrap_or_default();
    let inherited =
        convention.as_ref().map(|convention| convention.backfill.as_slice()).unwrap_or_default();
    for (at, _) in at.key("backfill").each(&spec.backfill) {
        if at.position("optional").is_some() {
            at.key("optional").report_with_help(
                "a default of a policy itself cannot be optional",
                "leave it out; \"enable\" is for the optional parts of the convention",
            );
        }
    }
    let mut own = compiler.backfill(&spec.backfill, lists, inherited, at.key("backfill"));
    own.iter_mut().for_each(|default| default.of_policy = true);
    let inherited = remaining(inherited, &own);
    let mut backfill: Vec<Backfill> = inherited.into_iter().cloned().chain(own).collect();
    backfill.sort_by_key(Backfill::comes_last);
    check_ids(spec, &compiler, known.find_named(name).as_deref(), at);
    let rules = compiler.cel_rules(&spec.rules, convention.as_deref(), &backfill, at.key("rules"));
    check_resources(&spec.resources, at.key("resources"));
    check_writers(&spec.writers, at.key("writers"));
    let owners = compiler.owners(&spec.owners, convention.as_deref(), at.key("owners"));
    let policy = Policy {
        name: Id::new(name.to_owned(), 0),
        resources: spec.resources.clone(),
        enforcement: spec.enforcement.unwrap_or(Action::Deny),
        disagreement: spec.disagreement.unwrap_or(Action::Deny),
        writers: spec.writers.clone(),
        repairs_stored: false,
        fields,
        owners,
        owner_rule,
        preserve: spec.preserve.iter().map(|path| (**path).clone()).collect(),
        rules,
        backfill,
        undeclared: compiler.undeclared.take(),
        paths: pointers(at.node()),
        declared: compiler.into_rules(),
        convention: convention?,
    };
    found.is_some_and(|found| found.sound).then_some(policy)
}

/// Reports optional parts that a policy cannot enable.
fn check_enabled(enabled: &[String], found: Option<&KnownConvention>, at: At<'_>) {
    let parts = found.and_then(KnownConvention::parts);
    for (index, (at, name)) in at.each(enabled).enumerate() {
        if enabled[..index].contains(name) {
            at.report(format!("\"{name}\" is enabled twice"));
        }
        if let Some(parts) = &parts
            && !parts.contains(&name.as_str())
        {
            at.unknown("optional part", name, parts.iter().copied());
        }
    }
}

/// Reports ids of a policy's own rules and fields that are those of others: of each other, and of the
/// convention that has the policy's name.
fn check_ids(spec: &PolicySpec, compiler: &Compiler<'_>, named: Option<&Convention>, at: At<'_>) {
    let of_convention =
        |id: &str| named.is_some_and(|named| named.declared.get(&compiler.id(id)).is_some());
    for (at, field) in at.key("fields").each(&spec.fields) {
        if let Some(id) = field.check.id.as_ref().filter(|id| of_convention(id)) {
            Compiler::report_taken(at.key("id"), id, "the convention of the same name");
        }
    }
    for (at, rule) in at.key("rules").each(&spec.rules) {
        let by = match compiler.declarer(&rule.name) {
            _ if *rule.name == *OWNER => Declarer::Owners.name(),
            Some(Declarer::Check) => "a check of a field",
            Some(other) => other.name(),
            None if of_convention(&rule.name) => "the convention of the same name",
            None => continue,
        };
        Compiler::report_taken(at.key("name"), &rule.name, by);
    }
}

/// Reports names that no resource can have.
fn check_resources(documents: &[Resources], at: At<'_>) {
    for (at, document) in at.each(documents) {
        let Resources { api_groups, api_versions, resources, .. } = document;
        let check = |key, globs: &[Glob], wrong: fn(&Glob) -> Option<selector::Unmatchable>| {
            for (at, glob) in at.key(key).each(globs) {
                if let Some((message, help)) = wrong(glob) {
                    at.report_with_help(message, help);
                }
            }
        };
        check("apiGroups", api_groups, selector::group);
        check("apiVersions", api_versions, selector::version);
        check("resources", resources, selector::plural);
    }
}

/// The first entry that names a writer counts: an entry is useless if entries above name all of its
/// writers.
fn check_writers(documents: &[documents::Writer], at: At<'_>) {
    let mut above = Writers::default();
    for (at, documents::Writer { writers, .. }) in at.each(documents) {
        check_named(writers, at);
        let Writers { users, groups } = writers;
        let everybody = above.users.iter().any(|user| user.covers(&Glob::from("*")));
        let covered = |some: &[Glob], glob: &Glob| some.iter().any(|known| known.covers(glob));
        if (!users.is_empty() || !groups.is_empty())
            && users.iter().all(|user| covered(&above.users, user))
            && groups.iter().all(|group| everybody || covered(&above.groups, group))
        {
            at.report_with_help(
                "all of these writers are in entries above already",
                "the first entry that names a writer counts",
            );
        }
        above.users.extend_from_slice(users);
        above.groups.extend_from_slice(groups);
    }
}

pub(super) fn check_named(writers: &Writers, at: At<'_>) {
    if writers.users.is_empty() && writers.groups.is_empty() {
        // At the empty list: one that could not be read has an error already.
        let list = ["users", "groups"].into_iter().find(|list| at.position(list).is_some());
        list.map_or(at, |list| at.key(list))
            .report("name at least one of \"users\" and \"groups\"");
    }
}
