//! The command `statusgate test`: passing, failing and invalid cases, and the example.

use std::path::Path;

use serde_json::{Value, json};

use crate::command::{Ended, folder_of, run_in};

const POLICY: &str = "\
apiVersion: statusgate.dev/v1alpha1
kind: StatusPolicy
metadata: {name: p}
spec: {convention: appcat, resources: [{apiGroups: [g.io], apiVersions: [v1], resources: [things]}]}
";

/// A case about an object with an unsupported phase.
fn case(name: &str, expect: &str) -> String {
    format!(
        "- name: {name}\n  object: {{apiVersion: g.io/v1, kind: Thing, status: {{phase: ready}}}}\n  expect: {expect}\n"
    )
}

/// Exit code, stdout and stderr.
fn test(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let Ended { code, out, err } = run_in(folder, [&["test"], args].concat());
    (code.unwrap(), out, err)
}

#[test]
fn the_example_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (code, out, err) = test(root, &["examples/policy-tests"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.lines().count() > 5 && out.contains(" 0 failed"), "{out}");
}

#[test]
fn a_failing_case_shows_the_difference() {
    let cases = [
        case("holds", "{verdict: deny, findings: [{rule: appcat/phase-value, action: Deny}]}"),
        case("verdict", "{verdict: allow}"),
        case("rule", "{findings: [{rule: appcat/phase-ready, field: status.phase}]}"),
        case("field", "{findings: [{rule: appcat/phase-value, field: status.other}]}"),
        case("message", "{findings: [{rule: appcat/phase-value, message: no such words}]}"),
        case("patch", "{patch: [{op: add, path: /status/x, value: 1}]}"),
        case("status", "{status: {phase: Ready}}"),
    ];
    let suite = format!("policies: ../policy.yaml\ncases:\n{}", cases.concat());
    let folder = folder_of(&[("policy.yaml", POLICY), ("cases/a.yaml", &suite)]);
    let (code, out, err) = test(folder.path(), &["cases"]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(
        out.starts_with("ok    cases/a.yaml: holds\nFAIL  cases/a.yaml:6:9: verdict\n"),
        "{out}"
    );
    for part in [
        "      verdict:\n        - allow\n        + deny\n",
        "        - *: status.phase: * [appcat/phase-ready]\n        + deny: status.phase: ",
        "        - *: status.other: * [appcat/phase-value]\n        + deny: status.phase: ",
        "        - *: *: no such words [appcat/phase-value]\n        + deny: status.phase: ",
        "        - {\"op\":\"add\",\"path\":\"/status/x\",\"value\":1}\n",
        "          {\n        -   \"phase\": \"Ready\"\n        +   ",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    assert!(out.ends_with("7 cases: 1 passed, 6 failed\n"), "{out}");
    // A single case.
    let (code, out, _) = test(folder.path(), &["cases", "--filter", "hold"]);
    assert_eq!(
        (code, out.as_str()),
        (0, "ok    cases/a.yaml: holds\n1 case: 1 passed, 0 failed\n")
    );
    let (code, _, err) = test(folder.path(), &["cases", "--filter", "nothing"]);
    assert_eq!((code, err.as_str()), (2, "no case has \"nothing\" in its name\n"));
    // The formats are complete without cases, but nothing tested is no success.
    let none = folder_of(&[("policy.yaml", POLICY), ("empty.yaml", "# none\n")]);
    for (output, starts) in
        [("table", "0 cases: 0"), ("json", "{\n  \"cases\": []"), ("junit", "<?xml")]
    {
        let (code, out, err) = test(none.path(), &[".", "-o", output]);
        let said = "there is no case in these files: nothing was tested\n";
        assert_eq!((code, err.as_str()), (2, said), "{out}");
        assert!(out.starts_with(starts), "{out}");
        let (code, out, _) = test(folder.path(), &["cases", "--filter", "nothing", "-o", output]);
        assert_eq!(code, 2, "{out}");
        assert!(out.starts_with(starts), "{out}");
    }
}

#[test]
fn an_expected_finding_of_an_unknown_rule_is_an_error() {
    let cases = [
        case("near", "{findings: [{rule: appcat/phase-vallue}]}"),
        case("far", "{findings: [{rule: appcat/phase-value}, {rule: velero-backup/nope}]}"),
        case("holds", "{verdict: deny}"),
    ];
    let folder =
        folder_of(&[("a.yaml", &format!("convention: appcat\ncases:\n{}", cases.concat()))]);
    let (code, out, err) = test(folder.path(), &["a.yaml"]);
    assert_eq!(code, 2, "{err}");
    assert_eq!(out, "ok    a.yaml: holds\n1 case: 1 passed, 0 failed\n");
    for said in [
        "error: no policy of this file has the rule \"appcat/phase-vallue\"\n --> a.yaml:5:30\n",
        "help: did you mean \"appcat/phase-value\"?\n",
        "error: no policy of this file has the rule \"velero-backup/nope\"\n --> a.yaml:8:58\n",
        "2 mistakes in the cases\n",
    ] {
        assert!(err.contains(said), "{said}\n{err}");
    }
}

#[test]
fn mistakes_in_policies_are_counted_once_and_apart_from_those_in_cases() {
    let suite = format!("policies: policy.yaml\ncases:\n{}", case("a", "{verdict: deny}"));
    let folder = folder_of(&[
        ("policy.yaml", &POLICY.replace("convention:", "convntion:")),
        ("a.yaml", &suite),
        ("b.yaml", &suite),
    ]);
    let (code, _, err) = test(folder.path(), &["a.yaml", "b.yaml"]);
    assert_eq!(code, 2, "{err}");
    assert_eq!(err.matches("unknown key \"convntion\"").count(), 1, "{err}");
    assert_eq!(err.matches("not run: there are mistakes in policy.yaml").count(), 2, "{err}");
    assert!(err.ends_with("\n2 mistakes in the policies\n"), "{err}");
}

/// The samples in the documentation are valid files of cases.
#[test]
fn the_samples_of_the_documentation_pass() {
    let page = include_str!("../../docs/check.md");
    let sample = |start: &str| {
        let block = page.split("```yaml\n").find(|block| block.starts_with(start)).unwrap();
        block.split("```").next().unwrap()
    };
    let folder = folder_of(&[
        ("appcat.yaml", include_str!("../../deploy/policies/appcat.yaml")),
        ("tests/whole.yaml", sample("policies: ../appcat")),
        ("tests/changed.yaml", sample("convention: metav1\ncases:")),
    ]);
    let (code, out, err) = test(folder.path(), &["tests"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
}

#[test]
fn json_and_junit_report_the_same_as_the_text() {
    let suite = [case("holds", "{verdict: deny}"), case("<fails>", "{verdict: allow}")].concat();
    let suite = format!("convention: appcat\ncases:\n{suite}");
    let folder = folder_of(&[("a.yaml", &suite)]);
    let (code, out, _) = test(folder.path(), &["a.yaml", "-o", "json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let reason = report["cases"][1]["differences"]["verdict"][2].clone();
    let said = reason.as_str().unwrap();
    assert!(said.starts_with("+   deny: status.phase: Unsupported value"), "{said}");
    assert_eq!(
        (code, report),
        (
            1,
            json!({"cases": [
                {"file": "a.yaml", "line": 3, "name": "holds", "passed": true, "differences": {}},
                {"file": "a.yaml", "line": 6, "name": "<fails>", "passed": false,
                    "differences": {"verdict": ["- allow", "+ deny", reason]}}],
                "mistakes": [],
                "summary": {"cases": 2, "passed": 1, "failed": 1, "mistakes": 0}})
        )
    );
    let (code, out, _) = test(folder.path(), &["a.yaml", "-o", "junit"]);
    assert_eq!(code, 1);
    assert!(
        out.contains("<testsuite name=\"a.yaml\" tests=\"2\" failures=\"1\" errors=\"0\""),
        "{out}"
    );
    assert!(out.contains("<testcase classname=\"a.yaml\" name=\"&lt;fails&gt;\">"), "{out}");
}

#[test]
fn a_case_can_set_writer_old_object_operation_and_time() {
    let suite = "\
convention: appcat
now: 2024-06-01T12:00:00Z
cases:
- name: stored already
  object: &bad {apiVersion: g.io/v1, kind: Thing, status: {phase: ready}}
  old: *bad
  expect: {verdict: allow}
- name: not through this door
  object: *bad
  subresource: ''
  expect: {verdict: allow, findings: []}
- name: a deletion
  object: *bad
  operation: DELETE
  expect: {verdict: allow, patch: none}
- name: the time of the file
  object: &ready {apiVersion: g.io/v1, kind: Thing, status: {phase: Ready, instanceNamespace: x}}
  expect:
    status: {phase: Ready, instanceNamespace: x, lastTransitionTime: '2024-06-01T12:00:00Z'}
- name: a time of its own
  now: 2025-01-01T00:00:00Z
  object: *ready
  expect:
    status: {phase: Ready, instanceNamespace: x, lastTransitionTime: '2025-01-01T00:00:00Z'}
";
    let writers = "\
policies: [policy.yaml]
cases:
- name: a friend
  object: &wrong
    apiVersion: g.io/v1
    kind: Thing
    status:
      phase: Ready
      instanceNamespace: x
      conditions: [{type: Ready, status: 'False', reason: Creating, lastTransitionTime: '2024-06-01T11:00:00Z'}]
  writer: {user: jane, groups: [friends]}
  expect: {verdict: warn}
- name: a stranger
  object: *wrong
  writer: {user: jane}
  expect: {verdict: deny}
";
    let policy =
        POLICY.replace("appcat,", "appcat, writers: [{groups: [friends], disagreement: Warn}],");
    let folder = folder_of(&[("a.yaml", suite), ("b.yaml", writers), ("policy.yaml", &policy)]);
    let (code, out, err) = test(folder.path(), &["."]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("7 cases: 7 passed, 0 failed\n"), "{out}");
}

#[test]
fn a_case_can_change_another_one_by_pointers_and_its_policy() {
    let suite = "\
convention: appcat
cases:
- &base
  name: as it is
  source: a page
  object: &object {apiVersion: g.io/v1, kind: XThing, status: {phase: Unknown, conditions: [{type: A}, {type: B}], at: 1}}
  old: *object
  expect: {verdict: allow, findings: []}
- <<: *base
  name: other values
  with: {/object/status/phase: yes, /object/status/conditions/0: {type: C}, /object/status/conditions/-: 5, /old/status: {}}
  without: [/object/status/conditions/1, /object/status/at]
  expect: {status: {phase: true, conditions: [{type: C}, 5]}}
- name: as strict as its policy
  policy: {enforcement: Warn}
  object: &bad {apiVersion: g.io/v1, kind: XThing, status: {phase: ready}}
  expect: {verdict: warn}
- name: an optional part
  policy: {enable: [current-version], disagreement: Warn}
  object: {apiVersion: g.io/v1, kind: XThing, status: {phase: Unknown, mariadbVersion: '11.5'}}
  expect: {patch: [{op: add, path: /status/currentVersion, value: '11.5'}]}
- &default
  name: with the mutating webhook
  object: {apiVersion: g.io/v1, kind: XThing, status: {}}
  expect: {verdict: allow, status: {phase: Unknown}}
- {<<: *default, name: without it, mutate: false, expect: {patch: none, status: {}}}
";
    let folder = folder_of(&[("a.yaml", suite)]);
    let (code, out, err) = test(folder.path(), &["."]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("6 cases: 6 passed, 0 failed\n"), "{out}");
}

#[test]
fn mistakes_in_pointers_and_policies_of_cases_are_shown_where_they_are() {
    let cases = "\
- name: a
  object: {apiVersion: g.io/v1, kind: Thing, status: {phase: Unknown}}
  with: {/object/staus/phase: Ready, /status/phase: Ready, object: 5}
  without: [/object/status/phse, /old]
  policy: {enable: [current-versoin], enforcment: Warn}
  expect: {verdict: allow}
- name: b
  object: {apiVersion: g.io/v1, kind: Thing}
  policy: {enable: [current-versoin]}
  expect: {verdict: allow}
";
    let policies = format!("policies: policy.yaml\ncases:\n{cases}");
    let folder = folder_of(&[
        ("a.yaml", &format!("convention: appcat\ncases:\n{cases}")),
        ("b.yaml", &policies),
        ("policy.yaml", POLICY),
    ]);
    let (code, _, err) = test(folder.path(), &["a.yaml", "b.yaml"]);
    assert_eq!(code, 2, "{err}");
    for said in [
        "there is no /object/staus/phase in this case\n --> a.yaml:5:10\n",
        "help: did you mean \"status\"?\n",
        "there is no /status/phase in this case\n --> a.yaml:5:38\n",
        "there is no object in this case\n",
        "there is no /object/status/phse in this case\n --> a.yaml:6:13\n",
        "help: did you mean \"phase\"?\n",
        "there is no /old in this case\n",
        "unknown key \"enforcment\"",
        "\"policy\" needs the \"convention\" of the file\n --> b.yaml:7:11\n",
    ] {
        assert!(err.contains(said), "{said}\n{err}");
    }
    let good = &cases[cases.find("- name: b").unwrap()..];
    let folder = folder_of(&[("a.yaml", &format!("convention: appcat\ncases:\n{good}"))]);
    let (code, _, err) = test(folder.path(), &["a.yaml"]);
    assert_eq!(code, 2, "{err}");
    for said in [
        "unknown optional part \"current-versoin\"",
        " --> a.yaml:5:21\n",
        "did you mean \"current-version\"?",
    ] {
        assert!(err.contains(said), "{said}\n{err}");
    }
}

#[test]
fn all_errors_are_reported_and_the_valid_cases_run() {
    let wrong = "\
convention: appcat
cases:
- name: a
  objct: {apiVersion: g.io/v1, kind: Thing}
  expect: {verdict: denied, patch: some}
- name: b
  object: {kind: Thing}
  operation: PATCH
  now: soon
  expect: {}
";
    let unselected = "policies: policy.yaml\ncases:\n- {name: c, object: {apiVersion: g.io/v1, kind: Tihng}, expect: {verdict: allow}}\n";
    let good = format!("convention: appcat\ncases:\n{}", case("holds", "{verdict: deny}"));
    let folder = folder_of(&[
        ("wrong.yaml", wrong),
        ("unselected.yaml", unselected),
        ("good.yaml", &good),
        ("policy.yaml", POLICY),
        ("unknown.yaml", "convention: apcat\ncases: []\n"),
        ("broken.yaml", "cases: [\n"),
    ]);
    let (code, out, err) = test(folder.path(), &[".", "nowhere"]);
    assert_eq!(code, 2, "{out}\n{err}");
    assert!(out.contains("ok    good.yaml: holds\n"), "{out}");
    let (_, out, _) = test(folder.path(), &[".", "nowhere", "-o", "json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let mistakes = report["mistakes"].as_array().unwrap();
    assert_eq!(report["summary"]["mistakes"], mistakes.len());
    let (_, junit, _) = test(folder.path(), &[".", "nowhere", "-o", "junit"]);
    for (file, said) in [
        ("nowhere", "this cannot be read: "),
        ("wrong.yaml", "a case that expects nothing cannot fail"),
        ("unknown.yaml", "not run: there are mistakes in convention apcat"),
    ] {
        let told = |mistake: &Value| {
            mistake["file"] == file && mistake["message"].as_str().unwrap().contains(said)
        };
        assert!(mistakes.iter().any(told), "{said}\n{out}");
        assert!(junit.contains(said), "{said}\n{junit}");
    }
    let said = "unknown convention \"apcat\"; did you mean \"appcat\"?";
    let told = json!({"policies": "convention apcat", "message": said});
    assert!(mistakes.contains(&told), "{out}");
    assert!(junit.contains(&said.replace('"', "&quot;")), "{junit}");
    for said in [
        "unknown key \"objct\"",
        "did you mean \"object\"?",
        "missing required key \"object\"",
        "unknown value \"denied\"",
        "not a JSON patch",
        "\"apiVersion\" is missing: without it this is not a Kubernetes object",
        "unknown value \"PATCH\"",
        "a case that expects nothing cannot fail",
        "\"soon\" is not a time such as 2024-06-01T12:00:00Z",
        "no policy selects this Tihng: nothing is tested",
        "not run: there are mistakes in convention apcat",
        "unknown convention \"apcat\"; did you mean \"appcat\"?",
        "invalid YAML",
        "nowhere: error: this cannot be read",
        "wrong.yaml:4:3",
    ] {
        assert!(err.contains(said), "{said}\n{err}");
    }
}

#[test]
fn errors_in_policies_and_in_cases_are_reported_together() {
    let suite = |policies: &str| {
        format!(
            "policies: {policies}\ncases:\n- {{name: c, object: 5, expect: {{verdict: maybe}}}}\n"
        )
    };
    let desk = folder_of(&[
        ("policy.yaml", &POLICY.replace("spec:", "psec:")),
        ("a.yaml", &suite("nowhere.yaml")),
        ("b.yaml", &suite("policy.yaml")),
        ("c.yaml", &suite("[]")),
    ]);
    let (code, _, err) = test(desk.path(), &["a.yaml", "b.yaml", "c.yaml"]);
    assert_eq!(code, 2);
    for file in ["a.yaml:3", "b.yaml:3", "c.yaml:3"] {
        assert!(err.contains(file), "{err}");
    }
    assert_eq!(err.matches("not run: there are mistakes in").count(), 2, "{err}");
    assert!(err.contains("nowhere.yaml: this cannot be read: No such file"), "{err}");
    assert!(err.contains("psec"), "{err}");
}

#[test]
fn objects_are_read_with_the_yaml_rules_of_kubectl_and_cases_are_not() {
    let suite = "\
convention: appcat
cases:
- name: yes
  object: &odd
    apiVersion: g.io/v1
    kind: Thing
    metadata: {name: on}
    status: {phase: Ready, instanceNamespace: x, conditions: [
      {type: Ready, status: yes, reason: Ready, lastTransitionTime: 2024-06-01T11:00:00Z}]}
  expect: {findings: [{rule: appcat/condition-status, message: it is the boolean true}]}
- name: no
  object: {<<: *odd, status: {phase: Unknown, old: 0755, seen: yes}}
  old: {<<: *odd, status: {phase: Unknown, old: 0755, seen: yes}}
  expect: {verdict: allow, status: {phase: Unknown, old: 493, seen: true}}
- name: written as it is expected
  object: {<<: *odd, status: {old: 0755}}
  expect: {patch: [{op: add, path: /status/phase, value: Unknown}], status: {phase: Unknown, old: 0755}}
";
    let folder = folder_of(&[(
        "a.yaml",
        &format!("# first\n---\napiVersion: v1\nkind: Other\n---\n{suite}"),
    )]);
    let (code, out, err) = test(folder.path(), &["a.yaml"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("ok    a.yaml: yes\nok    a.yaml: no\n"), "{out}");
    // An object that no cluster accepts is an error with its location.
    let infinite = format!("convention: appcat\ncases:\n{}", case("a", "{status: {a: .inf}}"));
    let folder = folder_of(&[("a.yaml", &infinite)]);
    let (code, _, err) = test(folder.path(), &["a.yaml"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("a.yaml:5:24: error: invalid YAML: "), "{err}");
}

#[test]
fn a_case_of_the_playground_passes() {
    let object = "apiVersion: g.io/v1\nkind: Thing\nstatus: {phase: ready, note: yes}\n";
    let review =
        include_str!("../fixtures/reviews/deny/phase-forgotten-by-an-operator/review.json");
    for mut request in [
        json!({"object": review}),
        json!({"object": object, "documents": POLICY, "user": "jane", "groups": ["admins"]}),
        json!({"object": object, "convention": "appcat"}),
        json!({"object": object, "old": object, "documents": POLICY}),
        json!({"object": "{apiVersion: vshn.appcat.vshn.io/v1, kind: VSHNRedis, metadata: {name: a}}"}),
    ] {
        request["now"] = "2024-06-01T12:00:00Z".into();
        let answer = statusgate_pages::calls::call("case", request.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let text = answer["case"].as_str().unwrap();
        let folder = folder_of(&[("policies.yaml", POLICY), ("case.yaml", text)]);
        let (code, out, err) = test(folder.path(), &["case.yaml"]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}\n{text}");
    }
}

#[test]
fn the_parts_of_a_case_that_are_manifests_may_repeat_a_key_and_the_others_may_not() {
    let case = "convention: appcat\ncases:\n- name: a\n  object: {apiVersion: g/v1, kind: A, status: {phase: ready, phase: Unknown}}\n  with: {/object/status: {phase: C, phase: Unknown}}\n";
    let good =
        format!("{case}  expect: {{verdict: allow, status: {{phase: B, phase: Unknown}}}}\n");
    let bad = format!("{case}  expect: {{verdict: deny, verdict: allow}}\n");
    let folder = folder_of(&[("good.yaml", &good), ("bad.yaml", &bad)]);
    let (code, out, err) = test(folder.path(), &["good.yaml"]);
    assert_eq!(code, 0, "{out}{err}");
    for place in ["4:62", "5:37", "6:47"] {
        let warning = format!(
            "good.yaml:{place}: warning: the key \"phase\" is here twice: the last value counts\n"
        );
        assert!(err.contains(&warning), "{err}");
    }
    let (code, _, err) = test(folder.path(), &["bad.yaml"]);
    assert_eq!(code, 2);
    assert!(err.contains("the key \"verdict\" is here twice\n"), "{err}");
}
