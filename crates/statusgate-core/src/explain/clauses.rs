//! All parts of a convention that are violated if a predicate holds, as one type: its rules, the rules about
//! elements, and the required and forbidden condition types.

use std::borrow::Cow;

use super::facts::Question;
use super::line::lines;
use crate::language::Predicate;
use crate::model::Pointer;
use crate::policy::Disposition;
use crate::policy::convention::{ConditionList, Convention, Trigger};

/// A rule that is violated if a predicate definitely holds.
#[derive(Clone, Debug)]
pub(crate) struct Clause<'c> {
    /// The rule id.
    pub(crate) id: &'c str,
    /// The violation.
    pub(crate) when: Cow<'c, Predicate>,
    /// The list of its conditions, if it is not the first one.
    pub(crate) list: Option<&'c ConditionList>,
    /// Whether it judges each element of the list.
    pub(crate) of_element: bool,
    /// What happens.
    pub(crate) action: Disposition,
    /// The writes that it judges, if it declares them.
    pub(crate) trigger: Option<&'c Trigger>,
    /// The field that its message names, if it is a rule.
    pub(crate) path: Option<&'c Pointer>,
}

/// The clauses of a convention, in the order in which the engine judges them.
pub(crate) fn clauses(convention: &Convention) -> Vec<Clause<'_>> {
    lines(convention).into_iter().filter_map(|line| line.proof).collect()
}

/// The clauses that are rules.
pub(crate) fn rules(convention: &Convention) -> impl Iterator<Item = Clause<'_>> {
    convention.rules.iter().map(|rule| Clause {
        id: &rule.rule,
        when: Cow::Borrowed(&rule.when),
        list: rule.list.as_ref().and_then(|path| convention.list_of_any_version(path)),
        of_element: false,
        action: rule.action,
        trigger: rule.trigger.as_ref(),
        path: rule.path.as_deref(),
    })
}

impl Clause<'_> {
    pub(crate) fn question(&self) -> Question<'_> {
        Question { predicate: &self.when, list: self.list, of_element: self.of_element }
    }

    /// Whether it can reject a write: always, or as a disagreement under a policy with `disagreement: Deny`.
    pub(crate) fn can_reject(&self) -> bool {
        self.action.can_deny()
    }
}
