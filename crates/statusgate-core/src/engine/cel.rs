//! Evaluates a rule in CEL: whether it holds for an object, or why it cannot be evaluated.
//!
//! A review must end long before the API server's timeout, and the `cel` crate cannot be
//! interrupted. So the number of values that a rule reads is limited, and each value and each round of a
//! loop uses up a budget of steps that all rules share (counted as described in `policy::cel`). The
//! reasons do not use the crate's texts, which contain values, and maps in random order.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use cel::common::traits::Container;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, DYN_TYPE, Type,
};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::{Context, Env, ExecutionError, Value};

use super::because::quoted;
use crate::language::Pattern;
use crate::model::{Json, Metadata, Object, Writer};
use crate::policy::cel::{Expression, Needs, ORDERED, PATTERN, Part, STEP, Work};

/// The values that one evaluation may read. 1,000 conditions are 7,000 values. Converting 10,000 takes
/// about 2 ms.
const MAX_VALUES: u64 = 10_000;

/// The steps that the rules of one review may take for one object. A step is a value that is read, a round
/// of a loop, a visit to 64 values, or 512 bytes of text: at most a microsecond each, 0.1 s in total, a
/// hundredth of the API server's default timeout.
const MAX_STEPS: u64 = 100_000;

/// The steps that the rules of a review took so far. It is atomic because the crate's resolvers must be
/// `Sync`; one thread uses it.
#[derive(Debug, Default)]
pub struct Budget(AtomicU64);

impl Budget {
    fn spend(&self, steps: u64) {
        self.0.fetch_add(steps, Ordering::Relaxed);
    }

    /// The steps so far.
    pub fn spent(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn is_exhausted(&self) -> bool {
        self.spent() > MAX_STEPS
    }
}

/// Why a rule cannot be evaluated, as a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unknown {
    reason: String,
    /// Whether the rule exceeds a limit.
    pub(crate) is_limit: bool,
}

impl Unknown {
    fn limit(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_limit: true }
    }
}

impl From<String> for Unknown {
    fn from(reason: String) -> Self {
        Self { reason, is_limit: false }
    }
}

/// Whether a rule holds for an object.
///
/// # Errors
/// The reason why it cannot be evaluated. It depends only on the object, and on the rules before it.
pub fn holds(
    expression: &Expression,
    object: &Object<'_>,
    old: Option<&Object<'_>>,
    writer: &Writer<'_>,
    budget: &Budget,
) -> Result<bool, Unknown> {
    let exhausted =
        || Unknown::limit(format!("the rules of a review take more than {MAX_STEPS} steps"));
    if budget.is_exhausted() {
        return Err(exhausted());
    }
    let reads = &expression.reads;
    let mut meter = Meter { budget, values: 0, longest: 0 };
    let written = reads.written.as_ref().map(|part| meter.object(object, part)).transpose()?;
    let stored = reads.stored.as_ref().zip(old);
    let stored = stored.map(|(part, old)| meter.object(old, part)).transpose()?;
    let writer = reads.writer.as_ref().map(|_| meter.writer(writer)).transpose()?;
    meter.spend(expression.needs.once);
    let variables = Variables {
        written,
        stored,
        writer,
        needs: &expression.needs,
        meter,
        yes: true.into(),
        no: false.into(),
    };
    let Ok(environment) = &*ENVIRONMENT else {
        return Err("the evaluator is broken".to_owned().into());
    };
    let mut context = Context::with_env(Arc::clone(environment));
    context.set_variable_resolver(&variables);
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let value = Value::resolve_val(&expression.tree, &context).map_err(|error| why(&error))?;
        let answer = value.downcast_ref::<CelBool>().map(|answer| *answer.inner());
        answer
            .ok_or_else(|| format!("its result is {}, not true or false", value.get_type().name()))
    }));
    // A result after the last step is incomplete.
    if budget.is_exhausted() {
        return Err(exhausted());
    }
    answer.unwrap_or_else(|_| Err("the evaluator failed".to_owned())).map_err(Unknown::from)
}

/// CEL's standard library, and our functions.
static ENVIRONMENT: LazyLock<Result<Arc<Env>, cel::DeclarationError>> = LazyLock::new(|| {
    let mut environment = Env::default().with_stdlib();
    environment.add_overload(ORDERED, ORDERED, vec![DYN_TYPE], ordered)?;
    Ok(Arc::new(environment))
});

/// The sorted keys of a map; any other value unchanged.
fn ordered<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = arguments.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let Some(map) = value.downcast_ref::<CelMap<'v>>() else { return Ok(value) };
    let mut keys: Vec<&CelMapKey<'v>> = map.keys().collect();
    keys.sort();
    let keys: Vec<Box<dyn Val + 'v>> =
        keys.into_iter().map(|key| key.inner().clone_as_boxed()).collect();
    Ok(CowVal::owned(CelList::from(keys)))
}

