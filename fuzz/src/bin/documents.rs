//! The text of policies and conventions: mistakes are reported, and documents without mistakes can be
//! linted and explained.

#![no_main]

use libfuzzer_sys::fuzz_target;
use statusgate_analysis::lint::{lint, lint_policy};
use statusgate_core::policy::{PolicySet, Source};
use statusgate_pages::explain::{Graph, Page, render};

fuzz_target!(init: statusgate_fuzz::catch_panics(), |data: &[u8]| {
    statusgate_fuzz::run(data, || {
        if let Some(policies) = read(data) {
            prove(&policies);
            // The graph of thousands of phases has millions of edges.
            if data.len() < 8192 {
                explain(&policies);
            }
        }
    });
});

fn read(data: &[u8]) -> Option<PolicySet> {
    let text = std::str::from_utf8(data).ok()?;
    PolicySet::compile(&[Source::new("input.yaml", text)])
        .map_err(|mistakes| {
            assert!(!mistakes.to_string().is_empty() && mistakes.to_json().is_array());
        })
        .ok()
}

fn prove(policies: &PolicySet) {
    // Proofs take their time for each document, and the API server sends one.
    for policy in policies.policies().iter().take(3) {
        lint_policy(policies, policy);
    }
    for name in policies.given_names().take(3) {
        assert!(lint(policies, name).is_ok());
    }
}

fn explain(policies: &PolicySet) {
    for name in policies.given_names() {
        let convention = &policies.conventions()[name];
        let page = Page::of(convention);
        assert!(!render::text(&page, 100).is_empty() && !render::markdown(&page).is_empty());
        if let Some(graph) = Graph::of(convention) {
            graph.to_mermaid();
        }
    }
}
