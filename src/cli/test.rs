//! `statusgate test`: unit tests for policies.

mod case;
mod compare;

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anstyle::AnsiColor;
use anyhow::bail;
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use self::case::{Case, Suite};
use self::compare::{Difference, compare};
use super::explain::LISTED;
use super::input::check_stdin;
use super::output::{diff_line, painted, stdout};
use super::policies::{following, rule_ids};
use super::report::{junit, plural};
use super::{Outcome, say};
use statusgate_core::documents::PolicySpec;
use statusgate_core::documents::suite::{self, CaseWriter, ExpectedFinding};
use statusgate_core::engine;
use statusgate_core::model::Operation;
use statusgate_core::policy::{Diagnostic, Diagnostics, PolicySet, Source};
use statusgate_core::request::{Request, Served, Unfit, writer};
use statusgate_core::source::tree::{self, Node, Problems, Span, near};
use statusgate_core::source::{Place, json_at, one_line, reason};
use statusgate_server::files::open;

/// The arguments of `test`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0: all cases pass. 1: a case fails. 2: a file is invalid or cannot be read; \
                  the cases of the other files are run."
)]
pub(super) struct Args {
    /// Files with cases, or folders, including subfolders. Documents with an apiVersion are ignored:
    /// policies may be in the same folder.
    #[arg(value_name = "DIR", required = true)]
    paths: Vec<PathBuf>,

    /// Only cases with this text in their name.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// The output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line per case, with a diff if it fails.
    Table,
    /// One document.
    Json,
    /// JUnit XML: one test suite per file.
    Junit,
}

/// One case that was run.
#[derive(Debug)]
struct Tried {
    place: Place,
    name: String,
    differences: Vec<Difference>,
}

/// Runs the cases of files and folders.
///
/// # Errors
/// When files are invalid. The cases of the other files are run.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    check_stdin(args.paths.iter())?;
    let (files, unread) = open(&args.paths, true, &[]);
    let mut bench = Bench { unread, ..Bench::default() };
    for (index, file) in files.iter().enumerate() {
        for suite in bench.read(index, file) {
            bench.run(file, &suite, args.filter.as_deref());
        }
    }
    let wrong = Diagnostics::new(&files, std::mem::take(&mut bench.mistakes));
    let in_cases = bench.unread.len() + wrong.list().len() - bench.not_run;
    let in_policies: usize = bench.broken.iter().map(|broken| broken.mistakes).sum();
    let mut out = BufWriter::new(stdout(args.output == Output::Table));
    match args.output {
        Output::Table => bench.write_table(&mut out)?,
        Output::Json => bench.write_json(&wrong, &mut out)?,
        Output::Junit => junit::write(&bench.suites(&wrong), &mut out)?,
    }
    out.flush()?;
    if in_cases + in_policies > 0 {
        bench.unread.iter().for_each(say);
        bench.broken.iter().for_each(|broken| say(&broken.message));
        if !wrong.list().is_empty() {
            say(&wrong);
        }
        let counts = [(in_policies, "policies"), (in_cases, "cases")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, of)| format!("{} in the {of}", plural(count, "mistake")));
        bail!("{}", counts.collect::<Vec<_>>().join(", "));
    }
    if bench.tried.is_empty() {
        match &args.filter {
            Some(filter) => bail!("no case has {filter:?} in its name"),
            None => bail!("there is no case in these files: nothing was tested"),
        }
    }
    Ok(Outcome::of(bench.failed() > 0))
}

/// The policies of a suite: files and folders, and a convention.
type Named = (Vec<PathBuf>, Option<String>);

/// The state of a run: compiled policies, results and errors.
#[derive(Default)]
struct Bench {
    /// Compiled once for all suites with the same policies.
    policies: HashMap<Named, Option<Rc<PolicySet>>>,
    tried: Vec<Tried>,
    /// Files and documents that are not valid manifests.
    unread: Vec<Diagnostic>,
    mistakes: Vec<Diagnostic>,
    /// How many of them say that cases are not run because of their policies.
    not_run: usize,
    broken: Vec<Broken>,
}

/// Policies that cannot be used.
struct Broken {
    /// Their names.
    policies: String,
    mistakes: usize,
    message: String,
}

