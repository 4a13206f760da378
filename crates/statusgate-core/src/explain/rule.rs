//! One rule in words: what violates it, what happens, and where it comes from.

use super::page::{Block, Page, generation_rules, time_rules};
use super::words;
use crate::language::Predicate;
use crate::policy::convention::{
    ConditionList, ConditionType, Convention, PhaseRules, ReasonRow, Sanction, Trigger,
};
use crate::policy::{Check, DeclaredRule, Disposition, FieldRule, Policy};

/// A rule in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// The rule id.
    pub id: String,
    /// The sentence in responses, if it is the same for every violation.
    pub message: Option<String>,
    /// The meaning of the condition type or phase that the rule is about.
    pub meaning: Option<String>,
    /// What violates it, with the action. One id may have several.
    pub violations: Vec<Violation>,
    /// Whether it is off unless a policy enables it.
    pub optional: bool,
    /// Where it comes from.
    pub source: String,
}

/// One way to violate a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A clause: `condition Ready is missing`.
    pub what: String,
    /// The writes that the rule judges, if it declares them.
    pub judges: Option<String>,
    /// `Deny`; `Disagreement` is the action that the policy chooses.
    pub action: &'static str,
}

impl RuleText {
    /// A rule of a convention.
    pub fn of_convention(convention: &Convention, id: &str) -> Option<Self> {
        let mut text = Self::declared(id, convention.declared.get(id)?);
        text.check((&convention.status_rule, Disposition::Deny), || {
            "the status is not an object".to_owned()
        });
        for list in &convention.conditions {
            text.list(list, convention.conditions.len() > 1);
        }
        for (what, sanction) in convention.generation.iter().flat_map(generation_rules) {
            text.sanction(sanction, || what);
        }
        if let Some(rules) = &convention.phase {
            text.phase(rules);
        }
        text.fields(&convention.fields);
        for rule in &convention.rules {
            text.predicate(&rule.id, rule.action, &rule.when, Some(&rule.trigger));
        }
        Some(text)
    }

    /// A policy's own rule.
    pub fn of_policy(policy: &Policy, id: &str) -> Option<Self> {
        let mut text = Self::declared(id, policy.declared.get(id)?);
        text.fields(&policy.fields);
        let owned = policy
            .owner_rule
            .iter()
            .flat_map(|rule| policy.owners.iter().map(move |owner| (rule, owner)));
        for (rule, owner) in owned {
            let writers = owner.writers.users.iter().chain(&owner.writers.groups);
            let writers = words::any_of(writers.map(ToString::to_string));
            text.check((rule, Disposition::Deny), || {
                format!("a writer other than {writers} changes {}", owner.path.field())
            });
        }
        for rule in policy.rules.iter().filter(|rule| *rule.id == *id) {
            text.violations.push(Violation {
                what: format!("the CEL expression of {} is false", rule.name),
                judges: Some(words::trigger(&rule.trigger)),
                action: words::action(rule.action),
            });
        }
        Some(text)
    }

    fn declared(id: &str, rule: &DeclaredRule) -> Self {
        Self {
            id: id.to_owned(),
            message: rule.message.clone(),
            meaning: None,
            violations: Vec::new(),
            optional: rule.optional,
            source: rule.source.clone(),
        }
    }

    fn add(&mut self, rule: &str, action: Disposition, what: impl FnOnce() -> String) -> bool {
        let is_own = *rule == self.id;
        if is_own {
            let (what, action) = (what(), words::action(action));
            self.violations.push(Violation { what, judges: None, action });
        }
        is_own
    }

    fn sanction(&mut self, sanction: &Sanction, what: impl FnOnce() -> String) -> bool {
        self.add(&sanction.rule, sanction.action, what)
    }

    fn given(&mut self, sanction: &Option<Sanction>, what: impl FnOnce() -> String) {
        if let Some(sanction) = sanction {
            self.sanction(sanction, what);
        }
    }

    fn check(&mut self, (rule, action): (&str, Disposition), what: impl FnOnce() -> String) {
        self.add(rule, action, what);
    }

    fn predicate(
        &mut self,
        rule: &str,
        action: Disposition,
        when: &Predicate,
        trigger: Option<&Trigger>,
    ) {
        if self.add(rule, action, || when.in_words())
            && let Some(violation) = self.violations.last_mut()
        {
            violation.judges = trigger.map(words::trigger);
        }
    }

    fn fields(&mut self, fields: &[FieldRule]) {
        for FieldRule { path, check } in fields {
            self.value(path.field(), check);
        }
    }

    fn value(&mut self, field: &str, check: &Check) {
        self.check((&check.rule, check.action), || {
            format!("{field} is not as required: {}", words::check(check))
        });
    }

