//! What the command reads: files, lists, standard input, policies and CRDs.

use std::path::Path;

use serde_json::{Value, json};

use super::{BAD, Desk, GOOD, RULE, indented};
use crate::command::run_in;

#[test]
fn a_finding_has_its_location_and_rule_and_sets_the_exit_code() {
    let desk = Desk::new(&[("bad.yaml", BAD), ("good.yaml", GOOD)]);
    let answer = desk.check(&["bad.yaml"]);
    assert_eq!(answer.code, Some(1), "{answer:#?}");
    assert!(answer.out.starts_with("bad.yaml:5:10: deny: VSHNRedis shop/bad: status.phase: "));
    assert!(answer.out.contains(&format!("[{RULE}]\n")), "{answer:#?}");
    assert!(answer.out.contains("5 |   phase: ready\n  |          ^^^^^\n"), "{answer:#?}");
    let answer = desk.check(&["good.yaml"]);
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""), "{answer:#?}");
    assert_eq!(answer.out, "1 object in 1 file: 1 judged (appcat 1); no findings\n");
}

#[test]
fn files_folders_lists_and_standard_input_give_the_same_findings() {
    let list = format!("apiVersion: v1\nkind: List\nitems:\n-\n{}", indented(BAD));
    let json = |phase: &str| {
        json!({"apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedis",
            "metadata": {"name": "x"}, "status": {"phase": phase}})
    };
    let lines = format!("{}\n{}\n", json("Unknown"), json("ready"));
    let typed = json!({"apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedisList",
        "items": [{"metadata": {"name": "x"}, "status": {"phase": "ready"}}]});
    let desk = Desk::new(&[
        ("a/bad.yaml", BAD),
        ("a/skipped.txt", BAD),
        ("a/deeper/bad.yml", BAD),
        ("both.yaml", &format!("---\n{GOOD}---\n# and\n---\n{BAD}")),
        ("list.yaml", &list),
        ("lines.json", &lines),
        ("typed.json", &typed.to_string()),
    ]);
    let found = |args: &[&str]| {
        let args: Vec<&str> = args.iter().chain(&["-o", "json"]).copied().collect();
        let answer = desk.check(&args);
        assert_eq!(answer.code, Some(1), "{answer:#?}");
        answer.found()
    };
    assert_eq!(found(&["a"]), [format!("a/bad.yaml:5:10 {RULE}")]);
    let both = [format!("a/bad.yaml:5:10 {RULE}"), format!("a/deeper/bad.yml:5:10 {RULE}")];
    assert_eq!(found(&["-R", "a"]), both);
    assert_eq!(found(&["both.yaml"]), [format!("both.yaml:13:10 {RULE}")]);
    assert_eq!(found(&["-f", "list.yaml"]), [format!("list.yaml:9:12 {RULE}")]);
    let column = |text: &str| text.lines().last().unwrap().find("\"ready\"").unwrap() + 1;
    assert_eq!(found(&["lines.json"]), [format!("lines.json:2:{} {RULE}", column(&lines))]);
    let typed = typed.to_string();
    assert_eq!(found(&["typed.json"]), [format!("typed.json:1:{} {RULE}", column(&typed))]);
    let answer = desk.check_stdin(&["-f", "-", "-o", "json"], BAD);
    assert_eq!(answer.found(), [format!("stdin:5:10 {RULE}")]);
}

#[test]
fn an_unreadable_object_is_reported_and_the_others_are_judged() {
    let broken = format!("{GOOD}---\nstatus: [\n---\n{BAD}---\n- 1\n");
    let desk = Desk::new(&[("broken.yaml", &broken), ("bad.yaml", BAD)]);
    let answer = desk.check(&["nowhere.yaml", "broken.yaml", "bad.yaml", "-o", "json"]);
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    assert_eq!(
        answer.found(),
        [format!("broken.yaml:12:10 {RULE}"), format!("bad.yaml:5:10 {RULE}")]
    );
    assert_eq!(answer.objects().len(), 3);
    // In every format they are printed on stderr, with a caret.
    for start in [
        "nowhere.yaml: error: this cannot be read: ",
        "broken.yaml:",
        "broken.yaml:14:1: error: this is a list, not a Kubernetes object\n",
    ] {
        assert!(answer.err.contains(start), "{start}: {answer:#?}");
    }
    assert!(
        answer.err.contains(" error: invalid YAML: ") && answer.err.contains('^'),
        "{answer:#?}"
    );
    assert!(answer.err.ends_with("3 documents could not be used\n"), "{answer:#?}");
}

