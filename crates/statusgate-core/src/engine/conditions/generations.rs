//! `observedGeneration`, of conditions and of the object.

use super::super::evidence::Facts;
use super::super::violation::{Sink, Violation};
use crate::model::{Json, Object};
use crate::policy::convention::{Generation, Sanction};

const WENT_BACK: &str = "must not decrease";

/// The newest generation, and the rules about it.
pub(crate) struct Generations<'p> {
    rules: &'p Generation,
    /// The newest generation that exists.
    newest: i64,
    /// Whether the stored object has a status: a restored backup has old generations.
    had_status: bool,
}

impl<'p> Generations<'p> {
    /// The newest generation of both objects: a spec change increases it before or after admission,
    /// depending on the webhook, and so does a deletion. `None` without a generation.
    pub(crate) fn new(
        rules: &'p Generation,
        object: &Object<'_>,
        old: Option<&Object<'_>>,
    ) -> Option<Self> {
        let newest = object.metadata.generation.max(old.and_then(|old| old.metadata.generation))?;
        let had_status = old.is_some_and(|old| old.written_status().is_some());
        Some(Self { rules, newest, had_status })
    }

    /// Judges the object's own `observedGeneration`.
    pub(crate) fn judge_object(&self, facts: &Facts<'_, '_>, violations: &mut dyn Sink<'p>) {
        for path in self.rules.paths.iter().flatten() {
            let value = facts.object.at_status(path);
            let Some(new) = value.and_then(Json::as_i64) else { continue };
            let before = facts.old.and_then(|old| old.at_status(path)?.as_i64());
            let found = self.judge(new, before).or_else(|| self.judge_reset(new, before));
            if let Some((sanction, message)) = found {
                violations.push(Violation::by(sanction, path.field(), message).transition());
            }
            if let (Some(least), Some(sanction)) = (self.rules.minimum, &self.rules.below)
                && new < least
            {
                let message = format!("must be at least {least}");
                violations.push(Violation::by(sanction, path.field(), message).of_value(value));
            }
        }
    }

    /// The violation of a changed generation.
    pub(super) fn judge(&self, new: i64, old: Option<i64>) -> Option<(&'p Sanction, &'static str)> {
        match old {
            Some(old) if old == new => None,
            _ if new > self.newest => {
                let sanction =
                    if self.had_status { &self.rules.ahead } else { &self.rules.ahead_at_first };
                Some((sanction.as_ref()?, "is a generation that does not exist yet"))
            }
            // A restored object has generation 1 and the status of an older life: what was ahead must go back.
            Some(old) if old > self.newest => None,
            // 0 means "not set": SetStatusCondition resets to it.
            Some(old) if new < old && new != 0 => Some((self.rules.decreased.as_ref()?, WENT_BACK)),
            _ => None,
        }
    }

    /// No library resets the object's own, and some readers treat 0 as a generation.
    fn judge_reset(&self, new: i64, old: Option<i64>) -> Option<(&'p Sanction, &'static str)> {
        let reset = self.rules.reset.as_ref()?;
        (new == 0 && old.is_some_and(|old| old > 0)).then_some((reset, WENT_BACK))
    }
}
