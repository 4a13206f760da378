//! The findings that a report contains: those of some rules, or with some actions.

use anyhow::bail;

use super::action::OneAction;
use super::explain;
use super::policies::rule_ids;
use super::report::{Judged, Located};
use statusgate_core::policy::{Glob, PolicySet};

/// Which findings to report. The others are counted, but neither printed nor a reason to fail.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Only findings of this rule, such as appcat/phase-ready. `*` stands for any text: 'appcat/*'. May be
    /// repeated.
    #[arg(long = "rule", value_name = "ID")]
    rules: Vec<Glob>,

    /// Only findings with exactly this action. May be repeated. Case does not matter.
    #[arg(long, value_name = "ACTION", value_enum, ignore_case = true)]
    only: Vec<OneAction>,
}

impl Filter {
    /// Rejects rules that no policy has. `given`: whether the policies are those of the user.
    pub(super) fn check(&self, policies: &PolicySet, given: bool) -> anyhow::Result<()> {
        let ids = rule_ids(policies);
        let unknown = self.rules.iter().find(|rule| !ids.iter().any(|id| rule.matches(id)));
        if let Some(rule) = unknown {
            let known = ids.iter().map(String::as_str);
            bail!("{}", explain::unknown_rule(&rule.to_string(), known, given));
        }
        Ok(())
    }

    /// Removes all other findings, and counts them.
    pub(super) fn apply(&self, objects: &mut [Judged]) -> usize {
        let mut removed = 0;
        for object in objects {
            let before = object.findings.len();
            object.findings.retain(|finding| self.includes(finding));
            removed += before - object.findings.len();
        }
        removed
    }

    fn includes(&self, Located { found, .. }: &Located) -> bool {
        (self.rules.is_empty() || self.rules.iter().any(|rule| rule.matches(&found.rule)))
            && (self.only.is_empty()
                || self.only.iter().any(|action| action.action() == found.action))
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