    /// `several`: the convention has other lists, which may have conditions of the same types.
    fn list(&mut self, list: &ConditionList, several: bool) {
        let path = list.path.field();
        self.check((&list.shape_rule, Disposition::Deny), || {
            format!("{path} is not a list, or an element is not an object")
        });
        if let Some(duplicate) = &list.duplicate {
            let key = list.key.join(" and ");
            self.sanction(duplicate, || format!("two elements of {path} have the same {key}"));
        }
        if let Some(most) = &list.max_items {
            let what = || format!("{path} has more than {} elements", most.value);
            self.sanction(&most.sanction, what);
        }
        if let Some(history) = &list.history {
            let distinct = history.distinct.iter().flat_map(|names| names.to_vec());
            let distinct = words::any_of(distinct);
            self.given(&history.rewritten, || format!("a stored element of {path} changes"));
            self.given(&history.repeated, || {
                format!("a new element of {path} does not differ from the last one in {distinct}")
            });
        }
        for (member, checks) in list.members.iter() {
            checks.iter().for_each(|check| self.value(&format!("{path}[].{member}"), check));
        }
        if let Some(other) = &list.other_members {
            let names = words::any_of(list.members.iter().map(|(name, _)| name.clone()));
            let what = || format!("an element of {path} has a member other than {names}");
            self.sanction(other, what);
        }
        if let Some(other) = &list.types.other {
            let names = words::any_of(list.types.known.iter().map(|kind| kind.name.clone()));
            self.sanction(other, || format!("an element of {path} has a type other than {names}"));
        }
        if let Some(order) = &list.types.order {
            let names = list.types.known.iter().map(|kind| kind.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            self.sanction(order, || format!("the types in {path} are not in the order {names}"));
        }
        for kind in &list.types.known {
            let before = self.violations.len();
            let of_list = if several { format!(" in {path}") } else { String::new() };
            self.condition(kind, &of_list);
            let is_described = self.meaning.is_some() || kind.meaning.is_empty();
            if self.violations.len() > before && !is_described {
                self.meaning = Some(format!("{}: {}", kind.name, kind.meaning));
            }
        }
        for (what, sanction) in list.times.iter().flat_map(time_rules) {
            self.sanction(sanction, || format!("of a condition in {path}: {what}"));
        }
        for rule in &list.each {
            if *rule.id == *self.id {
                let what = format!("an element of {path}: {}", rule.when.in_words());
                self.add(&rule.id, rule.action, || what);
            }
        }
    }

    fn condition(&mut self, kind: &ConditionType, of_list: &str) {
        let name = format!("condition {}{of_list}", kind.name);
        for (what, presence) in [("missing", &kind.missing), ("present", &kind.present)] {
            let Some(presence) = presence else { continue };
            let when = presence.when.as_ref().map(Predicate::in_words);
            let when = when.map(|when| format!(" and {when}")).unwrap_or_default();
            self.sanction(&presence.sanction, || format!("{name} is {what}{when}"));
        }
        for (what, sanction) in [
            ("is present but not True", &kind.not_true),
            ("was removed by the write", &kind.removed),
            ("was True and is no longer", &kind.reverted),
        ] {
            if let Some(sanction) = sanction {
                self.sanction(sanction, || format!("{name} {what}"));
            }
        }
        // Reasons with the same meaning share a line.
        let mut groups: Vec<(&ReasonRow, Vec<String>)> = Vec::new();
        for row in &kind.reasons {
            let same = |(other, _): &&mut (&ReasonRow, Vec<String>)| {
                other.expects == row.expects && other.sanction == row.sanction
            };
            match groups.iter_mut().find(same) {
                Some((_, reasons)) => reasons.push(row.reason.clone()),
                None => groups.push((row, vec![row.reason.clone()])),
            }
        }
        for (row, reasons) in groups {
            let expects = row.expects.iter().map(|(member, values)| {
                let values = values.iter().map(|value| {
                    if value.is_empty() { "absent".to_owned() } else { value.clone() }
                });
                format!("{member} is not {}", words::any_of(values))
            });
            let (reasons, expects) = (words::any_of(reasons.into_iter()), words::any_of(expects));
            self.sanction(&row.sanction, || {
                format!("{name} has the reason {reasons}, but {expects}")
            });
        }
    }

    fn phase(&mut self, rules: &PhaseRules) {
        let path = rules.path.field();
        let names = || words::any_of(rules.phases.iter().map(|phase| phase.name.clone()));
        self.check((&rules.value_rule, Disposition::Deny), || format!("{path} is not {}", names()));
        for phase in &rules.phases {
            let Some(necessary) = &phase.necessary else { continue };
            let name = &phase.name;
            let what = || format!("{path} is {name}, but this is false: {}", necessary.in_words());
            if self.add(&phase.rule, Disposition::Disagreement, what) && !phase.meaning.is_empty() {
                self.meaning = Some(format!("{name}: {}", phase.meaning));
            }
        }
        if let Some(moves) = &rules.moves {
            self.given(&moves.action, || {
                format!("{path} changes to a phase that may not follow the stored one")
            });
        }
        if let Some(time) = &rules.transition_time {
            let field = time.path.field();
            self.given(&time.moved, || format!("{field} changes, but {path} does not"));
            if !time.in_step() {
                self.given(&time.kept, || format!("{path} changes, but {field} does not"));
            }
        }
        if let Some(reason) = &rules.reason {
            let field = reason.path.field();
            self.given(&reason.action, || format!("{field} is not a reason of the phase"));
        }
    }
}

impl Page {
    /// The page of a rule, without examples.
    pub fn of_rule(rule: &RuleText) -> Self {
        let mut page = Self { title: rule.id.clone(), blocks: Vec::new() };
        let mut text = |text: String| page.blocks.push(Block::Text(text));
        rule.message.iter().for_each(|message| text(format!("Message: {message}.")));
        rule.meaning.iter().for_each(|meaning| text(format!("{meaning}.")));
        if rule.optional {
            text("This rule is off unless a policy enables it.".to_owned());
        }
        text("Violated where:".to_owned());
        let points =
            rule.violations.iter().map(|Violation { what, judges, action }| match judges {
                Some(judges) => format!("{what}; it judges {judges}: {action}"),
                None => format!("{what}: {action}"),
            });
        page.blocks.push(Block::List(points.collect()));
        if rule.violations.iter().any(|violation| violation.action == "Disagreement") {
            let text = "Disagreement: the policy's `disagreement` for the writer, Deny by default.";
            page.blocks.push(Block::Text(text.to_owned()));
        }
        if !rule.source.is_empty() {
            page.blocks.push(Block::Text(format!("Source: {}.", rule.source)));
        }
        page
    }
}