#[test]
fn a_duplicate_key_is_reported_and_the_last_value_is_judged() {
    let warning =
        "claims.yaml:6:3: warning: the key \"phase\" is here twice: the last value counts\n";
    for (last, code) in [("Unknown", 0), ("other", 1)] {
        let desk = Desk::new(&[("claims.yaml", &format!("{BAD}  phase: {last}\n"))]);
        let answer = desk.check(&["claims.yaml"]);
        assert_eq!(answer.code, Some(code), "{answer:#?}");
        assert!(answer.err.starts_with(warning), "{answer:#?}");
        assert_eq!(answer.out.contains("claims.yaml:6:10: deny:"), code == 1, "{answer:#?}");
    }
}

#[test]
fn numbers_are_those_that_an_api_server_sends_except_in_recordings() {
    let object = |number: &str| {
        format!(
            "{{\"apiVersion\":\"g/v1\",\"kind\":\"Thing\",\"metadata\":{{\"name\":\"n\",\"generation\":9}},\"status\":{{\"conditions\":[{{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"\",\"lastTransitionTime\":\"2020-01-01T00:00:00Z\",\"observedGeneration\":{number}}}]}}}}"
        )
    };
    let review = |number: &str| {
        format!(
            "{{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{{\"operation\":\"UPDATE\",\"subResource\":\"status\",\"resource\":{{\"group\":\"g\",\"version\":\"v1\",\"resource\":\"things\"}},\"userInfo\":{{\"username\":\"u\"}},\"object\":{},\"oldObject\":null}}}}",
            object(number)
        )
    };
    for (name, text, code) in [
        ("a.json", object("1.0"), 0),
        ("a.json", object("1e0"), 0),
        ("a.json", object("-0"), 0),
        ("a.yaml", object("08").replacen('{', "---\n{ ", 1), 0),
        ("a.json", object("1.5"), 1),
        ("a.json", review("1.0"), 1),
    ] {
        let desk = Desk::new(&[(name, &text)]);
        let answer = desk.check(&[name, "--convention", "metav1"]);
        assert_eq!(answer.code, Some(code), "{text} {answer:#?}");
    }
}

#[test]
fn an_item_of_a_typed_list_has_the_kind_of_the_list() {
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec:\n  convention: appcat\n  \
        resources: [{apiGroups: [g], apiVersions: [v1], resources: [things]}]\n  \
        rules: [{name: kind, expression: \"self.kind == 'Thing' && self.apiVersion == 'g/v1'\", message: another}]\n";
    let list = "{apiVersion: g/v1, kind: ThingList, items: [{metadata: {name: a}, status: {phase: Unknown}}, {status: {phase: Unknown}}, {apiVersion: g/v1, metadata: {name: b}, status: {phase: Unknown}}]}";
    let other = "{apiVersion: g/v1, kind: List, items: [{apiVersion: g/v1, kind: Thing, status: {phase: Unknown}}]}";
    let desk = Desk::new(&[("policy.yaml", policy), ("a.yaml", list), ("b.yaml", other)]);
    let answer = desk.check(&["a.yaml", "b.yaml", "--policies", "policy.yaml"]);
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""), "{answer:#?}");
}

