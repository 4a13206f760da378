//! The command `statusgate check`: its input, output and exit codes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers too")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Two claims. One has an unsupported phase; the other is correct.
const BAD: &str = "\
apiVersion: vshn.appcat.vshn.io/v1
kind: VSHNRedis
metadata: {name: bad, namespace: shop}
status:
  phase: ready
";
const GOOD: &str = "\
apiVersion: vshn.appcat.vshn.io/v1
kind: VSHNPostgreSQL
metadata: {name: good, namespace: shop}
status: {phase: Unknown}
";
const RULE: &str = "appcat/phase-value";

/// A folder with files, in which the command runs.
struct Desk(TempDir);

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_statusgate"));
        command.current_dir(self.0.path()).arg("check");
        command.args(["--now", "2024-06-01T12:00:00Z"]).args(args);
        command
    }

    fn check(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    fn check_stdin(&self, args: &[&str], input: &str) -> Answer {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Answer::of(child.wait_with_output().unwrap())
    }
}

#[derive(Debug)]
struct Answer {
    code: i32,
    out: String,
    err: String,
}

impl Answer {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The lines of `-o json`.
    fn objects(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// `FILE:LINE:COLUMN RULE` of each finding.
    fn found(&self) -> Vec<String> {
        self.objects()
            .iter()
            .flat_map(|object| {
                object["findings"].as_array().unwrap().iter().map(|finding| {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    let (file, rule) = (text(&object["file"]), text(&finding["rule"]));
                    format!("{file}:{}:{} {rule}", finding["line"], finding["column"])
                })
            })
            .collect()
    }
}

/// The same YAML, two columns to the right.
fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}\n")).collect();
    lines.concat()
}

