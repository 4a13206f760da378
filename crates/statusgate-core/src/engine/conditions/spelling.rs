//! New types and reasons that are nearly a known one: a typing mistake.

use super::super::because::quoted;
use super::super::violation::Violation;
use super::super::{Cause, Facts};
use super::elements::JudgedElement;
use crate::model::Json;
use crate::policy::convention::Reasons;
use crate::source::tree::is_near;

impl<'p: 's, 's, 'a> JudgedElement<'p, 's, 'a> {
    /// A new type that is nearly a declared one, or nearly one that this write removes. The list must not have
    /// both: then they are two types.
    pub(super) fn misspelled_type(
        &self,
        kind: &str,
        facts: &Facts<'s, 'a>,
    ) -> Option<Violation<'p>> {
        let list = self.path.list;
        let sanction = list.misspelled.as_ref().filter(|_| self.before.is_none())?;
        let stored = facts.old_conditions.map(|stored| stored.items()).unwrap_or_default();
        let stored = stored.iter().filter_map(|item| item.get("type")?.as_str());
        let declared = list.types.values().filter_map(|known| known.glob.exact());
        let mut known = stored.chain(declared).filter(|known| is_near(kind, known));
        let meant = known.find(|known| facts.conditions.find(known).is_none())?;
        let message =
            format!("{} is not a known type: did you mean {}?", quoted(kind), quoted(meant));
        let found = self.violation(sanction, "type", message).cause(Cause::NotSupported);
        Some(found.transition())
    }

    /// A new reason that is nearly one of the type.
    pub(super) fn misspelled_reason(
        &self,
        reason: &str,
        reasons: &Reasons,
    ) -> Option<Violation<'p>> {
        let sanction = self.path.list.misspelled.as_ref()?;
        let stored = self.before.and_then(|stored| stored.get("reason")).and_then(Json::as_str);
        let mut known =
            reasons.all().filter(|known| stored != Some(reason) && is_near(reason, known));
        let (reason, meant) = (quoted(reason), quoted(known.next()?));
        let message = format!("{reason} is not a known reason: did you mean {meant}?");
        let found = self.violation(sanction, "reason", message).cause(Cause::NotSupported);
        Some(found.transition())
    }
}