#[test]
fn wrong_usage_and_invalid_policies_exit_with_2() {
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: {convention: appcatt}\n";
    let desk = Desk::new(&[("bad.yaml", BAD), ("policy.yaml", policy)]);
    for (args, said) in [
        (&["--now", "soon", "bad.yaml"][..], "\"soon\" is not a time such as 2024-06-01T12:00:00Z"),
        (&[], "name a file, a folder, or - for standard input"),
        (&["bad.yaml", "--policies", "policy.yaml"], "policy.yaml:4:"),
        (&["bad.yaml", "--policies", "nowhere"], "nowhere: this cannot be read"),
        (
            &["bad.yaml", "--convention", "apcat"],
            "unknown convention \"apcat\"; did you mean \"appcat\"?",
        ),
        (&["bad.yaml", "--convention", "qqqqqqqq"], "unknown convention \"qqqqqqqq\"; possible: "),
        (&["bad.yaml", "--as-group", "g"], "--as"),
    ] {
        let answer = run_in(&desk.0, [&["check"], args].concat());
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:#?}");
        assert!(answer.err.contains(said), "{args:?}: {answer:#?}");
        assert_eq!(answer.out, "", "{args:?}");
    }
}

#[test]
fn standard_input_cannot_be_named_twice() {
    let desk = Desk::new(&[("good.yaml", GOOD)]);
    for args in [
        &["-", "-"][..],
        &["-", "-f", "-"],
        &["-", "--old", "-"],
        &["--crds", "-", "--old", "-", "good.yaml"],
    ] {
        let answer = desk.check_stdin(args, "");
        assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(answer.err.contains("standard input can be read only once"), "{}", answer.err);
    }
    assert_eq!(desk.check_stdin(&["good.yaml", "--old", "-"], GOOD).code, Some(0));
}

#[test]
fn a_stored_fault_of_the_old_object_is_tolerated() {
    let other = BAD.replace("name: bad", "name: other");
    let desk = Desk::new(&[
        ("bad.yaml", BAD),
        ("both.yaml", &format!("{BAD}---\n{other}")),
        ("better.yaml", &BAD.replace("ready", "Unknown")),
    ]);
    // The stored fault is tolerated.
    assert_eq!(desk.check(&["bad.yaml", "--old", "bad.yaml"]).code, Some(0));
    assert_eq!(desk.check(&["bad.yaml", "--old", "better.yaml"]).code, Some(1));
    let answer = desk.check(&["both.yaml", "--old", "bad.yaml"]);
    assert_eq!(answer.code, Some(1), "{answer:#?}");
    assert!(answer.out.contains("; 1 of 2 objects have a stored object; 1 deny"), "{answer:#?}");
    let answer = desk.check(&["bad.yaml", "--old", "nowhere.yaml"]);
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    assert!(answer.out.contains(RULE), "{answer:#?}");
}

#[test]
fn an_old_object_that_is_useless_is_an_error() {
    let other = BAD.replace("name: bad", "name: other");
    let desk = Desk::new(&[
        ("bad.yaml", BAD),
        ("other.yaml", &other),
        ("twice.yaml", &format!("{BAD}---\n{}", BAD.replace("ready", "Unknown"))),
    ]);
    let answer = desk.check(&["bad.yaml", "--old", "other.yaml"]);
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    let said = "other.yaml:1:1: error: no new object has the group, kind, namespace and name of this old one";
    assert!(answer.err.contains(said), "{answer:#?}");
    assert!(answer.out.contains("; 0 of 1 object have a stored object; 1 deny"), "{answer:#?}");
    let answer = desk.check(&["bad.yaml", "--old", "twice.yaml"]);
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    let said = "twice.yaml:7:1: error: there is an old object of this group, kind, namespace and name already";
    assert!(answer.err.contains(said), "{answer:#?}");
}