#[test]
fn a_finding_has_its_location_and_rule_and_sets_the_exit_code() {
    let desk = Desk::new(&[("bad.yaml", BAD), ("good.yaml", GOOD)]);
    let answer = desk.check(&["bad.yaml"]);
    assert_eq!(answer.code, 1, "{answer:#?}");
    assert!(answer.out.starts_with("bad.yaml:5:10: deny: VSHNRedis shop/bad: status.phase: "));
    assert!(answer.out.contains(&format!("[{RULE}]\n")), "{answer:#?}");
    assert!(answer.out.contains("5 |   phase: ready\n  |          ^^^^^\n"), "{answer:#?}");
    let answer = desk.check(&["good.yaml"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{answer:#?}");
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
        assert_eq!(answer.code, 1, "{answer:#?}");
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
    assert_eq!(answer.code, 2, "{answer:#?}");
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
    assert!(answer.err.ends_with("3 documents could not be read\n"), "{answer:#?}");
}

#[test]
fn a_duplicate_key_is_reported_and_the_last_value_is_judged() {
    let warning =
        "claims.yaml:6:3: warning: the key \"phase\" is here twice: the last value counts\n";
    for (last, code) in [("Unknown", 0), ("other", 1)] {
        let desk = Desk::new(&[("claims.yaml", &format!("{BAD}  phase: {last}\n"))]);
        let answer = desk.check(&["claims.yaml"]);
        assert_eq!(answer.code, code, "{answer:#?}");
        assert!(answer.err.starts_with(warning), "{answer:#?}");
        assert_eq!(answer.out.contains("claims.yaml:6:10: deny:"), code == 1, "{answer:#?}");
    }
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_statusgate"));
        let output = command.current_dir(desk.0.path()).arg("check").args(args).output().unwrap();
        let answer = Answer::of(output);
        assert_eq!(answer.code, 2, "{args:?}: {answer:#?}");
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
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{args:?}");
        assert!(answer.err.contains("standard input can be read only once"), "{}", answer.err);
    }
    assert_eq!(desk.check_stdin(&["good.yaml", "--old", "-"], GOOD).code, 0);
}

#[test]
fn a_stored_fault_of_the_old_object_is_tolerated() {
    let other = BAD.replace("ready", "Failed").replace("name: bad", "name: other");
    let desk = Desk::new(&[
        ("bad.yaml", BAD),
        ("same.yaml", &format!("{other}---\n{BAD}")),
        ("other.yaml", &other),
        ("better.yaml", &BAD.replace("ready", "Unknown")),
    ]);
    // The stored fault is tolerated.
    assert_eq!(desk.check(&["bad.yaml", "--old", "same.yaml"]).code, 0);
    assert_eq!(desk.check(&["bad.yaml", "--old", "better.yaml"]).code, 1);
    // An old object with another name is not used.
    assert_eq!(desk.check(&["bad.yaml", "--old", "other.yaml"]).code, 1);
    let answer = desk.check(&["bad.yaml", "--old", "nowhere.yaml"]);
    assert_eq!(answer.code, 2, "{answer:#?}");
    assert!(answer.out.contains(RULE), "{answer:#?}");
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
    assert_eq!((answer.code, answer.err.starts_with(said)), (2, true), "{answer:#?}");
    // Too many values are a finding. The output does not repeat them.
    let answer = desk.check(&["old.yaml"]);
    let said = "has more values than can be judged";
    assert!(answer.code == 1 && answer.out.contains(said), "{}", answer.code);
    assert!(answer.out.len() < 2000, "{}", answer.out.len());
    // Such an old object is not read, so this counts as the first write.
    assert_eq!(desk.check(&["good.yaml", "--old", "old.yaml"]).code, 0);
}

#[test]
fn the_option_convention_judges_objects_that_no_policy_selects() {
    let widget = BAD.replace("VSHNRedis", "Widget").replace("vshn.appcat.vshn.io", "example.com");
    let desk = Desk::new(&[("widget.yaml", &widget)]);
    let answer = desk.check(&["widget.yaml", "--verbose"]);
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(
        answer.out.starts_with(
            "widget.yaml: not judged: Widget shop/bad (document 1): no policy selects it\n\
             not judged: 1 example.com/v1 Widget: no policy selects it\n"
        ),
        "{answer:#?}"
    );
    let answer = desk.check(&["widget.yaml", "--convention", "appcat", "-o", "json"]);
    assert_eq!((answer.code, answer.found()), (1, vec![format!("widget.yaml:5:10 {RULE}")]));
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
        r#"{{"apiVersion":"vshn.appcat.vshn.io/v1","kind":"VSHNRedis","spec":{deep},"status":{{}}}}"#
    );
    let desk = Desk::new(&[("deep.json", &object)]);
    let answer = desk.check(&["deep.json", "-o", "json"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{answer:#?}");
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
        (answer.code, finding.map(|finding| finding["action"].clone()).unwrap_or_default())
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
        desk.check(&args).code
    };
    // The guess is "mouses", which no policy names.
    assert_eq!(code(&[]), 0);
    assert_eq!(code(&["--crds", "mice.json"]), 1);
    // Without the subresource the API server never sends the requests that this policy selects.
    assert_eq!(code(&["--crds", "bare.json"]), 0);
}

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
    assert!(declared["help"]["text"].as_str().unwrap().starts_with("Source: "), "{declared}");
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
            assert_eq!(answer.code, 2, "{answer:#?}");
            for line in answer.out.lines().chain(answer.err.lines()) {
                assert!(!line.starts_with("::error::injected"), "{answer:#?}");
                assert!(!line.contains(|letter: char| letter.is_control()), "{answer:#?}");
            }
        }
    }
}

