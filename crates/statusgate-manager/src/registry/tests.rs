use serde_json::json;

use super::*;
use statusgate_core::policy::PolicySet;

fn convention(name: &str) -> DocumentId {
    DocumentId::convention(name)
}

fn policy(name: &str) -> DocumentId {
    DocumentId::policy(name)
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

    /// A status with an accepted text arrives. Returns whether something is to be compiled.
    fn set_accepted(&mut self, id: &DocumentId, accepted: &LastAccepted) -> bool {
        let latest = self.registry.get(id).unwrap().latest.as_deref().unwrap();
        let Document { uid, generation, created, spec, .. } = latest.clone();
        let (spec, status) = (spec.tree(), json!({"lastAccepted": accepted}));
        let stored =
            StoredDocument { uid, generation, created, spec, status, ..Default::default() };
        self.registry.put(id, stored)
    }

    fn delete(&mut self, id: &DocumentId) -> &mut Self {
        self.registry.set(id, None);
        self
    }

    /// What a replica reads that starts now.
    fn restarted(&self) -> Self {
        let mut restarted = Self { files: self.files.clone(), ..Self::default() };
        for (id, entry) in self.registry.entries() {
            let Some(latest) = &entry.latest else { continue };
            restarted.registry.set(id, Some(Document::clone(latest)));
            let accepted = entry.used.as_ref().filter(|used| used.uid == latest.uid);
            let accepted = accepted.and_then(|used| LastAccepted::of(used));
            if let Some(accepted) = accepted {
                restarted.set_accepted(id, &accepted);
            }
        }
        restarted
    }

    /// What is in use of each document, and the problems.
    fn state(&self) -> Vec<(DocumentId, Option<Source>, Option<Problem>)> {
        let entries = self.registry.entries();
        let source = |entry: &Entry| Some(entry.used.as_ref()?.source.clone());
        entries.map(|(id, entry)| (id.clone(), source(entry), entry.problem.clone())).collect()
    }

    /// The names of the policies in use.
    fn settle(&mut self) -> Vec<String> {
        let Self { registry, calls, files } = self;
        *calls = 0;
        let set = registry.settle(|documents| {
            *calls += 1;
            PolicySet::compile_with_cluster(files, &documents)
        });
        let names: Option<Vec<String>> = set.map(|set| set.names().map(str::to_owned).collect());
        names.unwrap_or_else(|| vec!["nothing".to_owned()])
    }

    /// The texts in use.
    fn in_use(&self) -> Vec<Source> {
        self.state().into_iter().filter_map(|(_, used, _)| used).collect()
    }

    fn used(&self, id: &DocumentId) -> Option<i64> {
        self.registry.get(id)?.used_generation()
    }

    fn kind(&self, id: &DocumentId) -> Option<ProblemKind> {
        Some(self.registry.get(id)?.problem.as_ref()?.kind)
    }

    /// The generation in use, and the kind of problem.
    fn of(&self, id: &DocumentId) -> (Option<i64>, Option<ProblemKind>) {
        (self.used(id), self.kind(id))
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
    let names = cluster.settle();
    assert_eq!((names.len(), cluster.calls), (500, 1));
    assert!(names.is_sorted());
}

#[test]
fn an_invalid_document_is_left_out_and_its_mistakes_have_lines() {
    let (good, bad) = (policy("good"), policy("bad"));
    let mut cluster = Cluster::default();
    cluster.put(&good, 1, &spec_of_policy("metav1", &json!({"fields": []})));
    cluster.put(&bad, 1, &spec_of_policy("metav1", &json!({"enforcement": "Never", "typo": 1})));
    assert_eq!(cluster.settle(), ["good"]);
    assert_eq!(cluster.calls, 2);
    assert_eq!(cluster.of(&good), (Some(1), None));
    assert_eq!(cluster.of(&bad), (None, Some(ProblemKind::Invalid)));
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
    assert_eq!(cluster.of(&id), (Some(1), Some(ProblemKind::Invalid)));
    assert!(cluster.message(&id).contains("nothing"));
    cluster.put(&id, 3, &spec_of_policy("kstatus", &json!({}))).settle();
    assert_eq!(cluster.of(&id), (Some(3), None));
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
    assert_eq!(cluster.of(&c), (Some(1), Some(ProblemKind::Invalid)));
    assert_eq!(cluster.of(&p), (Some(1), None));
}

/// A rule with this id, in a policy or convention.
fn spec_of_field(id: &str) -> Value {
    json!({"fields": [{"path": "/status/x", "id": id, "pattern": "^a$"}]})
}

#[test]
fn a_changed_convention_that_breaks_a_document_waits_and_no_other_change() {
    let (p, c, heir, like) = (policy("p"), convention("c"), convention("heir"), convention("like"));
    let list = json!({"conditions": [{"path": "/status/conditions"}]});
    let alike = json!({"conditions": [{"path": "/status/others", "like": "c"}]});
    let enables = |name: &str| spec_of_policy(name, &json!({"enable": ["x"]}));
    let [with_field, extends] = [spec_of_field("r"), json!({"extends": "heir"})];
    let part = spec_of_convention("x");
    // A document with the text of what it needs, a change of this, and where the document then has a mistake.
    for (document, text, before, change, place) in [
        (&p, enables("c"), &part, spec_of_convention("y"), "StatusPolicy/p:8:5"),
        (&p, enables("heir"), &part, spec_of_convention("y"), "StatusPolicy/p:8:5"),
        (&like, alike, &list, part.clone(), "StatusConvention/like:7:11"),
        (&heir, json!({"extends": "c"}), &part, extends, "StatusConvention/"),
        (
            &policy("c"),
            spec_of_policy("metav1", &with_field),
            &part,
            with_field.clone(),
            "StatusPolicy/c:8:9",
        ),
    ] {
        let (other, others) = (policy("other"), convention("others"));
        let mut cluster = Cluster::default();
        cluster.put(&c, 1, before).put(&heir, 1, &json!({"extends": "c"}));
        cluster.put(&others, 1, &part).put(document, 1, &text).settle();
        assert_eq!(cluster.used(document), Some(1), "{text}");
        cluster.put(&c, 2, &change).put(&others, 2, &list);
        cluster.put(&other, 1, &spec_of_policy("metav1", &json!({})));
        for _ in 0..2 {
            cluster.settle();
            assert!(cluster.calls <= 2, "{}", cluster.calls);
            assert_eq!(cluster.of(&c), (Some(1), Some(ProblemKind::BreaksOthers)));
            assert!(cluster.message(&c).contains(place), "{}", cluster.message(&c));
            for (id, used) in [(document, 1), (&heir, 1), (&other, 1), (&others, 2)] {
                assert_eq!(cluster.of(id), (Some(used), None), "{id}");
            }
        }
    }
}

#[test]
fn changes_of_the_conventions_of_one_document_wait_together_if_they_arrive_together() {
    let (p, c, heir) = (policy("p"), convention("c"), convention("heir"));
    let changed = json!({"extends": "c", "title": "t"});
    for together in [true, false] {
        let mut cluster = Cluster::default();
        cluster.put(&c, 1, &spec_of_convention("x")).put(&heir, 1, &json!({"extends": "c"}));
        cluster.put(&p, 1, &spec_of_policy("heir", &json!({"enable": ["x"]}))).settle();
        cluster.put(&c, 2, &spec_of_convention("y"));
        if !together {
            cluster.settle();
        }
        cluster.put(&heir, 2, &changed);
        assert_eq!(cluster.settle(), ["p"]);
        assert_eq!(cluster.of(&c), (Some(1), Some(ProblemKind::BreaksOthers)));
        let waits = together.then_some(ProblemKind::BreaksOthers);
        assert_eq!(cluster.kind(&heir), waits, "the older change is known to be the cause");
        cluster.put(&c, 3, &spec_of_convention("x")).settle();
        assert_eq!((cluster.used(&c), cluster.used(&heir)), (Some(3), Some(2)));
    }
}

#[test]
fn a_convention_that_breaks_a_file_waits_and_no_later_change() {
    let (c, later, p) = (convention("file"), convention("later"), policy("p"));
    let file = |name: &str, spec| vec![Document::new(policy(name), &spec).source];
    let files = file("file", spec_of_policy("metav1", &spec_of_field("r")));
    let mut cluster = Cluster { files, ..Cluster::default() };
    cluster.put(&c, 1, &spec_of_field("r")).put(&p, 1, &spec_of_policy("metav1", &json!({})));
    assert_eq!(cluster.settle(), ["file", "p"]);
    assert_eq!(cluster.of(&c), (None, Some(ProblemKind::BreaksOthers)));
    cluster.put(&later, 1, &spec_of_convention("x")).settle();
    assert_eq!(cluster.of(&later), (Some(1), None));
    // A file may follow a convention of the cluster.
    cluster.put(&c, 2, &spec_of_convention("x")).settle();
    cluster.files = file("f", spec_of_policy("file", &json!({})));
    cluster.delete(&c).put(&p, 2, &spec_of_policy("kstatus", &json!({})));
    assert_eq!(cluster.settle(), ["f", "p"]);
    assert_eq!(cluster.of(&p), (Some(2), None));
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
    assert_eq!(cluster.of(&p), (Some(1), Some(ProblemKind::ConventionDeleted)));
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
fn a_deleted_convention_that_another_one_is_like_stays_in_use() {
    let (c, like) = (convention("c"), convention("like"));
    let mut cluster = Cluster::default();
    cluster.put(&c, 1, &json!({"conditions": [{"path": "/status/conditions"}]}));
    cluster
        .put(&like, 1, &json!({"conditions": [{"path": "/status/others", "like": "c"}]}))
        .settle();
    cluster.delete(&c).settle();
    assert_eq!(cluster.calls, 1);
    assert_eq!(cluster.of(&like), (Some(1), Some(ProblemKind::ConventionDeleted)));
}

#[test]
fn the_registrations_of_a_convention_are_those_of_all_policies_that_follow_it() {
    let (base, heir, unused) = (convention("base"), convention("heir"), convention("unused"));
    let mut cluster = Cluster::default();
    cluster.put(&base, 1, &spec_of_convention("x")).put(&heir, 1, &json!({"extends": "base"}));
    cluster.put(&unused, 1, &spec_of_convention("x"));
    for (name, follows) in [("p", "base"), ("q", "heir"), ("r", "metav1")] {
        cluster.put(&policy(name), 1, &spec_of_policy(follows, &json!({})));
    }
    cluster.settle();
    let covered = |name: &str| Coverage { covered: vec![name.to_owned()], ..Coverage::default() };
    let of = |known: &[&str]| {
        let policies = known.iter().map(|name| ((*name).to_owned(), covered(name))).collect();
        let all = cluster.registry.with_conventions(&policies);
        let ids = [&base, &heir, &unused];
        ids.map(|id| all.get(id).map(|coverage| coverage.covered.join(" ")))
    };
    let texts = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_owned));
    assert_eq!(of(&["p", "q", "r"]), texts([Some("p q"), Some("q"), Some("")]));
    assert_eq!(of(&["p", "r"]), texts([None, None, Some("")]));
    assert_eq!(of(&["q"]), texts([None, Some("q"), Some("")]));
}