#[test]
fn the_option_fail_on_unjudged_demands_that_every_object_is_judged() {
    let widget = GOOD.replace("vshn.appcat.vshn.io", "example.com");
    let desk = Desk::new(&[
        ("good.yaml", GOOD),
        ("widget.yaml", &widget),
        ("bare.yaml", &GOOD.replace("status:", "spec:")),
        // As controller-gen and `kubectl create --dry-run` print it.
        (
            "empty-status.yaml",
            &["{}", "null"].map(|status| GOOD.replace("{phase: Unknown}", status)).join("---\n"),
        ),
        ("empty.yaml", "# none\n"),
    ]);
    for (files, code) in
        [(&["good.yaml"][..], 0), (&["good.yaml", "widget.yaml"], 1), (&["empty.yaml"], 1)]
    {
        let answer = desk.check(&[files, &["--fail-on", "unjudged"]].concat());
        assert_eq!(answer.code, Some(code), "{answer:#?}");
        let said = "not everything was judged, and --fail-on has unjudged\n";
        assert_eq!(answer.err == said, code == 1, "{answer:#?}");
    }
    let answer = desk.check(&["good.yaml", "bare.yaml", "--fail-on", "unjudged"]);
    assert_eq!(answer.code, Some(1), "{answer:#?}");
    assert!(answer.out.contains(": it has no status\n"), "{answer:#?}");
    assert!(answer.out.contains(" 1 judged (appcat 1), 1 not judged; "), "{answer:#?}");
    let answer = desk.check(&["empty-status.yaml"]);
    assert!(
        answer.code == Some(2) && answer.out.contains(" 0 judged, 2 not judged; "),
        "{answer:#?}"
    );
    // Without the option, one judged object is enough.
    assert_eq!(desk.check(&["good.yaml", "widget.yaml"]).code, Some(0));
    for (file, why) in [
        ("widget.yaml", "nothing was judged: no policy selects these objects\n"),
        ("bare.yaml", "nothing was judged: the objects that a policy selects have no status\n"),
        ("empty.yaml", "nothing was judged: there is no object\n"),
    ] {
        let answer = desk.check(&[file]);
        assert_eq!((answer.code, answer.err.as_str()), (Some(2), why), "{answer:#?}");
    }
    for format in ["sarif", "github"] {
        let answer =
            desk.check(&["widget.yaml", "good.yaml", "--fail-on", "unjudged", "-o", format]);
        assert!(answer.out.contains("not everything was judged"), "{answer:#?}");
        assert!(!answer.out.contains("\"executionSuccessful\": true"), "{answer:#?}");
    }
    let answer = desk.check(&["widget.yaml", "--fail-on", "warn,unjudged", "-o", "junit"]);
    assert!(answer.out.contains("<failure message=\"no policy selects it"), "{answer:#?}");
}

#[test]
fn files_that_hold_no_manifests_are_skipped_and_counted() {
    let desk = Desk::new(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n"),
        ("chart/values.yaml", "replicas: 3\n"),
        ("chart/dashboards.json", "[{\"title\": \"a\"}, {\"title\": \"b\"}]\n"),
        (
            "chart/templates/claim.yaml",
            "apiVersion: v1\nkind: A\nmetadata:\n  name: {{ .Release.Name }}\n",
        ),
        ("chart/crs/good.yaml", GOOD),
        ("kindless.yaml", "apiVersion: v1\nmetadata: {name: a}\n"),
    ]);
    // A file that is named itself is meant.
    let answer = desk.check(&["chart/values.yaml", "chart/crs/good.yaml"]);
    assert!(
        answer.code == Some(2) && answer.err.contains("chart/values.yaml:1:1: error:"),
        "{answer:#?}"
    );
    let answer = desk.check(&["-R", "chart"]);
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""), "{answer:#?}");
    let said =
        "1 object in 5 files: 1 judged (appcat 1); no findings; 4 files skipped: no manifests\n";
    assert_eq!(answer.out, said);
    let answer = desk.check(&["-R", "chart", "-v"]);
    assert!(answer.out.contains("chart/values.yaml: note: skipped: no manifest\n"), "{answer:#?}");
    let answer = desk.check(&["-R", "chart", "--strict"]);
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    assert!(answer.err.ends_with("4 documents could not be used\n"), "{answer:#?}");
    // A manifest with a mistake is not skipped.
    assert_eq!(desk.check(&["kindless.yaml"]).code, Some(2));
    // What is excluded is not read.
    let exclude =
        ["templates", "*/Chart.yaml", "values.yaml", "*.json"].map(|glob| ["--exclude", glob]);
    let answer = desk.check(&[&["-R", "chart", "--strict"], exclude.as_flattened()].concat());
    let said = "1 object in 1 file: 1 judged (appcat 1); no findings\n";
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), said), "{answer:#?}");
}

