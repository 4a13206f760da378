//! Documents as people write them: what compiles, and what is said about what does not.
//!
//! Each file under `tests/fixtures/policies/broken` is one mistake, or some that are made together; the
//! snapshot is what a person reads, with file, line, caret and hint.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use statusgate_core::policy::{self, Diagnostics, PolicySet, Source};
use statusgate_server::files;

use crate::support::{T0, Write as StatusWrite, examples};

/// Keeps only the name of a file, so that snapshots do not depend on the folder of the repository.
fn source(path: &Path) -> Source {
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    Source { name, text: fs::read_to_string(path).unwrap() }
}

#[test]
fn valid_documents_compile() {
    insta::glob!("../fixtures/policies/ok", "*.yaml", |path| {
        let policies = PolicySet::compile(&[source(path)])
            .unwrap_or_else(|error| panic!("{}:\n{error}", path.display()));
        let mut picture = String::new();
        for policy in policies.policies() {
            let (name, convention) = (&policy.name, &policy.convention.name);
            let (enforcement, disagreement) =
                (policy.enforcement.label(), policy.disagreement.label());
            writeln!(
                picture,
                "{name} follows {convention}, enforcement {enforcement}, disagreement {disagreement}, {} writers, {} defaults, {} fields, {} owners, {} preserved",
                policy.writers.len(),
                policy.backfill.len(),
                policy.fields.len(),
                policy.owners.len(),
                policy.preserve.len()
            )
            .unwrap();
        }
        let names: Vec<&str> = policies.conventions().keys().map(String::as_str).collect();
        writeln!(picture, "conventions: {}", names.join(", ")).unwrap();
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!(picture);
        });
    });
}

#[test]
fn errors_are_shown_at_their_location() {
    insta::glob!("../fixtures/policies/broken", "*.yaml", |path| {
        let source = source(path);
        let text = source.text.clone();
        let Err(mistakes) = PolicySet::compile(&[source]) else {
            panic!("{} compiles", path.display());
        };
        points_into(&mistakes, &text);
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!(mistakes);
        });
    });
}

/// Every mistake has a place that exists and one line of its own.
fn points_into(mistakes: &Diagnostics, text: &str) {
    assert!(!mistakes.list().is_empty());
    // Inherited mistakes are located in another text.
    for mistake in mistakes.list().iter().filter(|mistake| mistake.inherited_by.is_none()) {
        let (_, line, column) = mistakes.place(mistake);
        let lines: Vec<&str> = text.split('\n').collect();
        assert!((1..=lines.len()).contains(&line), "{mistake:?}");
        assert!(column <= lines[line - 1].chars().count() + 1, "{mistake:?}");
        assert!(!mistake.message.is_empty() && !mistake.message.ends_with('.'), "{mistake:?}");
    }
}

/// Whichever of them is put together first: each has the first list of the other as it is there.
#[test]
fn two_conventions_may_have_the_first_list_of_each_other() {
    let convention = |name: &str, spec: &str| {
        format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: {name}}}\nspec:\n{spec}---\n"
        )
    };
    let rule = |id: &str| {
        format!("each: [{{id: {id}, when: {{member: x, set: true}}, action: Warn, message: m}}]")
    };
    let list = |more: &str| format!("{{path: /status/conditions, {more}}}");
    let like = |name: &str| format!("{{path: /status/others, like: {name}}}");
    for (one, other) in [("a", "b"), ("b", "a")] {
        let text = [
            convention("base", &format!("  conditions: [{}]\n", list(&rule("unwanted")))),
            convention(
                one,
                &format!(
                    "  extends: base\n  without: [unwanted]\n  conditions: [{}, {}]\n",
                    list("maxItems: 3"),
                    like(other)
                ),
            ),
            convention(other, &format!("  conditions: [{}, {}]\n", list(&rule("own")), like(one))),
        ];
        let source = Source { name: "both.yaml".into(), text: text.concat() };
        let policies = PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"));
        let lists = |name: &str| {
            let lists = policies.conventions()[name].conditions.iter();
            lists.map(|list| (list.max_items, list.each.len())).collect::<Vec<_>>()
        };
        assert_eq!(lists(one), [(Some(3), 0), (None, 1)], "{one}");
        assert_eq!(lists(other), [(None, 1), (Some(3), 0)], "{other}");
    }
}

