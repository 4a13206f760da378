//! The phase on a page.

use super::Page;
use statusgate_analysis::words;
use statusgate_core::language::Predicate;
use statusgate_core::policy::convention::{HealthClass, PhaseRules, REQUESTED, STORED, Since};

impl Page {
    pub(super) fn phase(&mut self, rules: &PhaseRules) {
        self.heading(format!("Phase: {}", rules.path.field()));
        self.list(about(rules));
        let rows = (1..).zip(&rules.phases).map(|(priority, phase): (usize, _)| {
            let evidence =
                |predicate: Option<&_>| predicate.map(Predicate::in_words).unwrap_or_default();
            let health = phase.health.as_ref().map(HealthClass::from);
            [
                priority.to_string(),
                phase.name.clone(),
                phase.meaning.clone(),
                health.map(|health| health.to_string()).unwrap_or_default(),
                evidence(phase.necessary.as_ref()),
                evidence(phase.sufficient.as_ref()),
                evidence(phase.imposed.as_ref().map(|imposed| &imposed.when)),
                phase.reasons.join(", "),
                phase.source.clone(),
            ]
        });
        let head = [
            "",
            "phase",
            "meaning",
            "health",
            "contradicted unless",
            "settled where",
            "imposed where",
            "reasons",
            "source",
        ];
        self.table(head, rows.collect());
        self.imposed(rules);
        if !rules.repair.is_empty() {
            self.text("Repair takes the first phase that is settled and admissible, else the first of these that applies and is admissible:");
            let steps = rules.repair.iter().map(|step| {
                let to = match step.to.as_str() {
                    REQUESTED => "the phase that was written",
                    STORED => "the stored phase",
                    name => name,
                };
                let when = step.when.as_ref().map(Predicate::in_words);
                match when {
                    Some(when) => format!("{to}, where {when}"),
                    None => to.to_owned(),
                }
            });
            self.list(steps.collect());
        }
        self.moves(rules);
    }

    fn imposed(&mut self, rules: &PhaseRules) {
        let phases = rules.phases.iter().filter_map(|phase| {
            let since = match phase.imposed.as_ref()?.since {
                Since::DeletionTimestamp => "metadata.deletionTimestamp",
                Since::CreationTimestamp => "metadata.creationTimestamp",
            };
            let name = &phase.name;
            Some(format!("{name} is always set by the mutating webhook, since {since}"))
        });
        self.list(phases.collect());
    }

    fn moves(&mut self, rules: &PhaseRules) {
        let Some(moves) = &rules.moves else { return };
        let name =
            |phase: &String| if phase.is_empty() { "no phase".to_owned() } else { phase.clone() };
        let rows = moves
            .from
            .iter()
            .map(|(from, to)| [name(from), to.iter().map(name).collect::<Vec<_>>().join(", ")]);
        let any = moves.any_to.join(", ");
        let any = (!any.is_empty()).then(|| ["any phase".to_owned(), any]);
        self.text("Allowed moves:");
        self.table(["from", "to"], rows.chain(any).collect());
    }
}

fn about(rules: &PhaseRules) -> Vec<String> {
    let mut points = Vec::new();
    if !rules.other_paths.is_empty() {
        let paths = rules.other_paths.iter().map(|path| path.field().to_owned());
        points.push(format!("also read at {}", words::any_of(paths)));
    }
    match &rules.default {
        Some(default) => points.push(format!("{default} if the phase is absent")),
        None => points.push("an absent phase stays absent: there is no default".to_owned()),
    }
    if let Some(time) = &rules.transition_time {
        let path = time.path.field();
        points.push(if time.in_step() {
            format!("the mutating webhook changes {path} with the phase")
        } else {
            format!("{path} changes with the phase")
        });
    }
    if let Some(when) = &rules.mirrored {
        let when = when.in_words();
        points.push(format!("copied from another object if {when}: every move and time is valid"));
    }
    if let Some(reason) = &rules.reason {
        points.push(format!("{} is one of its reasons", reason.path.field()));
        if !reason.always.is_empty() {
            let always = words::any_of(reason.always.iter().cloned());
            points.push(format!("every phase may have the reason {always}"));
        }
    }
    if !rules.source.is_empty() {
        points.push(format!("source: {}", rules.source));
    }
    points
}
