//! The rules in CEL. Their states cannot be listed, so lint tries writes: those of the convention, with
//! the values that an expression names.

use std::cell::{Cell, OnceCell};

use indexmap::IndexSet;
use json_patch::jsonptr::PointerBuf;
use serde_json::{Value, json};

use super::example::{Search, Variation, replaced, without_one};
use super::rules::MAX_SEARCH;
use super::{Kind, Remark};
use crate::facts::{STATUSES, sample_path};
use crate::scene::Scene;
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::{Budget, holds};
use statusgate_core::model::{Object, Pointer, Writer};
use statusgate_core::policy::cel::{CelRule, Part};
use statusgate_core::policy::{Action, Defined, DefinedVersions, Disposition, Policy, PolicySet};

/// Types of conditions that are tried together, each of them absent, True and False.
const MAX_TYPES: usize = 4;

/// The steps of the search for the rules of a policy: a few seconds. They are those that the engine counts, [`EVALUATION`] and
/// [`WRITE`].
const MAX_STEPS: u64 = 12_000_000;

/// The steps of an evaluation, in addition to those that the engine counts.
const EVALUATION: u64 = 10;

/// Writes that are tried with a rule for a member that it reads without a guard.
const MAX_UNGUARDED: usize = 64;

/// The beginning of the reason if an evaluation fails.
const NOT_EVALUATED: &str = "it cannot be evaluated: ";

/// The steps of making a write; one with several changes takes twice as many.
const WRITE: u64 = 100;

/// Lints the rules of a policy in some versions.
pub(super) fn of_rules(
    policy: &Policy,
    versions: &IndexSet<String>,
    defined: &DefinedVersions,
) -> Vec<Remark> {
    let defined: Vec<&Defined> = defined.selected_by(policy).collect();
    let resources = PolicySpec::for_everything("").resources;
    let strict = Policy { resources, enforcement: Action::Deny, ..policy.clone() };
    let policies = PolicySet::of(vec![strict]);
    let mut versions_left = versions.len() as u64;
    let mut steps = MAX_STEPS;
    let tried = versions.iter().map(|version| {
        // No rule has this id. All rules in CEL are tried with the same writes.
        let search = Search::new(&policy.name, &policies, version);
        let left = Cell::new(steps / versions_left);
        let trials = Trials { search, rules: &policy.rules, defined: &defined, left };
        steps -= trials.left.get();
        versions_left -= 1;
        let shown = trials.run();
        steps += trials.left.get();
        shown
    });
    // A version in which every write violates the rule is a fault.
    let worst = tried.reduce(|one, other| {
        one.into_iter().zip(other).map(|(one, other)| one.worse(other)).collect()
    });
    let shown = worst.unwrap_or_default();
    let (open, shown): (Vec<_>, Vec<_>) =
        policy.rules.iter().zip(shown).partition(|(_, shown)| matches!(shown, Shown::Open));
    let open: Vec<String> = open.iter().map(|(rule, _)| rule.id.to_string()).collect();
    let what = "the search for statuses that these rules reject";
    let open = (!open.is_empty()).then(|| Remark::not_proven(open, what));
    shown.into_iter().filter_map(|(rule, shown)| shown.remark(rule)).chain(open).collect()
}

/// The rules of a policy, tried with the writes of one version.
struct Trials<'t> {
    search: Search<'t>,
    rules: &'t [CelRule],
    /// The versions of custom resources that the policy selects, as far as they are known.
    defined: &'t [&'t Defined],
    /// The steps that are left.
    left: Cell<u64>,
}

/// What the writes have shown about a rule so far.
struct Trial<'t> {
    rule: &'t CelRule,
    /// What it reads.
    reads: Vec<Variation>,
    /// The most steps that an evaluation took.
    steps: u64,
    /// A write that satisfies it.
    satisfying: Option<Scene>,
    /// The best write that violates it, and why.
    violating: Option<(Rating, Scene, String)>,
    shown: Option<Shown>,
}

/// The best witness has everything that the rule reads, shows why it cannot be evaluated, and is short.
type Rating = (usize, bool, usize);