#[test]
fn mistakes_in_several_files_are_reported_together_and_by_file() {
    let broken = |name: &str, spec: &str| Source {
        name: name.into(),
        text: format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: same}}\nspec: {spec}\n"
        ),
    };
    let good =
        "{convention: appcat, resources: [{apiGroups: [a], apiVersions: [v1], resources: [b]}]}";
    let sources = [
        broken("a.yaml", "{convention: appcatt}"),
        broken("b.yaml", good),
        broken("c.yaml", good),
        Source { name: "d.yaml".into(), text: "{".into() },
    ];
    let mistakes = PolicySet::compile(&sources).unwrap_err();
    let places: Vec<String> = mistakes
        .list()
        .iter()
        .map(|mistake| {
            let (file, line, _) = mistakes.place(mistake);
            format!("{file}:{line}: {}", mistake.message)
        })
        .collect();
    let starts = [
        "a.yaml:4: unknown convention",
        "a.yaml:4: missing required key \"resources\"",
        "b.yaml:3: there is a policy \"same\" already",
        "c.yaml:3: there is a policy \"same\" already",
        "d.yaml:1: invalid YAML",
    ];
    assert_eq!(places.len(), starts.len(), "{places:#?}");
    for start in starts {
        assert!(places.iter().any(|place| place.starts_with(start)), "{start}: {places:#?}");
    }
}

/// A client-side `kubectl apply` drops null values.
#[test]
fn nullable_without_a_value_is_a_default_of_null() {
    let defaults = |keys: &str| {
        let text = format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {{name: p}}\nspec:\n  \
             convention: metav1\n  resources:\n  - {{apiGroups: [a.io], apiVersions: [v1], resources: [foos]}}\n  \
             backfill:\n  - {{path: /status/billing{keys}}}\n"
        );
        let policies = PolicySet::compile(&[Source::new("p.yaml", text)]);
        policies.map(|policies| {
            let all = policies.policies()[0].backfill.iter();
            all.map(|default| format!("{:?}", default.filling)).collect::<Vec<_>>()
        })
    };
    for nullable in ["false", "true"] {
        let without = defaults(&format!(", nullable: {nullable}")).unwrap();
        assert_eq!(without, defaults(&format!(", value: null, nullable: {nullable}")).unwrap());
    }
    let error = defaults("").unwrap_err().to_string();
    assert!(error.contains("missing required key \"value\" or \"copyOf\""), "{error}");
}

#[test]
fn a_byte_order_mark_moves_no_column() {
    let mistakes = PolicySet::compile(&[Source::new("a.yaml", "\u{feff}{kind: Odd}")]).unwrap_err();
    let columns: Vec<usize> =
        mistakes.list().iter().map(|mistake| mistakes.place(mistake).2).collect();
    assert!(columns.contains(&1) && columns.contains(&8), "{columns:?}");
}

/// Nobody knows what is in a document that is no YAML: what others name may be there.
#[test]
fn a_convention_that_may_be_in_a_broken_document_is_not_unknown() {
    let kind = |kind: &str, name: &str, spec: &str| {
        format!(
            "apiVersion: statusgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
        )
    };
    let resources = "resources: [{apiGroups: [a], apiVersions: [v1], resources: [b]}]";
    let text = kind("StatusConvention", "our-own", "{title: [}")
        + &kind("StatusPolicy", "one", &format!("{{convention: our-own, {resources}}}"))
        + &kind("StatusConvention", "heir", "{extends: our-own}");
    let mistakes = PolicySet::compile(&[Source { name: "a.yaml".into(), text }]).unwrap_err();
    let messages: Vec<&str> =
        mistakes.list().iter().map(|mistake| mistake.message.as_str()).collect();
    assert!(messages.len() == 1 && messages[0].starts_with("invalid YAML"), "{messages:?}");
}

#[test]
fn the_example_policies_compile_and_judge_what_they_should() {
    let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
    let used: BTreeSet<&str> =
        policies.policies().iter().map(|policy| policy.convention.name.as_str()).collect();
    let built_in: BTreeSet<&str> = policies.conventions().keys().map(String::as_str).collect();
    assert_eq!(used, built_in, "each built-in convention has a policy that shows its use");
}

/// What sets them apart from other metav1 conditions: their times move with the reason, too.
#[test]
fn billing_services_follow_a_convention_that_extends_metav1() {
    let policies = PolicySet::compile(&PolicySet::examples()).unwrap();
    let movers = |name: &str| {
        let times = policies.conventions()[name].conditions[0].transition_time.as_ref().unwrap();
        times.must_move_on.join(", ")
    };
    assert_eq!(movers("metav1"), "status");
    assert_eq!(movers("appcat-billing"), "status, reason");
    let plural = |policy: &&policy::Policy| {
        policy
            .resources
            .iter()
            .flat_map(|rule| &rule.resources)
            .any(|glob| glob.to_string() == "billingservices")
    };
    let names: Vec<&str> =
        policies.policies().iter().filter(plural).map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["appcat-billing"]);
}