#[test]
fn an_object_that_cannot_be_judged_is_reported_with_its_location() {
    let broken = BAD.replace("{name: bad, namespace: shop}", "x");
    let large = format!("{GOOD}more: [{}]\n", "1, ".repeat(10))
        .replace("status: {phase: Unknown}", &format!("status: {{a: [{}]}}", "1,".repeat(200_000)));
    let desk = Desk::new(&[("broken.yaml", &broken), ("good.yaml", GOOD), ("old.yaml", &large)]);
    let answer = desk.check(&["broken.yaml"]);
    let said =
        "broken.yaml:3:11: error: this cannot be judged: metadata is a text, not an object\n";
    assert_eq!((answer.code, answer.err.starts_with(said)), (Some(2), true), "{answer:#?}");
    // Too many values are a finding. The output does not repeat them.
    let answer = desk.check(&["old.yaml"]);
    let said = "has 200002 values; at most 200000 can be judged";
    assert!(answer.code == Some(1) && answer.out.contains(said), "{:?}", answer.code);
    assert!(answer.out.len() < 2000, "{}", answer.out.len());
    // Such an old object is not read, so this counts as the first write.
    assert_eq!(desk.check(&["good.yaml", "--old", "old.yaml"]).code, Some(0));
}

#[test]
fn the_option_convention_judges_objects_that_no_policy_selects() {
    let widget = BAD.replace("VSHNRedis", "Widget").replace("vshn.appcat.vshn.io", "example.com");
    let desk = Desk::new(&[("widget.yaml", &widget)]);
    let answer = desk.check(&["widget.yaml", "--verbose"]);
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    assert!(
        answer.out.starts_with(
            "widget.yaml: not judged: Widget shop/bad (document 1): no policy selects it\n\
             not judged: 1 example.com/v1 Widget: no policy selects it\n"
        ),
        "{answer:#?}"
    );
    let answer = desk.check(&["widget.yaml", "--convention", "appcat", "-o", "json"]);
    assert_eq!((answer.code, answer.found()), (Some(1), vec![format!("widget.yaml:5:10 {RULE}")]));
}

#[test]
fn a_convention_of_a_file_is_used_without_the_policies_of_that_file() {
    let convention = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/policies/ok/only-conventions.yaml"),
    )
    .unwrap();
    let name = convention.lines().find_map(|line| line.split("name: ").nth(1)).unwrap();
    let name = name.trim_matches(['}', ' ', ',']);
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: {convention: appcat, resources: [{apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]}\n";
    let desk =
        Desk::new(&[("bad.yaml", BAD), ("all.yaml", &format!("{convention}\n---\n{policy}"))]);
    let with = ["bad.yaml", "--policies", "all.yaml", "--convention", name, "-o", "json"];
    let answer = desk.check(&with);
    let policies = &answer.objects()[0]["policies"];
    assert_eq!(policies, &json!(["all"]), "{answer:#?}");
    assert!(answer.found().iter().all(|found| !found.contains("appcat/")), "{answer:#?}");
}

#[test]
fn a_deeply_nested_object_is_judged() {
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let object = format!(
        r#"{{"apiVersion":"vshn.appcat.vshn.io/v1","kind":"VSHNPostgreSQL","spec":{deep},"status":{{"instanceNamespace":"n"}}}}"#
    );
    let desk = Desk::new(&[("deep.json", &object)]);
    let answer = desk.check(&["deep.json", "-o", "json"]);
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""), "{answer:#?}");
    assert_ne!(answer.objects()[0]["patch"], json!([]), "{answer:#?}");
}

