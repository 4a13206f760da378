//! `StatusPolicy` documents: from YAML to [`Policy`].

use std::sync::Arc;

use crate::model::{Operation, Pointer, Subject, Writer};

use super::convention::{
    Backfill, ConditionList, Convention, Names, OWNER, check_ids, read_backfill, remaining,
};
use super::known::Known;
use super::order::{self, Step};
use super::predicate::pointer;
use super::schema::{self, FieldRule};
use super::{Action, CelRule, cel};
use crate::language::Glob;
use crate::source::tree::{Node, Problems};

/// Which resources follow which convention, how strictly, with what local additions.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `metadata.name`.
    pub name: String,
    /// The convention that is followed.
    pub convention: Arc<Convention>,
    /// Whose status it is.
    pub resources: Vec<ResourceRule>,
    /// The ceiling over every rule.
    pub enforcement: Action,
    /// What happens when a write introduces a disagreement.
    pub disagreement: Action,
    /// The same for some writers.
    pub writers: Vec<WriterRule>,
    /// The convention's defaults, then the policy's own; where both name a place, the policy's.
    pub backfill: Vec<Backfill>,
    /// How many of them are the convention's.
    pub(crate) inherited: usize,
    /// What the mutating webhook does, in order: the rank among the steps of all policies, and which of the
    /// defaults is set; the phase, where it is none.
    pub(crate) steps: Vec<(u32, Option<usize>)>,
    /// Local schema.
    pub fields: Vec<FieldRule>,
    /// Who may set what.
    pub owners: Vec<Owner>,
    /// The rule id of a change by someone who is not the owner.
    pub owner_rule: String,
    /// What a writer cannot drop.
    pub preserve: Vec<Pointer>,
    /// What the convention cannot say.
    pub rules: Vec<CelRule>,
}

/// Resources in the vocabulary of webhook rules.
#[derive(Clone, Debug)]
pub struct ResourceRule {
    /// API groups.
    pub groups: Vec<Glob>,
    /// API versions.
    pub versions: Vec<Glob>,
    /// Plurals.
    pub resources: Vec<Glob>,
    /// Whether the CRD has the status subresource.
    pub status_subresource: bool,
}

/// Writers by name or group.
#[derive(Clone, Debug, Default)]
pub struct Writers {
    /// User names.
    pub users: Vec<Glob>,
    /// Group names.
    pub groups: Vec<Glob>,
}

/// What a disagreement leads to for some writers.
#[derive(Clone, Debug)]
pub struct WriterRule {
    /// Who.
    pub writers: Writers,
    /// What happens.
    pub disagreement: Action,
}

/// Who may set a field.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The field, with all that is inside.
    pub path: Pointer,
    /// Its owners.
    pub writers: Writers,
}

impl Policy {
    /// Whether a request can change a stored status that this policy speaks of.
    ///
    /// With the status subresource that is only UPDATE of `<plural>/status`: what a main-resource
    /// write carries in `.status` is dropped by the API server, and CREATE of `/status` does not
    /// exist. Without it status travels with the main resource.
    #[must_use]
    pub fn selects(&self, subject: &Subject<'_>) -> bool {
        let any = |globs: &[Glob], name: &str| globs.iter().any(|glob| glob.matches(name));
        self.resources.iter().any(|rule| {
            let stored = match (rule.status_subresource, subject.subresource.as_ref()) {
                (true, "status") => subject.operation == Operation::Update,
                (false, "") => {
                    matches!(subject.operation, Operation::Create | Operation::Update)
                }
                _ => false,
            };
            stored
                // Plurals last: a rule has one or two groups and dozens of these.
                && any(&rule.groups, &subject.resource.group)
                && any(&rule.versions, &subject.resource.version)
                && any(&rule.resources, &subject.resource.resource)
        })
    }

    /// The policy's own defaults.
    pub(crate) fn own_defaults(&self) -> &[Backfill] {
        self.backfill.get(self.inherited..).unwrap_or_default()
    }

    /// What the mutating webhook does by this policy, in order, by rank among the steps of all policies.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u32, Step<'_>)> {
        self.steps.iter().filter_map(|(rank, step)| {
            let step = match step {
                None => Step::Phase(self.convention.phase.as_ref()?),
                Some(default) => Step::Default(self.backfill.get(*default)?),
            };
            Some((*rank, step))
        })
    }

    /// What a disagreement of this writer leads to, under the ceiling.
    #[must_use]
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
    #[must_use]
    pub fn include(&self, writer: &Writer<'_>) -> bool {
        self.users.iter().any(|glob| glob.matches(&writer.user))
            || self.groups.iter().any(|glob| writer.groups.iter().any(|name| glob.matches(name)))
    }
}

