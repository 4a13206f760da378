//! A small convention, compiled.

use std::cell::OnceCell;

use statusgate_analysis::lint::{Remark, lint, lint_policy};
use statusgate_analysis::relevance::{Relevance, Relevances};
use statusgate_core::model::{Resource, Subject, Webhook};
use statusgate_core::policy::{PolicySet, Source};

use crate::grammar::Sketch;
use crate::webhook::Denial;
use crate::world::Axes;

/// A convention and its policy, for a resource with the status subresource and for one without.
pub(crate) struct Small {
    pub(crate) sketch: Sketch,
    pub(crate) text: String,
    pub(crate) policies: PolicySet,
    /// The status travels with the main resource.
    pub(crate) without_subresource: PolicySet,
    pub(crate) axes: Axes,
    /// For the mutating and for the validating webhook.
    pub(crate) relevance: [Option<Relevance>; 2],
    faults: OnceCell<Vec<Remark>>,
}

impl Small {
    /// `None` if the documents are rejected.
    pub(crate) fn compile(sketch: &Sketch) -> Option<Self> {
        let text = sketch.documents(true);
        let policies = compile(&text).ok()?;
        let subject = Subject {
            resource: Resource::new("g", "v1", "things"),
            subresource: "status".into(),
            ..Subject::default()
        };
        let relevances = Relevances::of(&policies);
        let relevance =
            [Webhook::Mutate, Webhook::Validate].map(|webhook| relevances.to(&subject, webhook));
        Some(Self {
            axes: Axes::named_in(&text),
            without_subresource: compile(&sketch.documents(false)).unwrap(),
            sketch: sketch.clone(),
            text,
            policies,
            relevance,
            faults: OnceCell::new(),
        })
    }

    /// The faults that lint finds.
    pub(crate) fn faults(&self) -> &[Remark] {
        self.faults.get_or_init(|| {
            let convention = lint(&self.policies, "own").unwrap_or_else(|error| panic!("{error}"));
            let policy = lint_policy(&self.policies, &self.policies.policies()[0]);
            let remarks = convention.remarks.into_iter().chain(policy.remarks);
            remarks.filter(|remark| remark.kind.is_fault()).collect()
        })
    }

    /// Whether lint reports one of these denials. Faults with one cause are one fault, of any kind.
    pub(crate) fn reports(&self, denials: &[Denial]) -> bool {
        let mut rules = self.faults().iter().flat_map(|fault| &fault.rules);
        rules.any(|rule| denials.iter().any(|denial| denial.rule == *rule))
    }
}

/// Compiles documents.
pub(crate) fn compile(text: &str) -> Result<PolicySet, String> {
    let source = Source { name: "own.yaml".into(), text: text.to_owned() };
    PolicySet::compile(&[source]).map_err(|error| error.to_string())
}