/// What the writes have shown.
enum Shown {
    /// The result is the same for all writes, such as this one.
    Constant(bool, Scene),
    /// Every write violates the rule, such as this one; and why.
    AlwaysViolated(Scene, String),
    /// There were no steps left.
    Open,
    /// No write violates the rule.
    NeverViolated,
    /// Some writes violate the rule.
    Both,
    /// The rule cannot be evaluated for this write, because the status lacks something; and what.
    Unguarded(Scene, String),
}

/// A write and what is computed once for all rules.
struct Tried<'t> {
    scene: &'t Scene,
    /// The written and the stored object, if they can be read.
    objects: Option<(Object<'t>, Object<'t>)>,
    length: OnceCell<usize>,
    /// The rules with findings; `None` if the write has no status.
    rejecting: OnceCell<Option<Vec<String>>>,
}

impl Trials<'_> {
    fn run(&self) -> Vec<Shown> {
        let new = self.rules.iter().map(|rule| {
            let reads = self.search.variations_of(rule);
            let (satisfying, violating, shown) = (None, None, None);
            Trial { rule, reads, steps: EVALUATION, satisfying, violating, shown }
        });
        let mut trials: Vec<Trial<'_>> = new.collect();
        for scene in self.search.simple_writes() {
            if trials.iter().all(|trial| trial.shown.is_some()) {
                break;
            }
            let texts = (scene.object.to_string(), scene.stored().to_string());
            self.judge(&Tried::of(&scene, &texts), &mut trials);
        }
        let mut trials_left = trials.len() as u64;
        let finished = trials.into_iter().map(|trial| {
            let share = self.left.get() / trials_left;
            trials_left -= 1;
            let unguarded = self.unguarded(&trial);
            match (self.finish(trial, share), unguarded) {
                (Shown::Both | Shown::NeverViolated, Some((scene, why))) => {
                    Shown::Unguarded(scene, why)
                }
                (shown, _) => shown,
            }
        });
        finished.collect()
    }

    /// A write that the rule cannot judge, because the status lacks a member that it reads without a guard. What
    /// the rule reads of the spec and the metadata is there: the schema may require it.
    fn unguarded(&self, trial: &Trial<'_>) -> Option<(Scene, String)> {
        let known = trial.violating.iter().map(|(_, scene, _)| scene).chain(&trial.satisfying);
        let all = known.flat_map(|scene| {
            let smaller = without_one(&scene.object, true).into_iter();
            [scene.object.clone()].into_iter().chain(smaller).map(move |object| (object, scene))
        });
        let reads = &trial.rule.expression.reads;
        let mut paths = reads.written.iter().chain(&reads.stored).flat_map(Part::paths);
        let guesses = match paths.any(|path| is_outside(&path)) {
            true => vec![json!("example"), json!(5), json!(true), json!(["example"]), json!({})],
            false => vec![Value::Null],
        };
        for (object, scene) in all.take(MAX_UNGUARDED) {
            for value in &guesses {
                let mut object = with_parts(object.clone(), reads.written.as_ref(), value);
                let old =
                    scene.old.clone().map(|old| with_parts(old, reads.stored.as_ref(), value));
                if object["status"] == json!({}) {
                    object["status"]["example"] = "text".into();
                }
                let scene = Scene { object, old, ..scene.clone() };
                let texts = (scene.object.to_string(), scene.stored().to_string());
                let (answer, steps) = Tried::of(&scene, &texts).answer(trial.rule);
                if !self.spend(WRITE + steps) {
                    return None;
                }
                if let Err(why) = answer
                    && let Some(what) = why.strip_prefix(NOT_EVALUATED)
                    && let Some(what) = what.strip_prefix("there is no ")
                    && !self.is_required(what.trim_matches('"'), trial.rule)
                    && self.search.rules(&scene) == [trial.rule.id.to_string()]
                {
                    return Some((scene, what.to_owned()));
                }
            }
        }
        None
    }

    /// Whether the schemas require a member wherever a rule reads one of this name.
    fn is_required(&self, name: &str, rule: &CelRule) -> bool {
        let members = &rule.expression.mentions.members;
        let read = members.keys().map(Pointer::tokens);
        let read = read.flat_map(|path| (1..=path.len()).map(|length| &path[..length]));
        let mut read = read.filter(|path| path.last().is_some_and(|last| last == name)).peekable();
        read.peek().is_some()
            && !self.defined.is_empty()
            && read.all(|path| self.defined.iter().all(|of| of.schema.requires(path)))
    }

    /// Takes steps. Returns whether there were that many.
    fn spend(&self, steps: u64) -> bool {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }

    /// Tries a write with each rule that is not decided.
    fn judge(&self, tried: &Tried<'_>, trials: &mut [Trial<'_>]) {
        let review: u64 = 2 * trials.iter().map(|trial| trial.steps).sum::<u64>();
        self.spend(WRITE);
        for trial in trials.iter_mut().filter(|trial| trial.shown.is_none()) {
            let expression = &trial.rule.expression;
            if let Some(value) = expression.constant() {
                trial.shown = Some(Shown::Constant(value, tried.scene.clone()));
                continue;
            }
            let (answer, steps) = tried.answer(trial.rule);
            trial.steps = trial.steps.max(steps);
            if !expression.reads_something() {
                trial.shown = Some(Shown::Constant(answer.is_ok(), tried.scene.clone()));
                continue;
            }
            if !self.spend(steps) {
                trial.shown = Some(Shown::Open);
                continue;
            }
            match answer {
                Ok(()) => {
                    if trial.satisfying.is_none() && self.is_accepted(tried, trial.rule, review) {
                        trial.satisfying = Some(tried.scene.clone());
                    }
                }
                Err(why) => {
                    let rating = tried.rating(trial, &why);
                    let is_best =
                        trial.violating.as_ref().is_none_or(|(least, ..)| rating < *least);
                    if is_best && self.is_accepted(tried, trial.rule, review) {
                        trial.violating = Some((rating, tried.scene.clone(), why));
                    }
                }
            }
            if trial.satisfying.is_some() && trial.violating.is_some() {
                trial.shown = Some(Shown::Both);
            }
        }
    }

    /// Whether no other rule rejects a write, which must have a status.
    fn is_accepted(&self, tried: &Tried<'_>, rule: &CelRule, review: u64) -> bool {
        let rejecting = tried.rejecting.get_or_init(|| {
            let status = tried.scene.object.get("status")?;
            let is_empty = status.as_object().is_none_or(serde_json::Map::is_empty);
            (!is_empty && self.spend(review)).then(|| self.search.rules(tried.scene))
        });
        rejecting.as_ref().is_some_and(|rules| rules.iter().all(|other| **other == *rule.id))
    }

    /// The result for a rule after the last write, with a share of the steps.
    fn finish(&self, trial: Trial<'_>, share: u64) -> Shown {
        if let Some(shown) = trial.shown {
            return shown;
        }
        match trial.violating {
            _ if self.left.get() == 0 => Shown::Open,
            None => Shown::NeverViolated,
            // These writes have no writer.
            Some(_) if trial.rule.expression.reads.writer.is_some() => Shown::Both,
            Some((_, scene, why)) => {
                let reserve = self.left.get().saturating_sub(share);
                match self.can_satisfy(trial.rule, trial.reads, &scene, reserve) {
                    None => Shown::Open,
                    Some(true) => Shown::Both,
                    Some(false) => Shown::AlwaysViolated(scene, why),
                }
            }
        }
    }

    /// Whether other values of what the rule reads satisfy it. `None` if only `reserve` steps are left.
    fn can_satisfy(
        &self,
        rule: &CelRule,
        mut fields: Vec<Variation>,
        scene: &Scene,
        reserve: u64,
    ) -> Option<bool> {
        for list in self.search.lists().filter(|list| !list.is_map()) {
            let place = sample_path(list).to_string();
            let stage = &self.search.stage;
            let lists = conditions(rule, |kind, status| stage.condition(list, kind, status));
            match fields.iter_mut().find(|(known, _)| *known == place) {
                Some((_, values)) => values.extend(lists),
                None => fields.push((place, lists)),
            }
        }
        let sizes = fields.iter().map(|(_, values)| values.len() + 1);
        let all = sizes.fold(1, usize::saturating_mul);
        for number in 0..all.min(MAX_SEARCH) {
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
            let texts = (scene.object.to_string(), scene.stored().to_string());
            let tried = Tried::of(&scene, &texts);
            let (answer, steps) = tried.answer(rule);
            self.spend(2 * WRITE + steps);
            if self.left.get() <= reserve {
                return None;
            }
            let review = 2 * steps * self.rules.len() as u64;
            if answer.is_ok() && self.is_accepted(&tried, rule, review) {
                return Some(true);
            }
        }
        (self.left.get() > reserve).then_some(false)
    }
}

