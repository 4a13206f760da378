//! One JSON interface to what the commands compute: [`call`]. `statusgate ui` serves it to its page, and the page can
//! also call it as WebAssembly.
//!
//! A mistake in a text of the user is data: `{file, line, column, endLine, endColumn, message, help}`, where `file` is
//! the member of the request. An invalid request gives `{error}`.

mod case;
mod documents;
mod draft;
mod judge;
mod kubectl;

use serde::Deserialize;
use serde_json::{Value, json};

use self::documents::Documents;
use crate::explain::{Explained, Graph, Page, Play, data};
use statusgate_analysis::lint::{Report, lint, lint_policy};
use statusgate_analysis::scene::yaml;
use statusgate_core::documents::DocumentKind;
use statusgate_core::policy::{Diagnostic, Diagnostics, PolicySet};
use statusgate_core::source::tree::did_you_mean;

/// Answers a call. The same request gives the same bytes.
///
/// | call | request | answer |
/// |---|---|---|
/// | `conventions` | | the built-in conventions and their rules |
/// | `explain` | `documents`, `convention` | its page, its graph, its rules and its document |
/// | `state` | `documents`, `convention`, `answers` | the facts that phase and health depend on, and what the convention says of a state |
/// | `rule` | `documents`, `rule` | its page, and writes that show it |
/// | `judge` | `documents`, `convention`, `object`, `old`, `user`, `groups`, `plural`, `now` | the responses of both webhooks, and what readers see |
/// | `case` | as `judge` | the write as a test case |
/// | `lint` | `documents` | the faults and notes of each document |
/// | `draft` | `writes`, `sequence` | a draft for each recorded resource, with its last write |
/// | `schema` | `kind` | the JSON Schema of `StatusPolicy` or `StatusConvention` |
/// | [`OF_CLUSTER`] | | an error: only `statusgate ui` knows a cluster |
pub fn call(name: &str, request: &[u8]) -> Vec<u8> {
    let answer = match name {
        "conventions" => conventions(),
        "explain" => read(request).and_then(|request| explain(&request)),
        "state" => read(request).and_then(|request| state(&request)),
        "rule" => read(request).and_then(|request| rule(&request)),
        "judge" => read(request).and_then(|write| judge::answer(&write)),
        "case" => read(request).and_then(|write| case::answer(&write)),
        "lint" => read(request).and_then(|request| remarks(&request)),
        "draft" => read(request).and_then(|recorded| draft::answer(&recorded)),
        "schema" => read(request).map(|OfKind { kind }| kind.json_schema()),
        _ if OF_CLUSTER.contains(&name) => Err(Failure::from(NO_CLUSTER.to_owned())),
        _ => Err(Failure::from(format!("unknown call \"{name}\""))),
    };
    let answer = answer.unwrap_or_else(|failure| match failure {
        Failure::Request(error) => json!({"error": error}),
        Failure::Texts(mistakes) => json!({"mistakes": mistakes.to_json()}),
    });
    answer.to_string().into_bytes()
}

/// The calls about a cluster.
pub const OF_CLUSTER: [&str; 4] = ["audit", "object", "doctor", "policies"];

const NO_CLUSTER: &str = "there is no cluster here: start `statusgate ui --kubeconfig FILE`";

/// Why a call has no other answer.
enum Failure {
    /// The caller made a mistake.
    Request(String),
    /// The user did.
    Texts(Diagnostics),
}

impl From<String> for Failure {
    fn from(error: String) -> Self {
        Self::Request(error)
    }
}

impl From<Diagnostics> for Failure {
    fn from(mistakes: Diagnostics) -> Self {
        Self::Texts(mistakes)
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(mistakes: Vec<Diagnostic>) -> Self {
        let mut all = Diagnostics::default();
        all.extend(mistakes);
        Self::Texts(all)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Request(format!("the answer cannot be written as JSON: {error}"))
    }
}

type CallResult = Result<Value, Failure>;

fn read<'r, T: Deserialize<'r>>(request: &'r [u8]) -> Result<T, Failure> {
    serde_json::from_slice(request).map_err(|error| format!("invalid request: {error}").into())
}

#[derive(Deserialize)]
struct OfKind {
    kind: DocumentKind,
}

fn conventions() -> CallResult {
    let built_in = PolicySet::compile(&[])?;
    let list = built_in.conventions().values().map(|convention| {
        let mut summary = data::summary(convention);
        summary["rules"] = convention.declared.iter().map(|(id, _)| id.to_string()).collect();
        summary
    });
    Ok(json!({"conventions": list.collect::<Value>()}))
}

/// What to say of a convention that does not exist.
pub fn unknown<'w>(name: &str, known: impl Iterator<Item = &'w str> + Clone) -> String {
    format!("unknown convention \"{name}\"; {}", did_you_mean(name, known))
}

fn explain(request: &Documents) -> CallResult {
    let convention = request.convention()?;
    Ok(json!({
        "name": convention.name,
        "page": Page::of(&convention).blocks,
        "graph": Graph::of(&convention).map(|graph| graph.to_json()),
        "rules": convention.declared.iter().map(|(id, _)| id.to_string()).collect::<Value>(),
        "document": PolicySet::document(&request.sources(), &convention.name),
    }))
}

#[derive(Deserialize)]
struct InState {
    #[serde(flatten)]
    documents: Documents,
    /// For each fact the index of an answer; without them, the facts begin with absent.
    answers: Option<Vec<usize>>,
}

fn state(request: &InState) -> CallResult {
    let convention = request.documents.convention()?;
    let play = Play::of(&convention);
    let facts = play.facts();
    let given = request.answers.clone();
    let answers = given.unwrap_or_else(|| facts.iter().map(|fact| fact.first).collect());
    Ok(json!({"facts": facts, "answers": answers, "state": play.state(&answers)}))
}

#[derive(Deserialize)]
struct OfRule {
    #[serde(flatten)]
    documents: Documents,
    rule: String,
}

fn rule(request: &OfRule) -> CallResult {
    let policies = request.documents.given()?;
    let Some(rule) = Explained::find(&request.rule, &policies)? else {
        return Err(format!("unknown rule \"{}\"", request.rule).into());
    };
    let examples = [&rule.examples.violating, &rule.examples.satisfying];
    let [violating, satisfying] = examples.map(|example| {
        example.as_ref().map(|example| {
            json!({
                "plural": example.resource,
                "object": yaml(&example.written),
                "old": example.stored.as_ref().map(yaml),
            })
        })
    });
    let page = rule.to_page().blocks;
    Ok(json!({"page": page, "violating": violating, "satisfying": satisfying}))
}

fn remarks(documents: &Documents) -> CallResult {
    let policies = documents.given()?;
    let conventions: Vec<Report> =
        policies.given_names().map(|name| lint(&policies, name)).collect::<Result<_, _>>()?;
    let policies: Vec<Report> =
        policies.policies().iter().map(|policy| lint_policy(&policies, policy)).collect();
    let all = |reports: &[Report]| reports.iter().map(Report::to_json).collect::<Value>();
    Ok(json!({"mistakes": [], "conventions": all(&conventions), "policies": all(&policies)}))
}
