//! `--fail-on`: which findings cause exit code 1.

use clap::ValueEnum;

use crate::engine::Action;

/// The mildest action that fails a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(super) enum FailOn {
    /// Findings that the webhook would deny.
    Deny,
    /// Also findings that it would repair or warn about.
    Warn,
    /// All findings.
    Audit,
}

impl FailOn {
    /// Whether a finding with this action fails the run.
    pub(super) fn includes(self, action: Action) -> bool {
        let least = match self {
            Self::Deny => Action::Deny,
            Self::Warn => Action::Warn,
            Self::Audit => Action::Audit,
        };
        action >= least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_at_or_above_the_limit_fails_the_run() {
        for (limit, fails) in [
            (FailOn::Deny, [true, false, false, false]),
            (FailOn::Warn, [true, true, true, false]),
            (FailOn::Audit, [true; 4]),
        ] {
            let actions = [Action::Deny, Action::Repair, Action::Warn, Action::Audit];
            assert_eq!(actions.map(|action| limit.includes(action)), fails, "{limit:?}");
        }
    }
}
