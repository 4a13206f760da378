//! Argo CD: a Lua script for each kind.
//!
//! Argo CD has Lua 5.1 without libraries for strings and numbers. It decides about deletion before it runs a script, and decodes null
//! as nil. It drops null from lists, and [] is {} in Lua. The script is a translation of the [`Program`], clause by clause.

use std::fmt::Write;

use indexmap::IndexMap;
use serde_json::{Number, Value};

use super::pattern::{Text, texts};
use super::{Program, Readable, Reader, Witness, in_group, sign};
use crate::readers::program::{Clause, Complaint, Evidence, Reason};
use statusgate_core::engine::HealthStatus;
use statusgate_core::language::formula::{Bound, Formula, ListPlace, Question};
use statusgate_core::language::{Observed, Pattern, Polarity};
use statusgate_core::model::{Index, Pointer};

/// The functions that a script may need. Each uses only those before it.
const HELPERS: [&str; 17] = [
    "local function at(value, ...)
  for _, name in ipairs({...}) do
    if type(value) ~= \"table\" then return nil end
    value = value[name]
  end
  return value
end
",
    "local function item(value, index, name)
  if type(value) ~= \"table\" then return nil end
  if #value == 0 then return value[name] end
  return value[index or #value]
end
",
    "local function written(value)
  if type(value) == \"string\" and value ~= \"\" then return value end
  return nil
end
",
    "local function set(value)
  return value ~= nil and value ~= \"\" and (type(value) ~= \"table\" or next(value) ~= nil)
end
",
    "local function among(value, ...)
  for _, other in ipairs({...}) do
    if value == other then return true end
  end
  return false
end
",
    "-- Without a library for strings, only numbers in base 36 ignore the case of letters.
local function anycase(value, ...)
  for _, word in ipairs({...}) do
    if type(value) == \"string\" and #value == #word and tonumber(value, 36) == tonumber(word, 36) then return true end
  end
  return false
end
",
    "local function same(one, other)
  if type(one) ~= \"table\" or type(other) ~= \"table\" then return one == other end
  for name, value in pairs(one) do
    if not same(value, other[name]) then return false end
  end
  for name in pairs(other) do
    if one[name] == nil then return false end
  end
  return true
end
",
    "-- A time has 20 letters or more, and begins with a digit. Here, [] is {}.
local function unsure(one, other)
  local function time(value) return type(value) == \"string\" and #value >= 20 and value >= \"0\" and value < \":\" end
  local function empty(value) return type(value) == \"table\" and next(value) == nil end
  return one ~= other and (time(one) and time(other) or empty(one) and empty(other))
end
",
    "local function observed(value)
  local number, generation = tonumber(value), at(obj, \"metadata\", \"generation\")
  if number == nil or number % 1 ~= 0 or generation == nil then return nil end
  if type(value) == \"string\" and tostring(number) ~= value then return nil end
  if number < generation then return \"behind\" end
  return number > generation and \"ahead\" or \"current\"
end
",
    "local function older(observed)
  local generation = at(obj, \"metadata\", \"generation\")
  return type(observed) == \"number\" and observed % 1 == 0 and generation ~= nil and observed < generation
end
",
    "local function find(list, kind)
  if type(list) ~= \"table\" then return nil end
  for _, condition in ipairs(list) do
    if at(condition, \"type\") == kind then return condition end
  end
  return nil
end
",
    "local function is(list, kind, member, ...)
  local condition = find(list, kind)
  if condition == nil or older(condition.observedGeneration) then return false end
  if condition[member] == nil then return among(\"\", ...) end
  return among(condition[member], ...)
end
",
    "local function differs(list, kind, member, ...)
  local condition = find(list, kind)
  return condition ~= nil and not older(condition.observedGeneration)
    and type(condition[member]) == \"string\" and not among(condition[member], ...)
end
",
    "local function stale(list)
  if type(list) ~= \"table\" then return false end
  for _, condition in ipairs(list) do
    if older(at(condition, \"observedGeneration\")) then return true end
  end
  return false
end
",
    "local function said(condition)
  return written(at(condition, \"message\")) or written(at(condition, \"reason\"))
end
",
    "local function text(list, kind)
  return said(find(list, kind))
end
",
    "-- The text of Ready, otherwise of the newest condition that is not good. `bad` has the bad status of types other than False.
local function complaint(list, since, bad)
  local function complains(condition)
    local kind, status = at(condition, \"type\"), at(condition, \"status\")
    if type(kind) ~= \"string\" or bad[kind] == \"\" or older(condition.observedGeneration) then return nil end
    return (status == \"Unknown\" or status == (bad[kind] or \"False\")) and said(condition) or nil
  end
  local found, newest = complains(find(list, \"Ready\")), nil
  if found or type(list) ~= \"table\" then return found end
  for _, condition in ipairs(list) do
    local time = written(at(condition, since)) or \"\"
    if complains(condition) and (newest == nil or time > newest) then
      found, newest = said(condition), time
    end
  end
  return found
end
",
];

/// Whether a script can ask this.
pub(super) fn can_ask(question: &Question) -> bool {
    let is_exact = |number: &Number| {
        number.is_f64() || number.as_i64().is_some_and(|number| number.unsigned_abs() <= EXACT)
    };
    match question {
        Question::Foreign(_) => false,
        Question::Matches { pattern, .. } => texts(pattern).is_some(),
        Question::Value { among, .. } => {
            among.iter().all(|value| value.as_number().is_none_or(is_exact))
        }
        Question::Compare(_, _, Bound::Number(bound)) => is_exact(bound),
        _ => true,
    }
}

/// A number of Lua is a float, which knows each integer up to here.
const EXACT: u64 = 1 << 53;

/// The ConfigMap of Argo CD. Its value is YAML, so kinds with the same script share it by an alias: an API server accepts
/// one megabyte.
pub(super) fn config_map(kinds: &[Readable]) -> String {
    let mut text = "# kubectl apply --server-side -n argocd -f FILE: the other keys of argocd-cm stay.\n\
                    apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: argocd-cm\n  labels:\n    \
                    app.kubernetes.io/name: argocd-cm\n    app.kubernetes.io/part-of: argocd\ndata:\n  \
                    resource.customizations: |\n"
        .to_owned();
    let mut scripts: IndexMap<Script, Vec<&Readable>> = IndexMap::new();
    for kind in kinds {
        scripts.entry(Script::of(kind)).or_default().push(kind);
    }
    for (number, (script, kinds)) in scripts.iter().enumerate() {
        let mut value = format!("&script{number}\n      health.lua: |\n");
        value += &indented(&script.guarded(kinds), "        ");
        for kind in kinds {
            let _ = write!(text, "    {}: {value}", in_group(&kind.group, &kind.kind));
            value = format!("*script{number}\n");
        }
    }
    text
}

/// The largest ConfigMap that an API server accepts, in bytes (`MaxSecretSize` in kubernetes pkg/apis/core).
pub const MAX_CONFIG_MAP: usize = 1 << 20;

/// The files of a kind in Argo CD's folder of scripts (`resource_customizations`), and their texts.
pub fn files(kind: &Readable, witnesses: &[Witness]) -> Vec<(String, String)> {
    let folder = in_group(&kind.group, &kind.kind);
    let mut tests = "tests:\n".to_owned();
    let mut files = vec![(format!("{folder}/health.lua"), script(kind))];
    for (index, Witness { rule, object, health }) in witnesses.iter().enumerate() {
        let before = witnesses.iter().take(index).filter(|other| other.rule == *rule).count();
        let number = if before == 0 { String::new() } else { format!("-{}", before + 1) };
        let path = format!("testdata/{rule}{number}.yaml");
        let (status, message) = (argo_cd(health.class.is), Value::from(health.reason.as_str()));
        let _ = write!(
            tests,
            "- healthStatus:\n    status: {status}\n    message: {message}\n  inputPath: {path}\n"
        );
        let text = serde_saphyr::to_string(object).unwrap_or_default();
        files.push((format!("{folder}/{path}"), text));
    }
    files.push((format!("{folder}/health_test.yaml"), tests));
    files
}

/// The script of a kind. The health of objects in a version without a program is unknown.
pub fn script(kind: &Readable) -> String {
    Script::of(kind).guarded(&[kind])
}

/// A script that several kinds may share.
#[derive(PartialEq, Eq, Hash)]
struct Script {
    /// The comments.
    head: String,
    body: String,
}

impl Script {
    fn of(kind: &Readable) -> Self {
        let mut head = format!("-- {}\n", kind.origin());
        for gap in Reader::ArgoCd.gaps(kind) {
            let _ = writeln!(head, "-- {gap}");
        }
        let kind = kind.asking(can_ask);
        let mut bodies: IndexMap<String, Vec<String>> = IndexMap::new();
        for (version, program) in &kind.versions {
            let versions = bodies.entry(Writer::default().body(program)).or_default();
            versions.push(quote(&kind.api_version(version)));
        }
        let mut text = String::new();
        let last = bodies.pop();
        for (body, versions) in bodies {
            let is_one = format!("among(obj.apiVersion, {})", versions.join(", "));
            let _ = write!(text, "if {is_one} then\n{}end\n", indented(&body, "  "));
        }
        text.extend(last.map(|(body, _)| body));
        Self { head, body: with_helpers(&text) }
    }

    /// The script for some kinds, with a guard against their other versions, unless there are none.
    fn guarded(&self, kinds: &[&Readable]) -> String {
        let Self { head, body } = self;
        if kinds.iter().all(|kind| kind.complete) {
            return format!("{head}{body}");
        }
        let mut known = String::new();
        for kind in kinds {
            for (version, _) in &kind.versions {
                let name = quote(&format!("{} {}", kind.kind, kind.api_version(version)));
                let _ = writeln!(known, "  [{name}] = true,");
            }
        }
        format!(
            "{head}local known = {{\n{known}}}\nlocal name = obj.kind .. \" \" .. obj.apiVersion\nif not known[name] then \
             return {{status = \"Unknown\", message = \"no policy selects \" .. name}} end\n{body}"
        )
    }
}

/// The script with the helpers that it uses.
fn with_helpers(body: &str) -> String {
    let mut text = body.to_owned();
    for helper in HELPERS.iter().rev() {
        let (_, rest) = helper.split_once("local function ").unwrap_or_default();
        let call = format!("{}(", rest.split('(').next().unwrap_or_default());
        let is_called = text.match_indices(&call).any(|(at, _)| {
            !text[..at].ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        });
        if is_called {
            text.insert_str(0, helper);
        }
    }
    text
}

/// One program as statements.
#[derive(Default)]
struct Writer {
    /// The lists of conditions, in the order of their variables.
    lists: Vec<Pointer>,
}

impl Writer {
    fn body(mut self, program: &Program) -> String {
        let clauses: String = program.clauses.iter().map(|clause| self.clause(clause)).collect();
        let mut lists = String::new();
        for (index, path) in self.lists.iter().enumerate() {
            let _ = writeln!(lists, "local {} = {}", variable(index), field(path));
        }
        lists + &clauses
    }

    fn clause(&mut self, clause: &Clause) -> String {
        let (when, loops) = match &clause.when {
            Formula::Some { outer, inner, of } => (&**of, Some((outer, inner))),
            when => (when, None),
        };
        let reason = self.reason(clause);
        let status = quote(argo_cd(clause.health.is));
        let mut text = format!("return {{status = {status}, message = {reason}}}\n");
        if *when != Formula::ALWAYS {
            let rule = clause.rule.as_deref().unwrap_or("stale");
            let when = self.formula(when, Around::Or);
            text = format!("if {when} then -- {rule}\n  {text}end\n");
        }
        match loops {
            None => text,
            Some((outer, inner)) => {
                let (outer, inner) = (field(outer), at("element", inner));
                let text = indented(&text, "    ");
                format!(
                    "local outer = {outer}\nif type(outer) == \"table\" then\n  \
                     for _, element in ipairs(outer) do\n    local inner = {inner}\n{text}  end\nend\n"
                )
            }
        }
    }

    fn reason(&mut self, clause: &Clause) -> String {
        let (message, text) = match &clause.reason {
            Reason::Text(text) => (&None, quote(text)),
            Reason::LeftOut(_) => (&None, quote(&clause.gap().unwrap_or_default())),
            Reason::Conditions(message, evidence) => {
                let otherwise = quote(clause.rule.as_deref().unwrap_or_default());
                (message, self.evidence(evidence, &otherwise))
            }
            Reason::Complaint(Complaint { list, time, polarities }, text) => {
                let bad = polarities.iter().map(|(kind, polarity)| {
                    let bad = if *polarity == Polarity::Negative { "True" } else { "" };
                    format!("[{}] = {}", quote(kind), quote(bad))
                });
                let (bad, list) = (Vec::from_iter(bad).join(", "), self.list(list));
                (&None, format!("complaint({list}, {}, {{{bad}}}) or {}", quote(time), quote(text)))
            }
            Reason::Phase(message, paths) => {
                let phase: Vec<String> = paths.iter().map(written).collect();
                let text = match phase.as_slice() {
                    [one] => format!("\"phase \" .. {one}"),
                    several => format!("\"phase \" .. ({})", several.join(" or ")),
                };
                (message, text)
            }
        };
        match message {
            Some(path) => format!("{} or {text}", written(path)),
            None => text,
        }
    }

    /// The text of the first condition that has one. A text is never false, so `and` and `or` choose.
    fn evidence(&mut self, evidence: &[Evidence], otherwise: &str) -> String {
        let Some((first, rest)) = evidence.split_first() else { return otherwise.to_owned() };
        let rest = self.evidence(rest, otherwise);
        match first {
            Evidence::Condition(list, kind) => {
                let list = self.list(list);
                format!("text({list}, {}) or {rest}", quote(kind))
            }
            Evidence::First(alternatives) => {
                let last = alternatives.len().saturating_sub(1);
                let mut parts = Vec::new();
                for (index, (holds, evidence)) in alternatives.iter().enumerate() {
                    let text = self.evidence(evidence, &rest);
                    parts.push(if index == last {
                        text
                    } else {
                        format!("{} and ({text})", self.formula(holds, Around::And))
                    });
                }
                format!("({})", parts.join(" or "))
            }
        }
    }

    fn formula(&mut self, formula: &Formula, around: Around) -> String {
        let joined = |script: &mut Self, parts: &[Formula], word: &str, inside| {
            let parts: Vec<String> =
                parts.iter().map(|part| script.formula(part, inside)).collect();
            parts.join(word)
        };
        let (text, binds) = match formula {
            Formula::All(parts) if parts.is_empty() => ("true".to_owned(), Around::Not),
            Formula::Any(parts) if parts.is_empty() => ("false".to_owned(), Around::Not),
            Formula::All(parts) => (joined(self, parts, " and ", Around::And), Around::And),
            Formula::Any(parts) => (joined(self, parts, " or ", Around::Or), Around::Or),
            Formula::Not(part) => (format!("not {}", self.formula(part, Around::Not)), Around::Not),
            Formula::Ask(question) => self.question(question),
            // Only a whole formula is of this kind.
            Formula::Some { .. } => ("false".to_owned(), Around::Not),
        };
        if binds < around { format!("({text})") } else { text }
    }

    fn question(&mut self, question: &Question) -> (String, Around) {
        let call = |text: String| (text, Around::Not);
        let all = |text: String| (text, Around::And);
        match question {
            Question::Present(list, kind) => {
                all(format!("find({}, {}) ~= nil", self.list(list), quote(kind)))
            }
            Question::Condition { list, kind, member, among, negated } => {
                let name = if *negated { "differs" } else { "is" };
                let texts: String = among.iter().map(|text| format!(", {}", quote(text))).collect();
                let list = self.list(list);
                call(format!("{name}({list}, {}, {}{texts})", quote(kind), quote(member)))
            }
            Question::Value { path, among, negated, text } => {
                let value = field(path);
                let is_there = match (negated, text) {
                    (false, _) => None,
                    (true, false) => Some(format!("{value} ~= nil")),
                    (true, true) => Some(format!("written({value}) ~= nil")),
                };
                let test = match among.as_slice() {
                    [] if *negated => None,
                    [] => Some("false".to_owned()),
                    [one] if *negated => Some(format!("{value} ~= {}", literal(one))),
                    [one] => Some(format!("{value} == {}", literal(one))),
                    several => {
                        let not = if *negated { "not " } else { "" };
                        let values: Vec<String> = several.iter().map(literal).collect();
                        Some(format!("{not}among({value}, {})", values.join(", ")))
                    }
                };
                let parts: Vec<String> = is_there.into_iter().chain(test).collect();
                all(parts.join(" and "))
            }
            Question::Stale(list) => call(format!("stale({})", self.list(list))),
            Question::IsText(path) => all(format!("type({}) == \"string\"", field(path))),
            Question::Same(one, other, same) => {
                let (one, other) = (field(one), field(other));
                let not = if *same { "" } else { "not " };
                all(format!("{one} ~= nil and {other} ~= nil and {not}same({one}, {other})"))
            }
            Question::Unsure(one, other) => {
                call(format!("unsure({}, {})", field(one), field(other)))
            }
            Question::Matches { path, pattern, negated } => {
                let value = field(path);
                match (is_one_of(&value, pattern), negated) {
                    (is_one, true) => {
                        all(format!("type({value}) == \"string\" and not ({is_one})"))
                    }
                    (is_one, false) => (is_one, Around::Or),
                }
            }
            Question::Compare(path, how, bound) => {
                let value = field(path);
                let how = sign(*how);
                let (bound, also) = match bound {
                    Bound::Number(number) => (number.to_string(), String::new()),
                    Bound::At(path) => {
                        let bound = field(path);
                        let also = format!("type({bound}) == \"number\" and ");
                        (bound, also)
                    }
                };
                all(format!("type({value}) == \"number\" and {also}{value} {how} {bound}"))
            }
            Question::Set(path) => call(format!("set({})", field(path))),
            Question::Longer(path, least) => {
                let value = field(path);
                all(format!("type({value}) == \"table\" and #{value} >= {least}"))
            }
            Question::Observed { path, among, text: false } if *among == [Observed::Behind] => {
                call(format!("older(tonumber({}))", field(path)))
            }
            Question::Observed { path, among, .. } => {
                let value = format!("observed({})", field(path));
                match among.as_slice() {
                    [one] => all(format!("{value} == {}", quote(one.name()))),
                    several => {
                        let names: Vec<String> =
                            several.iter().map(|one| quote(Observed::name(*one))).collect();
                        call(format!("among({value}, {})", names.join(", ")))
                    }
                }
            }
            // Only a program without such questions is written.
            Question::Foreign(_) => call("false".to_owned()),
        }
    }

    /// The variable of a list.
    fn list(&mut self, list: &ListPlace) -> String {
        let ListPlace::At(path) = list else { return "inner".to_owned() };
        let known = self.lists.iter().position(|known| known == path);
        variable(known.unwrap_or_else(|| {
            self.lists.push(path.clone());
            self.lists.len() - 1
        }))
    }
}

/// The value at a path of the object.
fn field(path: &Pointer) -> String {
    at("obj", path.tokens())
}

/// The text at a path of the object, if it is not empty.
fn written(path: &Pointer) -> String {
    format!("written({})", field(path))
}

/// Whether a value is a text that matches a pattern of words.
fn is_one_of(value: &str, pattern: &Pattern) -> String {
    let (mut exact, mut any_case) = (String::new(), String::new());
    for text in texts(pattern).unwrap_or_default() {
        let _ = match text {
            Text::Exact(text) => write!(exact, ", {}", quote(&text)),
            Text::AnyCase(text) => write!(any_case, ", {}", quote(&text)),
        };
    }
    let functions = [("among", exact), ("anycase", any_case)];
    let used = functions.iter().filter(|(_, texts)| !texts.is_empty());
    Vec::from_iter(used.map(|(name, texts)| format!("{name}({value}{texts})"))).join(" or ")
}

/// What a formula is a part of; each binds more than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Around {
    Or,
    And,
    Not,
}

fn variable(index: usize) -> String {
    if index == 0 { "conditions".to_owned() } else { format!("conditions{}", index + 1) }
}

fn at(root: &str, names: &[String]) -> String {
    let Some(end) = names.iter().rposition(|name| Index::of(name).is_some()) else {
        return names.iter().fold(format!("at({root}"), |call, name| call + ", " + &quote(name))
            + ")";
    };
    let name = &names[end];
    let index = match Index::of(name) {
        Some(Index::At(index)) => index.saturating_add(1).to_string(),
        _ => "nil".to_owned(),
    };
    let item = format!("item({}, {index}, {})", at(root, &names[..end]), quote(name));
    match &names[end + 1..] {
        [] => item,
        below => at(&item, below),
    }
}

/// The word of Argo CD for a health.
pub const fn argo_cd(health: HealthStatus) -> &'static str {
    match health {
        HealthStatus::Current => "Healthy",
        HealthStatus::InProgress | HealthStatus::Terminating => "Progressing",
        HealthStatus::Failed => "Degraded",
        HealthStatus::Suspended => "Suspended",
        HealthStatus::Unknown => "Unknown",
    }
}

fn literal(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), quote)
}

fn quote(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let bytes = letter.to_string().into_bytes();
                quoted.extend(bytes.iter().map(|byte| format!("\\{byte:03}")));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}\n")).collect()
}
