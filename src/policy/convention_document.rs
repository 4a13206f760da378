//! `StatusConvention` documents: from YAML to [`Convention`].

use super::convention::{
    Backfill, ConditionList, Convention, Fill, GenerationRules, Imposition, Phase, PhaseRules,
    RepairStep, RepairTo, Rule, Sanction, Since, TransitionTimes, Trigger, Watched,
};
use super::predicate::{self, pointer};
use super::schema::{self, kebab};
use super::yaml::{Map, Node, Problems, Value};
use super::{Action, Disposition};

/// How far a transition time may lie ahead of our clock when a document does not say: what
/// clusters with unsynchronised nodes show in practice, and far below what would hide an outage.
const DEFAULT_SKEW_SECONDS: i64 = 300;

/// Reads the `spec` of a `StatusConvention`. `None` where it has mistakes; they are in `problems`.
pub(crate) fn read(name: &str, spec: &Node, problems: &Problems) -> Option<Convention> {
    let before = problems.count();
    let map = problems.map(spec)?;
    let text = |key| map.get(key).and_then(|node| problems.string(node)).unwrap_or_default();
    let (title, source) = (text("title").to_owned(), text("source").to_owned());
    let phase = map.get("phase").and_then(|node| Reader { name, problems }.phase(node));
    let names: Vec<String> =
        phase.iter().flat_map(|rules| &rules.phases).map(|phase| phase.name.clone()).collect();
    let reader = Reader { name, problems };
    let convention = Convention {
        name: name.to_owned(),
        title,
        source,
        status_rule: reader.id("status"),
        conditions: map
            .get("conditions")
            .map(|node| problems.list(node, |item| reader.condition_list(item)))
            .unwrap_or_default(),
        generation: map.get("generation").and_then(|node| reader.generation(node)),
        fields: map
            .get("fields")
            .map(|node| problems.list(node, |item| schema::read_field(item, problems, name)))
            .unwrap_or_default(),
        rules: map
            .get("rules")
            .map(|node| problems.list(node, |item| reader.rule(item, phase.as_ref(), &names)))
            .unwrap_or_default(),
        backfill: map
            .get("backfill")
            .map(|node| problems.list(node, |item| read_backfill(item, problems, &names)))
            .unwrap_or_default(),
        phase,
    };
    map.close();
    (problems.count() == before).then_some(convention)
}

/// Reads one entry of a `backfill` list; policies have the same.
pub(crate) fn read_backfill(
    node: &Node,
    problems: &Problems,
    phases: &[String],
) -> Option<Backfill> {
    let map = problems.map(node)?;
    let path = map.required("path").and_then(|node| pointer(node, problems));
    let nullable = map.get("nullable").and_then(|node| problems.boolean(node)).unwrap_or(false);
    let copies = map.get("copyOf");
    let fill = match (map.get("value"), copies) {
        (Some(value), None) => match &value.value {
            Value::Null if nullable => Some(Fill::Null),
            Value::Null => Some(Fill::Absent),
            _ => Some(Fill::Value(value.to_json())),
        },
        (None, Some(from)) => {
            Some(Fill::CopyOf(problems.one_or_many(from, |item| pointer(item, problems))))
        }
        (Some(_), Some(from)) => {
            problems.report(&from.span, "either \"value\" or \"copyOf\", not both");
            None
        }
        (None, None) => {
            problems.report(&node.span, "\"value\" or \"copyOf\" is missing here");
            None
        }
    };
    let when = map.get("when").and_then(|node| predicate::read(node, problems, phases));
    map.close();
    Some(Backfill { path: path?, fill: fill?, when })
}

/// Reads the parts of one convention.
struct Reader<'r> {
    name: &'r str,
    problems: &'r Problems,
}