/// The first entry that fits counts, and an heir cannot write above what it inherits.
#[test]
fn a_type_that_is_added_to_an_inherited_family_is_found() {
    let text = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: heir}\nspec:\n  \
        extends: capi-v1beta1\n  conditions:\n    - path: /status/conditions\n      types:\n        \
        NodesReady: {polarity: negative}\n        TaskSucceeded: {polarity: negative}\n        Other: {polarity: negative}\n";
    let set = PolicySet::compile(&[Source::new("a.yaml", text)])
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let list = &set.conventions()["heir"].conditions[0];
    let polarity =
        |name: &str| list.find(name).map(|known| known.polarity.unwrap_or_default().name());
    for (name, expected) in [
        ("NodesReady", "negative"),
        ("TaskSucceeded", "negative"),
        ("Other", "negative"),
        ("PodsReady", "positive"),
        ("HookSucceeded", "positive"),
    ] {
        assert_eq!(polarity(name), Some(expected), "{name}");
    }
}

const PAGE: &str = include_str!("../../docs/policies.md");

fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let fence = format!("```{language}\n");
    let blocks: Vec<&str> = PAGE.split(&fence).skip(1).collect();
    blocks.into_iter().map(|rest| rest.split("```").next().unwrap_or_default())
}

/// Whole documents as they are, keys of `spec` in a policy that has the rest.
#[test]
fn documents_in_the_page_about_policies_compile() {
    let spec = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: page}\nspec:\n  \
        convention: appcat\n  resources: [{apiGroups: [a], apiVersions: [v1], resources: [b]}]\n";
    let mut count = 0;
    for block in blocks("yaml") {
        let text = if block.contains("\nkind: ") { block.into() } else { spec.to_owned() + block };
        let source = Source { name: "policies.md".into(), text };
        PolicySet::compile(&[source]).unwrap_or_else(|error| panic!("{error}"));
        count += 1;
    }
    assert!(count >= 6, "the page lost its blocks: {count}");
}

#[test]
fn the_mistake_of_the_page_about_policies_is_shown_as_documented() {
    let expected = blocks("text").find(|block| block.contains("my-policy.yaml")).unwrap();
    let text = blocks("yaml").next().unwrap();
    let text = text.replace("has(self.status.message)", "has(self.stats.message)");
    let mistakes =
        PolicySet::compile(&[Source { name: "my-policy.yaml".into(), text }]).unwrap_err();
    assert_eq!(mistakes.to_string().trim(), expected.trim());
}

/// Whatever a document holds, the compiler answers: every prefix of a good one, and every one with a
/// line left out.
#[test]
fn a_part_of_a_document_compiles_or_has_errors() {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/policies/ok/everything-a-policy-can-say.yaml"),
    )
    .unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let compile = |text: String| {
        if let Err(mistakes) = PolicySet::compile(&[Source { name: "part.yaml".into(), text }]) {
            assert!(!mistakes.to_string().is_empty());
        }
    };
    for at in 0..lines.len() {
        compile(lines[..at].concat());
        compile([&lines[..at], &lines[at + 1..]].concat().concat());
        // In the middle of a line.
        let half = lines[at].char_indices().nth(lines[at].chars().count() / 2);
        compile(lines[..at].concat() + &lines[at][..half.map_or(0, |(at, _)| at)]);
    }
}

#[test]
fn a_folder_without_documents_and_a_missing_path_are_errors_that_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let error = files::load_policies(&[folder.path().to_owned()]).unwrap_err().to_string();
    let folder = folder.path().display();
    assert!(error.starts_with(&format!("error: {folder}: this folder has no file")), "{error}");
    let error = files::load_policies(&["/nowhere".into()]).unwrap_err().to_string();
    assert!(error.starts_with("error: /nowhere: this cannot be read: No such file"), "{error}");
}