/// Reads the `spec` of a `StatusPolicy`. `None` where it has mistakes, which are in `problems`, or where
/// its convention has.
pub(crate) fn read(name: &str, spec: &Node, problems: &Problems, known: &Known) -> Option<Policy> {
    let before = problems.count();
    let map = problems.map(spec)?;
    let named = map.required("convention");
    let convention = named.and_then(|node| known.find(node, problems));
    let broken = named.and_then(|node| known.find_broken(node));
    let parts: Option<Vec<&str>> = match (&convention, broken) {
        (Some(convention), _) => Some(convention.optional_parts().collect()),
        (None, Some(broken)) => {
            broken.parts.as_ref().map(|parts| parts.iter().map(String::as_str).collect())
        }
        (None, None) => None,
    };
    let enabled = map.get("enable").map(|node| {
        let mut before: Vec<&str> = Vec::new();
        problems.list(node, |item| {
            let name = problems.string(item)?;
            if before.contains(&name) {
                problems.report(&item.span, format!("\"{name}\" is enabled twice"));
            }
            before.push(name);
            if let Some(parts) = &parts
                && !parts.contains(&name)
            {
                problems.unknown(&item.span, "optional part", name, parts.iter().copied());
            }
            Some(name.to_owned())
        })
    });
    let names = match (&convention, broken) {
        (Some(convention), _) => Names::of(convention),
        (None, Some(broken)) => broken.names.clone(),
        (None, None) => Names::default(),
    };
    let convention = convention.map(|convention| {
        if convention.optional_parts().next().is_some() {
            Arc::new(convention.with_parts(&enabled.unwrap_or_default()))
        } else {
            convention
        }
    });
    let list = map.required("resources").map(|node| {
        let why = "a policy without resources would judge nothing";
        problems.filled_list(node, why, |item| read_resources(item, problems))
    });
    let lists = convention.as_ref().map(|convention| convention.conditions.as_slice());
    let inherited = convention.as_ref().map(|convention| convention.backfill.as_slice());
    let (lists, inherited) = (lists.unwrap_or_default(), inherited.unwrap_or_default());
    let own_node = map.get("backfill");
    let own: Vec<Backfill> = own_node
        .map(|node| read_own_backfill(node, problems, &names, lists, inherited))
        .unwrap_or_default();
    let inherited = remaining(inherited, &own);
    let inherited_count = inherited.len();
    let backfill: Vec<Backfill> = inherited.into_iter().chain(&own).cloned().collect();
    if let (Some(convention), Some(node)) = (&convention, own_node)
        && problems.count() == before
        && let Some((cycle, message)) = order::cycle(convention, &backfill)
    {
        let own = cycle.iter().filter_map(|at| at.checked_sub(inherited_count)).next();
        order::report(own.and_then(|at| node.items().get(at)).unwrap_or(node), message, problems);
    }
    let policy = Policy {
        name: name.to_owned(),
        resources: list.unwrap_or_default(),
        enforcement: map
            .get("enforcement")
            .and_then(|node| Action::read(node, problems))
            .unwrap_or(Action::Deny),
        disagreement: map
            .get("disagreement")
            .and_then(|node| Action::read_disagreement(node, problems))
            .unwrap_or(Action::Deny),
        writers: map
            .get("writers")
            .map(|node| read_writer_rules(node, problems))
            .unwrap_or_default(),
        fields: map
            .get("fields")
            .map(|node| schema::read_fields(node, problems, name))
            .unwrap_or_default(),
        owners: map.get("owners").map(|node| read_owners(node, problems)).unwrap_or_default(),
        owner_rule: format!("{name}/{OWNER}"),
        preserve: map
            .get("preserve")
            .map(|node| problems.list(node, |item| pointer(item, problems)))
            .unwrap_or_default(),
        rules: map
            .get("rules")
            .map(|node| cel::read(name, node, problems, convention.as_deref(), &backfill))
            .unwrap_or_default(),
        backfill,
        inherited: inherited_count,
        steps: Vec::new(),
        convention: match convention {
            Some(convention) => convention,
            None => {
                map.close();
                return None;
            }
        },
    };
    map.close();
    check_ids(spec, &policy.fields, known.conventions.get(name).map(Arc::as_ref), problems);
    (problems.count() == before).then_some(policy)
}

