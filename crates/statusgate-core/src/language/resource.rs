//! `resource`: the plural that the request addresses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::not;
use super::{
    Around, Checker, Facts, Glob, Layout, OneOrMany, Reasons, Sides, Truth, Word, any_of, quoted,
    selector,
};

/// The plural that the request addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceName {
    /// The plural matches one of these; `*` stands for any run of characters.
    pub resource: OneOrMany<Glob>,
}

impl Word for ResourceName {
    const KEYS: &'static [&'static str] = &["resource"];

    fn check(&self, checker: &mut Checker) {
        checker.each("resource", &self.resource, |checker, glob| {
            if let Some((message, help)) = selector::plural(glob) {
                checker.error(&message, Some(&help));
            }
        });
    }

    fn ask(&self, facts: &Facts<'_, '_>) -> Truth {
        let plural = &facts.resource.resource;
        Truth::of(Some(self.resource.iter().any(|glob| glob.matches(plural))))
    }

    fn because(&self, facts: &Facts<'_, '_>, reasons: &mut Reasons) {
        reasons.say(format_args!("the resource is {}", quoted(&facts.resource.resource)));
    }

    fn words(&self, _: Around, negated: bool) -> String {
        let globs = any_of(self.resource.iter().map(ToString::to_string));
        format!("the resource is {}{globs}", not(negated))
    }

    fn sides(&self, layout: Layout<'_>) -> Sides {
        Sides::known(self.resource.iter().any(|glob| glob.matches(layout.plural)))
    }
}
