//! What `statusgate explain` prints, and that `docs/conventions` is what it prints.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use statusgate_analysis::lint::{Example, Examples, Kind, Pair};
use statusgate_analysis::table::{Table, has_evidence};
use statusgate_core::documents::PolicySpec;
use statusgate_core::engine::decide;
use statusgate_core::model::{Object, Resource, Subject, Webhook};
use statusgate_core::policy::{PolicySet, Source};
use statusgate_pages::explain::{Graph, Page, RuleText, data, render};

use crate::command::{Ended, run, write_in};
use crate::suites;

fn built_in() -> PolicySet {
    PolicySet::compile(&[]).unwrap()
}

/// Exit code, standard output, standard error.
fn explain(args: &[&str]) -> (Option<i32>, String, String) {
    let Ended { code, out, err } = run([&["explain"], args].concat());
    (code, out, err)
}

#[test]
fn a_convention_without_a_title_has_no_title_line() {
    let fixture = "tests/fixtures/policies/ok/a-convention-and-a-policy-in-any-order.yaml";
    let (code, page, err) = explain(&["mine", "--policies", fixture]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(page.lines().all(|line| line != "."), "{page}");
}

#[test]
fn a_time_that_no_member_may_move_is_reported_when_it_moves() {
    let text = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: mine}\n\
                spec: {conditions: [{path: /status/conditions, transitionTime: {member: since}}]}\n";
    let policies = PolicySet::compile(&[Source { name: "mine.yaml".into(), text: text.into() }]);
    let page = render::text(&Page::of(&policies.unwrap().conventions()["mine"]), 100);
    assert!(page.contains(" since moved ") && !page.contains("nothing of"), "{page}");
}

