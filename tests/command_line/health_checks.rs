//! `statusgate export health` for Flux, auto-ready and kro.

use crate::command::{Ended, run};

fn export(tool: &str, arguments: &[&str]) -> Ended {
    run(["export", "health", "--for", tool].iter().chain(arguments))
}

const KINDS: [&str; 4] = [
    "--crds",
    "examples/write-a-convention/crd.yaml",
    "--policies",
    "examples/write-a-convention/policies",
];

#[test]
fn a_kind_has_expressions_for_flux() {
    let ended = export("flux", &KINDS);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.out);
}

#[test]
fn a_kind_has_an_expression_for_auto_ready() {
    let ended = export("auto-ready", &KINDS);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.out);
}

#[test]
fn a_kind_has_an_expression_for_kro() {
    let ended = export("kro", &KINDS);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.out);
}
