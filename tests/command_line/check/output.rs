//! What the command prints: formats, summaries, filters and exit codes.

use std::process::Stdio;

use serde_json::json;

use super::{BAD, Desk, GOOD, RULE, indented};
use crate::command::{Ended, run_in};

#[test]
fn each_output_format_is_valid() {
    let desk = Desk::new(&[("a/bad.yaml", BAD), ("a/good.yaml", GOOD)]);
    let sarif = desk.check(&["a", "-o", "sarif"]).json();
    let run = &sarif["runs"][0];
    let result = &run["results"][0];
    assert_eq!(
        (&sarif["version"], &run["tool"]["driver"]["name"]),
        (&json!("2.1.0"), &json!("statusgate"))
    );
    assert_eq!((&result["ruleId"], &result["level"]), (&json!(RULE), &json!("error")));
    let rule = result["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], RULE);
    let declared = &run["tool"]["driver"]["rules"][rule];
    for member in ["help", "fullDescription"] {
        let text = declared[member]["text"].as_str().unwrap();
        assert!(
            text.contains("status.phase is not Deleting, ") && text.contains("\nSource: "),
            "{text}"
        );
    }
    assert_eq!(declared["helpUri"], "https://statusgate.dev/docs/conventions/appcat.md");
    assert!(result["message"]["text"].is_string());
    let location = &result["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "a/bad.yaml");
    assert_eq!(
        location["region"],
        json!({"startLine": 5, "startColumn": 10, "endLine": 5, "endColumn": 15})
    );

    let github = desk.check(&["a", "-o", "github"]);
    let command = "::error file=a/bad.yaml,line=5,col=10,endColumn=14,title=appcat/phase-value::VSHNRedis shop/bad: status.phase: ";
    assert!(github.out.starts_with(command), "{github:#?}");
    assert_eq!(github.out.lines().count(), 2, "{github:#?}");

    let junit = desk.check(&["a", "-o", "junit"]);
    for part in [
        "<testsuites name=\"statusgate\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\">",
        "<testsuite name=\"a/bad.yaml\" tests=\"1\" failures=\"1\"",
        "<testcase classname=\"vshn.appcat.vshn.io/v1\" name=\"VSHNRedis shop/bad\">",
        "type=\"appcat/phase-value\">a/bad.yaml:5:10: deny: ",
        "<testcase classname=\"vshn.appcat.vshn.io/v1\" name=\"VSHNPostgreSQL shop/good\"/>",
    ] {
        assert!(junit.out.contains(part), "{part}: {junit:#?}");
    }
}

#[test]
fn object_names_are_escaped_for_terminals_and_pipelines() {
    let hostile = json!({"apiVersion": "vshn.appcat.vshn.io/v1", "kind": "VSHNRedis\u{1b}[2J",
        "metadata": {"name": "a\n::error::injected", "namespace": "s\r\u{7f}"},
        "status": {"phase": "re\u{1b}[2Jady\n::error::injected"}});
    let file = "odd\n::error::injected\u{1b}[2J.json";
    let broken = "broken\n::error::injected.yaml";
    let desk = Desk::new(&[(file, &hostile.to_string()), (broken, "a: *x\u{1b}\n")]);
    for format in ["table", "github", "junit"] {
        for more in [&["-v"][..], &["-v", "--convention", "appcat"]] {
            let answer = desk.check(&[&[file, broken, "-o", format], more].concat());
            assert_eq!(answer.code, Some(2), "{answer:#?}");
            for line in answer.out.lines().chain(answer.err.lines()) {
                assert!(!line.starts_with("::error::injected"), "{answer:#?}");
                assert!(!line.contains(|letter: char| letter.is_control()), "{answer:#?}");
            }
        }
    }
}

/// The next step of a pipeline reads the report.
#[test]
fn a_report_without_an_object_is_valid_but_no_success() {
    let desk = Desk::new(&[("empty.yaml", "# nothing\n---\n"), ("folder/other.txt", BAD)]);
    let list = "{kind: List, apiVersion: v1, items: []}";
    for (format, starts) in [
        ("table", "0 objects in 1 file: 0 judged; no findings\n"),
        ("json", ""),
        ("sarif", "{\n"),
        ("junit", "<?xml"),
        ("github", "::error title=not judged::nothing was judged"),
    ] {
        for answer in [
            desk.check_stdin(&["-", "-o", format], list),
            desk.check_stdin(&["-", "-o", format], ""),
            desk.check(&["empty.yaml", "-o", format]),
        ] {
            let why = "nothing was judged: there is no object\n";
            assert_eq!((answer.code, answer.err.as_str()), (Some(2), why), "{answer:#?}");
            assert!(answer.out.starts_with(starts), "{answer:#?}");
        }
        let answer = desk.check(&["folder", "-o", format]);
        assert_eq!(answer.code, Some(2), "{answer:#?}");
        assert!(answer.out.ends_with('\n') || format == "json", "{answer:#?}");
        if format == "sarif" {
            answer.json();
        }
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let bad = BAD.replace("VSHNRedis", "VSHNPostgreSQL");
    let many: String = (0..3000).map(|_| format!("---\n{bad}")).collect();
    let desk = Desk::new(&[("many.yaml", &many)]);
    let mut command = desk.command(&["many.yaml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let answer = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""), "{answer:#?}");
}

#[test]
fn a_closed_stderr_does_not_change_the_exit_code() {
    let desk = Desk::new(&[("bad.yaml", "a: [\n")]);
    let mut command = desk.command(&["bad.yaml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let answer = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(2), "{answer:#?}");
}

/// Programs read these lines: a change of a member breaks them.
#[test]
fn the_shape_of_the_json_lines_is_stable() {
    let other = BAD.replace("vshn.appcat.vshn.io/v1", "vshn.appcat.vshn.io/v2");
    let unfit = BAD.replace("{name: bad, namespace: shop}", "x");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n-\n{}", indented(&other));
    let desk = Desk::new(&[
        ("bad.yaml", &format!("# a comment\n---\n{BAD}---\n{GOOD}")),
        ("list.yaml", &list),
        ("unfit.yaml", &unfit),
    ]);
    let answer = desk.check(&["bad.yaml", "list.yaml", "unfit.yaml", "-o", "json"]);
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    let lines: Vec<String> = answer.objects().iter().map(|line| format!("{line:#}\n")).collect();
    insta::assert_snapshot!(lines.concat());
    // A program can read the lines of both commands with one type.
    let shared = [
        "file",
        "line",
        "document",
        "item",
        "apiVersion",
        "kind",
        "namespace",
        "name",
        "policies",
        "unjudged",
    ];
    let files = ["status", "bad.yaml", "list.yaml", "unfit.yaml", "-o", "json"];
    let status = run_in(&desk.0, files);
    assert_eq!(status.objects().len(), 4, "{status:#?}");
    for (one, other) in answer.objects().iter().zip(status.objects()) {
        for member in shared {
            assert_eq!(one.get(member), other.get(member), "{member}: {one} {other}");
        }
    }
}

#[test]
fn the_line_of_an_object_is_where_it_begins() {
    let typed = "kind: ThingList\napiVersion: g/v1\nitems:\n  # one\n  - metadata: {name: a}\n  -\n    metadata:\n      name: b\n";
    let flow = "{apiVersion: v1, kind: List, items: [\n  {apiVersion: g/v1, kind: A},\n  {apiVersion: g/v1, kind: B}]}\n";
    let json = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n {\"apiVersion\": \"g/v1\", \"kind\": \"A\"}]}\n{\"apiVersion\": \"g/v1\",\n\"kind\": \"B\"}\n";
    let desk = Desk::new(&[
        ("a.yaml", &format!("# first\n\n---\n{GOOD}--- # second\n\n{BAD}")),
        ("b.yaml", typed),
        ("c.yaml", flow),
        ("d.json", json),
    ]);
    let answer = desk.check(&[".", "-o", "json"]);
    let lines: Vec<String> = answer
        .objects()
        .iter()
        .map(|object| format!("{}:{}", object["file"].as_str().unwrap(), object["line"]))
        .collect();
    assert_eq!(
        lines,
        [
            "a.yaml:4",
            "a.yaml:10",
            "b.yaml:5",
            "b.yaml:7",
            "c.yaml:2",
            "c.yaml:3",
            "d.json:2",
            "d.json:3"
        ],
        "{answer:#?}"
    );
}

#[test]
fn the_summary_counts_findings_and_objects_by_rule() {
    let other = BAD.replace("name: bad", "name: other");
    let old = GOOD.replace("v1", "v1beta1");
    let desk = Desk::new(&[(
        "all.yaml",
        &[BAD, &other, GOOD, &old, "kind: Secret\napiVersion: v1\n"].join("---\n"),
    )]);
    let answer = desk.check(&["all.yaml", "--summary"]);
    assert_eq!(
        answer.out,
        "RULE                ACTION  FINDINGS  OBJECTS  EXAMPLE\n\
         appcat/phase-value  deny    2         2        VSHNRedis shop/bad at all.yaml:5:10\n\n\
         not judged: 1 v1 Secret: no policy selects it\n\
         not judged: 1 vshn.appcat.vshn.io/v1beta1 VSHNPostgreSQL: no policy selects it; appcat names v1, this is v1beta1\n\
         objects with findings: 2, without findings: 1, not judged: 2\n\
         5 objects in 1 file: 3 judged (appcat 3), 2 not judged; 2 deny; 2 would be patched\n"
    );
    assert_eq!(answer.code, Some(1));
    let answer = desk.check(&["all.yaml", "--summary", "-o", "json"]);
    assert_eq!((answer.code, answer.err.as_str()), (Some(2), "--summary requires -o table\n"));
}

#[test]
fn filters_choose_rules_and_actions() {
    let warned = "apiVersion: g/v1\nkind: Thing\nmetadata: {name: a}\nstatus:\n  conditions:\n  - {type: Ready, status: 'No', reason: r, message: m, lastTransitionTime: '2024-06-01T11:00:00Z'}\n  - {type: a b, status: 'True', reason: r, message: m, lastTransitionTime: '2024-06-01T11:00:00Z'}\n";
    let desk = Desk::new(&[("a.yaml", warned)]);
    let check = |args: &[&str]| {
        desk.check(&[&["a.yaml", "--convention", "metav1", "-o", "json"], args].concat())
    };
    let rules = |args: &[&str]| -> Vec<String> {
        check(args)
            .found()
            .iter()
            .map(|found| found.split(' ').nth(1).unwrap().to_owned())
            .collect()
    };
    let (status, name) = ("metav1/condition-status", "metav1/condition-type");
    assert_eq!(rules(&[]), [status, name]);
    assert_eq!(rules(&["--rule", name]), [name]);
    assert_eq!(rules(&["--rule", status, "--rule", name]), [status, name]);
    assert_eq!(rules(&["--rule", "metav1/*"]), [status, name]);
    assert_eq!(rules(&["--only", "Deny"]), [status, name]);
    assert_eq!(rules(&["--only", "warn"]), [""; 0]);
    assert_eq!(rules(&["--only", "warn", "--only", "deny", "--rule", status]), [status]);
    // What is filtered out does not fail the run, but it is counted.
    let answer = desk.check(&["a.yaml", "--convention", "metav1", "--only", "warn"]);
    assert_eq!(answer.code, Some(0), "{answer:#?}");
    assert!(answer.out.contains("; no findings; 2 findings filtered out"), "{answer:#?}");
    let answer = check(&["--rule", "metav1/condition-statu"]);
    let said =
        "unknown rule \"metav1/condition-statu\"; did you mean \"metav1/condition-status\"?\n";
    assert_eq!((answer.code, answer.err.as_str()), (Some(2), said));
}

#[test]
fn a_convention_is_applied_with_the_actions_of_a_policy() {
    let disagreeing = "apiVersion: g/v1\nkind: Thing\nmetadata: {name: r}\nstatus:\n  phase: Ready\n  instanceNamespace: r\n  conditions:\n  - {type: Ready, status: 'False', reason: Creating, lastTransitionTime: '2024-06-01T11:00:00Z'}\n";
    let desk = Desk::new(&[("a.yaml", disagreeing)]);
    let actions = |args: &[&str]| -> Vec<String> {
        let answer = desk.check(
            &[
                &["a.yaml", "--convention", "appcat", "--rule", "appcat/phase-ready", "-o", "json"],
                args,
            ]
            .concat(),
        );
        let object = &answer.objects()[0];
        let findings = object["findings"].as_array().unwrap().iter();
        findings.map(|found| found["action"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(actions(&[]), ["deny"]);
    assert_eq!(actions(&["--disagreement", "Repair"]), ["repair"]);
    assert_eq!(actions(&["--disagreement", "audit"]), ["audit"]);
    assert_eq!(actions(&["--enforcement", "Warn"]), ["warn"]);
    assert_eq!(actions(&["--enforcement", "audit", "--disagreement", "deny"]), ["audit"]);
    for flag in ["--enforcement", "--disagreement"] {
        let answer = desk.check(&["a.yaml", flag, "warn"]);
        assert_eq!(answer.code, Some(2), "{answer:#?}");
        assert!(answer.err.contains("--convention <NAME>"), "{answer:#?}");
    }
}

#[test]
fn help_and_errors_show_the_accepted_actions() {
    let desk = Desk::new(&[("good.yaml", GOOD)]);
    for (flag, values) in [
        ("--fail-on", "[possible values: deny, warn, audit, unjudged]"),
        ("--enforcement", "[possible values: deny, warn, audit]"),
        ("--disagreement", "[possible values: deny, repair, warn, audit]"),
        ("--only", "[possible values: deny, repair, warn, audit]"),
    ] {
        let answer = desk.check(&["good.yaml", "--convention", "appcat", flag, "never"]);
        assert_eq!(answer.code, Some(2), "{answer:#?}");
        assert!(answer.err.contains(values), "{flag}: {answer:#?}");
        let help = desk.check(&["--help"]).out;
        let help = help.split(&format!("{flag} <ACTION>")).nth(1).unwrap();
        let help = help.split("\n\n      --").next().unwrap();
        assert!(help.contains(values) && help.contains("Case does not matter"), "{flag}: {help}");
        for value in ["Warn", "warn"] {
            assert_eq!(
                desk.check(&["good.yaml", "--convention", "appcat", flag, value]).code,
                Some(0)
            );
        }
    }
}

#[test]
fn a_baseline_accepts_its_findings_of_any_object_and_no_others() {
    let other = BAD.replace("name: bad", "name: other");
    let fault = format!("{other}  conditions: [{{type: Ready, status: Maybe}}]\n");
    let desk = Desk::new(&[("bad.yaml", BAD), ("other.yaml", &other), ("more.yaml", &fault)]);
    let report = desk.check(&["bad.yaml", "-o", "json"]).out;
    std::fs::write(desk.0.path().join("baseline.json"), report).unwrap();
    let check = |file: &str| desk.check(&[file, "--baseline", "baseline.json"]);
    let answer = check("other.yaml");
    assert_eq!(answer.code, Some(0), "{answer:#?}");
    assert!(answer.out.contains("; no findings; 1 finding filtered out"), "{answer:#?}");
    let answer = check("more.yaml");
    assert_eq!(answer.code, Some(1), "{answer:#?}");
    assert!(!answer.out.contains(RULE), "{answer:#?}");
    // The index of a condition is not a part of the field.
    let report = desk.check(&["more.yaml", "-o", "json"]).out;
    assert!(report.contains("conditions[0]"), "{report}");
    let moved = report.replace("conditions[0]", "conditions[1]");
    std::fs::write(desk.0.path().join("baseline.json"), moved).unwrap();
    assert_eq!(check("more.yaml").code, Some(0));
    let answer = desk.check(&["bad.yaml", "--baseline", "bad.yaml"]);
    assert_eq!(answer.code, Some(2), "{answer:#?}");
    assert!(answer.err.contains("bad.yaml is not a report of -o json"), "{answer:#?}");
}