#[test]
fn an_unreadable_file_hides_no_error_in_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.yaml"), b"kind: \xff").unwrap();
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: b}\nspec: {convention: elsewhere, enforcment: Deny}\n";
    fs::write(path("b.yaml"), policy).unwrap();
    let error = files::load_policies_or_examples(&[path("nowhere"), folder.path().to_owned()])
        .unwrap_err()
        .to_string();
    for said in [
        "nowhere: this cannot be read: No",
        "a.yaml: this is not UTF-8 text",
        "unknown key \"enforcment\"",
    ] {
        assert!(error.contains(said), "{error}");
    }
    assert!(!error.contains("unknown convention"), "it may be in the others: {error}");
}

const POLICY: &str = "# Mine.\napiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\n\
     spec: {convention: mine, resources: [{apiGroups: [a.io], apiVersions: [v1], resources: [things, thongs]}]}\n";

const CONVENTION: &str = "# Two phases.\napiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: mine}\n\
     spec: {phase: {path: /status/phase, values: [{phase: Up}, {phase: Down}]}}\n";

#[test]
fn documents_of_other_programs_are_skipped_and_named() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\n";
    let all = format!("{deployment}---\n{CONVENTION}---\n{POLICY}");
    let cases = Source::new("cases.yaml", "convention: mine\ncases: []\n");
    let policies = PolicySet::compile(&[Source::new("all.yaml", all), cases]).unwrap();
    assert_eq!(policies.names().collect::<Vec<_>>(), ["p"]);
    let skipped: Vec<String> = policies.skipped().iter().map(ToString::to_string).collect();
    let note = |what: &str| format!("note: skipped: this is {what}, not a policy or convention");
    let expected = [
        format!("all.yaml:1:1: {}", note("a Deployment of apps/v1")),
        format!("cases.yaml:1:1: {}", note("a file of test cases")),
    ];
    assert_eq!(skipped, expected);
    // A list with a policy is one of statusgate, and so is its kind in another group.
    for text in [
        "apiVersion: v1\nkind: List\nitems: [{kind: StatusPolicy}]\n".to_owned(),
        POLICY.replace("statusgate.dev", "statusgate.io"),
    ] {
        assert!(PolicySet::compile(&[Source::new("own.yaml", text)]).is_err());
    }
}

#[test]
fn a_convention_is_shown_to_the_letter_and_without_its_neighbors() {
    let given = [Source::new("all.yaml", format!("{POLICY}---\n{CONVENTION}---\n{POLICY}"))];
    assert_eq!(PolicySet::document(&given, "mine").as_deref(), Some(CONVENTION));
    assert_eq!(PolicySet::document(&given, "p"), None, "a policy is no convention");
    let built_in = PolicySet::document(&given, "appcat").unwrap();
    assert!(built_in.contains("kind: StatusConvention") && built_in.contains('#'), "{built_in}");
}

#[test]
fn a_mistake_in_a_selector_has_the_place_of_the_name() {
    let given = [Source::new("all.yaml", format!("{CONVENTION}---\n{POLICY}"))];
    let mistake = |policy| {
        PolicySet::mistake_in_selector(&given, policy, (0, "resources", 1), "no thongs".to_owned())
    };
    assert_eq!(mistake("mine"), None, "a convention has no selectors");
    let found = Diagnostics::new(&given, vec![mistake("p").unwrap()]);
    let (file, line, column) = found.place(&found.list()[0]);
    let text = given[0].text.lines().nth(line - 1).unwrap();
    assert_eq!((file, &text[column - 1..][..6]), ("all.yaml", "thongs"));
}

