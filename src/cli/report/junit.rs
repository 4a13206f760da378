//! JUnit XML for Jenkins and GitLab. A library would only provide the escaping below.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::Report;

/// One `<testsuite>`.
#[derive(Debug)]
pub(in crate::cli) struct Suite {
    pub(in crate::cli) name: String,
    pub(in crate::cli) cases: Vec<Case>,
}

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
    Skipped(&'static str),
    /// A headline, a type, the full text. One per case: GitLab shows only the first.
    Failed(String, String, String),
    /// The case could not be run.
    Broken(String),
}

/// Suites by name, in order of their first case.
#[derive(Debug, Default)]
pub(in crate::cli) struct Suites {
    list: Vec<Suite>,
    places: HashMap<String, usize>,
}

impl Suites {
    /// The cases of a suite.
    pub(in crate::cli) fn of(&mut self, name: &str) -> &mut Vec<Case> {
        let at = match self.places.get(name) {
            Some(at) => *at,
            None => {
                self.places.insert(name.to_owned(), self.list.len());
                self.list.push(Suite { name: name.to_owned(), cases: Vec::new() });
                self.list.len() - 1
            }
        };
        &mut self.list[at].cases
    }

    pub(in crate::cli) fn into_list(self) -> Vec<Suite> {
        self.list
    }
}

/// One suite per file, one case per object.
pub(super) fn suites(report: &Report) -> Vec<Suite> {
    let mut suites = Suites::default();
    for file in &report.files {
        suites.of(file);
    }
    for object in &report.objects {
        let line = |(found, place): &(super::Found, super::Place)| {
            let (action, field, rule) = (found.action.label(), &found.field, &found.rule);
            format!("{place}: {action}: {field}: {} [{rule}]", found.message)
        };
        let (failed, passed): (Vec<_>, Vec<_>) =
            object.findings.iter().partition(|(found, _)| report.fail_on.includes(found.action));
        let lines = |found: Vec<&_>| found.into_iter().map(line).collect::<Vec<_>>().join("\n");
        let result = match failed.split_first() {
            None if object.policies.is_empty() => Outcome::Skipped("no policy selects it"),
            None => Outcome::Passed,
            Some(((first, _), others)) => {
                let more = match others.len() {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                let headline = format!("{}: {}{more}", first.field, first.message);
                Outcome::Failed(headline, first.rule.clone(), lines(failed))
            }
        };
        let name = object.identity.to_string();
        let class = object.identity.api_version.clone();
        suites.of(&object.file).push(Case { class, name, result, output: lines(passed) });
    }
    for mistake in &report.mistakes {
        let name =
            mistake.place.as_deref().map_or_else(|| mistake.file.clone(), ToString::to_string);
        let (class, output) = ("document".to_owned(), String::new());
        let result = Outcome::Broken(mistake.message.clone());
        suites.of(&mistake.file).push(Case { class, name, result, output });
    }
    suites.into_list()
}

/// Writes the document.
pub(in crate::cli) fn write(suites: &[Suite], out: &mut impl Write) -> io::Result<()> {
    let cases = || suites.iter().flat_map(|suite| &suite.cases);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"statusgate\"{}>", counts(cases()))?;
    for suite in suites {
        let name = escaped(&suite.name);
        writeln!(out, "  <testsuite name=\"{name}\"{}>", counts(suite.cases.iter()))?;
        for case in &suite.cases {
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

fn counts<'c>(cases: impl Iterator<Item = &'c Case>) -> String {
    let (mut tests, mut failures, mut errors, mut skipped) = (0, 0, 0, 0);
    for case in cases {
        tests += 1;
        match case.result {
            Outcome::Passed => {}
            Outcome::Skipped(_) => skipped += 1,
            Outcome::Failed(..) => failures += 1,
            Outcome::Broken(_) => errors += 1,
        }
    }
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
