//! The rules in CEL. Their states cannot be listed, so lint tries writes: those of the convention, with
//! the values that an expression names.

use indexmap::IndexSet;
use serde_json::{Value, json};

use super::example::{STATUSES, Search, replaced};
use super::rules::MAX_SEARCH;
use super::{Kind, Remark};
use crate::documents::PolicySpec;
use crate::engine::{Budget, holds};
use crate::explain::Scene;
use crate::model::{Object, Writer};
use crate::policy::cel::CelRule;
use crate::policy::{Action, Disposition, Policy, PolicySet};

/// Types of conditions that are tried together, each of them absent, True and False.
const MAX_TYPES: usize = 4;

/// Lints the rules of a policy in some versions.
pub(super) fn of_rules(policy: &Policy, versions: &IndexSet<String>) -> Vec<Remark> {
    let resources = PolicySpec::for_everything("").resources;
    let strict = Policy { resources, enforcement: Action::Deny, ..policy.clone() };
    let policies = PolicySet::of(vec![strict]);
    let mut remarks = Vec::new();
    for rule in &policy.rules {
        let tried = versions
            .iter()
            .map(|version| Trial { rule, search: Search::new(&rule.id, &policies, version) }.run());
        // A version in which every write violates the rule is a fault.
        remarks.extend(tried.reduce(Shown::worse).and_then(|shown| shown.remark(rule)));
    }
    remarks
}

/// A rule that is tried in one version.
struct Trial<'t> {
    rule: &'t CelRule,
    search: Search<'t>,
}

/// What the writes have shown.
enum Shown {
    /// The result is the same for all writes, such as this one.
    Constant(bool, Scene),
    /// Every write violates the rule, such as this one; and why.
    AlwaysViolated(Scene, String),
    /// No write violates the rule.
    NeverViolated,
    /// Some writes violate the rule.
    Both,
}