/// What a policy fills in of its own accord.
fn read_own_backfill(
    node: &Node,
    problems: &Problems,
    names: &Names,
    lists: &[ConditionList],
    inherited: &[Backfill],
) -> Vec<Backfill> {
    for optional in node.items().iter().filter_map(|item| item.member("optional")) {
        let help =
            "leave it out; \"enable\" is for the optional parts of the convention".to_owned();
        let message = "what a policy itself fills in is never optional";
        problems.report_with_help(&optional.span, message, Some(help));
    }
    read_backfill(node, problems, names, lists, inherited)
}

fn read_resources(node: &Node, problems: &Problems) -> Option<ResourceRule> {
    let map = problems.map(node)?;
    let why = |key| format!("\"{key}\" is empty: nothing would match");
    let globs = |key| {
        let node = map.required(key)?;
        Some(problems.filled_list(node, &why(key), |item| problems.parsed::<Glob>(item)))
    };
    let (groups, versions) = (globs("apiGroups"), globs("apiVersions"));
    let plurals = map.required("resources").map(|node| {
        problems.filled_list(node, &why("resources"), |item| {
            let text = problems.string(item)?;
            if text.contains('/') {
                problems.report_with_help(
                    &item.span,
                    "a plural without its subresource is meant here",
                    Some("status writes are selected by themselves; see statusSubresource".into()),
                );
            }
            problems.parsed::<Glob>(item)
        })
    });
    let status_subresource =
        map.get("statusSubresource").and_then(|node| problems.boolean(node)).unwrap_or(true);
    map.close();
    Some(ResourceRule {
        groups: groups?,
        versions: versions?,
        resources: plurals?,
        status_subresource,
    })
}

/// The first entry that names a writer counts: of one behind all of whose writers are named before
/// nobody would hear.
fn read_writer_rules(node: &Node, problems: &Problems) -> Vec<WriterRule> {
    let mut above = Writers::default();
    problems.list(node, |item| {
        let rule = read_writer_rule(item, problems)?;
        let Writers { users, groups } = &rule.writers;
        let everybody = above.users.iter().any(|user| user.covers(&Glob::from("*")));
        let covered = |some: &[Glob], glob: &Glob| some.iter().any(|known| known.covers(glob));
        if (!users.is_empty() || !groups.is_empty())
            && users.iter().all(|user| covered(&above.users, user))
            && groups.iter().all(|group| everybody || covered(&above.groups, group))
        {
            let message = "all of these writers are in entries above already";
            let help = "the first entry that names a writer counts".to_owned();
            problems.report_with_help(&item.span, message, Some(help));
        }
        above.users.extend_from_slice(users);
        above.groups.extend_from_slice(groups);
        Some(rule)
    })
}

/// Each entry is judged: of two for one field nobody but those in both would own it.
fn read_owners(node: &Node, problems: &Problems) -> Vec<Owner> {
    let mut known: Vec<Pointer> = Vec::new();
    problems.list(node, |item| {
        let owner = read_owner(item, problems)?;
        if known.contains(&owner.path) {
            let message = format!("{} has owners above already", owner.path);
            let help = "name all of them in one entry".to_owned();
            let span = item.member("path").map_or(&item.span, |path| &path.span);
            problems.report_with_help(span, message, Some(help));
        }
        known.push(owner.path.clone());
        Some(owner)
    })
}

fn read_writer_rule(node: &Node, problems: &Problems) -> Option<WriterRule> {
    let map = problems.map(node)?;
    let writers = read_writers(&map, problems);
    let disagreement = map.required("disagreement");
    let disagreement = disagreement.and_then(|node| Action::read_disagreement(node, problems));
    map.close();
    Some(WriterRule { writers, disagreement: disagreement? })
}

fn read_owner(node: &Node, problems: &Problems) -> Option<Owner> {
    let map = problems.map(node)?;
    let path = map.required("path").and_then(|node| pointer(node, problems));
    let writers = read_writers(&map, problems);
    map.close();
    Some(Owner { path: path?, writers })
}

fn read_writers(map: &crate::source::tree::Map<'_>, problems: &Problems) -> Writers {
    let before = problems.count();
    let globs = |key| {
        map.get(key)
            .map(|node| problems.list(node, |item| problems.parsed::<Glob>(item)))
            .unwrap_or_default()
    };
    let writers = Writers { users: globs("users"), groups: globs("groups") };
    if writers.users.is_empty() && writers.groups.is_empty() && problems.count() == before {
        problems.report(&map.node.span, "name at least one of \"users\" and \"groups\"");
    }
    writers
}
