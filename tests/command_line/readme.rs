//! The README and some pages show commands with their output; the tests run them.

use std::path::Path;
use std::process::Command;

use crate::command::{Ended, STATUSGATE};

const README: &str = include_str!("../../README.md");

/// Pages, the folder in which their commands run, and the number of commands.
const PAGES: [(&str, &str, usize); 5] = [
    ("README.md", "", 3),
    ("docs/check.md", "", 4),
    ("docs/lint.md", "", 1),
    ("docs/status.md", "", 2),
    ("docs/write-a-convention.md", "examples/write-a-convention", 15),
];

/// The blocks fenced as `console`: a command after `$ `, and its output.
fn transcripts(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("```console\n$ ").skip(1).map(|rest| {
        let block = rest.split("```").next().unwrap_or_default();
        block.split_once('\n').unwrap_or((block, ""))
    })
}

#[test]
fn the_pages_show_the_output_of_their_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = Path::new(STATUSGATE).parent().unwrap().display();
    for (page, folder, count) in PAGES {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for (command, expected) in transcripts(&text) {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("PATH={programs}:$PATH; {command}")]);
            let ended = Ended::of(&shell.current_dir(root.join(folder)).output().unwrap());
            assert_eq!(ended.out, expected, "{page}: $ {command}\n{}", ended.err);
        }
        assert_eq!(transcripts(&text).count(), count, "{page}");
    }
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
