//! The schema module answers as kube-apiserver 1.36 did. The recording is a sample with each keyword;
//! `cargo run --example schema_oracle` compares a complete one.

use crate::recorded_schemas::compare;

#[test]
fn each_recorded_write_of_a_status_has_the_recorded_fate() {
    let tally = compare(include_str!("../fixtures/oracles/schema.jsonl")).unwrap();
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
    assert_eq!(tally.cases, 1594);
    // A rule about the spec, and an e-mail address.
    assert!(tally.not_proven.len() <= 5, "{}", tally.not_proven.join("\n"));
}

/// Where no branch of `anyOf` or `oneOf` is reported, the first causes are the recorded ones. The others have
/// combining accents, which Go prints and [`quote`](statusgate_core::model::quote) escapes, or metadata.
#[test]
fn causes_have_the_words_of_the_api_server() {
    let tally = compare(include_str!("../fixtures/oracles/schema.jsonl")).unwrap();
    let is_branch = |case: &&String| case.contains("(anyOf)") || case.contains("(oneOf)");
    let others: Vec<_> = tally.other_causes.iter().filter(|case| !is_branch(case)).collect();
    assert!(others.len() <= 5, "{others:#?}");
}