impl Bench {
    fn read(&mut self, index: usize, file: &Source) -> Vec<Suite> {
        let (documents, mistakes) = tree::parse(index, &file.text);
        self.mistakes.extend(mistakes);
        let folder = Path::new(&file.name).parent().unwrap_or_else(|| Path::new(""));
        let problems = Problems::default();
        let (mut suites, mut wrong) = (Vec::new(), Vec::new());
        let nodes = documents.into_iter().map(|document| document.root);
        for node in nodes.filter(case::is_suite) {
            let before = problems.count();
            match json_of(file, &node) {
                Ok(json) => {
                    let suite = case::read(node, &json, folder, &problems);
                    let kept = if problems.count() == before { &mut suites } else { &mut wrong };
                    kept.extend(suite);
                }
                Err(mistake) => self.unread.push(mistake),
            }
        }
        self.mistakes.extend(problems.into_list());
        // Their cases are not run, but errors of their policies are reported.
        for suite in wrong {
            self.load(&suite);
        }
        suites
    }

    /// The policies of a suite. Records an error if they are invalid.
    fn load(&mut self, suite: &Suite) -> Option<Rc<PolicySet>> {
        let key = (suite.policies.clone(), suite.convention.clone());
        let broken = &mut self.broken;
        let policies = self.policies.entry(key).or_insert_with(|| {
            let spec = suite.convention.as_deref().map(PolicySpec::for_everything);
            let compiled = following(&suite.policies, spec).map_err(|error| {
                let mistakes =
                    error.downcast_ref::<Diagnostics>().map_or(1, |all| all.list().len());
                let (policies, message) = (suite.policies_named(), format!("{error:#}"));
                broken.push(Broken { policies, mistakes, message });
            });
            compiled.ok().map(Rc::new)
        });
        if policies.is_none() {
            let message = format!("not run: there are mistakes in {}", suite.policies_named());
            self.mistakes.push(Diagnostic::new(suite.place.clone(), message));
            self.not_run += 1;
        }
        policies.clone()
    }

    fn run(&mut self, file: &Source, suite: &Suite, filter: Option<&str>) {
        let Some(policies) = self.load(suite) else { return };
        let known = rule_ids(&policies);
        let part = filter.unwrap_or_default();
        for case in suite.cases.iter().filter(|case| case.written.name.contains(part)) {
            let tried = match &case.policy {
                None => try_case(case, &policies, &known),
                Some((spec, node)) => policies
                    .with_policy_of("all", spec, node)
                    .and_then(|policies| try_case(case, &policies, &rule_ids(&policies))),
            };
            match tried {
                Ok(differences) => self.tried.push(Tried {
                    place: Place::of(file, &case.place.bytes),
                    name: case.written.name.clone(),
                    differences,
                }),
                Err(mistakes) => self.mistakes.extend(mistakes),
            }
        }
    }

    /// The number of failed cases.
    fn failed(&self) -> usize {
        self.tried.iter().filter(|tried| !tried.differences.is_empty()).count()
    }

    fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        for Tried { place, name, differences } in &self.tried {
            let name = one_line(name);
            if differences.is_empty() {
                let ok = painted("ok", AnsiColor::Green);
                writeln!(out, "{ok}    {}: {name}", one_line(&place.file))?;
                continue;
            }
            writeln!(out, "{}  {place}: {name}", painted("FAIL", AnsiColor::Red))?;
            for Difference { part, lines } in differences {
                writeln!(out, "      {part}:")?;
                for line in lines {
                    writeln!(out, "        {}", diff_line(&one_line(line)))?;
                }
            }
        }
        let (cases, failed) = (self.tried.len(), self.failed());
        writeln!(out, "{}: {} passed, {failed} failed", plural(cases, "case"), cases - failed)
    }

    fn write_json(&self, wrong: &Diagnostics, out: &mut impl Write) -> io::Result<()> {
        let tried = self.tried.iter().map(|Tried { place, name, differences }| {
            let differences =
                differences.iter().map(|of| (of.part.to_owned(), of.lines.clone().into()));
            json!({
                "file": place.file,
                "line": place.line,
                "name": name,
                "passed": differences.len() == 0,
                "differences": differences.collect::<Map<_, _>>(),
            })
        });
        // Errors of files, cases and policies.
        let mut mistakes: Vec<Value> = self.unread.iter().map(|mistake| json!(mistake)).collect();
        mistakes.extend(wrong.to_json().as_array().cloned().unwrap_or_default());
        for Broken { policies, message, .. } in &self.broken {
            mistakes.push(json!({"policies": policies, "message": message}));
        }
        let (cases, failed) = (self.tried.len(), self.failed());
        let passed = cases - failed;
        let summary =
            json!({"cases": cases, "passed": passed, "failed": failed, "mistakes": mistakes.len()});
        let cases: Value = tried.collect();
        writeln!(out, "{:#}", json!({"cases": cases, "mistakes": mistakes, "summary": summary}))
    }

    fn suites(&self, wrong: &Diagnostics) -> junit::Suites {
        let mut suites = junit::Suites::default();
        for Tried { place, name, differences } in &self.tried {
            let parts: Vec<&str> = differences.iter().map(|difference| difference.part).collect();
            let text =
                |Difference { part, lines }: &Difference| format!("{part}:\n{}", lines.join("\n"));
            let result = if differences.is_empty() {
                junit::Outcome::Passed
            } else {
                let headline = format!("{place}: not as expected: {}", parts.join(", "));
                let text = differences.iter().map(text).collect::<Vec<_>>().join("\n");
                junit::Outcome::Failed(headline, parts.join(","), text)
            };
            junit::add(&mut suites, &place.file, &place.file, name.clone(), result);
        }
        for mistake in wrong.list().iter().chain(&self.unread) {
            junit::add_mistake(&mut suites, &mistake.file, mistake);
        }
        for Broken { policies, message, .. } in &self.broken {
            let result = junit::Outcome::Broken(message.clone());
            junit::add(&mut suites, policies, policies, "policies".to_owned(), result);
        }
        suites
    }
}