#[test]
fn the_list_contains_every_convention() {
    let (code, list, _) = explain(&[]);
    assert_eq!(code, Some(0));
    for name in built_in().conventions().keys() {
        assert!(list.contains(&format!("\n{name} ")), "{name}:\n{list}");
    }
    let (_, json, _) = explain(&["-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), built_in().conventions().len());
}

#[test]
fn a_page_fits_every_width_and_keeps_rule_ids_whole() {
    for convention in built_in().conventions().values() {
        let page = Page::of(convention);
        let document = render::markdown(&page);
        let ids: Vec<String> = convention.declared.iter().map(|(id, _)| id.to_string()).collect();
        for width in [80, 100, 120, 200] {
            let text = render::text(&page, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{} {width}: {line}", convention.name);
            }
            for id in ids.iter().filter(|id| document.contains(*id)) {
                assert!(text.contains(id), "{id} at {width}:\n{text}");
            }
        }
    }
}

#[test]
fn a_long_field_is_wrapped_after_a_dot_and_never_inside_a_name() {
    let text = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: mine}\n\
                spec:\n  fields:\n    - path: /status/instancesReportedState/lastFailedInstance/timeLineID\n      \
                type: integer\n      minimum: 1\n      source: the types of the operator in api/v1\n";
    let policies = PolicySet::compile(&[Source { name: "mine.yaml".into(), text: text.into() }]);
    let page = render::text(&Page::of(&policies.unwrap().conventions()["mine"]), 80);
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let names = ["instancesReportedState.", "lastFailedInstance.", "timeLineID"];
    assert!(names.iter().all(|name| page.contains(name)), "{page}");
    assert!(!page.contains(&names.concat()), "it is not wrapped:\n{page}");
}

#[test]
fn the_values_of_a_map_are_explained_as_elements() {
    let fixture = "examples/suites/cnpg-instances/convention.yaml";
    let (code, page, err) = explain(&["cnpg-instances", "--policies", fixture]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(page);
    let (code, rule, err) =
        explain(&["cnpg-instances/primary-without-timeline", "--policies", fixture]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(rule);
}

#[test]
fn the_page_of_the_proposed_csv_has_evidence_moves_and_a_truth_table() {
    let policies = built_in();
    let page = Page::of(&policies.conventions()["olm-csv-proposed"]);
    let text = render::text(&page, 120);
    insta::assert_snapshot!(text.split("Truth table").nth(1).unwrap());
}

#[test]
fn phase_graphs_are_drawn() {
    let policies = built_in();
    let mut picture = String::new();
    for name in ["appcat", "olm-csv", "capi-v1beta1"] {
        let graph = Graph::of(&policies.conventions()[name]).unwrap();
        writeln!(picture, "{name}\n{}", graph.to_mermaid()).unwrap();
    }
    insta::assert_snapshot!(picture);
    assert!(Graph::of(&policies.conventions()["metav1"]).is_none());
}

#[test]
fn the_json_table_has_every_combination_and_its_outcome() {
    let policies = built_in();
    let convention = &policies.conventions()["appcat"];
    let rules = convention.phase.as_ref().unwrap();
    assert!(has_evidence(rules));
    let document = PolicySet::whole_document(&[], "appcat").unwrap();
    let data = data::convention(&document, convention);
    let table = Table::of_phase(convention, rules).unwrap();
    let rows = data["table"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), table.rows.len());
    let facts = data["table"]["facts"].as_array().unwrap();
    let row = rows.iter().find(|row| {
        let wanted = [
            ("deleting", "no"),
            ("Ready", "False"),
            ("PodReady", "True"),
            ("Synced", "True (another reason)"),
            ("status.instanceNamespace", "set"),
            ("stored phase", "Ready"),
        ];
        wanted.iter().all(|(fact, answer)| {
            let at = facts.iter().position(|known| known == fact).unwrap();
            row[at] == *answer
        })
    });
    let outcome = row.unwrap().as_array().unwrap().last().unwrap().as_u64().unwrap();
    let outcome = &data["table"]["outcomes"][usize::try_from(outcome).unwrap()];
    assert!(!outcome["admissible"].as_array().unwrap().contains(&"Ready".into()));
    assert_eq!(outcome["repair"]["Ready"], "Degraded");
    assert_eq!(data["phase"]["values"][0]["imposed"]["since"], "/metadata/deletionTimestamp");
}

/// The short table says the same as the full one: each combination is in a line with its outcome, and in
/// none with another outcome.
#[test]
fn a_short_table_covers_the_full_one() {
    use statusgate_analysis::minimize::Cube;
    use statusgate_analysis::table::PhaseOutcome;
    type View = fn(usize, &PhaseOutcome) -> Option<Vec<Option<usize>>>;
    // All of an outcome; one phase of it; and only the lines in which a phase is imposed.
    let views: [View; 3] = [
        |_, outcome| {
            let admissible = outcome.admissible.iter().map(|yes| Some(usize::from(*yes)));
            Some(admissible.chain(outcome.repairs.clone()).chain([outcome.imposed]).collect())
        },
        |phase, outcome| Some(vec![outcome.repairs[phase], Some(outcome.admissible[phase].into())]),
        |_, outcome| outcome.imposed.map(|phase| vec![Some(phase)]),
    ];
    let mut compared = 0;
    for (name, convention) in built_in().conventions() {
        let Some(rules) = &convention.phase else { continue };
        let table = Table::of_phase(convention, rules).unwrap();
        let phase = rules.phases.len() / 2;
        for view in views {
            let lines = table.collapsed(|_, outcome| view(phase, outcome));
            for (number, outcome) in table.iter() {
                let combination = table.space.combination(number);
                let stands_for = |(line, _): &&(Cube, _)| {
                    combination
                        .iter()
                        .enumerate()
                        .all(|(fact, answer)| line.includes(fact, *answer))
                };
                let found: Vec<_> = lines.iter().filter(stands_for).map(|(_, seen)| seen).collect();
                let expected = view(phase, outcome);
                assert_eq!(found.is_empty(), expected.is_none(), "{name}: {combination:?}");
                assert!(found.iter().all(|seen| Some(*seen) == expected.as_ref()), "{name}");
                compared += 1;
            }
        }
    }
    assert!(compared > 4284, "{compared}");
}

/// A copy under another name is the same convention, with all that it extends.
#[test]
fn a_printed_convention_compiles_to_the_same_convention() {
    for name in built_in().conventions().keys() {
        let whole = PolicySet::whole_document(&[], name).unwrap();
        let whole = serde_saphyr::to_string(&whole).unwrap();
        for text in [PolicySet::document(&[], name).unwrap(), whole] {
            let text = text.replacen(&format!("name: {name}\n"), "name: copy\n", 1);
            let source = Source { name: "copy.yaml".into(), text };
            let policies = PolicySet::compile(std::slice::from_ref(&source))
                .unwrap_or_else(|mistakes| panic!("{name}: {mistakes}"));
            // What an heir does not declare is not its own mistake, but the copy has everything itself.
            let compiled = |name: &str| {
                let text = format!("{:?}", policies.conventions()[name]);
                text.split(", undeclared: ").next().unwrap_or_default().to_owned()
            };
            let copy = compiled("copy").replace("\"copy/", &format!("\"{name}/"));
            assert_eq!(copy.replacen("\"copy\"", &format!("{name:?}"), 1), compiled(name));
        }
    }
}

#[test]
fn a_convention_of_a_file_is_printed_with_its_comments() {
    let folder = tempfile::tempdir().unwrap();
    let convention = |name: &str| {
        format!(
            "# about {name}\napiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {{name: {name}}}\nspec:\n  \
             extends: metav1 # and no more\n"
        )
    };
    let (one, other) = (convention("one"), convention("other"));
    let path = write_in(&folder, "mine.yaml", &format!("{one}---\n{other}"));
    let printed = explain(&["other", "--policies", &path, "-o", "yaml"]);
    assert_eq!(printed, (Some(0), other, String::new()));
    let (code, whole, _) = explain(&["one", "--policies", &path, "-o", "yaml", "--resolved"]);
    assert_eq!(code, Some(0));
    assert!(whole.contains("qualified-name") && !whole.contains("extends"), "{whole}");
}

/// The engine judges every example again. The snapshot has the rules without an example, and the findings
/// that no example of a rule avoids.
#[test]
fn each_rule_has_an_example_that_violates_it_and_one_that_satisfies_it() {
    let policies = built_in();
    let names: Vec<&String> = policies.conventions().keys().collect();
    let (even, odd): (Vec<_>, Vec<_>) =
        names.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let mut remarks: Vec<String> = std::thread::scope(|scope| {
        let all = [even, odd].map(|names| {
            let policies = &policies;
            scope.spawn(move || {
                names
                    .iter()
                    .flat_map(|(_, name)| remarks_about_examples(policies, name))
                    .collect::<Vec<_>>()
            })
        });
        all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    remarks.sort();
    insta::assert_snapshot!(remarks.join("\n"));
}

fn remarks_about_examples(policies: &PolicySet, name: &str) -> Vec<String> {
    let examples = Examples::of_convention(policies, name).unwrap();
    let mut remarks = Vec::new();
    for (id, rule) in policies.conventions()[name].declared.iter() {
        let text = RuleText::of_convention(&policies.conventions()[name], &id).unwrap();
        assert!(!text.violations.is_empty(), "{id} is not described");
        assert_eq!(text.optional, rule.optional, "{id}");
        let Pair { violating, satisfying } = examples.of_rule(&id);
        let Some(violating) = violating else {
            remarks.push(format!("{id}: no example"));
            continue;
        };
        let enable = rule.optional.then(|| own_name(&id));
        let rules = judged(policies, name, enable, &violating);
        assert!(rules.contains(&*id), "{id} is not violated: {violating:#?}");
        if rules.len() > 1 {
            let others: Vec<&str> =
                rules.iter().map(String::as_str).filter(|other| **other != *id).collect();
            remarks.push(format!("{id}: also violates {}", others.join(", ")));
        }
        let satisfying = satisfying.unwrap();
        let rules = judged(policies, name, enable, &satisfying);
        assert!(rules.is_empty(), "{id} is satisfied with findings {rules:?}: {satisfying:#?}");
    }
    remarks
}

fn own_name(id: &str) -> &str {
    id.split_once('/').unwrap().1
}

/// The rules with findings about a write, by the validating webhook.
fn judged(
    policies: &PolicySet,
    convention: &str,
    enable: Option<&str>,
    example: &Example,
) -> BTreeSet<String> {
    let enable = enable.map(str::to_owned).into_iter().collect();
    let spec = PolicySpec { enable, ..PolicySpec::for_everything(convention) };
    let policies = policies.with_policy("all", &spec).unwrap();
    let bare = || {
        let mut object = example.written.clone();
        object.as_object_mut().unwrap().remove("status");
        object
    };
    let old = example.stored.clone().unwrap_or_else(bare).to_string();
    let new = example.written.to_string();
    let version = example.written["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap();
    let subject = Subject {
        resource: Resource::new(group, version, &example.resource),
        subresource: "status".into(),
        object: Object::parse(&new).unwrap(),
        old: Some(Object::parse(&old).unwrap()),
        ..Subject::default()
    };
    let now = "2026-01-10T00:00:00Z".parse().unwrap();
    let verdict = decide(&policies, &subject, Webhook::Validate, now);
    verdict.findings.iter().map(|finding| finding.rule.to_string()).collect()
}

#[test]
fn a_rule_is_explained_with_examples_in_each_format() {
    let (code, text, err) = explain(&["metav1/condition-duplicate"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(text);
    let (_, markdown, _) = explain(&["metav1/condition-duplicate", "-o", "markdown"]);
    assert!(markdown.starts_with("# metav1/condition-duplicate\n"), "{markdown}");
    assert!(markdown.contains("```yaml\n# written\n"), "{markdown}");
    let (_, json, _) = explain(&["metav1/condition-duplicate", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["id"], "metav1/condition-duplicate");
    assert_eq!(json["violating"]["findings"][0]["rule"], "metav1/condition-duplicate");
    assert_eq!(json["satisfying"]["findings"], serde_json::json!([]));
    for key in ["violations", "source", "optional", "message"] {
        assert!(json.get(key).is_some(), "{key}: {json}");
    }
}

#[test]
fn rules_of_own_conventions_and_policies_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let text = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: own}\nspec:\n  \
        conditions: [{path: /status/conditions}]\n  rules:\n  - {id: no-wait, path: /status/conditions, action: Warn, \
        message: nothing waits, source: our book, when: {condition: Waiting, is: 'True'}}\n---\n\
        apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: mine}\nspec:\n  convention: own\n  \
        resources: [{apiGroups: [g.io], apiVersions: [v1], resources: [things]}]\n  \
        fields: [{path: /status/unit, enum: [GiB, hours]}]\n  owners: [{path: /status/bill, users: [biller]}]\n  \
        rules: [{name: paid, expression: 'self.status.paid <= 5', message: too much is paid}]\n";
    let path = write_in(&folder, "own.yaml", text);
    for (id, parts) in [
        (
            "own/no-wait",
            &[
                "Message: nothing waits.",
                "Waiting is True",
                ": Warn",
                "Source: our book.",
                "type: Waiting",
                "No findings.",
            ][..],
        ),
        ("mine/field-unit", &["GiB or hours", ": Deny", "- deny: status.unit: ", "unit: GiB"]),
        (
            "mine/owner",
            &["a writer other than biller changes status.bill", "- deny: status.bill: "],
        ),
        ("mine/paid", &["the CEL expression of paid is false", "Message: too much is paid."]),
    ] {
        let (code, page, err) = explain(&[id, "--policies", &path]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{id}");
        for part in parts {
            assert!(page.contains(part), "{id}: {part}:\n{page}");
        }
    }
}

#[test]
fn a_kind_of_remark_is_explained_unless_a_document_has_its_name() {
    let (code, page, _) = explain(&["lint/never-fires"]);
    assert_eq!(code, Some(0));
    assert!(page.starts_with("# never-fires\n\nA fault. No state "), "{page}");
    assert!(page.contains("\nHelp: Compare the predicate"), "{page}");
    assert!(page.ends_with(Kind::NeverFires.example()), "{page}");
    let json = |name: &str| {
        let (_, json, _) = explain(&[name, "-o", "json"]);
        serde_json::from_str::<serde_json::Value>(&json).unwrap()
    };
    assert_eq!(json("lint").as_array().unwrap().len(), Kind::ALL.len());
    assert_eq!(json("lint/not-proven")["level"], "note");

    let folder = tempfile::tempdir().unwrap();
    let text = Kind::NeverFires.example().replace("example}", "lint}");
    let path = write_in(&folder, "lint.yaml", &text);
    let (_, page, _) = explain(&["lint/dead", "--policies", &path]);
    assert!(page.starts_with("# lint/dead\n"), "{page}");
}

#[test]
fn an_impossible_request_exits_with_2() {
    for (args, said) in [
        (vec!["apcat"], "unknown convention \"apcat\"; did you mean \"appcat\"?\n"),
        (
            vec!["metav1", "-o", "mermaid"],
            "convention metav1 has no phase, and so no graph of phases\n",
        ),
        (vec!["-o", "yaml"], "name the convention to print so\n"),
        (vec!["metav1", "--resolved"], "--resolved requires -o yaml\n"),
        (
            vec!["appcat/phase-redy"],
            "unknown rule \"appcat/phase-redy\"; did you mean \"appcat/phase-ready\"?\n",
        ),
        (
            vec!["apcat/phase-ready"],
            "unknown rule \"apcat/phase-ready\"; did you mean \"appcat/phase-ready\"?\n",
        ),
        (
            vec!["qqqqqqq/zzzzzzz"],
            "unknown rule \"qqqqqqq/zzzzzzz\"; if qqqqqqq is your own, name its documents with --policies\n",
        ),
        (
            vec!["lint/never-fire"],
            "unknown kind of remark \"never-fire\"; did you mean \"never-fires\"?\n",
        ),
        (
            vec!["lint", "-o", "yaml"],
            "a kind of remark can be printed as table, markdown or json\n",
        ),
        (
            vec!["appcat/phase-ready", "-o", "mermaid"],
            "a rule can be printed as table, markdown or json\n",
        ),
    ] {
        assert_eq!(explain(&args), (Some(2), String::new(), said.to_owned()), "{args:?}");
    }
    let (code, _, said) = explain(&["zzzzzzzz"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("possible: ack, appcat"), "{said}");
}

// --- docs/conventions ------------------------------------------------------------------------------

/// The pages as they should be. With `UPDATE_DOCS` set they are written instead of compared.
#[test]
fn the_pages_of_the_docs_are_the_output_of_explain_and_the_transitions() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/conventions");
    let policies = built_in();
    let mut pages: Vec<(PathBuf, String)> = Vec::new();
    for (name, convention) in policies.conventions() {
        let page = render::markdown(&Page::of(convention)) + &suites_of(name);
        pages.push((folder.join(format!("{name}.md")), page));
    }
    let (_, list, _) = explain(&["-o", "markdown"]);
    pages.push((folder.join("README.md"), format!("{INDEX}{list}")));
    let path = folder.with_file_name("lint.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, _) = page.split_once(BEGIN).unwrap();
    pages.push((path, format!("{before}{BEGIN}{}", kinds_of_remarks())));
    for (path, page) in &pages {
        if update {
            std::fs::write(path, page).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == *page, "{} is out of date: run `make docs`", path.display());
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(
            pages.iter().any(|(known, _)| *known == path),
            "{} is the page of no convention",
            path.display()
        );
    }
}

/// What follows this line in `docs/lint.md`.
const BEGIN: &str = "<!-- the rest is generated by `make docs` -->\n";

/// All kinds of remarks: the list, and each of them.
fn kinds_of_remarks() -> String {
    let markdown = |name: &str| {
        let (code, page, err) = explain(&[name, "-o", "markdown"]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{name}");
        page
    };
    let mut text = markdown("lint").replacen("# lint\n", "", 1);
    for name in Kind::ALL.map(Kind::name) {
        text = text.replacen(&format!("| {name} |"), &format!("| [{name}](#{name}) |"), 1);
        write!(text, "\n##{}", markdown(&format!("lint/{name}"))).unwrap();
    }
    text
}

/// The section with the suites of a convention.
fn suites_of(convention: &str) -> String {
    let mut section = format!(
        "\n## Cases\n\n`examples/suites/{convention}` has a write that breaks each rule, and other writes, as \
         [test cases](../check.md#statusgate-test). Among them are these transitions of controllers:\n\n\
         | transition | source | verdict | rules |\n|---|---|---|---|\n"
    );
    for case in suites::cases(convention, "transitions") {
        let expect = &case["expect"];
        let patched = if expect["patch"] == "none" { "" } else { ", patched" };
        let rules = expect["findings"].as_array().unwrap().iter();
        let rules: Vec<_> = rules.map(|found| suites::rule(found).1).collect();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let (name, source) = (text(&case["name"]), text(&case["source"]));
        let (verdict, rules) = (text(&expect["verdict"]), rules.join(", "));
        writeln!(section, "| {name} | {source} | {verdict}{patched} | {rules} |").unwrap();
    }
    section
}

const INDEX: &str = "# The built-in conventions

Each page is what `statusgate explain NAME -o markdown` prints, and the transitions of controllers that `examples/suites`
has; `make docs` writes them anew. The documents
themselves are printed by `-o yaml`, and with everything that they extend by `-o yaml --resolved`; `-o mermaid` draws
the moves between phases, and `-o json` is everything as data, with the truth table in full. `statusgate explain RULE-ID`
explains one rule, with a write that violates it and one that satisfies it. `statusgate lint` proves
them sound, and does the same for conventions of your own: `statusgate lint my-convention.yaml`.

";
