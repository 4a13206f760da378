//! For each clause of a program, an object for which it decides: test data for readers.

use serde_json::{Value, json};

use super::pattern::{Text, texts};
use super::{Program, in_group, lua};
use statusgate_core::engine::Health;
use statusgate_core::language::Observed;
use statusgate_core::language::formula::{Bound, Comparison, Formula, ListPlace, Question};
use statusgate_core::model::{Index, Object, Pointer, Resource};
use statusgate_core::policy::convention::Convention;

/// An object, and its health.
#[derive(Clone, Debug, PartialEq)]
pub struct Witness {
    /// The rule that decides, or `stale` or `default`.
    pub rule: String,
    /// The object.
    pub object: Value,
    /// Its health.
    pub health: Health,
}

impl Program {
    /// An object for each clause. Without those for which the engine finds that another clause decides: a formula can contradict
    /// itself, or hold only together with an earlier one.
    pub fn witnesses(
        &self,
        convention: &Convention,
        resource: &Resource<'_>,
        kind: &str,
    ) -> Vec<Witness> {
        // After a rule that is left out, a script may answer with unknown.
        let program = self.asking(lua::can_ask);
        let clauses = program.clauses.iter().take_while(|clause| clause.gap().is_none());
        let witnesses = clauses.filter_map(|clause| {
            let alternatives = match &clause.when {
                Formula::Any(parts) if !parts.is_empty() => parts.as_slice(),
                when => std::slice::from_ref(when),
            };
            alternatives.iter().find_map(|when| {
                let mut draft = Draft::new(resource, kind);
                draft.hold(when);
                let text = draft.object.to_string();
                let object = Object::parse(&text).ok()?;
                let (rule, health) = Health::decide(convention, &object, resource)?;
                let name = rule.map(|rule| rule.name.to_string());
                let decides = name == clause.rule && health.class == clause.health;
                let otherwise = if clause.when == Formula::ALWAYS { "default" } else { "stale" };
                let rule = name.unwrap_or_else(|| otherwise.to_owned());
                decides.then_some(Witness { rule, object: draft.object, health })
            })
        });
        witnesses.collect()
    }
}

/// An object that is made to fit a formula.
struct Draft {
    object: Value,
    /// The conditions of the element of [`Formula::Some`].
    inner: Value,
}

impl Draft {
    fn new(resource: &Resource<'_>, kind: &str) -> Self {
        let api_version = in_group(&resource.group, &resource.version);
        let metadata = json!({"name": "example", "generation": 2});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        Self { object, inner: json!([]) }
    }

    fn hold(&mut self, formula: &Formula) {
        match formula {
            Formula::All(parts) => parts.iter().for_each(|part| self.hold(part)),
            Formula::Any(parts) => parts.first().into_iter().for_each(|part| self.hold(part)),
            // Most questions do not hold for an empty object.
            Formula::Not(_) => {}
            Formula::Ask(question) => self.answer(question),
            Formula::Some { outer, inner, of } => {
                self.hold(of);
                let mut element = json!({"name": "example"});
                put(&mut element, inner, self.inner.take());
                self.set(outer, json!([element]));
            }
        }
    }

    fn answer(&mut self, question: &Question) {
        match question {
            Question::Present(list, kind) => drop(self.condition(list, kind)),
            Question::Stale(list) => self.condition(list, "Ready")["observedGeneration"] = 1.into(),
            Question::Condition { list, kind, member, among, negated } => {
                let text = among.first().filter(|_| !negated).map_or("Other", String::as_str);
                let condition = self.condition(list, kind);
                if !text.is_empty() {
                    condition[*member] = text.into();
                }
            }
            Question::Value { path, among, negated, .. } => match among.first() {
                Some(value) if !negated => self.set(path, value.clone()),
                Some(Value::Bool(value)) => self.set(path, (!value).into()),
                _ => self.set(path, "Other".into()),
            },
            Question::Same(one, other, same) => {
                self.set(one, 1.into());
                self.set(other, if *same { 1 } else { 2 }.into());
            }
            Question::Compare(path, how, bound) => {
                let at = match bound {
                    Bound::Number(number) => number.as_f64().unwrap_or_default(),
                    Bound::At(other) => {
                        self.set(other, 1.into());
                        1.0
                    }
                };
                let value = match how {
                    Comparison::AtLeast | Comparison::AtMost => at,
                    Comparison::Less => at - 1.0,
                    Comparison::More => at + 1.0,
                };
                self.set(path, value.into());
            }
            Question::Set(path) | Question::IsText(path) => self.set(path, "example".into()),
            Question::Longer(path, least) => {
                self.set(path, std::iter::repeat_n("example", *least).collect());
            }
            Question::Observed { path, among, text } => {
                let observed = match among.first() {
                    Some(Observed::Behind) | None => 1,
                    Some(Observed::Current) => 2,
                    Some(Observed::Ahead) => 3,
                };
                let number = Value::from(observed);
                self.set(path, if *text { number.to_string().into() } else { number });
            }
            Question::Matches { path, pattern, negated } => {
                let text = texts(pattern).and_then(|texts| texts.into_iter().next());
                let text = match text {
                    Some(Text::Exact(text) | Text::AnyCase(text)) if !negated => text,
                    _ => "Other".to_owned(),
                };
                self.set(path, text.into());
            }
            // The engine knows the answer.
            Question::Unsure(..) | Question::Foreign(_) => {}
        }
    }

    fn set(&mut self, path: &Pointer, value: Value) {
        put(&mut self.object, path.tokens(), value);
    }

    /// The condition of this type.
    fn condition(&mut self, list: &ListPlace, kind: &str) -> &mut Value {
        let list = match list {
            ListPlace::At(path) => put(&mut self.object, path.tokens(), Value::Null),
            ListPlace::OfElement => &mut self.inner,
        };
        if !list.is_array() {
            *list = json!([]);
        }
        let known = list.as_array().into_iter().flatten().position(|item| item["type"] == kind);
        let index = known.unwrap_or_else(|| {
            let new = json!({"type": kind, "message": format!("the message of {kind}")});
            list.as_array_mut().into_iter().for_each(|items| items.push(new.clone()));
            list.as_array().map_or(0, Vec::len).saturating_sub(1)
        });
        &mut list[index]
    }
}

/// A rule about a later item has no witness.
const LAST_INDEX: usize = 16;

/// Sets a value and creates its parents; null keeps what is there.
fn put<'v>(mut at: &'v mut Value, names: &[String], value: Value) -> &'v mut Value {
    for name in names {
        at = match Index::of(name) {
            Some(index) => {
                let index = if let Index::At(index) = index { index.min(LAST_INDEX) } else { 0 };
                let mut items = at.as_array_mut().map(std::mem::take).unwrap_or_default();
                items.resize(items.len().max(index + 1), json!({}));
                *at = items.into();
                &mut at[index]
            }
            None => {
                if !at.is_object() {
                    *at = json!({});
                }
                &mut at[name.as_str()]
            }
        };
    }
    if !value.is_null() {
        *at = value;
    }
    at
}
