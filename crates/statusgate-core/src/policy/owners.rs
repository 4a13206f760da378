//! Who may set a field, or the conditions of some types.

use crate::documents::Owner;
use crate::source::tree::At;

use super::Policy;
use super::compile::Compiler;
use super::convention::{ConditionList, Convention};
use super::document::check_named;

impl Policy {
    /// The list of the owned conditions in objects of this version; `None` if no conditions have owners.
    pub fn owned_list(&self, version: &str) -> Option<&ConditionList> {
        let mut owners = self.owners.iter();
        owners.find(|owner| owner.path.is_none())?;
        self.convention.primary_conditions(version)
    }
}

impl Compiler<'_> {
    /// Compiles `owners`: each has either a path or conditions. Each entry is enforced: with two entries for one
    /// field, a writer would have to be in both.
    pub(super) fn owners(
        &self,
        documents: &[Owner],
        convention: Option<&Convention>,
        at: At<'_>,
    ) -> Vec<Owner> {
        let mut owners: Vec<Owner> = Vec::new();
        for (at, document) in at.each(documents) {
            check_named(&document.writers, at);
            let twice = |at: At<'_>, what: &str| {
                let message = format!("{what} has owners above already");
                at.report_with_help(message, "name all of them in one entry");
            };
            match (&document.path, document.conditions.as_slice()) {
                (Some(path), []) => {
                    if owners.iter().any(|other| other.path.as_ref() == Some(path)) {
                        twice(at.key("path"), &path.to_string());
                    }
                }
                (None, kinds @ [_, ..]) => {
                    let at = at.key("conditions");
                    if convention
                        .is_some_and(|of| of.conditions.iter().all(|list| list.outer.is_some()))
                    {
                        at.report("the convention has no list of conditions");
                    }
                    for (index, (at, kind)) in at.each(kinds).enumerate() {
                        self.check_type(kind, at);
                        let mut above = owners
                            .iter()
                            .flat_map(|owner| &owner.conditions)
                            .chain(&kinds[..index]);
                        if above.any(|other| other == kind) {
                            twice(at, &format!("condition {kind}"));
                        }
                    }
                }
                // What cannot be read has an error already.
                _ => {
                    if at.position("path").is_some() == at.position("conditions").is_some() {
                        at.report("owners need either \"path\" or \"conditions\"");
                    }
                    continue;
                }
            }
            owners.push(document.clone());
        }
        owners
    }
}