impl<'t> Tried<'t> {
    fn of(scene: &'t Scene, (new, old): &'t (String, String)) -> Self {
        let objects = Object::parse(new).ok().zip(Object::parse(old).ok());
        Self { scene, objects, length: OnceCell::new(), rejecting: OnceCell::new() }
    }

    /// Whether a rule holds, independent of its trigger, or why it does not; and the steps that this took.
    fn answer(&self, rule: &CelRule) -> (Result<(), String>, u64) {
        let Some((new, old)) = &self.objects else {
            return (Err("the object cannot be read".to_owned()), EVALUATION);
        };
        let budget = Budget::default();
        let answer = match holds(&rule.expression, new, Some(old), &Writer::default(), &budget) {
            Ok(true) => Ok(()),
            Ok(false) => Err(rule.message.clone()),
            Err(reason) => Err(format!("{NOT_EVALUATED}{reason}")),
        };
        (answer, EVALUATION + budget.spent())
    }

    fn rating(&self, trial: &Trial<'_>, why: &str) -> Rating {
        let lacking =
            trial.reads.iter().filter(|(place, _)| self.scene.object.pointer(place).is_none());
        let length = self.length.get_or_init(|| self.scene.to_yaml().len());
        (lacking.count(), why == trial.rule.message, *length)
    }
}