#[test]
fn the_writer_and_the_mutating_webhook_change_the_findings() {
    let disagreeing = "apiVersion: vshn.appcat.vshn.io/v1\nkind: XVSHNRedis\nmetadata: {name: r}\nstatus:\n  phase: Ready\n  instanceNamespace: r\n  conditions:\n  - {type: Ready, status: 'False', reason: Creating, lastTransitionTime: '2024-06-01T11:00:00Z'}\n";
    let desk = Desk::new(&[("r.yaml", disagreeing)]);
    let action = |args: &[&str]| {
        let args: Vec<&str> = ["r.yaml", "-o", "json"].iter().chain(args).copied().collect();
        let answer = desk.check(&args);
        let findings = answer.objects()[0]["findings"].clone();
        let finding =
            findings.as_array().unwrap().iter().find(|finding| finding["field"] == "status.phase");
        (answer.code.unwrap(), finding.map(|finding| finding["action"].clone()).unwrap_or_default())
    };
    let crossplane = "system:serviceaccount:syn-crossplane:crossplane";
    assert_eq!(action(&[]), (1, json!("deny")));
    assert_eq!(action(&["--as", crossplane]), (0, json!("repair")));
    assert_eq!(action(&["--as", crossplane, "--fail-on", "warn"]), (1, json!("repair")));
    // Without the repair, the validating webhook accepts it with a warning.
    assert_eq!(action(&["--as", crossplane, "--no-mutate"]), (0, json!("warn")));
    let answer = desk.check(&["r.yaml", "--as", crossplane, "-v"]);
    assert!(
        answer.out.contains("would be patched: {\"op\":\"replace\",\"path\":\"/status/phase\""),
        "{answer:#?}"
    );
}

#[test]
fn crds_give_the_plural_and_the_subresource() {
    let crd = |plural: &str, subresources: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {"group": "example.com", "names": {"kind": "Mouse", "plural": plural},
                "versions": [{"name": "v1", "subresources": subresources}]}})
    };
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: {convention: appcat, resources: [{apiGroups: [example.com], apiVersions: [v1], resources: [mice]}]}\n";
    let mouse = BAD.replace("VSHNRedis", "Mouse").replace("vshn.appcat.vshn.io", "example.com");
    let desk = Desk::new(&[
        ("policy.yaml", policy),
        ("mouse.yaml", &mouse),
        ("mice.json", &crd("mice", json!({"status": {}})).to_string()),
        ("bare.json", &crd("mice", json!({})).to_string()),
    ]);
    let code = |args: &[&str]| {
        let args: Vec<&str> =
            ["mouse.yaml", "--policies", "policy.yaml"].iter().chain(args).copied().collect();
        desk.check(&args).code.unwrap()
    };
    // The guess is "mouses", which no policy names.
    assert_eq!(code(&[]), 2);
    let answer = desk.check(&["mouse.yaml", "--crds", "policy.yaml"]);
    let said = "--crds names no CustomResourceDefinition\n";
    assert_eq!((answer.code, answer.err.as_str()), (Some(2), said), "{answer:#?}");
    assert_eq!(code(&["--crds", "mice.json"]), 1);
    // Without the subresource the API server never sends the requests that this policy selects.
    assert_eq!(code(&["--crds", "bare.json"]), 2);
}

#[test]
fn what_the_policies_select_must_exist_in_the_crds() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {"group": "example.com", "names": {"kind": "Mouse", "plural": "mice"},
            "versions": [{"name": "v1", "subresources": {"status": {}}}]}});
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec:\n  convention: metav1\n  resources:\n  - apiGroups: [example.com]\n    apiVersions: [v1, v2]\n    resources: [mouse]\n  - apiGroups: [exmple.com]\n    apiVersions: [v1]\n    resources: [mice]\n";
    let mouse = BAD.replace("VSHNRedis", "Mouse").replace("vshn.appcat.vshn.io", "example.com");
    let desk = Desk::new(&[
        ("policy.yaml", policy),
        ("right.yaml", &policy.replace("mouse", "mice").replace("exm", "exam").replace(", v2", "")),
        ("versions.yaml", &policy.replace("mouse", "mice").replace("exm", "exam")),
        ("mouse.yaml", &mouse),
        ("crd.json", &crd.to_string()),
    ]);
    let check = |policy| desk.check(&["mouse.yaml", "--policies", policy, "--crds", "crd.json"]);
    let answer = check("policy.yaml");
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    for said in [
        "policy.yaml:9:17: error: the CustomResourceDefinitions do not have the resource mouse in example.com\n",
        "policy.yaml:10:17: error: the CustomResourceDefinitions do not have the group exmple.com\n",
        "\nhelp: did you mean \"example.com\"?\n",
    ] {
        assert!(answer.err.contains(said), "{said}: {answer:#?}");
    }
    assert_eq!(check("right.yaml").code, Some(0));
    let answer = check("versions.yaml");
    let said = "the CustomResourceDefinitions do not serve version v2 of mice.example.com";
    assert!(answer.code == Some(2) && answer.err.contains(said), "{answer:#?}");
    // Without CRDs the policy decides on the plural, and check says so.
    let answer = desk.check(&["mouse.yaml", "--policies", "policy.yaml"]);
    let said = "note: Mouse is judged as mouse, which a policy names; the kind suggests mouses: --crds gives the plural\n";
    assert_eq!(answer.err, said);
}