#[test]
fn the_older_policy_owns_the_phase_of_a_resource_and_the_younger_one_the_rest() {
    let [early, late] = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"];
    let resources = |plurals: &[&str]| json!({"resources": [{"apiGroups": ["g"], "apiVersions": ["v1"], "resources": plurals}]});
    let of = |plurals: &[&str]| spec_of_policy("appcat", &resources(plurals));
    let (first, older) = (policy("aaa"), policy("older"));
    let conflict = |resource: &str, owner: &str, reason: &str| {
        format!(
            "policies \"aaa\" and \"{owner}\" both configure the phase of g/v1 {resource}: \"{owner}\" {reason} and owns it"
        )
    };
    let mut cluster = Cluster::default();
    cluster.put_at(&older, 1, &of(&["things", "others"]), early);
    for plural in ["things", "thing*"] {
        cluster.put_at(&first, 1, &of(&[plural, "more"]), late);
        assert_eq!(cluster.settle(), ["older", "aaa"], "the order decides");
        assert_eq!(
            (cluster.kind(&older), cluster.kind(&first)),
            (None, Some(ProblemKind::Conflict))
        );
        assert_eq!(cluster.message(&first), conflict("things", "older", "is older"));
        assert_eq!(cluster.used(&first), Some(1), "for the rest");
        assert_eq!(cluster.restarted().settle(), ["older", "aaa"]);
        cluster.delete(&first).settle();
    }
    // At the same second, the name decides. A resource moves: the order of the two changes does not matter.
    cluster.put_at(&first, 2, &of(&["things"]), early);
    assert_eq!(cluster.settle(), ["aaa", "older"]);
    assert_eq!((cluster.kind(&first), cluster.kind(&older)), (None, Some(ProblemKind::Conflict)));
    cluster.put_at(&older, 2, &of(&["others"]), early).settle();
    assert_eq!((cluster.kind(&first), cluster.kind(&older)), (None, None));
    // A file is older than every document.
    let file = Document::new(policy("file"), &of(&["things"])).source;
    cluster.files = vec![file];
    assert_eq!(cluster.settle(), ["file", "aaa", "older"]);
    assert_eq!(cluster.message(&first), conflict("things", "file", "is in a file"));
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
    assert_eq!(cluster.of(&id), (Some(1), Some(ProblemKind::BreaksOthers)));
    cluster.files.clear();
    assert_eq!(cluster.settle(), ["p"]);
    assert_eq!(cluster.of(&id), (Some(2), None));
}