/// A selector in a pipeline may match nothing, and the next step reads the report.
#[test]
fn no_selected_object_gives_a_clean_report_and_no_object_an_empty_one() {
    let desk = Desk::new(&[("empty.yaml", "# nothing\n---\n"), ("folder/other.txt", BAD)]);
    let list = "{kind: List, apiVersion: v1, items: []}";
    for (format, starts) in [
        ("table", "0 objects in 1 file: 0 judged; no findings\n"),
        ("json", ""),
        ("sarif", "{\n"),
        ("junit", "<?xml"),
        ("github", "0 objects in 1 file"),
    ] {
        for answer in [
            desk.check_stdin(&["-", "-o", format], list),
            desk.check_stdin(&["-", "-o", format], ""),
            desk.check(&["empty.yaml", "-o", format]),
        ] {
            assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{answer:#?}");
            assert!(answer.out.starts_with(starts), "{answer:#?}");
        }
        let answer = desk.check(&["folder", "-o", format]);
        assert_eq!(answer.code, 2, "{answer:#?}");
        assert!(answer.out.ends_with('\n') || format == "json", "{answer:#?}");
        if format == "sarif" {
            answer.json();
        }
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let many: String = (0..3000).map(|_| format!("---\n{BAD}")).collect();
    let desk = Desk::new(&[("many.yaml", &many)]);
    let mut command = desk.command(&["many.yaml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{answer:#?}");
}

#[test]
fn a_closed_stderr_does_not_change_the_exit_code() {
    let desk = Desk::new(&[("bad.yaml", "a: [\n")]);
    let mut command = desk.command(&["bad.yaml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, 2, "{answer:#?}");
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
    assert_eq!(answer.code, 2, "{answer:#?}");
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_statusgate"));
    let files = ["status", "bad.yaml", "list.yaml", "unfit.yaml", "-o", "json"];
    let status = Answer::of(command.current_dir(desk.0.path()).args(files).output().unwrap());
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
    assert_eq!(answer.code, 1);
    let answer = desk.check(&["all.yaml", "--summary", "-o", "json"]);
    assert_eq!((answer.code, answer.err.as_str()), (2, "--summary requires -o table\n"));
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
    assert_eq!(answer.code, 0, "{answer:#?}");
    assert!(answer.out.contains("; no findings; 2 findings filtered out"), "{answer:#?}");
    let answer = check(&["--rule", "metav1/condition-statu"]);
    let said =
        "unknown rule \"metav1/condition-statu\"; did you mean \"metav1/condition-status\"?\n";
    assert_eq!((answer.code, answer.err.as_str()), (2, said));
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
        assert_eq!(answer.code, 2, "{answer:#?}");
        assert!(answer.err.contains("--convention <NAME>"), "{answer:#?}");
    }
}

#[test]
fn help_and_errors_show_the_accepted_actions() {
    let desk = Desk::new(&[("good.yaml", GOOD)]);
    for (flag, values) in [
        ("--fail-on", "[possible values: deny, warn, audit]"),
        ("--enforcement", "[possible values: deny, warn, audit]"),
        ("--disagreement", "[possible values: deny, repair, warn, audit]"),
        ("--only", "[possible values: deny, repair, warn, audit]"),
    ] {
        let answer = desk.check(&["good.yaml", "--convention", "appcat", flag, "never"]);
        assert_eq!(answer.code, 2, "{answer:#?}");
        assert!(answer.err.contains(values), "{flag}: {answer:#?}");
        let help = desk.check(&["--help"]).out;
        let help = help.split(&format!("{flag} <ACTION>")).nth(1).unwrap();
        let help = help.split("\n\n      --").next().unwrap();
        assert!(help.contains(values) && help.contains("Case does not matter"), "{flag}: {help}");
        for value in ["Warn", "warn"] {
            assert_eq!(desk.check(&["good.yaml", "--convention", "appcat", flag, value]).code, 0);
        }
    }
}

/// The documentation shows commands with their output.
#[test]
fn the_documentation_shows_the_output_of_its_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/check.md")).unwrap();
    let mut count = 0;
    for rest in text.split("```console\n$ ").skip(1) {
        let (command, expected) = rest.split("```").next().unwrap().split_once('\n').unwrap();
        let mut words = command.split_whitespace();
        assert_eq!(words.next(), Some("statusgate"), "{command}");
        let mut statusgate = Command::new(env!("CARGO_BIN_EXE_statusgate"));
        let output = statusgate.args(words).current_dir(root).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "$ {command}");
        count += 1;
    }
    assert_eq!(count, 4);
}
