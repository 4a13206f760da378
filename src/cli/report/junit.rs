//! JUnit XML for Jenkins and GitLab. A library would only provide the escaping below.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use indexmap::IndexMap;

use super::{Located, Report};
use statusgate_core::source::Diagnostic;

/// The cases of each `<testsuite>` by its name, in order of their first case.
pub(in crate::cli) type Suites = IndexMap<String, Vec<Case>>;

/// One `<testcase>`.
#[derive(Debug)]
pub(in crate::cli) struct Case {
    pub(in crate::cli) class: String,
    pub(in crate::cli) name: String,
    pub(in crate::cli) result: Outcome,
    /// Text that does not affect the result.
    pub(in crate::cli) output: String,
}

/// The result of a case.
#[derive(Debug)]
pub(in crate::cli) enum Outcome {
    Passed,
    Skipped(String),
    /// A headline, a type, the full text. One per case: GitLab shows only the first.
    Failed(String, String, String),
    /// The case could not be run.
    Broken(String),
}

/// One suite per file, one case per object.
pub(super) fn suites(report: &Report<'_>) -> Suites {
    let files = report.files.iter();
    let mut suites: Suites = files.map(|file| (file.clone(), Vec::new())).collect();
    let mut names = HashSet::new();
    for object in &report.objects {
        let line = |Located { found, place }: &Located| format!("{place}: {found}");
        let (failed, passed): (Vec<_>, Vec<_>) =
            object.findings.iter().partition(|at| at.found.action >= report.fail_on);
        let lines = |found: Vec<&_>| found.into_iter().map(line).collect::<Vec<_>>().join("\n");
        let result = match failed.split_first() {
            None => match &object.entry.unjudged {
                Some(reason) if report.unjudged_fails => {
                    Outcome::Failed(reason.clone(), "unjudged".to_owned(), String::new())
                }
                Some(reason) => Outcome::Skipped(reason.clone()),
                None => Outcome::Passed,
            },
            Some((Located { found: first, .. }, others)) => {
                let more = match others.len() {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                let headline = format!("{}: {}{more}", first.field, first.message);
                Outcome::Failed(headline, first.rule.clone(), lines(failed))
            }
        };
        // Programs identify a case by its name. A recording has many writes of one object.
        let mut name = object.entry.to_string();
        if !names.insert((&object.entry.file, name.clone())) {
            name = format!("{name} (line {})", object.entry.line);
        }
        let class = object.entry.identity.api_version.clone();
        let case = Case { class, name, result, output: lines(passed) };
        suites.entry(object.entry.file.clone()).or_default().push(case);
    }
    for mistake in &report.mistakes {
        add_mistake(&mut suites, "document", mistake);
    }
    suites
}

/// Adds a mistake to the suite of its file.
pub(in crate::cli) fn add_mistake(suites: &mut Suites, class: &str, mistake: &Diagnostic) {
    let Diagnostic { file, message, place, .. } = mistake;
    let name = place.as_ref().map_or_else(|| file.to_string(), |place| place.to_string());
    add(suites, file, class, name, Outcome::Broken(message.clone()));
}

/// Adds a case without output to the suite of a file.
pub(in crate::cli) fn add(
    suites: &mut Suites,
    file: &str,
    class: &str,
    name: String,
    result: Outcome,
) {
    let (class, output) = (class.to_owned(), String::new());
    suites.entry(file.to_owned()).or_default().push(Case { class, name, result, output });
}

/// Writes the document.
pub(in crate::cli) fn write(suites: &Suites, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"statusgate\"{}>", counts(suites.values().flatten()))?;
    for (name, cases) in suites {
        writeln!(out, "  <testsuite name=\"{}\"{}>", escaped(name), counts(cases.iter()))?;
        for case in cases {
            write_case(case, out)?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn write_case(case: &Case, out: &mut impl Write) -> io::Result<()> {
    let (class, name) = (escaped(&case.class), escaped(&case.name));
    write!(out, "    <testcase classname=\"{class}\" name=\"{name}\"")?;
    if matches!(case.result, Outcome::Passed) && case.output.is_empty() {
        return writeln!(out, "/>");
    }
    writeln!(out, ">")?;
    match &case.result {
        Outcome::Passed => {}
        Outcome::Skipped(reason) => {
            writeln!(out, "      <skipped message=\"{}\"/>", escaped(reason))?;
        }
        Outcome::Failed(headline, kind, text) => {
            let (headline, kind) = (escaped(headline), escaped(kind));
            let text = escaped(text);
            writeln!(
                out,
                "      <failure message=\"{headline}\" type=\"{kind}\">{text}</failure>"
            )?;
        }
        Outcome::Broken(message) => {
            writeln!(out, "      <error message=\"{}\"/>", escaped(message))?;
        }
    }
    if !case.output.is_empty() {
        writeln!(out, "      <system-out>{}</system-out>", escaped(&case.output))?;
    }
    writeln!(out, "    </testcase>")
}

fn counts<'c>(cases: impl Iterator<Item = &'c Case> + Clone) -> String {
    let count = |is: fn(&Outcome) -> bool| cases.clone().filter(|case| is(&case.result)).count();
    let failures = count(|result| matches!(result, Outcome::Failed(..)));
    let errors = count(|result| matches!(result, Outcome::Broken(_)));
    let skipped = count(|result| matches!(result, Outcome::Skipped(_)));
    let tests = cases.count();
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
}

/// Escapes a text for an element or an attribute. XML 1.0 cannot represent most control characters.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // In an attribute, a plain one is read as a space.
            '\n' | '\r' | '\t' => {
                let _ = write!(safe, "&#{};", u32::from(letter));
            }
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_xml_cannot_represent_are_replaced() {
        assert_eq!(
            escaped("a\u{0}\u{1b}[1m<&\">\n"),
            "a\u{fffd}\u{fffd}[1m&lt;&amp;&quot;&gt;&#10;"
        );
    }
}