#[test]
fn a_restarted_replica_enforces_the_last_accepted_texts() {
    let (p, c, other) = (policy("p"), convention("c"), policy("other"));
    let mut cluster = Cluster::default();
    cluster
        .put(&c, 1, &spec_of_convention("x"))
        .put(&p, 1, &spec_of_policy("c", &json!({"enable": ["x"]})))
        .put(&other, 1, &spec_of_policy("metav1", &json!({})))
        .settle();
    let mut restarted = cluster.restarted();
    assert_eq!(restarted.settle(), ["other", "p"]);
    assert_eq!(restarted.calls, 1, "nothing is compiled twice if all texts are accepted");
    // One that is invalid, and one that breaks another document.
    cluster.put(&other, 2, &spec_of_policy("nothing", &json!({})));
    cluster.put(&c, 2, &spec_of_convention("y"));
    let mut restarted = cluster.restarted();
    for replica in [&mut cluster, &mut restarted] {
        assert_eq!(replica.settle(), ["other", "p"]);
        assert_eq!((replica.used(&other), replica.used(&c)), (Some(1), Some(1)));
        assert_eq!(replica.kind(&other), Some(ProblemKind::Invalid));
        assert_eq!(replica.kind(&c), Some(ProblemKind::BreaksOthers));
        assert_eq!(replica.kind(&p), None);
    }
    assert_eq!(restarted.state(), cluster.state());
}