#[test]
fn the_policy_of_gateway_api_judges_conflicted_listeners_and_parents_that_are_gone() {
    let rules_of_route = |resource: &str, spec: Value, old: Value, new: Value| {
        let write = StatusWrite::to(resource).group("gateway.networking.k8s.io");
        let write = write.both("/spec", spec).stored(old).sent(new);
        let verdict = write.validate(examples());
        let of_policy =
            |rule: &&str| rule.starts_with("gateway-api/") && !rule.contains("condition-");
        verdict
            .rules()
            .into_iter()
            .map(|(_, rule)| rule)
            .filter(of_policy)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let spec = json!({"parentRefs": [{"name": "a"}]});
    let rules = |resource, old, new| rules_of_route(resource, spec.clone(), old, new);
    let condition = |kind: &str, reason: &str| json!([{"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": T0, "observedGeneration": 3}]);
    let gateway = |reason: &str| json!({"conditions": condition("Accepted", reason), "listeners": [{"name": "a", "conditions": condition("Conflicted", "ProtocolConflict")}]});
    let none = json!({});
    assert_eq!(rules("gateways", none.clone(), gateway("ListenersNotValid")), [""; 0]);
    assert_eq!(rules("gateways", none, gateway("Accepted")), ["gateway-api/conflicted-listeners"]);
    let parents = |controllers: &[&str]| {
        let parent = |name: &&str| json!({"parentRef": {"name": "a"}, "controllerName": name, "conditions": []});
        json!({"parents": controllers.iter().map(parent).collect::<Vec<_>>()})
    };
    let both = parents(&["example.com/a", "example.com/b"]);
    assert_eq!(
        rules("httproutes", both.clone(), parents(&["example.com/a"])),
        ["gateway-api/parents-of-others"]
    );
    assert_eq!(rules("httproutes", parents(&["example.com/a"]), both.clone()), [""; 0]);
    assert_eq!(rules("httproutes", both.clone(), parents(&[])), [""; 0]);
    let moved = json!({"parentRefs": [{"name": "b"}]});
    assert_eq!(rules_of_route("httproutes", moved, both, parents(&["example.com/a"])), [""; 0]);
}

/// The table of `docs/conventions.md` has the id of each rule without an id.
#[test]
fn default_rule_ids_are_those_of_the_page() {
    let text = "apiVersion: statusgate.dev/v1alpha1
kind: StatusConvention
metadata: {name: all}
spec:
  conditions:
    - path: /status/conditions
      key: type
      maxItems: 3
      members: {lastProbeTime: {type: string}}
      otherMembers: Warn
      otherTypes: Warn
      order: Warn
      types: {PodReady: {missing: Warn, present: {when: {deleting: true}, action: Warn}, notTrue: Warn, removed: Warn, reverted: Warn, reasons: {'True': A, other: Warn}}}
      transitionTime: {member: lastTransitionTime, mustMoveOn: status, mayMoveOn: status}
    - {path: /status/history, maxItems: 3, history: {}}
    - {path: '/status/instances/*', keys: {maxLength: 63}}
  generation: {paths: [/status/observedGeneration], minimum: 1}
  phase:
    path: /status/phase
    reason: {path: /status/reason}
    transitionTime: /status/since
    moves: {from: {'': Up}}
    values: [{phase: Up, reasons: [A], necessary: {deleting: false}}]
  fields: [{path: /status/billing/unit, type: string}]
";
    let set = PolicySet::compile(&[Source::new("all.yaml", text)]).unwrap();
    let declared = set.conventions()["all"].declared.iter();
    let declared: BTreeSet<String> =
        declared.map(|(id, _)| id.trim_start_matches("all/").to_owned()).collect();
    let page = fs::read_to_string("docs/conventions.md").unwrap();
    let (_, section) = page.split_once("## Default rule ids").unwrap();
    let (table, _) = section.split_once("\n## ").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let listed: BTreeSet<String> =
        rows.map(|row| row.rsplit('`').nth(1).unwrap().to_owned()).collect();
    assert_eq!(listed, declared);
}

#[test]
fn rules_of_lists_and_fields_have_ids_of_their_own() {
    let text = "apiVersion: statusgate.dev/v1alpha1
kind: StatusConvention
metadata: {name: own}
spec:
  conditions:
    - {path: /status/conditions, members: {reason: {type: string}}}
    - path: /status/listeners
      element: listener
      key: [name]
      maxItems: 3
      members: {name: {required: true}}
      transitionTime: {member: since, mayMoveOn: name}
  fields:
    - {path: /status/a/state, type: string}
    - {path: /status/b/state, type: string}
    - {path: /status/a/state, enum: [x]}
    - {path: /status/state, type: string}
---
apiVersion: statusgate.dev/v1alpha1
kind: StatusConvention
metadata: {name: heir}
spec: {extends: own, without: [field-b-state, listener-name]}
";
    let set = PolicySet::compile(&[Source::new("own.yaml", text)]).unwrap();
    let ids = |name: &str| -> Vec<String> {
        let ids = set.conventions()[name].declared.iter();
        ids.map(|(id, _)| id.split_once('/').unwrap().1.to_owned()).collect()
    };
    let own = ids("own");
    for id in [
        "condition-reason",
        "condition-shape",
        "listener-shape",
        "listener-duplicate",
        "listener-length",
        "listener-name",
        "listener-transition-time-moved",
        "field-state",
        "field-b-state",
        "field-status-state",
    ] {
        assert!(own.contains(&id.to_owned()), "{id}: {own:?}");
    }
    let heir = ids("heir");
    assert!(heir.iter().all(|id| id != "field-b-state" && id != "listener-name"), "{heir:?}");
}