/// Converts data to CEL values, and counts them and the steps of the evaluation. Strings are borrowed.
#[derive(Debug)]
struct Meter<'b> {
    /// The values read.
    values: u64,
    /// The bytes of the longest string read.
    longest: u64,
    budget: &'b Budget,
}

impl Meter<'_> {
    /// Counts work at its cost for the data of this evaluation.
    fn spend(&self, work: Work) {
        let values = u64::from(work.values) * self.values / 64;
        let texts = u64::from(work.texts) * self.longest / 512;
        self.budget.spend(1 + values + texts);
    }
}

/// The variables of an expression.
struct Variables<'v> {
    written: Option<Box<dyn Val + 'v>>,
    stored: Option<Box<dyn Val + 'v>>,
    writer: Option<Box<dyn Val + 'v>>,
    needs: &'v Needs,
    meter: Meter<'v>,
    yes: CelBool,
    no: CelBool,
}

impl VariableResolver for Variables<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let number = |prefix| name.strip_prefix(prefix)?.parse::<usize>().ok();
        let object = match name {
            "self" => &self.written,
            "oldSelf" => &self.stored,
            "writer" => &self.writer,
            _ => {
                if let Some(work) = number(STEP).and_then(|number| self.needs.rounds.get(number)) {
                    self.meter.spend(*work);
                    let enough = self.meter.budget.is_exhausted();
                    return Some(CowVal::Borrowed(if enough { &self.no } else { &self.yes }));
                }
                let pattern = number(PATTERN).and_then(|number| self.needs.patterns.get(number))?;
                return Some(CowVal::owned(Texts(pattern)));
            }
        };
        object.as_ref().map(|object| CowVal::Borrowed(object.as_ref()))
    }
}

/// A pattern as a value that contains the strings it matches.
#[derive(Debug)]
struct Texts<'v>(&'v Pattern);

static PATTERN_TYPE: Type = Type::new_unspecified_type("pattern");

impl Val for Texts<'_> {
    fn get_type(&self) -> &Type {
        &PATTERN_TYPE
    }

    fn cel_type() -> &'static Type {
        &PATTERN_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(Self(self.0))
    }
}

impl Container for Texts<'_> {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        let text = value.downcast_ref::<CelString<'_>>();
        text.map(|text| self.0.is_match(text.inner())).ok_or_else(|| {
            let (got, want) = (value.get_type().name().to_owned(), "string".to_owned());
            ExecutionError::UnexpectedType { got, want }
        })
    }
}