#[test]
fn an_accepted_text_of_a_status_is_not_trusted() {
    let id = policy("p");
    let invalid = spec_of_policy("nothing", &json!({}));
    let accepted = |generation, spec: &Value| LastAccepted { generation, spec: Spec::of(spec) };
    let mut cluster = Cluster::default();
    // The spec of the document counts for its own generation, not a copy of it.
    let (deny, warn) = (json!({}), json!({"enforcement": "Warn"}));
    cluster.put(&id, 5, &spec_of_policy("metav1", &deny));
    cluster.set_accepted(&id, &accepted(5, &spec_of_policy("metav1", &warn)));
    cluster.settle();
    assert!(!cluster.in_use()[0].text.contains("Warn"));
    // One that was never stored.
    cluster.put(&id, 6, &invalid);
    assert!(!cluster.set_accepted(&id, &accepted(7, &spec_of_policy("metav1", &warn))));
    // One that is older than the one in use.
    assert!(!cluster.set_accepted(&id, &accepted(4, &spec_of_policy("metav1", &warn))));
    assert_eq!(cluster.settle(), ["p"]);
    assert_eq!(cluster.used(&id), Some(5));

    // One with mistakes stops no other document, and is reported once.
    let mut cluster = Cluster::default();
    cluster.put(&policy("q"), 1, &spec_of_policy("metav1", &json!({})));
    cluster.put(&id, 6, &invalid);
    let wrong = spec_of_policy("metav1", &json!({"enforcement": "Never"}));
    assert!(cluster.set_accepted(&id, &accepted(5, &wrong)));
    for _ in 0..2 {
        assert_eq!(cluster.settle(), ["q"]);
        assert_eq!(cluster.of(&id), (None, Some(ProblemKind::Invalid)));
        let message = cluster.message(&id);
        let (own, earlier) = message
            .split_once(
                "\n\nThe spec of generation 5 in status.lastAccepted is not accepted either:\n\n",
            )
            .unwrap();
        assert!(own.contains("unknown convention \"nothing\""), "{message}");
        assert!(earlier.contains("unknown value \"Never\""), "{message}");
        assert_eq!(message.matches("either").count(), 1, "{message}");
    }
    cluster.set_accepted(&id, &accepted(5, &Value::Null));
    assert_eq!(cluster.settle(), ["q"]);
}