/// A document, read like a manifest.
fn json_of(file: &Source, node: &Node) -> Result<Value, Diagnostic> {
    let (text, warnings) = json_at(file, node.span.bytes.start)?;
    warnings.iter().for_each(say);
    serde_json::from_str(&text).map_err(|error| {
        let place = Place::of(file, &node.span.bytes);
        Diagnostic::at(place, format!("not JSON: {}", reason(&error)))
    })
}

/// The expected findings of rules that no policy has: no write could ever have them.
fn unknown_rules(case: &Case, known: &[String]) -> Vec<Diagnostic> {
    let findings = case.written.expect.findings.iter().flatten().zip(&case.rules);
    let unknown = findings.filter(|(finding, _)| !known.contains(&finding.rule));
    let mistake = |(finding, place): (&ExpectedFinding, &Span)| {
        let names = known.iter().map(String::as_str);
        let help = near(&finding.rule, names).map(|near| format!("did you mean \"{near}\"?"));
        let help = help.unwrap_or_else(|| LISTED.to_owned());
        let message = format!("no policy of this file has the rule \"{}\"", finding.rule);
        let mut mistake = Diagnostic::new(place.clone(), message);
        mistake.help = Some(help);
        mistake
    };
    unknown.map(mistake).collect()
}

fn try_case(
    case: &Case,
    policies: &PolicySet,
    known: &[String],
) -> Result<Vec<Difference>, Vec<Diagnostic>> {
    let unknown = unknown_rules(case, known);
    if !unknown.is_empty() {
        return Err(unknown);
    }
    judge(case, policies).map_err(|message| vec![Diagnostic::new(case.place.clone(), message)])
}

fn judge(case: &Case, policies: &PolicySet) -> Result<Vec<Difference>, String> {
    let suite::Case { writer: user, operation, subresource, mutate, expect, .. } = &case.written;
    let CaseWriter { user, groups } = user.clone().unwrap_or_default();
    let request = Request {
        identity: &case.identity,
        object: &case.object,
        old: case.old.as_deref(),
        writer: writer(user.as_deref().unwrap_or_default(), groups.as_deref().unwrap_or_default()),
        recorded: None,
    };
    let cannot = |unfit: Unfit| {
        let which = if unfit.is_old { "old object" } else { "object" };
        format!("the {which} cannot be judged: {unfit}")
    };
    let served = Served::guessed(&case.identity, policies);
    let mut subject = request.subject(policies, served).map_err(cannot)?;
    if let Some(operation) = *operation {
        subject.operation = operation;
    }
    if let Some(subresource) = subresource {
        subject.subresource = subresource.into();
    }
    if subject.operation == Operation::Delete {
        // The review of a deletion has only an old object.
        let object = std::mem::take(&mut subject.object);
        subject.old.get_or_insert(object);
    }
    let review = engine::review(policies, subject, mutate.unwrap_or(true), case.now)
        .map_err(|error| error.to_string())?;
    // A misspelled kind would always be allowed. A case that names the request is intentional.
    if review.policies.is_empty() && operation.is_none() && subresource.is_none() {
        return Err(format!("no policy selects this {}: nothing is tested", case.identity.kind));
    }
    let status = review.status.clone().or_else(|| {
        let mut object: Value = serde_json::from_str(&case.object).ok()?;
        object.get_mut("status").map(Value::take)
    });
    Ok(compare(expect, case.patch.as_deref(), &review, status.as_ref()))
}