impl Trial<'_> {
    fn run(&self) -> Shown {
        let expression = &self.rule.expression;
        let reads = self.search.variations_of(self.rule);
        // The best witness has everything that the rule reads, shows why it cannot be evaluated, and is short.
        let rate = |scene: &Scene, why: &str| {
            let lacks = |place: &&str| scene.object.pointer(place).is_none();
            let lacking = reads.iter().map(|(place, _)| place.as_str()).filter(lacks);
            (lacking.count(), why == self.rule.message, scene.to_yaml().len())
        };
        let (mut satisfying, mut violating) = (false, None::<(_, Scene, String)>);
        for scene in self.search.simple_writes() {
            if let Some(value) = expression.constant() {
                return Shown::Constant(value, scene);
            }
            let answer = self.answer(&scene);
            if !expression.reads_something() {
                return Shown::Constant(answer.is_ok(), scene);
            }
            match answer {
                Ok(()) => satisfying = satisfying || self.is_accepted(&scene),
                Err(why) => {
                    let rating = rate(&scene, &why);
                    let is_best = violating.as_ref().is_none_or(|(least, ..)| rating < *least);
                    if is_best && self.is_accepted(&scene) {
                        violating = Some((rating, scene, why));
                    }
                }
            }
            if satisfying && violating.is_some() {
                return Shown::Both;
            }
        }
        match violating {
            None => Shown::NeverViolated,
            // These writes have no writer.
            Some(_) if expression.reads.writer.is_some() => Shown::Both,
            Some((_, scene, _)) if self.can_satisfy(&scene) => Shown::Both,
            Some((_, scene, why)) => Shown::AlwaysViolated(scene, why),
        }
    }

    /// Whether the rule holds for a write, whatever its trigger; otherwise why not.
    fn answer(&self, scene: &Scene) -> Result<(), String> {
        let (new, old) = (scene.object.to_string(), scene.stored().to_string());
        let unreadable = |_| "the object cannot be read".to_owned();
        let new = Object::parse(&new).map_err(unreadable)?;
        let old = Object::parse(&old).map_err(unreadable)?;
        match holds(&self.rule.expression, &new, Some(&old), &Writer::default(), &Budget::default())
        {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.rule.message.clone()),
            Err(reason) => Err(format!("it cannot be evaluated: {reason}")),
        }
    }

    /// Whether no other rule rejects a write, which must have a status.
    fn is_accepted(&self, scene: &Scene) -> bool {
        let is_empty = |status: &Value| status.as_object().is_none_or(serde_json::Map::is_empty);
        scene.object.get("status").is_some_and(|status| !is_empty(status))
            && self.search.rules(scene).iter().all(|rule| **rule == *self.rule.id)
    }

    /// Whether other values of what the rule reads satisfy it.
    fn can_satisfy(&self, scene: &Scene) -> bool {
        let mut fields = self.search.variations_of(self.rule);
        for list in self.search.lists().filter(|list| !list.is_map()) {
            let place = list.sample_path().to_string();
            let lists =
                self.conditions(|kind, status| self.search.stage.condition(list, kind, status));
            let lists = || lists.iter().cloned().map(Some);
            match fields.iter_mut().find(|(known, _)| *known == place) {
                Some((_, values)) => values.extend(lists()),
                None => fields.push((place, lists().collect())),
            }
        }
        let mut numbers = 0..MAX_SEARCH;
        numbers.any(|number| {
            let (mut rest, mut scene) = (number, scene.clone());
            for (place, values) in &fields {
                // The first choice keeps the value.
                let choice = (rest % (values.len() + 1)).checked_sub(1);
                rest /= values.len() + 1;
                if let Some(value) = choice.and_then(|at| values.get(at))
                    && let Some(object) = replaced(&scene.object, place, value.clone())
                {
                    scene.object = object;
                }
            }
            rest == 0 && self.answer(&scene).is_ok() && self.is_accepted(&scene)
        })
    }

    /// Lists of conditions with the types and reasons that the expression may name.
    fn conditions(&self, condition: impl Fn(&str, &str) -> Value) -> Vec<Value> {
        let (literals, _) = self.rule.expression.literals();
        let names = literals.iter().filter_map(Value::as_str);
        let names = names.filter(|name| !STATUSES.contains(name)).take(MAX_TYPES);
        let names: Vec<&str> = names.collect();
        let mut lists: Vec<Vec<Value>> = vec![Vec::new()];
        for kind in &names {
            let longer = lists.iter().flat_map(|list| {
                ["True", "False"]
                    .map(|status| [list.as_slice(), &[condition(kind, status)]].concat())
            });
            lists.extend(longer.collect::<Vec<_>>());
        }
        for (kind, reason) in
            names.iter().flat_map(|kind| names.iter().map(move |name| (kind, name)))
        {
            for status in STATUSES {
                let mut condition = condition(kind, status);
                condition["reason"] = json!(reason);
                lists.push(vec![condition]);
            }
        }
        lists.into_iter().map(Value::from).collect()
    }
}

impl Shown {
    fn worse(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::AlwaysViolated(..), _) | (Self::NeverViolated, Self::NeverViolated) => self,
            (_, Self::AlwaysViolated(..)) | (Self::NeverViolated, _) => other,
            _ => self,
        }
    }

    fn remark(self, rule: &CelRule) -> Option<Remark> {
        let rules = vec![rule.id.to_string()];
        let not_proven = |what: &str| {
            let message = format!("not proven: {what}, but CEL can distinguish any values");
            Remark::new(Kind::NotProven, rules.clone(), message, None)
        };
        Some(match self {
            Self::Constant(value, scene) => {
                let message = format!("the expression is always {value}, so it judges nothing");
                Remark::new(Kind::ConstantRule, rules, message, Some(scene.to_yaml()))
            }
            Self::AlwaysViolated(scene, why) => {
                let message = format!("every status that was tried violates this rule: {why}");
                Remark::new(Kind::AlwaysViolated, rules, message, Some(scene.to_yaml()))
            }
            _ if rule.action != Disposition::Deny => return None,
            Self::NeverViolated => not_proven("no status that was tried violates this rule"),
            Self::Both => not_proven("this rule accepts some of the statuses that were tried"),
        })
    }
}