#[test]
fn a_replica_that_missed_an_accepted_generation_takes_it_from_the_status() {
    let id = policy("p");
    let mut cluster = Cluster::default();
    cluster.put(&id, 1, &spec_of_policy("metav1", &json!({}))).settle();
    cluster.put(&id, 3, &spec_of_policy("nothing", &json!({}))).settle();
    let spec = spec_of_policy("kstatus", &json!({}));
    let accepted = LastAccepted { generation: 2, spec: Spec::of(&spec) };
    assert!(cluster.set_accepted(&id, &accepted));
    assert!(!cluster.set_accepted(&id, &accepted), "it is known");
    cluster.settle();
    assert_eq!(cluster.of(&id), (Some(2), Some(ProblemKind::Invalid)));
    assert!(!cluster.set_accepted(&id, &accepted), "it is in use");
}

#[test]
fn a_text_that_is_too_large_for_the_status_is_left_out() {
    let large = |bytes| Document::new(policy("p"), &json!({"title": "x".repeat(bytes)}));
    assert!(LastAccepted::of(&large(200 << 10)).is_some());
    assert_eq!(LastAccepted::of(&large(256 << 10)), None);
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
        spec_of_policy("metav1", &spec_of_field("r")),
        spec_of_convention("x"),
        spec_of_convention("y"),
        spec_of_field("r"),
        json!({"extends": "a"}),
        json!({"extends": "b"}),
        json!({"conditions": [{"path": "/status/a"}, {"path": "/status/b", "like": "b"}]}),
        json!({"rules": 1}),
    ];
    let ids =
        [policy("p"), policy("q"), policy("r"), convention("a"), convention("b"), convention("p")];
    let mut cluster = Cluster::default();
    let mut restarts = 0;
    for generation in 1..400 {
        for _ in 0..=next(3) {
            let id = &ids[next(ids.len())];
            let some = if id.kind == DocumentKind::StatusPolicy { 0..5 } else { 5..12 };
            match next(5) {
                0 => cluster.delete(id),
                _ => cluster.put(id, generation, &texts[some.start + next(some.len())]),
            };
        }
        let mut twin = Cluster { registry: cluster.registry.clone(), ..Cluster::default() };
        let names = cluster.settle();
        assert_eq!(names, twin.settle(), "the same steps give the same result");
        assert_ne!(names, ["nothing"]);
        let used = cluster.in_use();
        assert!(PolicySet::compile(&used).is_ok(), "{used:?}");
        for (id, entry) in cluster.registry.entries() {
            let latest = entry.latest.as_ref().map(|document| document.generation);
            let accepted = latest.is_some() && cluster.used(id) == latest;
            let problem = cluster.kind(id);
            let deleted = latest.is_none() && entry.used.is_some();
            let keeps = problem == Some(ProblemKind::ConventionDeleted);
            assert!(accepted == problem.is_none() || keeps || deleted, "{id}: {entry:?}");
        }
        // The text of a deleted document is nowhere.
        if cluster.registry.entries().all(|(_, entry)| entry.latest.is_some()) {
            let mut restarted = cluster.restarted();
            let names = cluster.settle();
            assert_eq!((restarted.settle(), restarted.state()), (names, cluster.state()));
            restarts += 1;
        }
    }
    assert!(restarts > 100, "{restarts}");
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
        let (read, mistakes) = statusgate_core::source::tree::parse(0, &document.source.text);
        assert_eq!(mistakes, [], "{value}: {}", document.source.text);
        let [read] = &read[..] else { panic!("{value}: {}", document.source.text) };
        let read = serde_json::to_value(&read.root).unwrap();
        assert_eq!(read["spec"], json!({"value": value, "after": 1}), "{}", document.source.text);
    }
}