/// Whether a place is outside of the status.
fn is_outside(path: &[String]) -> bool {
    path.first().is_some_and(|name| name != "status")
}

/// An object with this value at everything outside of the status that a rule reads and that is absent.
fn with_parts(object: Value, read: Option<&Part>, value: &Value) -> Value {
    let paths = read.into_iter().flat_map(Part::paths);
    paths.filter(|path| is_outside(path)).fold(object, |object, path| {
        let place = PointerBuf::from_tokens(path).to_string();
        let is_absent = object.pointer(&place).is_none();
        let filled = is_absent.then(|| replaced(&object, &place, Some(value.clone())));
        filled.flatten().unwrap_or(object)
    })
}

/// Lists of conditions with the types and reasons that the expression may name.
fn conditions(rule: &CelRule, condition: impl Fn(&str, &str) -> Value) -> Vec<Option<Value>> {
    let (literals, _) = rule.expression.literals();
    let texts = literals.iter().filter_map(Value::as_str);
    let names: Vec<&str> = texts.filter(|text| !STATUSES.contains(text)).take(MAX_TYPES).collect();
    let mut lists: Vec<Vec<Value>> = vec![Vec::new()];
    for kind in &names {
        let longer = lists.iter().flat_map(|list| {
            ["True", "False"].map(|status| [list.as_slice(), &[condition(kind, status)]].concat())
        });
        lists.extend(longer.collect::<Vec<_>>());
    }
    for (kind, reason) in names.iter().flat_map(|kind| names.iter().map(move |name| (kind, name))) {
        for status in STATUSES {
            let mut condition = condition(kind, status);
            condition["reason"] = json!(reason);
            lists.push(vec![condition]);
        }
    }
    lists.into_iter().map(|list| Some(list.into())).collect()
}

impl Shown {
    fn worse(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::AlwaysViolated(..), _) | (Self::NeverViolated, Self::NeverViolated) => self,
            (_, Self::AlwaysViolated(..)) => other,
            (Self::Unguarded(..), _) => self,
            (_, Self::Unguarded(..)) => other,
            (Self::Open, _) => self,
            (_, Self::Open) | (Self::NeverViolated, _) => other,
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
            Self::Unguarded(scene, what) => {
                let message = format!("this rule cannot be evaluated if there is no {what}");
                Remark::new(Kind::UnguardedMember, rules, message, Some(scene.to_yaml()))
            }
            Self::Open => return None,
            _ if rule.action != Disposition::Deny => return None,
            Self::NeverViolated => not_proven("no status that was tried violates this rule"),
            Self::Both => not_proven("this rule accepts some of the statuses that were tried"),
        })
    }
}