impl Reader<'_> {
    fn id(&self, rule: &str) -> String {
        format!("{}/{rule}", self.name)
    }

    fn sanction(&self, map: &Map<'_>, key: &'static str, rule: &str, default: Action) -> Sanction {
        let action = map.get(key).and_then(|node| Action::read(node, self.problems));
        Sanction { rule: self.id(rule), action: action.unwrap_or(default) }
    }

    fn condition_list(&self, node: &Node) -> Option<ConditionList> {
        let map = self.problems.map(node)?;
        let path = map.required("path").and_then(|node| pointer(node, self.problems));
        let members = map.get("members").and_then(|node| self.problems.map(node));
        let members = members.map(|members| {
            let read = |(key, node): &(super::yaml::Key, Node)| {
                let id = format!("condition-{}", kebab(&key.name));
                let checks = schema::read_checks(node, self.problems, self.name, &id);
                (key.name.clone(), checks)
            };
            members.entries().iter().map(read).collect()
        });
        let times = map.get("transitionTime").and_then(|node| self.transition_times(node));
        map.close();
        Some(ConditionList {
            path: path?,
            shape_rule: self.id("condition-shape"),
            duplicate_rule: self.id("condition-duplicate"),
            members: members.unwrap_or_default(),
            times,
        })
    }

    fn transition_times(&self, node: &Node) -> Option<TransitionTimes> {
        let map = self.problems.map(node)?;
        let members =
            |key| map.get(key).map(|node| self.problems.strings(node)).unwrap_or_default();
        let member = map.required("member").and_then(|node| self.problems.string(node));
        let skew = map.get("skewSeconds").and_then(|node| self.problems.integer(node));
        let times = TransitionTimes {
            member: member.unwrap_or_default().to_owned(),
            must_move_on: members("mustMoveOn"),
            may_move_on: members("mayMoveOn"),
            kept: self.sanction(&map, "kept", "transition-time-kept", Action::Warn),
            moved: self.sanction(&map, "moved", "transition-time-moved", Action::Warn),
            backwards: self.sanction(&map, "backwards", "transition-time-backwards", Action::Warn),
            future: self.sanction(&map, "future", "transition-time-future", Action::Deny),
            skew: skew.unwrap_or(DEFAULT_SKEW_SECONDS),
        };
        for name in &times.must_move_on {
            if !times.may_move_on.contains(name) {
                let message = format!("\"{name}\" must move the time but is not in mayMoveOn");
                self.problems.report(&map.node.span, message);
            }
        }
        map.close();
        Some(times)
    }

    fn generation(&self, node: &Node) -> Option<GenerationRules> {
        let map = self.problems.map(node)?;
        let paths = map
            .get("paths")
            .map(|node| self.problems.list(node, |item| pointer(item, self.problems)));
        let rules = GenerationRules {
            paths: paths.unwrap_or_default(),
            ahead: self.sanction(&map, "ahead", "generation-ahead", Action::Deny),
            decreased: self.sanction(&map, "decreased", "generation-decreased", Action::Warn),
        };
        map.close();
        Some(rules)
    }

    fn phase(&self, node: &Node) -> Option<PhaseRules> {
        let map = self.problems.map(node)?;
        let path = map.required("path").and_then(|node| pointer(node, self.problems));
        let values = map.required("values");
        // Evidence may name phases further down the list: names first, then the rest.
        let names: Vec<String> =
            values.map(|node| self.problems.list(node, name_of)).unwrap_or_default();
        let phases: Vec<Phase> = values
            .map(|node| self.problems.list(node, |item| self.phase_value(item, &names)))
            .unwrap_or_default();
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                self.problems.report(&map.node.span, format!("phase {name} is listed twice"));
            }
        }
        let default = map.get("default");
        let default_name = default.and_then(|node| self.problems.string(node));
        if let (Some(node), Some(name)) = (default, default_name) {
            self.check_phase(node, name, &names);
            // The way out of every state: nothing may ever contradict it.
            if phases.iter().any(|phase| phase.name == name && phase.necessary.is_some()) {
                let message = format!("the default phase {name} must be admissible in every state");
                let help = Some("remove its \"necessary\"".to_owned());
                self.problems.report_with_help(&node.span, message, help);
            }
        }
        let time = map.get("transitionTime").and_then(|node| pointer(node, self.problems));
        let repair = map
            .get("repair")
            .map(|node| self.problems.list(node, |item| self.repair_step(item, &names)));
        map.close();
        Some(PhaseRules {
            path: path?,
            default: default_name.map(str::to_owned),
            value_rule: self.id("phase-value"),
            transition_time: time.map(|path| (path, self.id("phase-transition-time"))),
            phases,
            repair: repair.unwrap_or_default(),
        })
    }

    fn phase_value(&self, node: &Node, names: &[String]) -> Option<Phase> {
        let map = self.problems.map(node)?;
        let name = map.required("phase").and_then(|node| self.problems.string(node));
        let evidence =
            |key| map.get(key).and_then(|node| predicate::read(node, self.problems, names));
        let (necessary, sufficient) = (evidence("necessary"), evidence("sufficient"));
        let imposed = map.get("imposed").and_then(|node| {
            let map = self.problems.map(node)?;
            let when = map.required("when");
            let when = when.and_then(|node| predicate::read(node, self.problems, names));
            let since = map.required("since").and_then(|node| {
                self.problems.word(
                    node,
                    &[
                        ("/metadata/deletionTimestamp", Since::DeletionTimestamp),
                        ("/metadata/creationTimestamp", Since::CreationTimestamp),
                    ],
                )
            });
            map.close();
            Some(Imposition { when: when?, since: since? })
        });
        map.close();
        let name = name?;
        let rule = self.id(&format!("phase-{}", kebab(name)));
        Some(Phase { name: name.to_owned(), rule, necessary, sufficient, imposed })
    }

    fn repair_step(&self, node: &Node, names: &[String]) -> Option<RepairStep> {
        let map = self.problems.map(node)?;
        let when = map.get("when").and_then(|node| predicate::read(node, self.problems, names));
        let to = map.required("to").and_then(|node| {
            let text = self.problems.string(node)?;
            Some(match text {
                "requested" => RepairTo::Requested,
                "stored" => RepairTo::Stored,
                name => {
                    self.check_phase(node, name, names);
                    RepairTo::Phase(name.to_owned())
                }
            })
        });
        map.close();
        Some(RepairStep { when, to: to? })
    }

    fn check_phase(&self, node: &Node, name: &str, names: &[String]) {
        if !names.iter().any(|known| known == name) {
            self.problems.unknown(&node.span, "phase", name, names.iter().map(String::as_str));
        }
    }

    fn rule(&self, node: &Node, phase: Option<&PhaseRules>, names: &[String]) -> Option<Rule> {
        let map = self.problems.map(node)?;
        let id = map.required("id").and_then(|node| self.problems.string(node));
        let when = map.required("when");
        let when = when.and_then(|node| predicate::read(node, self.problems, names));
        let trigger =
            map.get("trigger").map_or(Some(Trigger::Introduced), |node| self.trigger(node));
        let action = map.required("action");
        let action = action.and_then(|node| Disposition::read(node, self.problems));
        let path = match map.get("path") {
            Some(node) => pointer(node, self.problems),
            None => phase.map(|phase| phase.path.clone()).or_else(|| {
                self.problems.report(&map.node.span, "\"path\" is missing here");
                None
            }),
        };
        let message = map.required("message").and_then(|node| self.problems.string(node));
        let source = map.get("source").and_then(|node| self.problems.string(node));
        map.close();
        Some(Rule {
            id: self.id(id?),
            when: when?,
            trigger: trigger?,
            action: action?,
            path: path?,
            message: message?.to_owned(),
            source: source.unwrap_or_default().to_owned(),
        })
    }

    fn trigger(&self, node: &Node) -> Option<Trigger> {
        if let Value::String(_) = node.value {
            let words = [("state", false), ("introduced", true)];
            let introduced = self.problems.word(node, &words)?;
            return Some(if introduced { Trigger::Introduced } else { Trigger::State });
        }
        let map = self.problems.map(node)?;
        let watched = |node| self.problems.one_or_many(node, |item| self.watched(item));
        let moved = map.get("moved").map(watched).map(Trigger::Moved);
        let written = map.get("coWritten").map(watched).map(Trigger::CoWritten);
        let span = &map.node.span;
        let trigger = match (moved, written) {
            (Some(trigger), None) | (None, Some(trigger)) => Some(trigger),
            _ => {
                self.problems.report(span, "a trigger is state, introduced, moved or coWritten");
                None
            }
        };
        map.close();
        trigger
    }

    /// `/status/phase`, or `condition Ready`.
    fn watched(&self, node: &Node) -> Option<Watched> {
        let text = self.problems.string(node)?;
        match text.strip_prefix("condition ") {
            Some(kind) => Some(Watched::Condition(kind.to_owned())),
            None => pointer(node, self.problems).map(Watched::Field),
        }
    }
}

/// The name of a phase, without a word about what is wrong with it: that is said where the rest of
/// the entry is read.
fn name_of(node: &Node) -> Option<String> {
    let Value::Map(entries) = &node.value else { return None };
    let (_, name) = entries.iter().find(|(key, _)| key.name == "phase")?;
    match &name.value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}
