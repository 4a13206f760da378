//! `--fail-on`: what makes a command that judges end with exit code 1.

use clap::ValueEnum;

use crate::engine::Action;

/// What a finding must amount to before a run fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(super) enum FailOn {
    /// Only what the webhook would refuse.
    Deny,
    /// What it would warn of or repair, too.
    Warn,
    /// Everything.
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
    fn a_run_fails_by_what_is_at_or_above_the_limit() {
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