impl Meter<'_> {
    /// An object with its members in the cluster.
    fn object<'v>(
        &mut self,
        object: &'v Object<'_>,
        part: &Part,
    ) -> Result<Box<dyn Val + 'v>, Unknown> {
        let wants = |name: &str| part.covers(&[name]);
        // The spec stays text unless a rule reads it.
        let spec = if wants("spec") { object.spec.tree() } else { None };
        if wants("spec") && spec.is_none() && object.spec.text().is_some() {
            return Err(Unknown::limit("spec is too large"));
        }
        let inside = |name: &str| if part.whole { None } else { part.members.get(name) };
        let mut members = Members::new();
        for (name, text) in [("apiVersion", &object.api_version), ("kind", &object.kind)] {
            if wants(name) && !text.is_empty() {
                members.insert(name.into(), self.text(text)?);
            }
        }
        if wants("metadata") {
            members.insert("metadata".into(), self.metadata(&object.metadata, inside("metadata"))?);
        }
        for (name, value) in [("spec", spec), ("status", object.status.as_ref())] {
            if let Some(value) = value.filter(|_| wants(name)) {
                members.insert(name.into(), self.value(value, inside(name))?);
            }
        }
        Ok(Box::new(CelMap::from(members)))
    }

    fn metadata<'v>(
        &mut self,
        metadata: &'v Metadata<'_>,
        part: Option<&Part>,
    ) -> Result<Box<dyn Val + 'v>, Unknown> {
        let mut members = Members::new();
        let texts = [
            ("name", Some(&metadata.name)),
            ("namespace", Some(&metadata.namespace)),
            ("creationTimestamp", metadata.creation_timestamp.as_ref()),
            ("deletionTimestamp", metadata.deletion_timestamp.as_ref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                members.insert(name.into(), self.text(text)?);
            }
        }
        if let Some(generation) = metadata.generation {
            members.insert("generation".into(), self.one(CelInt::from(generation))?);
        }
        for (name, map) in [("labels", &metadata.labels), ("annotations", &metadata.annotations)] {
            if part.is_none_or(|part| part.covers(&[name]))
                && let Some(map) = map.tree()
            {
                let inside = part.and_then(|part| part.members.get(name));
                members.insert(name.into(), self.value(map, inside)?);
            }
        }
        Ok(Box::new(CelMap::from(members)))
    }

    fn writer<'v>(&mut self, writer: &'v Writer<'_>) -> Result<Box<dyn Val + 'v>, Unknown> {
        let groups: Vec<_> =
            writer.groups.iter().map(|group| self.text(group)).collect::<Result<_, _>>()?;
        let mut members = Members::new();
        members.insert("user".into(), self.text(&writer.user)?);
        members.insert("groups".into(), Box::new(CelList::from(groups)));
        Ok(Box::new(CelMap::from(members)))
    }

    /// A value, or the parts that are read.
    fn value<'v>(
        &mut self,
        json: &'v Json<'_>,
        part: Option<&Part>,
    ) -> Result<Box<dyn Val + 'v>, Unknown> {
        let part = part.filter(|part| !part.whole);
        match json {
            Json::Null | Json::Deep | Json::Large(_) => self.one(CelNull),
            Json::Bool(value) => self.one(CelBool::from(*value)),
            Json::Number(number) => match number.as_i64() {
                Some(whole) => self.one(CelInt::from(whole)),
                None => self.one(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
            },
            Json::String(text) => self.text(text),
            Json::Array(items) => {
                // Lists have no members.
                let items = if part.is_some() { &[] } else { items.as_slice() };
                let list: Result<Vec<_>, _> =
                    items.iter().map(|item| self.value(item, None)).collect();
                self.one(CelList::from(list?))
            }
            Json::Object(all) => {
                let mut members = Members::new();
                match part {
                    None => {
                        for (name, value) in all.iter() {
                            members.insert(name.into(), self.value(value, None)?);
                        }
                    }
                    Some(part) => {
                        for (name, inside) in &part.members {
                            if let Some((name, value)) = all.get_key_value(name) {
                                members.insert(name.into(), self.value(value, Some(inside))?);
                            }
                        }
                    }
                }
                self.count(1)?;
                Ok(Box::new(CelMap::from(members)))
            }
        }
    }

    fn text<'v>(&mut self, text: &'v str) -> Result<Box<dyn Val + 'v>, Unknown> {
        self.longest = self.longest.max(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.one(CelString::from(text))
    }

    fn one<'v>(&mut self, value: impl Val + 'v) -> Result<Box<dyn Val + 'v>, Unknown> {
        self.count(1)?;
        Ok(Box::new(value))
    }

    fn count(&mut self, values: u64) -> Result<(), Unknown> {
        self.values += values;
        self.budget.spend(values);
        if self.values > MAX_VALUES {
            return Err(Unknown::limit(format!("it reads more than {MAX_VALUES} values")));
        }
        Ok(())
    }
}

/// The members of a future map. The last of several with one name counts, as in Go.
type Members<'v> = HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>;

/// The text of an error. It depends only on the object.
fn why(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) => format!("there is no {}", quoted(name)),
        ExecutionError::NoSuchOverload(overload) => {
            let name = overload.function().trim_matches(['_', '@']).replace("[_]", "[…]");
            match (name.as_str(), overload.argument_types()) {
                // `all` and `exists` join the results of their rounds with these operators.
                ("&&" | "||", types) => {
                    let other = types.iter().find(|kind| **kind != CEL_BOOL);
                    needed(other.map_or(CEL_BOOL, |kind| kind), CEL_BOOL)
                }
                // What `matches` was rewritten to.
                ("in", [kind, last]) if *last == PATTERN_TYPE.name() => {
                    format!("\"matches\" does not work on {kind}")
                }
                (name, types) => {
                    format!("{} does not work on {}", quoted(name), types.join(" and "))
                }
            }
        }
        ExecutionError::UnsupportedBinaryOperator(name, one, other) => {
            let name = match *name {
                "add" => "+",
                "sub" => "-",
                "mul" => "*",
                "div" => "/",
                "rem" => "%",
                name => name,
            };
            format!("\"{name}\" does not work on {} and {}", one.type_of(), other.type_of())
        }
        ExecutionError::UnexpectedType { got, want } => needed(got, want),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "it divides by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number is too large".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "a list is shorter than an index".to_owned(),
        ExecutionError::DuplicateKey(_) => "a map has a key twice".to_owned(),
        ExecutionError::FunctionError { function, .. } => {
            format!("{} does not accept this value", quoted(function))
        }
        _ => "an operation does not accept its values".to_owned(),
    }
}

/// The name of CEL's type of true and false.
const CEL_BOOL: &str = "bool";

fn needed(got: &str, want: &str) -> String {
    format!("{} is used where {} is needed", quoted(got), quoted(want))
}

#[cfg(test)]
mod tests;
