//! The findings that a report contains: those of some rules, or with some actions.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Context, bail};

use super::action::one_of;
use super::explain;
use super::policies::rule_ids;
use super::report::{Checked, Located};
use statusgate_core::engine::{Action, Found};
use statusgate_core::policy::{Glob, PolicySet};
use statusgate_core::source::Identity;
use statusgate_server::files::read_bytes;

/// Which findings to report. The others are counted, but neither printed nor a reason to fail.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Filter {
    /// Only findings of this rule, such as appcat/phase-ready. `*` stands for any text: 'appcat/*'. May be
    /// repeated.
    #[arg(long = "rule", value_name = "ID")]
    rules: Vec<Glob>,

    /// Only findings with exactly this action. May be repeated. Case does not matter.
    #[arg(long, value_name = "ACTION", ignore_case = true,
          value_parser = one_of(Action::WORST_FIRST, Action::label))]
    only: Vec<Action>,

    /// Accept the findings of this report, an earlier output of -o json: those with the same group, kind,
    /// rule and field, of any object. May be repeated.
    #[arg(long, value_name = "FILE")]
    baseline: Vec<PathBuf>,
}

/// A line of a report.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportLine {
    api_version: String,
    kind: String,
    findings: Vec<LineFinding>,
}

#[derive(serde::Deserialize)]
struct LineFinding {
    rule: String,
    field: String,
}

/// Group, kind, rule and field. Names and versions change from run to run, indices of lists too.
type FindingKey = (String, String, String, String);

fn key_of(api_version: &str, kind: &str, rule: &str, field: &str) -> FindingKey {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    // All items of a list have one key.
    let names = field.split(['[', ']']).filter(|of| !of.bytes().all(|byte| byte.is_ascii_digit()));
    (group.to_owned(), kind.to_owned(), rule.to_owned(), names.collect::<Vec<_>>().join("["))
}

impl Filter {
    /// Rejects rules that no policy has, and invalid baselines. `given`: whether the policies are those of the
    /// user.
    pub(super) fn check(&self, policies: &PolicySet, given: bool) -> anyhow::Result<()> {
        let ids = rule_ids(policies);
        let unknown = self.rules.iter().find(|rule| !ids.iter().any(|id| rule.matches(id)));
        if let Some(rule) = unknown {
            let known = ids.iter().map(String::as_str);
            bail!("{}", explain::unknown_rule(&rule.to_string(), known, given));
        }
        self.baseline().map(|_| ())
    }

    /// Removes all other findings, and counts them.
    ///
    /// # Errors
    /// An invalid baseline.
    pub(super) fn apply(&self, objects: &mut [Checked]) -> anyhow::Result<usize> {
        let baseline = self.baseline()?;
        let mut removed = 0;
        for Checked { entry, findings, .. } in objects {
            let before = findings.len();
            let Identity { api_version, kind, .. } = &entry.identity;
            findings.retain(|finding| {
                let Found { rule, field, .. } = &finding.found;
                self.includes(finding)
                    && !baseline.contains(&key_of(api_version, kind, rule, field))
            });
            removed += before - findings.len();
        }
        Ok(removed)
    }

    fn baseline(&self) -> anyhow::Result<HashSet<FindingKey>> {
        let mut all = HashSet::new();
        for path in &self.baseline {
            let name = path.display();
            let bytes = read_bytes(path).with_context(|| name.to_string())?;
            for line in serde_json::Deserializer::from_slice(&bytes).into_iter::<ReportLine>() {
                let line = line.with_context(|| format!("{name} is not a report of -o json"))?;
                let ReportLine { api_version, kind, findings } = line;
                all.extend(
                    findings.into_iter().map(|LineFinding { rule, field }| {
                        key_of(&api_version, &kind, &rule, &field)
                    }),
                );
            }
        }
        Ok(all)
    }

    fn includes(&self, Located { found, .. }: &Located) -> bool {
        (self.rules.is_empty() || self.rules.iter().any(|rule| rule.matches(&found.rule)))
            && (self.only.is_empty() || self.only.contains(&found.action))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        filter: Filter,
    }

    fn check(args: &[&str]) -> Result<(), String> {
        let command = Command::try_parse_from([&["check"], args].concat()).unwrap();
        let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
        command.filter.check(&policies, false).map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_that_no_policy_has_is_an_error() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&["--rule", "appcat/phase-ready", "--rule", "ack/*"]), Ok(()));
        assert_eq!(
            check(&["--rule", "appcat/phase-redy"]),
            Err("unknown rule \"appcat/phase-redy\"; did you mean \"appcat/phase-ready\"?"
                .to_owned())
        );
        let error = check(&["--rule", "nothing/*"]).unwrap_err();
        let help = "; if nothing is your own, name its documents with --policies";
        assert_eq!(error, format!("unknown rule \"nothing/*\"{help}"));
        let error = check(&["--rule", "appcat/nothing-like-it"]).unwrap_err();
        assert!(error.ends_with("`statusgate explain CONVENTION` lists the rules of a convention"));
    }
}
