use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::policy::PolicySet;

fn convention(name: &str) -> DocumentId {
    DocumentId { kind: DocumentKind::StatusConvention, name: name.to_owned() }
}

fn policy(name: &str) -> DocumentId {
    DocumentId { kind: DocumentKind::StatusPolicy, name: name.to_owned() }
}

fn spec_of_policy(convention: &str, more: &Value) -> Value {
    let mut spec = json!({
        "convention": convention,
        "resources": [{"apiGroups": ["g"], "apiVersions": ["v1"], "resources": ["things"]}],
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// A convention with an optional default of this name.
fn spec_of_convention(part: &str) -> Value {
    json!({"backfill": [{"name": part, "optional": true, "path": "/status/x", "value": 1}]})
}

#[derive(Default)]
struct Cluster {
    registry: Registry,
    calls: usize,
    files: Vec<Source>,
}

impl Cluster {
    fn put(&mut self, id: &DocumentId, generation: i64, spec: &Value) -> &mut Self {
        self.put_at(id, generation, spec, "2026-01-01T00:00:00Z")
    }

    fn put_at(&mut self, id: &DocumentId, generation: i64, spec: &Value, at: &str) -> &mut Self {
        let document = Document::new(id.clone(), spec);
        let document = Document { generation, uid: "u".into(), created: at.to_owned(), ..document };
        self.registry.set(id, Some(document));
        self
    }

    fn delete(&mut self, id: &DocumentId) -> &mut Self {
        self.registry.set(id, None);
        self
    }

    /// The names of the policies in use.
    fn settle(&mut self) -> Vec<String> {
        let Self { registry, calls, files } = self;
        *calls = 0;
        let set = registry.settle(|documents| {
            *calls += 1;
            PolicySet::compile(&[files.clone(), documents].concat())
        });
        let names: Option<Vec<String>> = set.map(|set| set.names().map(str::to_owned).collect());
        names.unwrap_or_else(|| vec!["nothing".to_owned()])
    }

    fn used(&self, id: &DocumentId) -> Option<i64> {
        self.registry.get(id)?.used_generation()
    }

    fn kind(&self, id: &DocumentId) -> Option<ProblemKind> {
        Some(self.registry.get(id)?.problem.as_ref()?.kind)
    }

    #[track_caller]
    fn message(&self, id: &DocumentId) -> &str {
        &self.registry.get(id).unwrap().problem.as_ref().unwrap().message
    }
}

#[test]
fn five_hundred_valid_policies_are_compiled_once() {
    let mut cluster = Cluster::default();
    for number in 0..500 {
        let plural = json!({"resources": [{"apiGroups": ["g"], "apiVersions": ["v1"],
            "resources": [format!("things{number}")]}]});
        cluster.put(&policy(&format!("p{number:03}")), 1, &spec_of_policy("appcat", &plural));
    }
    let start = Instant::now();
    let names = cluster.settle();
    assert_eq!((names.len(), cluster.calls), (500, 1));
    assert!(names.is_sorted());
    // Seconds, because tests are not optimized and the machine may be busy.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn an_invalid_document_is_left_out_and_its_mistakes_have_lines() {
    let (good, bad) = (policy("good"), policy("bad"));
    let mut cluster = Cluster::default();
    cluster.put(&good, 1, &spec_of_policy("metav1", &json!({"fields": []})));
    cluster.put(&bad, 1, &spec_of_policy("metav1", &json!({"enforcement": "Never", "typo": 1})));
    assert_eq!(cluster.settle(), ["good"]);
    assert_eq!(cluster.calls, 2);
    assert_eq!((cluster.used(&good), cluster.kind(&good)), (Some(1), None));
    assert_eq!((cluster.used(&bad), cluster.kind(&bad)), (None, Some(ProblemKind::Invalid)));
    let message = cluster.message(&bad);
    assert!(message.contains("--> StatusPolicy/bad:7:16"), "{message}");
    assert!(message.contains("unknown value"), "{message}");
    assert!(message.contains("typo"), "every mistake: {message}");
}

#[test]
fn an_invalid_change_keeps_the_last_accepted_text_until_it_is_repaired() {
    let id = policy("p");
    let mut cluster = Cluster::default();
    cluster.put(&id, 1, &spec_of_policy("metav1", &json!({}))).settle();
    cluster.put(&id, 2, &spec_of_policy("nothing", &json!({})));
    assert_eq!(cluster.settle(), ["p"]);
    assert_eq!((cluster.used(&id), cluster.kind(&id)), (Some(1), Some(ProblemKind::Invalid)));
    assert!(cluster.message(&id).contains("nothing"));
    cluster.put(&id, 3, &spec_of_policy("kstatus", &json!({}))).settle();
    assert_eq!((cluster.used(&id), cluster.kind(&id)), (Some(3), None));
}

#[test]
fn a_policy_waits_for_its_convention() {
    let (p, c) = (policy("p"), convention("c"));
    let mut cluster = Cluster::default();
    cluster.put(&p, 1, &spec_of_policy("c", &json!({})));
    assert_eq!(cluster.settle(), [""; 0]);
    assert_eq!(cluster.kind(&p), Some(ProblemKind::Invalid));
    cluster.put(&c, 1, &json!({"rules": [{"name": "x"}]}));
    assert_eq!(cluster.settle(), [""; 0]);
    assert_eq!(cluster.kind(&c), Some(ProblemKind::Invalid));
    assert_eq!(cluster.kind(&p), Some(ProblemKind::ConventionNotAccepted));
    let message = cluster.message(&p);
    assert!(message.starts_with("StatusConvention/c is not accepted: see its status"), "{message}");
    cluster.put(&c, 2, &spec_of_convention("x"));
    assert_eq!(cluster.settle(), ["p"]);
    assert_eq!((cluster.kind(&p), cluster.kind(&c)), (None, None));
}

#[test]
fn a_convention_with_mistakes_does_not_change_its_policies() {
    let (p, c) = (policy("p"), convention("c"));
    let mut cluster = Cluster::default();
    cluster
        .put(&c, 1, &spec_of_convention("x"))
        .put(&p, 1, &spec_of_policy("c", &json!({})))
        .settle();
    cluster.put(&c, 2, &json!({"rules": 1}));
    assert_eq!(cluster.settle(), ["p"]);
    assert_eq!((cluster.used(&c), cluster.kind(&c)), (Some(1), Some(ProblemKind::Invalid)));
    assert_eq!((cluster.used(&p), cluster.kind(&p)), (Some(1), None));
}

#[test]
fn a_change_that_breaks_an_unchanged_document_is_taken_back_and_no_other_change() {
    let (p, c, other) = (policy("p"), convention("c"), policy("other"));
    let mut cluster = Cluster::default();
    let enable = spec_of_policy("c", &json!({"enable": ["x"]}));
    cluster.put(&c, 1, &spec_of_convention("x")).put(&p, 1, &enable).settle();
    cluster.put(&c, 2, &spec_of_convention("y"));
    // Newer than the convention: it is taken back first, and put back.
    let spec = spec_of_policy("metav1", &json!({}));
    cluster.put_at(&other, 1, &spec, "2026-02-01T00:00:00Z");
    assert_eq!(cluster.settle(), ["other", "p"]);
    assert_eq!((cluster.used(&c), cluster.kind(&c)), (Some(1), Some(ProblemKind::BreaksOthers)));
    assert!(cluster.message(&c).contains("StatusPolicy/p:8:5"), "{}", cluster.message(&c));
    assert_eq!((cluster.used(&p), cluster.kind(&p)), (Some(1), None));
    assert_eq!((cluster.used(&other), cluster.kind(&other)), (Some(1), None));
}

#[test]
fn a_deleted_convention_stays_in_use_until_no_document_needs_it() {
    let (p, base, heir) = (policy("p"), convention("base"), convention("heir"));
    let mut cluster = Cluster::default();
    cluster.put(&base, 1, &spec_of_convention("x"));
    cluster.put(&heir, 1, &json!({"extends": "base"}));
    cluster.put(&p, 1, &spec_of_policy("heir", &json!({"enable": ["x"]}))).settle();
    cluster.delete(&heir).delete(&base);
    assert_eq!(cluster.settle(), ["p"]);
    assert_eq!(
        (cluster.used(&p), cluster.kind(&p)),
        (Some(1), Some(ProblemKind::ConventionDeleted))
    );
    assert!(cluster.message(&p).starts_with("StatusConvention/heir was deleted; its last text"));
    // It is not forgotten with the next change.
    cluster.put(&policy("q"), 1, &spec_of_policy("metav1", &json!({})));
    assert_eq!(cluster.settle(), ["p", "q"]);
    assert_eq!(cluster.kind(&p), Some(ProblemKind::ConventionDeleted));
    cluster.put(&p, 2, &spec_of_policy("metav1", &json!({})));
    cluster.settle();
    cluster.put(&p, 3, &spec_of_policy("kstatus", &json!({})));
    assert_eq!(cluster.settle(), ["p", "q"]);
    assert_eq!(cluster.kind(&p), None);
    assert_eq!(cluster.registry.entries().count(), 2, "the conventions are forgotten");
}

#[test]
fn a_document_that_was_created_again_is_another_one() {
    let id = policy("p");
    let mut cluster = Cluster::default();
    cluster.put(&id, 1, &spec_of_policy("metav1", &json!({}))).settle();
    let again = Document::new(id.clone(), &spec_of_policy("nothing", &json!({})));
    let again = Document { uid: "v".into(), generation: 1, ..again };
    assert!(cluster.registry.set(&id, Some(again.clone())));
    assert!(!cluster.registry.set(&id, Some(again)));
    assert_eq!(cluster.settle(), ["p"], "the text of the deleted one stays in use");
    assert_eq!(cluster.used(&id), None, "its generation is not one of the new object");
}

#[test]
fn nothing_is_replaced_if_the_texts_in_use_do_not_compile_either() {
    let id = policy("p");
    let mut cluster = Cluster::default();
    cluster.put(&id, 1, &spec_of_policy("metav1", &json!({}))).settle();
    cluster.files = vec![Source::new("file.yaml", "kind: [")];
    cluster.put(&id, 2, &spec_of_policy("kstatus", &json!({})));
    assert_eq!(cluster.settle(), ["nothing"]);
    assert_eq!((cluster.used(&id), cluster.kind(&id)), (Some(1), Some(ProblemKind::BreaksOthers)));
    cluster.files.clear();
    assert_eq!(cluster.settle(), ["p"]);
    assert_eq!((cluster.used(&id), cluster.kind(&id)), (Some(2), None));
}

/// Changes in an order that looks random, the same in each run.
#[test]
fn after_any_changes_the_texts_in_use_compile_and_each_other_one_has_a_problem() {
    let mut seed = 7_u64;
    let mut next = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % limit
    };
    let texts = [
        spec_of_policy("a", &json!({})),
        spec_of_policy("a", &json!({"enable": ["x"]})),
        spec_of_policy("b", &json!({"enable": ["x"]})),
        spec_of_policy("none", &json!({})),
        spec_of_convention("x"),
        spec_of_convention("y"),
        json!({"extends": "a"}),
        json!({"extends": "b"}),
        json!({"rules": 1}),
    ];
    let ids = [policy("p"), policy("q"), policy("r"), convention("a"), convention("b")];
    let mut cluster = Cluster::default();
    for generation in 1..400 {
        for _ in 0..=next(3) {
            let id = &ids[next(ids.len())];
            let some = if id.kind == DocumentKind::StatusPolicy { 0..4 } else { 4..9 };
            match next(5) {
                0 => cluster.delete(id),
                _ => cluster.put(id, generation, &texts[some.start + next(some.len())]),
            };
        }
        let mut twin = Cluster { registry: cluster.registry.clone(), ..Cluster::default() };
        assert_eq!(cluster.settle(), twin.settle(), "the same steps give the same result");
        let used = cluster.registry.used_without(&policy("none"));
        assert!(cluster.registry.is_settled());
        assert!(PolicySet::compile(&used).is_ok(), "{used:?}");
        for (id, entry) in cluster.registry.entries() {
            let latest = entry.latest.as_ref().map(|document| document.generation);
            let accepted = latest.is_some() && cluster.used(id) == latest;
            let problem = cluster.kind(id);
            let deleted = latest.is_none() && entry.used.is_some();
            let keeps = problem == Some(ProblemKind::ConventionDeleted);
            assert!(accepted == problem.is_none() || keeps || deleted, "{id}: {entry:?}");
        }
    }
}

#[test]
fn the_text_of_a_document_is_read_as_its_values() {
    for value in [
        json!("yes"),
        json!("no"),
        json!("on"),
        json!("y"),
        json!("~"),
        json!("null"),
        json!("1"),
        json!("1e3"),
        json!("0x1f"),
        json!("0o7"),
        json!("1_000"),
        json!("1:30"),
        json!(".5"),
        json!("+1"),
        json!(".inf"),
        json!("2026-11-22"),
        json!(""),
        json!(" a "),
        json!("a: b"),
        json!("a #b"),
        json!("# a"),
        json!("- a"),
        json!("*"),
        json!("&a"),
        json!("!a"),
        json!("a\nb"),
        json!("a\n\n  b\n\n"),
        json!("\n a"),
        json!("tab\there"),
        json!("quote \" and '"),
        json!("\\"),
        json!("ä€😀"),
        json!("\u{7f}\u{85}\u{feff}\u{2028}"),
        json!("---"),
        json!("..."),
        json!("%a"),
        json!("x".repeat(300)),
        json!("word ".repeat(60)),
        json!("<<"),
        json!("="),
        json!(true),
        json!(null),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(i64::MAX),
        json!([]),
        json!({}),
        json!([[1, []], {"a": {}}]),
        json!({"a b": 1, "yes": 2, "": 3, "1": 4, "a:": 5, "<<": 6}),
    ] {
        let document = Document::new(policy("p"), &json!({"value": value, "after": 1}));
        let (read, mistakes) = crate::source::tree::parse(0, &document.source.text);
        assert_eq!(mistakes, [], "{value}: {}", document.source.text);
        let [read] = &read[..] else { panic!("{value}: {}", document.source.text) };
        let read = serde_json::to_value(&read.root).unwrap();
        assert_eq!(read["spec"], json!({"value": value, "after": 1}), "{}", document.source.text);
    }
}
