//! The README and the page of lint show commands with their output; the tests run them.

use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../README.md");
const LINT: &str = include_str!("../../docs/lint.md");

/// The blocks fenced as `console`: a command after `$ `, and its output.
fn transcripts(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("```console\n$ ").skip(1).map(|rest| {
        let block = rest.split("```").next().unwrap_or_default();
        block.split_once('\n').unwrap_or((block, ""))
    })
}

#[test]
fn the_pages_show_the_output_of_their_commands() {
    let mut count = 0;
    for (command, expected) in [README, LINT].into_iter().flat_map(transcripts) {
        let mut words = command.split_whitespace();
        assert_eq!(words.next(), Some("statusgate"), "{command}");
        let output = Command::new(env!("CARGO_BIN_EXE_statusgate"))
            .args(words)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "$ {command}");
        count += 1;
    }
    assert!(count >= 4, "the pages lost their transcripts");
}

#[test]
fn the_policy_of_the_readme_compiles() {
    let block = README
        .split("```yaml\n")
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .find(|block| block.contains("kind: StatusPolicy"))
        .expect("the README shows a policy");
    let source =
        statusgate_core::policy::Source { name: "README.md".to_owned(), text: block.to_owned() };
    if let Err(mistakes) = statusgate_core::policy::PolicySet::compile(&[source]) {
        panic!("{mistakes}");
    }
}

#[test]
fn the_readme_shows_the_diagnostic_of_its_invalid_policy() {
    let block = README
        .split("```text\n")
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .find(|block| block.contains("my-policy.yaml"))
        .expect("the README shows a mistake");
    let text = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata:\n  name: mine\nspec:\n  \
        convention: appcat\n  resources:\n    - apiGroups: [a]\n      apiVersions: [v1]\n      resources: [b]\n  \
        enforcment: Warn\n";
    let source = statusgate_core::policy::Source {
        name: "my-policy.yaml".to_owned(),
        text: text.to_owned(),
    };
    let mistakes = statusgate_core::policy::PolicySet::compile(&[source]).unwrap_err();
    assert_eq!(mistakes.to_string().trim(), block.trim());
}
