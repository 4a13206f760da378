//! Actions as values of flags.
//!
//! The values are shown as findings print them. Case does not matter, so the spelling of policies is
//! accepted, too.

use clap::ValueEnum;

use statusgate_core::engine::Action;

/// Each action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OneAction {
    Deny,
    Repair,
    Warn,
    Audit,
}

/// The actions that can be a limit. A repair is never one: only a disagreement can be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Limit {
    Deny,
    Warn,
    Audit,
}

/// What fails a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    Deny,
    Warn,
    Audit,
    Unjudged,
}

impl FailOn {
    /// The mildest of these actions; Deny if there is none.
    pub(super) fn limit(all: &[Self]) -> Limit {
        let has = |one| all.contains(&one);
        match () {
            () if has(Self::Audit) => Limit::Audit,
            () if has(Self::Warn) => Limit::Warn,
            () => Limit::Deny,
        }
    }
}

impl OneAction {
    /// The action.
    pub(super) const fn action(self) -> Action {
        match self {
            Self::Deny => Action::Deny,
            Self::Repair => Action::Repair,
            Self::Warn => Action::Warn,
            Self::Audit => Action::Audit,
        }
    }
}

impl Limit {
    /// The action.
    pub(super) const fn action(self) -> Action {
        match self {
            Self::Deny => Action::Deny,
            Self::Warn => Action::Warn,
            Self::Audit => Action::Audit,
        }
    }

    /// Whether an action is this one or a stronger one.
    pub(super) fn includes(self, action: Action) -> bool {
        action >= self.action()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_includes_stronger_actions() {
        for (limit, includes) in [
            (Limit::Deny, [true, false, false, false]),
            (Limit::Warn, [true, true, true, false]),
            (Limit::Audit, [true; 4]),
        ] {
            assert_eq!(
                Action::WORST_FIRST.map(|action| limit.includes(action)),
                includes,
                "{limit:?}"
            );
        }
    }

    #[test]
    fn one_action_is_no_other() {
        for action in OneAction::value_variants() {
            let same = Action::WORST_FIRST.iter().filter(|other| action.action() == **other);
            assert_eq!(same.count(), 1, "{action:?}");
        }
    }
}
