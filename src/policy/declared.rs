//! What was declared of a rule, beside what it does. Looked up for reports, once for each rule; the
//! engine knows nothing of it.

use std::borrow::Cow;

use super::convention::{
    ConditionList, ConditionType, Convention, GenerationRules, PhaseRules, Sanction,
};
use super::{FieldRule, Policy};

/// What was declared of a rule, beside what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared<'p> {
    /// The sentence in its answers. Tables have none: what they say depends on the object.
    pub message: Option<&'p str>,
    /// Where it comes from: of a table the table, else where the rules of its convention come from.
    pub source: Cow<'p, str>,
}

impl Policy {
    /// What was declared of the rule with this id.
    #[must_use]
    pub fn declared(&self, rule: &str) -> Declared<'_> {
        let convention = &self.convention;
        let rules = convention.rules.iter();
        let rules = rules.map(|rule| (&rule.id, &rule.message, &rule.source));
        let each = convention.conditions.iter().flat_map(|list| &list.each);
        let each = each.map(|rule| (&rule.id, &rule.message, &rule.source));
        let own = self.rules.iter().map(|rule| (&rule.id, &rule.message, &rule.source));
        let found = rules.chain(each).chain(own).find(|(id, _, _)| *id == rule);
        let sources = match found {
            Some((_, _, source)) => vec![source.as_str()],
            None => self.table_sources(rule),
        };
        let of_convention =
            rule.strip_prefix(convention.name.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let source = match together(&sources) {
            source if source.is_empty() && of_convention => Cow::from(convention.source.as_str()),
            source => source,
        };
        Declared { message: found.map(|(_, message, _)| message.as_str()), source }
    }

    /// The sources of all tables that speak in the name of one rule: the checks of a member may be
    /// several, and so may be the lists that it is in.
    fn table_sources(&self, rule: &str) -> Vec<&str> {
        let mut tables = Tables { rule, sources: Vec::new() };
        tables.fields(&self.convention.fields);
        tables.fields(&self.fields);
        tables.convention(&self.convention);
        tables.sources
    }
}

/// The sources of one rule.
struct Tables<'r, 'p> {
    rule: &'r str,
    sources: Vec<&'p str>,
}

impl<'p> Tables<'_, 'p> {
    /// Adds the first of `sources` that says anything, where the id is that of the rule.
    fn add<const N: usize>(&mut self, id: &str, sources: [&'p str; N]) {
        if id == self.rule {
            self.sources.extend(sources.into_iter().find(|source| !source.is_empty()));
        }
    }

    fn sanctions<'s>(
        &mut self,
        sanctions: impl IntoIterator<Item = &'s Sanction>,
        sources: [&'p str; 2],
    ) {
        sanctions.into_iter().for_each(|sanction| self.add(&sanction.rule, sources));
    }

    fn fields(&mut self, fields: &'p [FieldRule]) {
        fields.iter().for_each(|field| self.add(&field.check.rule, [&field.check.source]));
    }

    fn convention(&mut self, convention: &'p Convention) {
        convention.conditions.iter().for_each(|list| self.list(list));
        convention.phase.iter().for_each(|rules| self.phase(rules));
        convention.generation.iter().for_each(|rules| self.generation(rules));
    }

    fn list(&mut self, list: &'p ConditionList) {
        let of_list = [list.source.as_str(), ""];
        self.add(&list.shape_rule, of_list);
        self.sanctions([&list.duplicate, &list.too_long], of_list);
        if let Some(history) = &list.history {
            self.sanctions([&history.rewritten, &history.repeated], of_list);
        }
        let open = [&list.other_members, &list.types.other, &list.types.order];
        self.sanctions(open.into_iter().flatten(), of_list);
        for check in list.members.iter().flat_map(|(_, checks)| checks) {
            self.add(&check.rule, [&check.source, &list.source]);
        }
        list.types.known.iter().for_each(|kind| self.kind(kind, list));
        if let Some(times) = &list.times {
            let sources = [times.source.as_str(), &list.source];
            self.sanctions([&times.kept, &times.moved, &times.future], sources);
            self.sanctions([&times.backwards, &times.backwards_unchanged], sources);
        }
    }

    fn kind(&mut self, kind: &'p ConditionType, list: &'p ConditionList) {
        let sources = [kind.source.as_str(), &list.source];
        let presence = [&kind.missing, &kind.present].into_iter().flatten();
        self.sanctions(presence.map(|presence| &presence.sanction), sources);
        let more = [&kind.not_true, &kind.removed, &kind.reverted, &kind.other_reasons];
        self.sanctions(more.into_iter().flatten(), sources);
        self.sanctions(kind.reasons.iter().map(|row| &row.sanction), sources);
    }

    fn phase(&mut self, rules: &'p PhaseRules) {
        let of_rules = [rules.source.as_str(), ""];
        self.add(&rules.value_rule, of_rules);
        for phase in &rules.phases {
            self.add(&phase.rule, [&phase.source, &rules.source]);
        }
        if let Some(time) = &rules.transition_time {
            self.sanctions([&time.moved, &time.kept], of_rules);
        }
        self.sanctions(rules.reason.iter().map(|reason| &reason.sanction), of_rules);
        self.sanctions(rules.moves.iter().map(|moves| &moves.sanction), of_rules);
    }

    fn generation(&mut self, rules: &'p GenerationRules) {
        let sources = [rules.source.as_str(), ""];
        self.sanctions([&rules.ahead, &rules.ahead_at_first, &rules.decreased], sources);
        self.sanctions(rules.reset.iter().chain([&rules.below_minimum]), sources);
    }
}

/// One text of several, each part of which is in it once.
fn together<'p>(sources: &[&'p str]) -> Cow<'p, str> {
    if let [source] = sources {
        return Cow::from(*source);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in sources.iter().flat_map(|source| source.split("; ")) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join("; ").into()
}