#[test]
fn a_crd_with_templates_is_one_hint() {
    let template = "{{- if .Values.crds }}\nkind: A\n{{- end }}\n";
    let crds = format!("{template}---\n{template}---\nkind: {{{{ .Values.kind }}}}\n");
    let desk = Desk::new(&[("bad.yaml", BAD), ("crds.yaml", &crds)]);
    let answer = desk.check(&["bad.yaml", "--crds", "crds.yaml"]);
    let said = "crds.yaml:1:3: error: a template must be rendered first, for example with `helm template`\n";
    assert_eq!((answer.code, answer.err.matches("error").count()), (Some(2), 1), "{answer:#?}");
    assert!(answer.err.starts_with(said), "{answer:#?}");
}

#[test]
fn a_quoted_text_may_continue_at_the_indentation_of_its_key() {
    let object = BAD.replace(
        "metadata:",
        "message: 'first line\nit''s the second'\nother: \"a\n\n b\\\n  c\"\nmetadata:",
    );
    let desk = Desk::new(&[("bad.yaml", BAD), ("quoted.yaml", &object)]);
    let (plain, quoted) = (desk.check(&["bad.yaml"]), desk.check(&["quoted.yaml"]));
    let lines = |text: &str| text.matches("deny: ").count();
    assert_eq!((plain.code, lines(&plain.out)), (quoted.code, lines(&quoted.out)), "{quoted:#?}");
    // The findings are located in the text as it was written: six lines later.
    assert!(
        plain.out.contains("bad.yaml:5:") && quoted.out.contains("quoted.yaml:11:"),
        "{quoted:#?}\n{plain:#?}"
    );
}

#[test]
fn foreign_documents_among_policies_are_skipped_with_a_note() {
    let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: p}\nspec: {convention: appcat, resources: [{apiGroups: [vshn.appcat.vshn.io], apiVersions: [v1], resources: [vshnpostgresqls]}]}\n";
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {}\n";
    let desk = Desk::new(&[
        ("good.yaml", GOOD),
        ("policies/all.yaml", &format!("{deployment}---\n{policy}")),
        ("policies/cases.yaml", "convention: appcat\ncases: []\n"),
        ("deployment.yaml", deployment),
        (
            "convention.yaml",
            "apiVersion: statusgate.dev/v1alpha1\nkind: StatusConvention\nmetadata: {name: c}\nspec: {title: C, conditions: [{path: /status/conditions}]}\n",
        ),
        ("other/typo.yaml", &policy.replace("statusgate.dev", "statusgate.io")),
    ]);
    let check = |policies| desk.check(&["good.yaml", "--policies", policies]);
    let answer = check("policies");
    assert_eq!(answer.code, Some(0), "{answer:#?}");
    let said = "policies/all.yaml:1:1: note: skipped: this is a Deployment of apps/v1, not a policy or convention\n\
        policies/cases.yaml:1:1: note: skipped: this is a file of test cases, not a policy or convention\n";
    assert_eq!(answer.err, said);
    // Without a policy nothing would be judged.
    let none = "--policies names no StatusPolicy: nothing would be judged\n";
    let answer = check("deployment.yaml");
    assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{answer:#?}");
    assert!(
        answer
            .err
            .starts_with("deployment.yaml:1:1: note: skipped: this is a Deployment of apps/v1")
    );
    assert!(answer.err.ends_with(none), "{answer:#?}");
    let answer = check("convention.yaml");
    assert_eq!((answer.code, answer.err.as_str()), (Some(2), none), "{answer:#?}");
    // The kind of a policy with another group is a mistake.
    let answer = check("other");
    assert!(answer.code == Some(2) && answer.err.contains("other/typo.yaml:1:13"), "{answer:#?}");
}
